"""The `dftracer` command. Each verb is a module here with `add_arguments` and `run`."""

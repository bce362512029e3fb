"""The debug names of older releases; see dftracer.python.dbg."""

"""Where the commands `dftracer` and `merge_trace` begin.

Imports next to nothing before Ctrl-C is taken care of: until the command itself does that, there is
nothing to clean up, and the default action ends the process without a traceback.
"""

import signal
import sys


def main() -> int:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dftracer.commands._cli.main import main as command

    return command()


def merge_trace() -> int:
    """`merge_trace --file-list A B ... --output OUT`, the name that the guides use."""
    sys.argv.insert(1, "merge")
    return main()

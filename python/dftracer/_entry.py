"""Entry points of the commands `dftracer` and `merge_trace`.

Restores the default action of Ctrl-C before anything else is imported: until the command installs
its own handler there is nothing to clean up, and the process ends without a traceback.
"""

import signal
import sys


def main() -> int:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import dftracer

    if not hasattr(dftracer, "_OURS"):
        # DFTracer's own package has replaced dftracer/__init__.py, or its removal has deleted it.
        from dftracer import _mixture

        _mixture.warn()
    from dftracer.commands._cli.main import main as command

    return command()


def merge_trace() -> int:
    """`merge_trace --file-list A B ... --output OUT`, another name of `dftracer merge`."""
    sys.argv.insert(1, "merge")
    return main()

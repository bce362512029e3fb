"""The one exception that a user's mistake raises."""

from __future__ import annotations


class DFTracerError(Exception):
    """Printed as one line by the command, which then ends with `exit_code`."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code

"""Errors as the caller gets them: the class and the message, never the traceback."""

from __future__ import annotations

import os
import sys
import traceback

_HERE = os.path.dirname(__file__)


class Refusal(Exception):
    """A call that does not come to run a function, for a reason that lies with the caller."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class UnserializableResult(Exception):
    """A result that JSON cannot hold."""


def describe(error: BaseException) -> dict[str, str]:
    kind = error.kind if isinstance(error, Refusal) else type(error).__name__
    return {"type": kind, "message": str(error)}


def report(error: BaseException) -> None:
    """Prints it with its traceback, within the call that it belongs to."""
    if isinstance(error, UnserializableResult):  # the function has returned: no line of it is to blame
        sys.stderr.write(f"UnserializableResult: {error}\n")
        return
    trace = error.__traceback__
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == _HERE:
        trace = trace.tb_next
    sys.stderr.write("".join(traceback.format_exception(type(error), error, trace or error.__traceback__)))

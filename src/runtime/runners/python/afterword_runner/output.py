"""What the process prints, in whole lines, of which those printed by a call begin with `@<run id>` and a
tab: calls run at the same time, and the supervisor has to tell their lines apart. A call's lines are known
by its context (contextvars), which tasks and `asyncio.to_thread` inherit; plain threads do not.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator

# A line longer than this is broken, so that one without an end does not fill the memory.
MAX_LINE_BYTES = 64 * 1024

_run_id: ContextVar[str] = ContextVar("run_id", default="")
_outputs: list[LineOutput] = []


def capture_output() -> None:
    """Takes the place of standard output and standard error."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        output = LineOutput(descriptor)
        _outputs.append(output)
        # Whatever the locale, and with an escape for what is no text.
        text = io.TextIOWrapper(output, "utf-8", "backslashreplace", newline="\n", write_through=True)
        setattr(sys, name, text)
        atexit.register(output.end_lines, "")


@contextmanager
def within(run_id: str) -> Iterator[None]:
    """What is printed in here carries the run's id."""
    token = _run_id.set(run_id)
    try:
        yield
    finally:
        _run_id.reset(token)
        for output in _outputs:
            output.end_lines(run_id)


class LineOutput(io.RawIOBase):
    """A file to which whole lines are written at once, each thread's and each run's by themselves."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.RLock()
        self._begun: dict[tuple[str, int], bytes] = {}
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """In a forked process, where the thread that held the lock may be missing."""
        self._lock = threading.RLock()

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        chunk = bytes(data)
        run_id = _run_id.get()
        key = (run_id, threading.get_ident())
        with self._lock:
            *lines, rest = (self._begun.pop(key, b"") + chunk).split(b"\n")
            if len(rest) > MAX_LINE_BYTES:
                lines.append(rest)
                rest = b""
            if rest:
                self._begun[key] = rest
            self._print(run_id, lines)
        return len(chunk)

    def end_lines(self, run_id: str) -> None:
        """Prints the lines of a run, or of none, that have no end yet."""
        with self._lock:
            keys = [key for key in self._begun if key[0] == run_id]
            self._print(run_id, [self._begun.pop(key) for key in keys])

    def _print(self, run_id: str, lines: list[bytes]) -> None:
        prefix = f"@{run_id}\t".encode() if run_id else b""
        remaining = b"".join(prefix + line + b"\n" for line in lines)
        while remaining:
            remaining = remaining[os.write(self._descriptor, remaining) :]

"""Imports the entry, serves its functions, stops when it is told to."""

from __future__ import annotations

import os
import selectors
import signal
import sys

from .functions import functions_of, load
from .output import capture_output
from .server import CallServer
from .tasks import TaskLoop


def main(socket_path: str, entry: str) -> None:
    capture_output()
    functions = functions_of(load(entry))
    if not functions:
        sys.exit(f"{entry} has no public function")
    tasks = TaskLoop()
    tasks.start()
    serve(CallServer(socket_path, functions, tasks))


def serve(server: CallServer) -> None:
    """Takes connections until SIGTERM, then waits for the calls that run."""
    told = signals()
    server.listen()
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(told, selectors.EVENT_READ)
        stopping = False
        while not stopping:
            for key, _ in selector.select():
                if key.fileobj is server:
                    server.handle_request()
                else:
                    stopping = signal.SIGTERM in os.read(told, 64)
    server.stop()


def signals() -> int:
    """Where the number of each signal can be read.

    It is written by the interpreter's own handler: one in Python runs only between two steps, and a signal
    just before the wait would be noticed at its end.
    """
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    return told

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
    told, tell = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"!"))
    server.listen()
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(told, selectors.EVENT_READ)
        while not any(key.fileobj == told for key, _ in selector.select()):
            server.handle_request()
    server.stop()

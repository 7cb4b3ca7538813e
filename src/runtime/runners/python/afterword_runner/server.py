"""HTTP/1.1 on a Unix socket, a thread for each connection, connections kept."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any, BinaryIO, Mapping, Optional

from .calls import Answer, Call, answer
from .errors import report
from .functions import Function
from .output import within
from .results import to_json
from .tasks import TaskLoop

# There is no other way to allow for more header fields than a hundred; the gateway takes more.
http.client._MAXHEADERS = 10_000  # type: ignore[attr-defined]


class CallHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CallServer

    def handle_one_request(self) -> None:
        self.server.mark_idle(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        self.server.mark_busy(self.connection)
        return super().parse_request()

    def finish(self) -> None:
        self.server.mark_busy(self.connection)  # not to be touched any more
        super().finish()

    def do_POST(self) -> None:
        call = Call(self.path[1:].partition("?")[0], read_body(self.rfile, self.headers), self.hung_up)
        with within(self.headers.get("X-Request-Id", "-")):
            self.send(answer(call, self.server.functions, self.server.tasks))

    def send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        self.send_header("Date", self.date_time_string())
        self.send_header("Content-Type", answer.content_type)
        if self.close_connection:
            self.send_header("Connection", "close")
        if answer.more is None:
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        with contextlib.closing(answer.more):
            self.send_header("Cache-Control", "no-store")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if answer.body:
                self.send_chunk(answer.body)
            for event in answer.more:
                self.send_chunk(event)
        self.send_chunk(b"")

    def send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        self.close_connection = True
        error = {"type": "BadRequest", "message": message or self.responses[code][0]}
        self.send(Answer(code, "application/json", to_json({"error": error})))

    def hung_up(self) -> bool:
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def log_message(self, format: str, *args: Any) -> None:
        """The gateway logs calls."""


class CallServer(socketserver.ThreadingUnixStreamServer):
    request_queue_size = 1024
    timeout = 0  # of handle_request, which is asked only when there is something to take

    def __init__(self, path: str, functions: Mapping[str, Function], tasks: TaskLoop) -> None:
        super().__init__(path, CallHandler, bind_and_activate=False)
        self.functions = functions
        self.tasks = tasks
        self._lock = threading.Lock()
        self._stopping = False
        self._idle: set[socket.socket] = set()

    def listen(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # left behind by a process that was killed
            os.unlink(self.server_address)
        self.server_bind()
        self.server_activate()

    def stop(self) -> None:
        """Takes no more connections, and waits for the calls that run."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.server_address)
        with self._lock:
            self._stopping = True
            for connection in self._idle:
                end_input(connection)
        self.server_close()

    def mark_idle(self, connection: socket.socket) -> None:
        with self._lock:
            self._idle.add(connection)
            if self._stopping:
                end_input(connection)

    def mark_busy(self, connection: socket.socket) -> None:
        with self._lock:
            self._idle.discard(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):  # those who hang up do no harm
            report(error)


def end_input(connection: socket.socket) -> None:
    """The connection ends with the request that it has already brought, or at once where there is none."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RD)


def read_body(stream: BinaryIO, headers: Mapping[str, str]) -> bytes:
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        return read_chunks(stream)
    return read_exactly(stream, int(headers.get("Content-Length", 0)))


def read_chunks(stream: BinaryIO) -> bytes:
    """RFC 9112, section 7.1; nobody has a use for trailers here."""
    chunks = []
    while True:
        size = int(read_line(stream).partition(b";")[0], 16)
        if size == 0:
            break
        chunks.append(read_exactly(stream, size))
        read_line(stream)
    while read_line(stream):
        pass
    return b"".join(chunks)


def read_line(stream: BinaryIO) -> bytes:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the caller hung up")
    return line.rstrip(b"\r\n")


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError("the caller hung up")
    return data

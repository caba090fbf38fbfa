"""HTTP/1.1 on loopback: one thread per connection, keep-alive, bounded buffers.

Supports only what a model API needs: requests and answers with a length or in chunks. A connection can be cut in every way that a
network can cut one. Nothing here interprets the content.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from http import HTTPStatus
from io import BufferedReader
from typing import Literal, NamedTuple

HOST = "127.0.0.1"
# The headers of a model API have a few hundred bytes; more than this is a mistake.
MAX_LINE = 65_536
MAX_HEADERS = 200
# An oversized body is still read to its end, up to this limit, so that the client receives the answer.
MAX_DRAINED = 1 << 30
_DRAIN_STEP = 1 << 16
# Threads end with their connection. One that hangs longer than this is abandoned; it is a daemon and ends with the interpreter.
JOIN_SECONDS = 5.0
# A linger time of zero makes close() send a reset. The structure is two ints, on Windows two shorts.
_NO_FAREWELL = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Incoming(NamedTuple):
    method: str
    path: str  # without the query
    headers: dict[str, str]  # names in lower case
    body: bytes
    too_large: bool = False


class Outgoing(NamedTuple):
    status: int
    headers: dict[str, str]
    parts: tuple[bytes, ...]
    stream: bool = False
    cut: Literal["", "reset", "close"] = ""  # how the connection ends after the parts, before the answer is complete
    silent: bool = False  # not even the status line is sent
    begins: bool = True  # whether the answer begins, which puts the request into the cache


class Transport:
    """Listens for connections from `open` to `close`."""

    def __init__(self, respond: Callable[[Incoming], Outgoing], body_limit: Callable[[], int], closing: threading.Event) -> None:
        self._respond = respond
        self._body_limit = body_limit
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self.closing = closing
        self.port = 0

    def open(self) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept, self._listener)

    def close(self) -> None:
        """Wake all waiting threads and wait for them to end."""
        self.closing.set()
        if self._listener is None:
            return
        # On some systems accept() does not return when its socket is closed, but it always returns for a connection.
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            pass
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._listener.close()
        self._listener = None

    def _start(self, run: Callable[[socket.socket], None], sock: socket.socket) -> None:
        thread = threading.Thread(target=run, args=(sock,), name="lamina-testing", daemon=True)
        self._threads = [known for known in self._threads if known.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if self.closing.is_set():
                connection.close()
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        reader = connection.makefile("rb")
        try:
            while not self.closing.is_set() and self._exchange(connection, reader):
                pass
        finally:
            with self._lock:
                self._connections.discard(connection)
            reader.close()
            connection.close()

    def _exchange(self, connection: socket.socket, reader: BufferedReader) -> bool:
        """Handle one request. Returns whether the connection can be used again.

        Only network errors are caught. An exception of the test's own function ends the thread, where the test runner reports it.
        """
        try:
            incoming = read_request(connection, reader, self._body_limit)
        except (OSError, ValueError):
            return False  # the client disconnected or does not speak HTTP
        if incoming is None:
            return False
        outgoing = self._respond(incoming)
        try:
            if not outgoing.silent:
                send(connection, outgoing)
            if outgoing.cut == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_FAREWELL)
        except OSError:
            return False  # the client disconnected before the end
        return not outgoing.cut and incoming.headers.get("connection", "").lower() != "close"


def read_request(connection: socket.socket, reader: BufferedReader, body_limit: Callable[[], int]) -> Incoming | None:
    """Read one request, or return None if the client closed the connection.

    The limit is read only when a request arrives, because a connection may be idle for long and the limit may change.
    """
    line = reader.readline(MAX_LINE)
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = _read_headers(reader)
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    path = target.partition("?")[0]
    limit = body_limit()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _read_chunks(reader, limit)
        return Incoming(method, path, headers, body or b"", body is None)
    length = int(headers.get("content-length") or 0)
    if length > limit:
        _drain(reader, length)
        return Incoming(method, path, headers, b"", True)
    return Incoming(method, path, headers, reader.read(length))


def _read_headers(reader: BufferedReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS):
        line = reader.readline(MAX_LINE).decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError("too many headers")


def _read_chunks(reader: BufferedReader, limit: int) -> bytes | None:
    """Read a chunked body. Returns None if it exceeds the limit; the excess is read and discarded."""
    parts: list[bytes] = []
    size = 0
    while True:
        length = int(reader.readline(MAX_LINE).split(b";")[0] or b"0", 16)
        if length == 0:
            reader.readline(MAX_LINE)
            return b"".join(parts) if size <= limit else None
        size += length
        if size <= limit:
            parts.append(reader.read(length))
        else:
            _drain(reader, length)
        reader.readline(MAX_LINE)


def _drain(reader: BufferedReader, length: int) -> None:
    left = min(length, MAX_DRAINED)
    while left > 0 and (got := len(reader.read(min(left, _DRAIN_STEP)))):
        left -= got


def send(connection: socket.socket, outgoing: Outgoing) -> None:
    headers = dict(outgoing.headers)
    if outgoing.stream:
        headers["transfer-encoding"] = "chunked"
    else:
        # A cut answer announces one byte more than it has, so that the client notices.
        headers["content-length"] = str(sum(map(len, outgoing.parts)) + bool(outgoing.cut))
    head = [f"HTTP/1.1 {outgoing.status} {_REASONS.get(outgoing.status, 'Status')}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1"))
    for part in outgoing.parts:
        connection.sendall(b"%x\r\n%b\r\n" % (len(part), part) if outgoing.stream else part)
    if outgoing.stream and not outgoing.cut:
        connection.sendall(b"0\r\n\r\n")

"""Messages between sessions of one user over Unix sockets: the listener, the caller, and their short protocol.

    listener   {"lamina":1,"session":"…"}     so that a caller never writes to a socket that is not a session's
    caller     one message, a line            within MOST_LINE bytes and SECONDS, all of it
    listener   {"ok":true}                    or {"error":"…"}

Both sides ask the kernel who owns the process at the other end, and disconnect unless it is the same user. A caller that is slow, sends
too much or sends an invalid message is disconnected, with or without an answer. At most MOST_CALLERS are connected at once; further ones
are disconnected immediately. So a caller costs at most one thread for a few seconds. After `close` no message is accepted, and open
connections are closed. On a system without Unix sockets or peer credentials, calls are refused with one sentence.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...disk.home import sockets
from .messages import AgentMessage, encode_message, read_message

# A message with the longest text, every character escaped.
MOST_LINE = 160 << 10
MOST_ANSWER = 4_096
# Timeout of a whole call. A session answers in milliseconds, or in a second or two under load.
SECONDS = 10.0
MOST_CALLERS = 8
# How often a listener and a caller check whether to stop.
GLANCE = 0.2
_PART = 16 << 10
# Characters of a session's id used in the path. The end of the id is random, and socket paths must be short.
OF_NAME = 12

ENDING = "The session is closing."
NO_SOCKETS = "This system has no Unix sockets, so sessions cannot call each other. Use a mailbox instead."
NOBODY_KNOWN = "This system cannot identify the user behind a socket, so sessions cannot call each other. Use a mailbox instead."

# Accepts a message that arrived. Returns None, or the problem.
Take = Callable[[AgentMessage], str | None]


class _Greeting(msgspec.Struct):
    lamina: int
    session: str = ""


class _SocketAnswer(msgspec.Struct, omit_defaults=True):
    ok: bool = False
    error: str = ""


T = TypeVar("T", _Greeting, _SocketAnswer)


class _Hangup(Exception):
    """Ends this connection."""


def peer_uid(connected: socket.socket) -> int | None:
    """Return the user id of the process at the other end, or None if the system does not provide it."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", data)[1])
    if hasattr(socket, "LOCAL_PEERCRED"):  # macOS: struct xucred begins with its version and the uid
        data = connected.getsockopt(0, socket.LOCAL_PEERCRED, 76)
        return int(struct.unpack("2I", data[:8])[1])
    return None


class Listener:
    """Listens in its own thread until `close`."""

    def __init__(self, home: Path, session: str, take: Take, *, seconds: float = SECONDS) -> None:
        """Raises DiskError if listening is not possible here."""
        if not sockets.supported():
            raise DiskError(str(home / sockets.DIRECTORY), NO_SOCKETS.rstrip("."))
        sockets.sweep(home, now=time.time())
        self._take = take
        self._seconds = seconds
        self._greeting = msgspec.json.encode(_Greeting(1, session)) + b"\n"
        self._callers: set[socket.socket] = set()
        self._lock = threading.Lock()  # guards the callers and the closing
        self._over = threading.Event()
        self._process = os.getpid()
        self._socket, self.path = sockets.bind(home, session[-OF_NAME:])
        self._socket.settimeout(GLANCE)
        self._thread = threading.Thread(target=self._listen, name="lamina-socket", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._socket.close()
            sockets.remove(self.path)
            raise DiskError(str(self.path), "cannot listen: the system has no threads left", "close another program") from error

    @property
    def address(self) -> str:
        return f"uds:{os.path.realpath(self.path)}"

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                caller, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:  # out of descriptors, or closed
                self._over.wait(GLANCE)
                continue
            if not self._admit(caller):
                caller.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(caller,), name="lamina-caller", daemon=True).start()
            except RuntimeError:  # no threads left
                self._disconnect(caller)

    def _admit(self, caller: socket.socket) -> bool:
        with self._lock:
            if self._over.is_set() or len(self._callers) >= MOST_CALLERS:
                return False
            self._callers.add(caller)
            return True

    def _disconnect(self, caller: socket.socket) -> None:
        with self._lock:
            self._callers.discard(caller)
            caller.close()

    def _serve(self, caller: socket.socket) -> None:
        try:
            with suppress(OSError, _Hangup):
                if peer_uid(caller) != os.geteuid():
                    return
                until = time.monotonic() + self._seconds
                _send(caller, self._greeting, until)
                message = read_message(_receive_line(caller, MOST_LINE, until))
                problem = self._accept(message) if message is not None else "This is not a valid message."
                _send(caller, msgspec.json.encode(_SocketAnswer(problem is None, problem or "")) + b"\n", until)
        finally:
            self._disconnect(caller)

    def _accept(self, message: AgentMessage) -> str | None:
        with self._lock:
            return ENDING if self._over.is_set() else self._take(message)

    def close(self) -> None:
        if os.getpid() != self._process:  # a forked child: the socket and its file belong to the parent
            self._socket.close()
            return
        with self._lock:
            self._over.set()
            for caller in self._callers:
                with suppress(OSError):
                    caller.shutdown(socket.SHUT_RD)  # a caller that was answered can still read the answer
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waking:
            waking.settimeout(GLANCE)
            waking.connect(str(self.path))
        self._thread.join(self._seconds)
        self._socket.close()
        sockets.remove(self.path)


def call_session(
    path: str, message: AgentMessage, *, seconds: float = SECONDS, abort: threading.Event | None = None
) -> str | None:
    """Send one message to the session that listens at `path`. Returns None on success, else the problem as a sentence. An abort ends a
    call that gets no answer."""
    if not sockets.supported():
        return NO_SOCKETS
    if not os.path.isabs(path) or "\0" in path or len(os.fsencode(path)) > sockets.LONGEST:
        return f"{path[:200]!r} is not an absolute socket path."
    if (real := os.path.realpath(path)) != path:  # permission rules match the path in the call
        return f"{path} is a link, so nothing was sent. Use the socket's own path: {real}."
    until, sent = time.monotonic() + seconds, False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as calling:
        calling.settimeout(seconds)
        try:
            calling.connect(path)
            uid = peer_uid(calling)
            if uid is None:
                return NOBODY_KNOWN
            if uid != os.geteuid():
                return f"The socket {path} belongs to another user, so nothing was sent."
            if _decode(_receive_line(calling, MOST_ANSWER, until, abort), _Greeting) is None:
                return f"The program at {path} is not a Lamina session, so nothing was sent."
            sent = True
            _send(calling, encode_message(message) + b"\n", until)
            answer = _decode(_receive_line(calling, MOST_ANSWER, until, abort), _SocketAnswer)
        except (FileNotFoundError, ConnectionRefusedError):
            return f"No session listens at {path}."
        except OSError as error:
            return f"The call to {path} failed: {os.strerror(error.errno) if error.errno else 'timeout'}."
        except _Hangup:
            how = "the message may be lost" if sent else "nothing was sent. It may be busy; try again"
            return f"The session at {path} disconnected or timed out; {how}."
    if answer is None:
        return f"The session at {path} gave no valid answer; the message may be lost."
    return None if answer.ok else answer.error or f"The session at {path} refused the message."


def _decode(line: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except UNDECODABLE:
        return None


def _send(to: socket.socket, line: bytes, until: float) -> None:
    to.settimeout(max(0.01, until - time.monotonic()))
    to.sendall(line)


def _receive_line(from_: socket.socket, most: int, until: float, abort: threading.Event | None = None) -> bytes:
    """Read one line. The timeout is for the whole line, so a caller that sends single bytes slowly is disconnected too."""
    held = bytearray()
    while len(held) <= most:
        left = until - time.monotonic()
        if left <= 0 or (abort is not None and abort.is_set()):
            raise _Hangup
        from_.settimeout(min(left, GLANCE))
        try:
            part = from_.recv(_PART)
        except TimeoutError:
            continue
        held += part
        if b"\n" in part:
            return bytes(held).partition(b"\n")[0]
        if not part:
            raise _Hangup
    raise _Hangup

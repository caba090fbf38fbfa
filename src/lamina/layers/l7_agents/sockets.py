"""Messages between sessions of one person by Unix socket: who listens, who calls, and the few lines they say.

    listener   {"lamina":1,"session":"…"}     so that nothing is ever written to a socket that is not a session's
    caller     one message, a line            within MOST_LINE bytes and SECONDS, all of it
    listener   {"ok":true}                    or {"error":"…"}

Both ask the kernel whose process is at the other end and hang up on any but the same person's. A caller that is slow, says too much or
no message at all gets an answer or none and is hung up on; MOST_CALLERS are heard at once, and more are hung up on unheard. So no
caller takes more than a thread for a few seconds. After `close` no message is taken, and who is still connected is hung up on. Where
the system has no Unix sockets, or can't say whose a process is, there are no calls: that is one sentence.
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

from ...core.errors import DiskError
from ...disk.home import sockets
from .messages import AgentMessage, encode_message, read_message

# A message of the longest text, each character escaped.
MOST_LINE = 160 << 10
MOST_ANSWER = 4_096
# For a whole call. A session answers in milliseconds; a machine under load in a second or two.
SECONDS = 10.0
MOST_CALLERS = 8
# How often a listener looks whether it is to end, and a caller whether it is to stop.
GLANCE = 0.2
_PART = 16 << 10
# Of a session's id: its end is random, and a socket's path is short.
OF_NAME = 12

ENDING = "The session is ending."
NO_SOCKETS = "This system has no Unix sockets, so sessions can't call each other; use a mailbox."
NOBODY_KNOWN = (
    "This system can't say whose process is at the other end of a socket, so sessions can't call each other; use a mailbox."
)

# Takes a message that came; what is wrong with it, or None.
Take = Callable[[AgentMessage], str | None]


class _Greeting(msgspec.Struct):
    lamina: int
    session: str = ""


class _SocketAnswer(msgspec.Struct, omit_defaults=True):
    ok: bool = False
    error: str = ""


T = TypeVar("T", _Greeting, _SocketAnswer)


class _Hangup(Exception):
    """This call goes no further."""


def peer_uid(connected: socket.socket) -> int | None:
    """Whose process is at the other end; None where the system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", data)[1])
    if hasattr(socket, "LOCAL_PEERCRED"):  # macOS: struct xucred begins with its version and the uid
        data = connected.getsockopt(0, socket.LOCAL_PEERCRED, 76)
        return int(struct.unpack("2I", data[:8])[1])
    return None


class Listener:
    """Listens until `close`, in a thread of its own."""

    def __init__(self, home: Path, session: str, take: Take, *, seconds: float = SECONDS) -> None:
        """DiskError where there is no listening here."""
        if not sockets.supported():
            raise DiskError(str(home / sockets.DIRECTORY), NO_SOCKETS.rstrip("."))
        sockets.sweep(home, now=time.time())
        self._take = take
        self._seconds = seconds
        self._greeting = msgspec.json.encode(_Greeting(1, session)) + b"\n"
        self._callers: set[socket.socket] = set()
        self._lock = threading.Lock()  # of the callers, and of whether it is over
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
            raise DiskError(str(self.path), "can't be listened at: the system has no thread to give", "end a program") from error

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
            if not self._let_in(caller):
                caller.close()
                continue
            try:
                threading.Thread(target=self._hear, args=(caller,), name="lamina-caller", daemon=True).start()
            except RuntimeError:  # no thread to be had
                self._gone(caller)

    def _let_in(self, caller: socket.socket) -> bool:
        with self._lock:
            if self._over.is_set() or len(self._callers) >= MOST_CALLERS:
                return False
            self._callers.add(caller)
            return True

    def _gone(self, caller: socket.socket) -> None:
        with self._lock:
            self._callers.discard(caller)
            caller.close()

    def _hear(self, caller: socket.socket) -> None:
        try:
            with suppress(OSError, _Hangup):
                if peer_uid(caller) != os.geteuid():
                    return
                until = time.monotonic() + self._seconds
                _say(caller, self._greeting, until)
                message = read_message(_heard(caller, MOST_LINE, until))
                problem = self._taken(message) if message is not None else "That is no message."
                _say(caller, msgspec.json.encode(_SocketAnswer(problem is None, problem or "")) + b"\n", until)
        finally:
            self._gone(caller)

    def _taken(self, message: AgentMessage) -> str | None:
        with self._lock:
            return ENDING if self._over.is_set() else self._take(message)

    def close(self) -> None:
        if os.getpid() != self._process:  # a forked child: the socket and its file are its parent's
            self._socket.close()
            return
        with self._lock:
            self._over.set()
            for caller in self._callers:
                with suppress(OSError):
                    caller.shutdown(socket.SHUT_RD)  # one that was answered still reads the answer
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waking:
            waking.settimeout(GLANCE)
            waking.connect(str(self.path))
        self._thread.join(self._seconds)
        self._socket.close()
        sockets.remove(self.path)


def call_session(
    path: str, message: AgentMessage, *, seconds: float = SECONDS, abort: threading.Event | None = None
) -> str | None:
    """Sends one message to the session that listens at `path`; what went wrong as a sentence, None: it has it. An abort leaves one
    that says nothing."""
    if not sockets.supported():
        return NO_SOCKETS
    if not os.path.isabs(path) or "\0" in path or len(os.fsencode(path)) > sockets.LONGEST:
        return f"{path[:200]!r} is no full path of a socket."
    if (real := os.path.realpath(path)) != path:  # rules speak of the path in the call
        return f"{path} leads elsewhere, so nothing was sent; the socket's own path is {real}."
    until, sent = time.monotonic() + seconds, False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as calling:
        calling.settimeout(seconds)
        try:
            calling.connect(path)
            uid = peer_uid(calling)
            if uid is None:
                return NOBODY_KNOWN
            if uid != os.geteuid():
                return f"The socket {path} belongs to somebody else, so nothing was sent."
            if _decoded(_heard(calling, MOST_ANSWER, until, abort), _Greeting) is None:
                return f"What listens at {path} is no session, so nothing was sent."
            sent = True
            _say(calling, encode_message(message) + b"\n", until)
            answer = _decoded(_heard(calling, MOST_ANSWER, until, abort), _SocketAnswer)
        except (FileNotFoundError, ConnectionRefusedError):
            return f"No session listens at {path}."
        except OSError as error:
            return f"The call to {path} failed: {os.strerror(error.errno) if error.errno else 'it took too long'}."
        except _Hangup:
            how = "the message may not have been taken" if sent else "nothing was sent; others may be calling, so try again"
            return f"What listens at {path} hung up or took too long, so {how}."
    if answer is None:
        return f"What listens at {path} gave no answer, so the message may not have been taken."
    return None if answer.ok else answer.error or f"The session at {path} did not take the message."


def _decoded(line: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _say(to: socket.socket, line: bytes, until: float) -> None:
    to.settimeout(max(0.01, until - time.monotonic()))
    to.sendall(line)


def _heard(from_: socket.socket, most: int, until: float, abort: threading.Event | None = None) -> bytes:
    """One line. The time is for all of it: a caller that sends a byte now and then is hung up on like one that sends none."""
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

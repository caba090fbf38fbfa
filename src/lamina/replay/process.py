"""A replay in a separate process, which gives the report of one session at a time.

A replay computes for minutes and needs the memory of whole sessions. In the process of a server each of its calls would hold up an answer,
and the memory would never come back. The process (process_main.py) gets a ReplayOrder and then the path of a session a line, all as JSON,
and answers with lines of ReplayNews, of which one with a report ends a session. Invariants: `end` may be called by any thread at any time,
and the process then removes its temporary home; it also ends when the one that started it does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from ..language.text import Text, pack, unpack
from .report import ReplayReport
from .variants import Variant

T = TypeVar("T")
MODULE = f"{__package__}.process_main"
# Seconds that a process may take to remove its temporary home. A home of thousands of results takes a second.
END_SECONDS = 20.0
ENDED = "its process ended unexpectedly"


class ReplayOrder(msgspec.Struct, frozen=True):
    """The sessions and rows to replay, and the place whose settings count."""

    files: list[str]
    rows: list[Variant]
    cwd: str
    home: str | None
    environ: dict[str, str]


class ReplayProgress(NamedTuple):
    policy: str = ""
    call: int = 0
    calls: int = 0


class ReplayNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of these is set."""

    copies: dict[str, Text] | None = None  # files that another one contains, with a sentence; comes first
    progress: ReplayProgress | None = None
    first: ReplayReport | None = None  # the rows of the first session so far
    report: ReplayReport | None = None  # of the session that was asked for
    problem: str | None = None  # the replay cannot go on


def encoded(value: object) -> bytes:
    """Return a value as a line. A name of a file or a variable may contain bytes that are not UTF-8, which msgspec refuses to encode."""
    return json.dumps(msgspec.to_builtins(value, enc_hook=pack)).encode() + b"\n"


def decoded(line: bytes, type: type[T]) -> T:
    """Return the value of a line. Raises ValueError for anything else."""
    try:
        return msgspec.convert(json.loads(line), type, dec_hook=unpack)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


class ReplayEnded(Exception):
    """The process has ended before it had an answer."""


class ReplayProcess:
    """The process. As a context manager it is ended at the end."""

    def __init__(self, order: ReplayOrder, told: Callable[[ReplayNews], None]) -> None:
        self._told = told
        command = [sys.executable, "-P", "-m", MODULE]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._killing = threading.Timer(END_SECONDS, self._popen.kill)
        self._killing.daemon = True
        self._ending = threading.Lock()
        self._send(order)

    def __enter__(self) -> ReplayProcess:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()
        self._popen.wait()
        self._killing.cancel()
        for pipe in (self._popen.stdin, self._popen.stdout):
            with suppress(OSError):  # it did not read all that was sent
                _open(pipe).close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def find_copies(self) -> dict[str, Text]:
        """Return the files that another one contains, with a sentence. It is asked for once, before all else. Raises ReplayEnded."""
        copies: dict[str, Text] = self._next(lambda news: news.copies)
        return copies

    def play(self, path: str) -> ReplayReport:
        """Return the report of one session. Raises ReplayEnded."""
        self._send(path)
        report: ReplayReport = self._next(lambda news: news.report)
        return report

    def end(self) -> None:
        """End the process, by force if it does not remove its home soon."""
        if self._ending.acquire(blocking=False):
            self._popen.terminate()
            self._killing.start()

    def _send(self, value: object) -> None:
        with suppress(OSError):  # it has ended: the next answer tells
            stdin = _open(self._popen.stdin)
            stdin.write(encoded(value))
            stdin.flush()

    def _next(self, wanted: Callable[[ReplayNews], Any]) -> Any:
        """Return the first news that is wanted, and tell the others."""
        for line in _open(self._popen.stdout):
            try:
                news = decoded(line, ReplayNews)
            except ValueError:  # it was killed while it wrote
                break
            if news.problem is not None:
                raise ReplayEnded(news.problem)
            if (found := wanted(news)) is not None:
                return found
            self._told(news)
        raise ReplayEnded(ENDED)


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe

"""Drive `lamina` on a pseudo-terminal: type text and wait for output."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from .running import PATIENCE

# The terminal becomes the controlling one, as a real one is: closing it sends SIGHUP.
START = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from lamina.cli.main import main; main()"
SEQUENCE = re.compile(r"\x1b\[[0-9;?>]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]")
PROMPT = re.compile(r">[^\n>]*\n[\s\x08]*context [^\n]*background: ")
ASKS_WHERE = b"\x1b[6n"


class Terminal:
    def __init__(self, *arguments: str, cwd: Path, columns: int = 160, **env: str) -> None:
        # A size in the environment would hide that of the terminal.
        own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**own, "TERM": "xterm-256color", **env},
            start_new_session=True,
        )
        os.close(theirs)
        self.written = b""
        self._seen = 0
        self._news = threading.Condition()
        self._open = True
        self._closing, self._close = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while piece := self._piece():
            if ASKS_WHERE in piece:
                os.write(self._ours, b"\x1b[3;1R")
            with self._news:
                self.written += piece
                self._news.notify_all()
        os.close(self._ours)
        with self._news:
            self._open = False
            self._news.notify_all()

    def _piece(self) -> bytes:
        ready, _, _ = select.select([self._ours, self._closing], [], [])
        if self._closing in ready:
            return b""
        try:
            return os.read(self._ours, 65_536)
        except OSError:  # how Linux reports the end of a terminal
            return b""

    @property
    def text(self) -> str:
        """All that was shown, without what moves and colours it."""
        return SEQUENCE.sub("", self.written.decode("utf-8", "replace")).replace("\r", "")

    def expect(self, words: str) -> str:
        """Waits until these words are shown behind those expected before; what stands between is returned."""
        return self.expect_match(re.compile(re.escape(words)))

    def prompt(self) -> str:
        """Waits for the next prompt with the status line below it. During a turn the progress line stands above the status line."""
        return self.expect_match(PROMPT)

    def expect_match(self, pattern: re.Pattern[str]) -> str:
        with self._news:
            ended = self._news.wait_for(lambda: pattern.search(self.text[self._seen :]) or not self._open, PATIENCE)
            shown = self.text[self._seen :]
            assert ended, f"{pattern.pattern!r} did not appear in:\n{shown}"
            found = pattern.search(shown)
            assert found, f"the terminal ended without {pattern.pattern!r}:\n{shown}"
            self._seen += found.end()
            return shown[: found.end()]

    def press(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def say(self, text: str) -> None:
        self.press(f"{text}\r")

    def close(self) -> None:
        """The window is closed."""
        os.write(self._close, b"x")
        self._reader.join(PATIENCE)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self.close()
        os.close(self._close)
        os.close(self._closing)

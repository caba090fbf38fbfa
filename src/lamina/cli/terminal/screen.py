"""What is written to the terminal while a turn runs: words as they come, whole lines, and one line that comes and goes.

Owns the cursor. Invariants: everything that was said somewhere is data, so no control sequence of it arrives; a whole line begins at
the left edge; the passing line, and what is below it, never wraps and is gone before anything else is written. Any thread may write.
A terminal that cannot move its cursor gets no passing line, and with NO_COLOR there are no colours.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from rich.cells import cell_len

from ..console import fit, printable
from ..output import StdoutSink

Style: TypeAlias = Literal["plain", "bold", "dim", "red", "green", "yellow", "cyan"]

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_CLEAR_LINE = "\r\x1b[K"
_CLEAR_BELOW = "\r\x1b[J"
# Often enough to be seen moving, seldom enough to cost nothing.
TICK = 0.12
# A shorter wait needs no line that explains it.
PATIENCE = 0.3
TAB = "    "
# Lines of a running command's output that are seen below the passing line: enough to follow it, few enough to leave the rest in view.
MOST_BELOW = 5
# A column narrower than this breaks a sentence at every second word.
LEAST_BESIDE = 36


class ScreenMarks:
    """Signs for the terminal's own characters."""

    def __init__(self, encoding: str | None) -> None:
        utf = (encoding or "").lower().startswith("utf")
        self.done, self.failed, self.asks, self.dash = ("✓", "✗", "?", "·") if utf else ("+", "x", "?", "-")
        self.frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if utf else "|/-\\"
        self.cut = "…" if utf else "..."


class Screen:
    def __init__(self, sink: StdoutSink) -> None:
        self._sink = sink
        self._lock = sink.lock
        term = os.environ.get("TERM", "")
        self.moves = term not in ("", "dumb", "unknown") or os.name == "nt"
        self.colours = self.moves and not os.environ.get("NO_COLOR")
        self.marks = ScreenMarks(sys.stdout.encoding)
        self._at_left = True
        self._passing = ""  # what the passing line says; empty: there is none
        self._below: tuple[str, ...] = ()  # what passes below it
        self._since = 0.0
        self._drawn = False
        self._ticker: threading.Thread | None = None
        self._wake = threading.Event()

    @property
    def width(self) -> int:
        return max(10, shutil.get_terminal_size().columns)

    @property
    def gone(self) -> bool:
        return self._sink.gone

    def styled(self, text: str, style: Style) -> str:
        code = _CODES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and code and text else text

    # What stays

    def raw(self, text: str) -> None:
        """Text that is clean already, as it is."""
        if not text:
            return
        with self._lock:
            self._hide()
            self._sink.write(text)
            self._at_left = text.endswith("\n")

    def line(self, text: str = "", style: Style = "plain") -> None:
        """A whole line, or several."""
        with self._lock:
            self.left()
            self._sink.write("".join(f"{self.styled(one, style)}\n" for one in clean(text).split("\n")))

    def note(self, text: str, style: Style = "plain", indent: str = "") -> None:
        """A sentence to the person, broken between words."""
        for one in wrap_text(clean(text), self.width - 1, indent):
            self.line(one, style)

    def notes(self, texts: Iterable[str], style: Style = "plain", indent: str = "") -> None:
        for text in texts:
            self.note(text, style, indent)

    def fold(self, text: str, style: Style, indent: str, hang: str) -> None:
        """A line that is shown whole, in pieces."""
        self.line("\n".join(fold_text(clean(text), self.width - 1, indent, hang)), style)

    def listed(self, name: str, style: Style, about: str, column: int) -> None:
        """A name and what it means, the latter from its own column on, or below where there is no room beside it."""
        room = self.width - 1
        if room - column < LEAST_BESIDE:
            self.line(f"  {name}", style)
            self.note(about, indent=" " * 6)
            return
        first, *rest = wrap_text(clean(about), room, " " * column)
        self.painted((f"  {name}".ljust(column), style), (first[column:], "plain"))
        for one in rest:
            self.line(one)

    def painted(self, *parts: tuple[str, Style]) -> None:
        """A line of several colours."""
        with self._lock:
            self.left()
            self._sink.write("".join(self.styled(clean(text), style) for text, style in parts) + "\n")

    def left(self) -> None:
        """To the left edge."""
        with self._lock:
            self._hide()
            if not self._at_left:
                self._sink.write("\n")
                self._at_left = True

    # What passes

    def wait(self, what: str) -> None:
        with self._lock:
            if not self.moves:
                return
            if not self._passing:
                self._since = time.monotonic()
            self._passing = " ".join(clean(what).split())
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="lamina-screen", daemon=True)
                self._ticker.start()
            self._wake.set()

    def below(self, lines: Sequence[str]) -> None:
        """Show the last of these lines below the passing line, for as long as it is there."""
        with self._lock:
            self._below = tuple(lines[-MOST_BELOW:])

    def calm(self) -> None:
        with self._lock:
            self._hide()
            self._passing, self._below = "", ()
            self._wake.clear()

    def _tick(self) -> None:
        while not self.gone:
            self._wake.wait()
            with self._lock:
                if self._passing and self._at_left and time.monotonic() - self._since >= PATIENCE:
                    self._sink.write(self._drawing())
                    self._drawn = True
            time.sleep(TICK)

    def _drawing(self) -> str:
        """The passing line and what is below it; the cursor ends on the first of them, so that one sequence removes all."""
        width = self.width - 1
        lines = [self._passing_line(), *(fit(f"  {clean(line)}", width, self.marks.cut) for line in self._below)]
        drawn = "\n".join(_CLEAR_LINE + self.styled(line, "dim") for line in lines) + "\x1b[J"
        return f"{drawn}\r\x1b[{len(lines) - 1}A" if len(lines) > 1 else drawn

    def _passing_line(self) -> str:
        seconds = time.monotonic() - self._since
        frame = self.marks.frames[int(seconds / TICK) % len(self.marks.frames)]
        tail = f" {self.marks.dash} {seconds:.0f} s {self.marks.dash} Ctrl-C stops"
        # A long command is cut, what it has taken and how to stop it is not.
        what = fit(f"{frame} {self._passing}", max(self.width - 1 - len(tail), 2), self.marks.cut)
        return fit(what + tail, self.width - 1, self.marks.cut)

    def _hide(self) -> None:
        if self._drawn:
            self._sink.write(_CLEAR_BELOW)
            self._drawn = False


def clean(text: str) -> str:
    """Text that a terminal may have: carriage returns are dropped, tabs become blanks, other control characters a sign."""
    return printable(text.replace("\r", "")).replace("\t", TAB)


def wrap_text(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most so many columns, broken between words; a word that is longer than a line stays whole."""
    lines, line = list[str](), indent
    for word in text.split():
        if line != indent and cell_len(f"{line} {word}") > width:
            lines.append(line)
            line = indent
        line = f"{line} {word}" if line != indent else f"{indent}{word}"
    return [*lines, line]


def fold_text(text: str, width: int, indent: str = "", hang: str = "") -> list[str]:
    """A line in pieces of at most so many columns, broken between words where there are any: nothing is lost, and nothing added but
    the indents; `hang` stands behind the indent of each piece but the first."""
    lines, line = list[str](), indent
    width = max(width, len(indent + hang) + 2)  # room for the widest character
    for piece in re.findall(r"\S+|\s+", text):
        if line.strip() and cell_len(line + piece.rstrip()) > width:
            lines.append(line)
            line = indent + hang
        line += piece
        while cell_len(line) > width and line.strip():
            head = fit(line, width, "")
            lines.append(head)
            line = indent + hang + line[len(head) :]
    return [*lines, line] if line.strip() or not lines else lines

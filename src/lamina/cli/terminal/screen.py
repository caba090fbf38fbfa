"""Terminal output of the chat: streamed text, whole lines, and while a turn runs a progress line above the status line.

Owns the cursor. Invariants: text from messages and files is data, so its control sequences never reach the terminal; a whole
line begins at the left edge; the progress line, and the lines below it, never wrap and are removed before anything else is
written. Any thread may write. A terminal without cursor control gets no progress line, and with NO_COLOR there are no colours.
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

from ...language.text import Shown, Words
from ..console import fit, printable, wrap_text
from ..output import StdoutSink
from .language import locale_language

Style: TypeAlias = Literal["plain", "bold", "dim", "red", "green", "yellow", "cyan"]

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_CLEAR_LINE = "\r\x1b[K"
_CLEAR_BELOW = "\r\x1b[J"
# Frame interval of the spinner: looks animated, costs nothing.
TICK = 0.12
# A shorter wait needs no progress line.
PATIENCE = 0.3
TAB = "    "
# Lines of a running command's output shown below the progress line: enough to follow it while the rest stays in view.
MOST_BELOW = 5
# A narrower column would break a sentence at every second word.
LEAST_BESIDE = 36


class ScreenMarks:
    """Symbols that the terminal's encoding can show."""

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
        self.encoding = sys.stdout.encoding or "ascii"
        self.marks = ScreenMarks(self.encoding)
        self.language: Shown = locale_language(os.environ) if self.encoding.lower().startswith("utf") else "en"
        self.status = ""  # the status line, below everything else while a turn runs
        self._at_left = True
        self._passing = ""  # text of the progress line; empty if there is none
        self._below: tuple[str, ...] = ()  # lines shown below it
        self._since = 0.0
        self._drawn = False
        self._ticker: threading.Thread | None = None

    @property
    def width(self) -> int:
        return max(10, shutil.get_terminal_size().columns)

    @property
    def gone(self) -> bool:
        return self._sink.gone

    def styled(self, text: str, style: Style) -> str:
        code = _CODES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and code and text else text

    @property
    def words(self) -> Words:
        """The texts in the language of the conversation."""
        return Words(self.language)

    def say(self, template: str, style: Style = "dim", **values: object) -> None:
        """Write a message in the language of the conversation."""
        self.note(self.words(template, **values), style)

    def report(self, line: str, style: Style = "plain", indent: str = "") -> None:
        """Write a line that other code composed, in the language of the conversation."""
        self.note(self.words(line), style, indent)

    def reports(self, lines: Iterable[str], style: Style = "plain", indent: str = "") -> None:
        for line in lines:
            self.report(line, style, indent)

    # Permanent output

    def raw(self, text: str) -> None:
        """Write text that was cleaned before."""
        if not text:
            return
        with self._lock:
            self._hide()
            self._sink.write(text)
            self._at_left = text.endswith("\n")

    def line(self, text: str = "", style: Style = "plain") -> None:
        """Write one or more whole lines."""
        with self._lock:
            self.left()
            self._sink.write("".join(f"{self.styled(one, style)}\n" for one in clean(text).split("\n")))

    def note(self, text: str, style: Style = "plain", indent: str = "") -> None:
        """Write a message to the user, wrapped between words."""
        for one in wrap_text(clean(text), self.width - 1, indent):
            self.line(one, style)

    def notes(self, texts: Iterable[str], style: Style = "plain", indent: str = "") -> None:
        for text in texts:
            self.note(text, style, indent)

    def fold(self, text: str, style: Style, indent: str, hang: str) -> None:
        """Write a long line in full, folded to the terminal's width."""
        self.line("\n".join(fold_text(clean(text), self.width - 1, indent, hang)), style)

    def listed(self, name: str, style: Style, about: str, column: int) -> None:
        """Write a name and its description, in a column beside it or, on a narrow terminal, below."""
        room = self.width - 1
        if room - column < LEAST_BESIDE:
            self.line(f"  {name}", style)
            self.note(about, indent=" " * 6)
            return
        first, *rest = wrap_text(clean(about), room, " " * column)
        self.painted((f"  {name}{' ' * (column - 2 - cell_len(name))}", style), (first[column:], "plain"))
        for one in rest:
            self.line(one)

    def painted(self, *parts: tuple[str, Style]) -> None:
        """Write a line in several styles."""
        with self._lock:
            self.left()
            self._sink.write("".join(self.styled(clean(text), style) for text, style in parts) + "\n")

    def left(self) -> None:
        """Move to the left edge."""
        with self._lock:
            self._hide()
            if not self._at_left:
                self._sink.write("\n")
                self._at_left = True

    # Progress line

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

    def below(self, lines: Sequence[str]) -> None:
        """Show the last of these lines below the progress line while it is visible."""
        with self._lock:
            self._below = tuple(lines[-MOST_BELOW:])

    def calm(self) -> None:
        with self._lock:
            self._hide()
            self._passing, self._below = "", ()

    def _tick(self) -> None:
        """Draw until nothing runs."""
        while True:
            with self._lock:
                if self.gone or not self._passing:
                    self._ticker = None
                    return
                if self._at_left and time.monotonic() - self._since >= PATIENCE:
                    self._sink.write(self._drawing())
                    self._drawn = True
            time.sleep(TICK)

    def _drawing(self) -> str:
        """Return the progress line and the lines below it. The cursor ends on the first, so that one sequence clears them all."""
        width = self.width - 1
        below = [*(f"  {clean(line)}" for line in self._below), *([self.status] if self.status else ())]
        lines = [self._passing_line(), *(fit(line, width, self.marks.cut) for line in below)]
        drawn = "\n".join(_CLEAR_LINE + self.styled(line, "dim") for line in lines) + "\x1b[J"
        return f"{drawn}\r\x1b[{len(lines) - 1}A" if len(lines) > 1 else drawn

    def _passing_line(self) -> str:
        seconds = time.monotonic() - self._since
        frame = self.marks.frames[int(seconds / TICK) % len(self.marks.frames)]
        tail = f" {self.marks.dash} {seconds:.0f} s {self.marks.dash} {self.words('Ctrl-C stops')}"
        # Cut a long command, but keep the elapsed time and how to stop it.
        what = fit(f"{frame} {self._passing}", max(self.width - 1 - cell_len(tail), 2), self.marks.cut)
        return fit(what + tail, self.width - 1, self.marks.cut)

    def _hide(self) -> None:
        if self._drawn:
            self._sink.write(_CLEAR_BELOW)
            self._drawn = False


def clean(text: str) -> str:
    """Make text safe for the terminal: drop carriage returns, expand tabs, replace other control characters."""
    return printable(text.replace("\r", "")).replace("\t", TAB)


def fold_text(text: str, width: int, indent: str = "", hang: str = "") -> list[str]:
    """Fold a line to `width` columns, between words where possible, without losing a character.

    Every piece starts with `indent`, and all but the first also with `hang`.
    """
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

"""Console output: a JSON document, lines or a table on standard output, notices on standard error.

Text from messages and files is data: its control sequences never reach the terminal. In a pipe a table keeps its full width. On a
terminal each row stays on one line: long cells are cut, and a narrow terminal shows fewer columns, but always the first and the last.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any, ClassVar, TextIO

import click

from ..language.text import Text

GAP = "  "
# Assumed if the terminal does not know its width.
UNKNOWN_WIDTH = 80
# A narrower last column is unreadable.
LEAST = 16
# Columns wider than WIDE are cut to give the last one this room; dates, times and ids are narrower and stay whole.
WIDE, ROOMY = 16, 24
# Sentences printed about files and directories that could not be read.
MOST_UNREAD = 3
# A shorter wait needs no explanation.
QUIET_SECONDS = 1.0
TICK = 0.2
# Between two full lines on a terminal that cannot move its cursor.
PLAIN_SECONDS = 10.0
_CLEAR = "\r\x1b[K"
# A word, or one wide character with the punctuation behind it, after an optional blank. A line must not start with that punctuation.
_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_MARKS = "，。、；：！？）」』】”"
_PIECES = re.compile(rf"(\s*)([^\s{_WIDE}]+[{_MARKS}]*|[{_WIDE}][{_MARKS}]*)")


# Blanks of other scripts, and what joins the letters and emoji of some. Python does not count them as printable.
_HARMLESS = frozenset("\n\t\u00a0\u1680\u202f\u205f\u3000\u200c\u200d").union(map(chr, range(0x2000, 0x200B)))


def printable(text: str) -> str:
    """Replace control characters other than newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _HARMLESS else "\ufffd" for char in text)


def sentence(text: str) -> str:
    """Return the text on one line, without control characters."""
    return printable(" ".join(text.split()))


MORE = Text("… and {count:,} more")


def capped(lines: Sequence[str], most: int, more: Text = MORE) -> list[str]:
    """Return the first `most` lines and, if some were left out, a line that counts them."""
    left = len(lines) - most
    return [*lines[:most], *([Text(more, count=left)] if left > 0 else ())]


def local_time(seconds: float) -> datetime:
    """Convert a file time; values outside the supported range become the nearest valid date."""
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def minute(seconds: float) -> str:
    return local_time(seconds).strftime("%Y-%m-%d %H:%M")


def local_minute(time: str) -> str:
    """Format the time of a record in the local time zone; a time that no calendar has stays as it is."""
    try:
        at = datetime.fromisoformat(time)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return sentence(time)[:16]


def utc_time(seconds: float) -> str:
    """Format a time for JSON output."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def document(value: Any) -> str:
    """Return one JSON document on one line, with control characters and unencodable characters escaped."""
    import json

    encoding = (sys.stdout.encoding or "").lower()
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"))
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def mend_streams() -> None:
    """Replace closed standard streams, and print a substitute for characters the encoding lacks instead of failing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # it lives as long as the process
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def notice(*texts: str) -> None:
    """Print messages to standard error; a closed terminal is ignored."""
    for text in texts:
        with suppress(OSError):
            print(wrapped(f"lamina: {text}", width=_columns(sys.stderr)), file=sys.stderr)


def notice_unread(unread: Iterable[str]) -> None:
    """Print sentences about what could not be read, at most MOST_UNREAD of them."""
    notice(
        *capped(
            list(dict.fromkeys(unread)), MOST_UNREAD, Text("{count:,} more could not be read. Run `lamina doctor` to list them.")
        )
    )


def color() -> bool | None:
    """Return the `color` argument for `click.echo`; None means colour only on a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def terminal_width() -> int | None:
    """Return the width of the terminal, or None if standard output is not one."""
    return _columns(sys.stdout)


def _columns(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    size = shutil.get_terminal_size((0, 0)).columns  # COLUMNS, or standard output
    with suppress(OSError, ValueError):
        size = size or os.get_terminal_size(stream.fileno()).columns
    return size or UNKNOWN_WIDTH


def wrapped(text: str, indent: str = "", rest: str | None = None, *, width: int | None) -> str:
    """Return a sentence in lines that are shorter than `width`; without a width, on one line."""
    line = indent + sentence(text)
    return line if width is None or _fits(line, width) else "\n".join(wrap_text(sentence(text), width - 1, indent, rest))


def wrap_text(text: str, width: int, indent: str = "", rest: str | None = None) -> list[str]:
    """Wrap text between words, and between wide characters, to `width` columns; a longer word stays whole.

    The lines after the first begin with `rest`.
    """
    from rich.cells import cell_len

    lines, line, start = list[str](), indent, indent
    for blank, piece in _PIECES.findall(text):
        gap = " " if blank and line != start else ""
        if line != start and cell_len(f"{line}{gap}{piece}") > width:
            lines.append(line)
            line = start = indent if rest is None else rest
            gap = ""
        line += gap + piece
    return [*lines, line]


def join_cells(cells: Iterable[str], rest: str, *, width: int | None) -> str:
    """Join the cells of a row. What does not fit a line of `width` continues on the next, after `rest`."""
    from rich.cells import cell_len

    lines = list[str]()
    for cell in cells:
        if lines and (width is None or cell_len(f"{lines[-1]}{GAP}{cell}".rstrip()) < width):
            lines[-1] += GAP + cell
        else:
            lines.append(f"{rest if lines else ''}{cell}")
    return "\n".join(line.rstrip() for line in lines)


def folded(lines: Iterable[str]) -> Iterator[str]:
    """Break lines between words on a terminal; each part is indented like the line."""
    width = terminal_width()
    for line in lines:
        indent = line[: len(line) - len(line.lstrip(" "))]
        yield line if _fits(line, width) else wrapped(line, indent, width=width)


def _fits(line: str, width: int | None) -> bool:
    if width is None or (line.isascii() and len(line) < width):
        return True
    from rich.cells import cell_len

    return cell_len(line) < width


def print_result(value: Any, lines: str | Iterable[str], none: str = "", *, as_json: bool) -> None:
    """Print `value` as JSON, or else the lines; without any lines, print `none` to standard error."""
    if as_json:
        click.echo(document(value))
        return
    printed = False
    for line in (lines,) if isinstance(lines, str) else lines:
        click.echo(printable(line))
        printed = True
    if none and not printed:
        click.echo(none, err=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> None:
    """Print a table. The last column takes the remaining width; columns named in `right` are right-aligned."""
    from rich.cells import cell_len

    cells = [[sentence(cell) for cell in row] for row in (header, *rows)]
    wide = [max(map(cell_len, column)) for column in list(zip(*cells, strict=True))[:-1]]
    width = terminal_width()
    room = None if width is None else _make_room(wide, width)

    def padded(text: str, at: int) -> str:
        shown = fit(text, wide[at])
        blanks = " " * (wide[at] - cell_len(shown))
        return blanks + shown if header[at] in right else shown + blanks

    for number, row in enumerate(cells):
        last = row[-1] if room is None else fit(row[-1], room)
        # `wide` lacks the columns that a narrow terminal leaves out.
        line = GAP.join([*(padded(row[at], at) for at in range(len(wide))), last]).rstrip()
        click.echo(line if number else click.style(line, bold=True), color=color())


def _make_room(wide: list[int], width: int) -> int:
    """Cut the widest columns, then leave out the rightmost ones but the last, until the last one has room. Return that room."""

    def room() -> int:
        return width - sum(wide) - len(GAP) * len(wide)

    while room() < ROOMY and max(wide, default=0) > WIDE:
        wide[wide.index(max(wide))] -= 1
    while room() < LEAST and len(wide) > 1:
        wide.pop()
    if wide and room() < LEAST // 2:  # both columns share a very narrow terminal
        wide[0] = max(1, min(wide[0], width // 2))
    return max(room(), 1)


def fit(text: str, width: int, cut: str = "…") -> str:
    """Cut the text to `width` terminal columns; wide characters take two."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    room, kept = width - cell_len(cut), ""
    for char in text:
        room -= cell_len(char)
        if room < 0:
            break
        kept += char
    return kept + cut


class ProgressLine:
    """A progress line on standard error, shown after one second: the current step, the time it has taken and how to stop it.

    Shows the latest text, at most once every TICK. Other lines inside the context manager are printed with `say`. On a terminal the
    line is cleared on exit. A terminal that cannot move its cursor gets a full line every PLAIN_SECONDS. Elsewhere nothing is shown, unless
    `line_seconds` asks for a full line at that interval. While a line is open inside another one, only the inner one is shown.
    """

    _opened: ClassVar[list[ProgressLine]] = []

    def __init__(self, ending: str = "; Ctrl-C stops", *, line_seconds: float | None = None) -> None:
        self._ending = ending
        shown = sys.stderr.isatty()
        self._terminal = shown and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
        plain = PLAIN_SECONDS if line_seconds is None and shown else line_seconds
        self._pause = TICK if self._terminal else plain
        self._next = time.monotonic() + QUIET_SECONDS
        self._drawn = False
        self.step = ""  # how far it is, shown after the text of `waiting`

    def __enter__(self) -> ProgressLine:
        self._opened.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.remove(self)
        if self._drawn and self._terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if self._pause is None or now < self._next or self._opened[-1] is not self:
            return
        self._next, self._drawn = now + self._pause, True
        line = f"{_CLEAR}{self._fitted(text)}" if self._terminal else f"lamina: {text}\n"
        print(line, end="", file=sys.stderr, flush=True)

    def _fitted(self, text: str) -> str:
        """Return one line of the terminal: a second one would stay behind. A narrow terminal shows no ending."""
        from rich.cells import cell_len

        width = (_columns(sys.stderr) or UNKNOWN_WIDTH) - 1
        whole = f"{text}{self._ending}"
        return whole if cell_len(whole) <= width else fit(text, width)

    def count(self, done: int, of: int) -> None:
        self.step = f"{done:,} of {of:,}"

    def say(self, text: str) -> None:
        """Print a line that stays, in place of the progress line."""
        print(f"{_CLEAR if self._drawn and self._terminal else ''}{text}", file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str) -> Iterator[ProgressLine]:
    """Show a progress line with the elapsed seconds while the block runs."""
    began, done = time.monotonic(), threading.Event()

    def draw() -> None:
        while not done.wait(TICK):
            step = f", {progress.step}" if progress.step else ""
            progress.show(f"{what}{step}, {time.monotonic() - began:.0f} s")

    with ProgressLine() as progress:
        thread = threading.Thread(target=draw, name="lamina-waiting", daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            done.set()
            thread.join()

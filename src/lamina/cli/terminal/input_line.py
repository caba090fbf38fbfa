"""Reading lines: the prompt with its keys, its completion, its history and its status line, and the short answers to questions.

Enter sends; Esc-Enter, or a backslash at the end of a line, goes on in the next one. Ctrl-C empties the line, and on an empty one is
KeyboardInterrupt; Ctrl-D on an empty line is EOFError. What was typed before a question was asked is not its answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import has_completions
from prompt_toolkit.history import DummyHistory, History
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from ...core.errors import DiskError
from ...disk.files import read, update

tty: Any = None  # Windows: what is typed during a turn is shown there
with suppress(ImportError):
    import termios as tty
_GONE: tuple[type[Exception], ...] = (OSError, *(() if tty is None else (tty.error,)))
_FAULTS: tuple[type[Exception], ...] = (*_GONE, ValueError)

_STYLE = Style.from_dict({"prompt": "bold", "bottom-toolbar": "noreverse fg:ansibrightblack"})
_PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})

# Names looked at in one directory, and offered of them.
MOST_SEEN = 5_000
MOST_OFFERED = 50

_COMMAND = re.compile(r"/[a-z]*")
_ARGUMENT = re.compile(r"/(?P<name>[a-z]+) +(?P<word>\S*)")
_FILE = re.compile(r"(?:^|(?<=\s))@(?P<path>\S*)\Z")

# A word, and what is said of it.
Choice: TypeAlias = tuple[str, str]
# Command → what may stand behind it; asked when it is needed.
Arguments: TypeAlias = Mapping[str, Callable[[], Iterable[Choice]]]

FILE_NAME = "history"
# More than anybody goes back by hand.
MOST_LINES = 1_000
# A text pasted in is in the transcript; here it would only be in the way.
LONGEST = 4_000
MOST_BYTES = 8 << 20


class PromptLine:
    """The prompt of a chat."""

    def __init__(
        self,
        *,
        history: History,
        completer: Completer,
        toolbar: Callable[[], str],
        next_mode: Callable[[], None],
        colours: bool,
        before: Callable[[], None],
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=completer,
            complete_while_typing=True,
            key_bindings=bind_keys(next_mode),
            multiline=True,
            bottom_toolbar=toolbar,
            prompt_continuation="  ",
            style=_STYLE if colours else _PLAIN,
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            enable_suspend=True,
            reserve_space_for_menu=4,
        )
        self._before = before

    def read(self) -> str:
        """A text; EOFError or KeyboardInterrupt where the person is done."""
        with end_input():
            return self._session.prompt([("class:prompt", "> ")], pre_run=self._before)


class PlainLine:
    """The same for a terminal that cannot move its cursor: the system's own line, and nothing below it."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before

    def read(self) -> str:
        self._before()
        lines = [read_plain("> ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(read_plain("  "))
        return "\n".join(lines)


def read_plain(prompt: str) -> str:
    with end_input():
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")


def ask(question: str, *, colours: bool, moves: bool) -> str:
    """A short answer, typed after the question was seen."""
    if not moves:
        drop_typed()
        return read_plain(question).strip()
    session: PromptSession[str] = PromptSession(
        history=DummyHistory(),
        style=_STYLE if colours else _PLAIN,
        color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
    )
    clear_typeahead(session.input)
    drop_typed()
    with end_input():
        return session.prompt([("class:prompt", question)]).strip()


@contextmanager
def end_input() -> Iterator[None]:
    """A terminal that was closed is the end of the input, whatever the line editor says of it."""
    try:
        yield
    except _GONE as error:
        raise EOFError from error


def bind_keys(next_mode: Callable[[], None]) -> KeyBindings:
    bound = KeyBindings()

    @bound.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bound.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bound.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:exiting")

    @bound.add("s-tab", filter=~has_completions)
    def _mode(event: KeyPressEvent) -> None:
        next_mode()
        event.app.invalidate()

    return bound


def drop_typed() -> None:
    """Drop what waits in the terminal's own buffer."""
    if tty is not None:
        with suppress(*_FAULTS):
            tty.tcflush(sys.stdin.fileno(), tty.TCIFLUSH)


@contextmanager
def suppress_echo() -> Iterator[None]:
    """While a turn runs, what is typed is not shown in the middle of the answer: it waits for the next prompt."""
    before = _silenced()
    try:
        yield
    finally:
        # A terminal that was closed meanwhile needs nothing back.
        if tty is not None and before is not None:
            with suppress(*_FAULTS):
                tty.tcsetattr(sys.stdin.fileno(), tty.TCSANOW, before)


def _silenced() -> list[Any] | None:
    """The terminal's mode as it was; None where it could not be changed."""
    if tty is None:
        return None
    try:
        before: list[Any] = tty.tcgetattr(sys.stdin.fileno())
        silent = [*before]
        silent[3] &= ~(tty.ECHO | tty.ICANON)
        tty.tcsetattr(sys.stdin.fileno(), tty.TCSANOW, silent)
    except _FAULTS:
        return None
    return before


class ChatCompleter(Completer):
    """Completes commands after a slash, their arguments, and file names after an @.

    Looks at one directory at a time and at a bounded number of names, so a keystroke never waits for a large tree. A name that holds
    control characters or blanks is not offered: it could not be typed.
    """

    def __init__(self, cwd: Path, commands: Mapping[str, str], arguments: Arguments) -> None:
        self._cwd = cwd
        self._commands = commands
        self._arguments = arguments

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if _COMMAND.fullmatch(text):
            return _offers(text, [(f"/{name}", about) for name, about in self._commands.items()])
        if (found := _ARGUMENT.fullmatch(text)) and (choices := self._arguments.get(found["name"])):
            return _offers(found["word"], choices())
        if found := _FILE.search(text):
            return _offers(found["path"], files(self._cwd, found["path"]))
        return ()


def _offers(begun: str, choices: Iterable[Choice]) -> Iterator[Completion]:
    for word, about in choices:
        if word.startswith(begun):
            yield Completion(word, start_position=-len(begun), display_meta=about)


def files(cwd: Path, begun: str) -> list[Choice]:
    """The names in the directory that `begun` leads to, directories with a slash behind."""
    directory, _, start = begun.rpartition("/")
    lead = f"{directory}/" if begun.startswith("/") or directory else ""
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(lead))) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in islice(entries, MOST_SEEN)]
    except OSError:
        return []
    wanted = [name for name in names if name.startswith(start) and (start.startswith(".") or not name.startswith("."))]
    fit = sorted(name for name in wanted if name.isprintable() and not any(map(str.isspace, name)))
    return [(f"{lead}{name}", "") for name in fit[:MOST_OFFERED]]


class ChatHistory(History):
    """What a person has typed, kept from one chat to the next: `<home>/history`, one JSON text a line, newest last.

    Owns that file. Invariants: it stays small; two chats at once lose none of each other's lines; a file that can't be read or written
    costs the history and nothing else; a crash at any line leaves the old history or the new one. A line that begins with a blank is not
    kept, as in shells.
    """

    def __init__(self, home: Path | None) -> None:
        super().__init__()
        self._path = home / FILE_NAME if home is not None else None

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, as the line editor wants it."""
        if self._path is None:
            return []
        try:
            return reversed(read_lines(read(self._path, MOST_BYTES)))
        except DiskError:
            return []

    def store_string(self, string: str) -> None:
        text = string.rstrip()
        if self._path is None or not text or text[0].isspace() or len(text) > LONGEST:
            return
        try:
            update(self._path, lambda old: append_line(old, text), durability="process")
        except DiskError:
            return


def read_lines(content: bytes | None) -> list[str]:
    """The texts of a history file; what is no text is passed over."""
    found: list[str] = []
    for line in (content or b"").split(b"\n"):
        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(text, str):
            found.append(text)
    return found


def append_line(content: bytes | None, text: str) -> bytes:
    """The file with one text more; the same text twice in a row is kept once."""
    kept = read_lines(content)
    if not kept or kept[-1] != text:
        kept.append(text)
    return "".join(f"{json.dumps(one)}\n" for one in kept[-MOST_LINES:]).encode()

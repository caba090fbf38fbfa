"""Line input: the prompt with key bindings, completion, history and status line, and short answers to questions.

Enter sends; Esc-Enter, or a backslash at the end of a line, starts a new line. Ctrl-C clears the line, and on an empty line
raises KeyboardInterrupt; Ctrl-D on an empty line raises EOFError. Text typed before a question appeared is not taken as its
answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
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
from ...disk.regular_file import list_entries

tty: Any = None  # on Windows, where text typed during a turn is echoed
with suppress(ImportError):
    import termios as tty
_GONE: tuple[type[Exception], ...] = (OSError, *(() if tty is None else (tty.error,)))
_FAULTS: tuple[type[Exception], ...] = (*_GONE, ValueError)

_STYLE = Style.from_dict({"prompt": "bold", "bottom-toolbar": "noreverse fg:ansibrightblack"})
_PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})

# Directory entries read for completion, and the number offered.
MOST_SEEN = 5_000
MOST_OFFERED = 50

# How often finished background work is looked for while the prompt is open.
NEWS_SECONDS = 0.25

# A line that the chat takes for a command: a slash and a name, or an exclamation mark before a shell command.
_CALLED = re.compile(r"/(?P<name>[A-Za-z][A-Za-z_-]*)(?:\s+(?P<rest>.*))?", re.DOTALL)
SHELL = "!"
_COMMAND = re.compile(r"/[a-z]*")
_ARGUMENT = re.compile(r"/(?P<name>[a-z]+) +(?P<word>\S*)")
_FILE = re.compile(r"(?:^|(?<=\s))@(?P<path>\S*)\Z")

# A word to offer and its description.
Choice: TypeAlias = tuple[str, str]
# Each command's possible arguments, computed when needed.
Arguments: TypeAlias = Mapping[str, Callable[[], Iterable[Choice]]]

FILE_NAME = "history"
# More than anybody scrolls back.
MOST_LINES = 1_000
# Longer texts were pasted; they are in the transcript and would only clutter the history.
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
        has_news: Callable[[], bool],
        tell_news: Callable[[], None],
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
        self._has_news = has_news
        self._tell_news = tell_news

    def read(self) -> str:
        """Read a message; raises EOFError or KeyboardInterrupt if the user wants to leave."""
        with end_input():
            return self._session.prompt([("class:prompt", "> ")], pre_run=self._begin)

    def _begin(self) -> None:
        self._session.app.create_background_task(self._watch())
        self._before()

    async def _watch(self) -> None:
        """Show what happens in the background above the prompt, while the user types."""
        while True:
            if self._has_news():
                await run_in_terminal(self._tell_news)
            await asyncio.sleep(NEWS_SECONDS)


class PlainLine:
    """The prompt for a terminal without cursor control: the system's line input, without a status line."""

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


def parse(text: str) -> tuple[str, str] | None:
    """Split a slash command into its name and the rest; None if the text is not one."""
    called = _CALLED.fullmatch(text.strip())
    return (called["name"].lower(), (called["rest"] or "").strip()) if called else None


def is_command(text: str) -> bool:
    """Return whether a line is a slash command or a shell command."""
    return text.startswith(SHELL) or parse(text) is not None


def ask(question: str, *, colours: bool, moves: bool) -> str:
    """Ask a question and read a short answer, discarding anything typed before it."""
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
    """Raise EOFError if the terminal was closed, whatever error the line editor raises."""
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
    """Discard the terminal's input buffer."""
    if tty is not None:
        with suppress(*_FAULTS):
            tty.tcflush(sys.stdin.fileno(), tty.TCIFLUSH)


@contextmanager
def suppress_echo() -> Iterator[None]:
    """Turn off echo during a turn: typed text does not appear in the answer but waits for the next prompt."""
    before = _silenced()
    try:
        yield
    finally:
        # If the terminal was closed meanwhile, there is nothing to restore.
        if tty is not None and before is not None:
            with suppress(*_FAULTS):
                tty.tcsetattr(sys.stdin.fileno(), tty.TCSANOW, before)


def _silenced() -> list[Any] | None:
    """Turn off echo and return the previous terminal mode; None if it could not be changed."""
    if tty is None:
        return None
    try:
        before: list[Any] = tty.tcgetattr(sys.stdin.fileno())
        silent = [*before]
        silent[3] &= ~(tty.ECHO | tty.ICANON)
        silent[3] |= tty.NOFLSH  # else Ctrl-C discards what was typed
        tty.tcsetattr(sys.stdin.fileno(), tty.TCSANOW, silent)
    except _FAULTS:
        return None
    return before


class ChatCompleter(Completer):
    """Completes commands after a slash, their arguments, and file names after an @.

    Reads one directory at a time and a bounded number of names, so a keystroke never waits for a large tree. Names with control
    characters or blanks are not offered, since they could not be typed.
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
    """Return the names in the directory that `begun` leads to; directories end in a slash."""
    directory, _, start = begun.rpartition("/")
    lead = f"{directory}/" if begun.startswith("/") or directory else ""
    entries = list_entries(os.path.join(cwd, os.path.expanduser(lead)), MOST_SEEN)
    names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    wanted = [name for name in names if name.startswith(start) and (start.startswith(".") or not name.startswith("."))]
    fit = sorted(name for name in wanted if name.isprintable() and not any(map(str.isspace, name)))
    return [(f"{lead}{name}", "") for name in fit[:MOST_OFFERED]]


class ChatHistory(History):
    """The input history, kept across chats in `<home>/history`: one JSON string per line, newest last.

    Owns that file. Invariants: it stays small; two chats at the same time lose none of each other's lines; if the file cannot
    be read or written, only the history is lost; a crash at any point leaves the old history or the new one. A line that begins
    with a blank is not kept, as in shells.
    """

    def __init__(self, home: Path | None) -> None:
        super().__init__()
        self._path = home / FILE_NAME if home is not None else None

    def load_history_strings(self) -> Iterable[str]:
        """Return the history newest first, as the line editor expects."""
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
    """Return the texts of a history file, skipping anything that is not a JSON string."""
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
    """Append a text to the history, unless it repeats the last one."""
    kept = read_lines(content)
    if not kept or kept[-1] != text:
        kept.append(text)
    return "".join(f"{json.dumps(one)}\n" for one in kept[-MOST_LINES:]).encode()

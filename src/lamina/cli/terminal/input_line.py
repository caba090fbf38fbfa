"""Reading lines: the prompt with its keys and its status line, and the short answers to questions.

Enter sends; Esc-Enter, or a backslash at the end of a line, goes on in the next one. Ctrl-C empties the line, and on an empty one is
KeyboardInterrupt; Ctrl-D on an empty line is EOFError. What was typed before a question was asked is not its answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import has_completions
from prompt_toolkit.history import DummyHistory, History
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

tty: Any = None  # Windows: what is typed during a turn is shown there
with suppress(ImportError):
    import termios as tty
_GONE: tuple[type[Exception], ...] = (OSError, *(() if tty is None else (tty.error,)))
_FAULTS: tuple[type[Exception], ...] = (*_GONE, ValueError)

_STYLE = Style.from_dict({"prompt": "bold", "bottom-toolbar": "noreverse fg:ansibrightblack"})
_PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


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

"""List, choose and resume earlier sessions of this directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...history.sessions import SourceSession
from ..completion import SHORT_ID
from ..console import fit, minute
from ..transcripts import find_sessions, locate
from .banner import recap
from .input_line import Arguments, Choice
from .questions import Questions
from .screen import Screen, clean

if TYPE_CHECKING:
    from .loop import Chat

# Sessions offered; `lamina sessions list` has them all.
MOST_LISTED = 15


def list_here(cwd: Path, *, but: Path | None = None) -> list[SourceSession]:
    """Return the sessions of `cwd` that can be continued, newest first, without the open one (`but`)."""
    found = [info for info in find_sessions(cwd) if info.origin in ("lamina", "claude-code")]
    return [info for info in found if info.path != str(but)][:MOST_LISTED]


def choose(screen: Screen, questions: Questions, found: list[SourceSession]) -> str | None:
    """Let the user pick a session and return its path; None if they pick none."""
    if not found:
        screen.say("No other sessions in this directory.")
        return None
    for number, info in enumerate(found, 1):
        whose = "" if info.origin == "lamina" else f" ({info.origin})"
        screen.line(
            fit(clean(f"{number:>3}  {info.id[:SHORT_ID]}  {minute(info.modified)[5:]}  {info.title}{whose}"), screen.width - 1)
        )
    answer = questions.read(screen.words("Number or id of the session (Enter for none): "))
    return resolve_choice(answer, found) if answer else None


def resolve_choice(word: str, found: list[SourceSession]) -> str:
    """Resolve a number from the list to its path; return anything else unchanged."""
    return found[int(word) - 1].path if word.isdecimal() and 1 <= int(word) <= len(found) else word


def list_others(chat: Chat) -> list[SourceSession]:
    return list_here(chat.options.cwd, but=chat.agent.session.path)


def resume(chat: Chat, rest: str) -> None:
    word = rest or choose(chat.screen, chat.questions, list_others(chat))
    if word is None:
        return
    path = locate(resolve_choice(word, list_others(chat)), chat.options.cwd, edit=True)
    if path == chat.agent.session.path:
        chat.screen.say("This session is already open.")
        return
    chat.reopen(path)
    chat.screen.say("Resumed session {id}.", id=chat.agent.session.id)
    chat.tell_notices()
    recap(chat)


def collect_arguments(chat: Chat) -> Arguments:
    """Return the completions for each command's argument."""
    from ...providers.models import table
    from .commands import DREAM_WORDS, MODE_WORDS

    def memories() -> Iterable[Choice]:
        with chat.memory_source.open() as memory:
            return [(header.name, header.description) for header in memory.headers()]

    return {
        "dream": DREAM_WORDS.items,
        "memory": memories,
        "model": lambda: [("offline", "no API key needed"), *((name, "") for name in sorted(table().models))],
        "resume": lambda: [(info.id[:SHORT_ID], info.title) for info in list_others(chat)],
        "permissions": MODE_WORDS.items,
    }

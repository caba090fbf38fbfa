"""Earlier sessions of this directory: listed, chosen, gone on with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...disk.paths.project import slug
from ...disk.transcripts.session_list import SessionInfo, list_sessions
from ..sessions import homes, locate
from .banner import SHORT_ID, recap
from .completion import Arguments, Choice
from .questions import Questions
from .screen import Screen, clean, fit

if TYPE_CHECKING:
    from .loop import Chat

# A person chooses among the last few; `lamina sessions list` has them all.
MOST_LISTED = 15


def here(cwd: Path, *, but: Path | None = None) -> list[SessionInfo]:
    """Newest first, without the one that is open."""
    found = list_sessions([home / "projects" / slug(cwd) for home in homes("all")])
    return [info for info in found if info.path != str(but)][:MOST_LISTED]


def choose(screen: Screen, questions: Questions, found: list[SessionInfo]) -> str | None:
    """The path of the session the person picks from the list; None for none."""
    if not found:
        screen.note("There are no other sessions in this directory.", "dim")
        return None
    for number, info in enumerate(found, 1):
        when = datetime.fromtimestamp(info.modified).strftime("%m-%d %H:%M")
        whose = "" if info.source == "lamina" else f" ({info.source})"
        screen.line(fit(clean(f"{number:>3}  {info.id[:SHORT_ID]}  {when}  {info.title}{whose}"), screen.width - 1))
    answer = questions.read("Which one? Number or id, Enter for none: ")
    return named(answer, found) if answer else None


def named(word: str, found: list[SessionInfo]) -> str:
    """A number of the list, or an id as it is."""
    return found[int(word) - 1].path if word.isdecimal() and 1 <= int(word) <= len(found) else word


def others(chat: Chat) -> list[SessionInfo]:
    return here(chat.wish.cwd, but=chat.agent.session.path)


def resume(chat: Chat, word: str) -> None:
    path = locate(named(word, others(chat)), chat.wish.cwd)
    if path == chat.agent.session.path:
        chat.screen.note("That is the session you are in.", "dim")
        return
    chat.reopen(path)
    chat.screen.note(f"Session {chat.agent.session.id}.", "dim")
    chat.tell_notices()
    recap(chat)


def arguments(chat: Chat) -> Arguments:
    """What may stand behind a command, for completion."""
    from ...providers.models import table
    from .commands import MODE_WORDS
    from .dream_command import WORDS as DREAM_WORDS

    def models() -> Iterable[Choice]:
        return [Choice("offline", "needs nothing"), *(Choice(name) for name in sorted(table().models))]

    def memories() -> Iterable[Choice]:
        from ...memory.memory import Memory

        with Memory.open(chat.wish.cwd, home=chat.home, settings=chat.settings) as memory:
            return [Choice(header.name, header.description) for header in memory.headers()]

    return {
        "dream": lambda: [Choice(word, about) for word, about in DREAM_WORDS.items()],
        "memory": memories,
        "model": models,
        "resume": lambda: [Choice(info.id[:SHORT_ID], info.title) for info in others(chat)],
        "permissions": lambda: [Choice(mode, words) for mode, words in MODE_WORDS.items()],
    }

"""Shell completion: sessions, memories and pending changes of the working directory, and setting names.

Completion runs while the user types, and errors would be printed into the line being edited. Anything unreadable is therefore
skipped silently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..core.errors import LaminaError

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory

    ShellComplete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHORT_ID = 8
# Words to offer, each with a description.
Offers: TypeAlias = Iterator[tuple[str, str | None]]


def _completion(found: Callable[[], Offers]) -> ShellComplete:
    @wraps(found)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            return [CompletionItem(word, help=about) for word, about in found() if word.startswith(incomplete)]
        except (LaminaError, OSError):
            return []

    return complete


def _memory() -> Memory:
    from ..memory.memory import Memory

    return Memory.open(Path.cwd(), read_only=True)


def sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer short ids of Lamina's and Claude Code's sessions, newest first; if none matches, offer file names.

    Only the ends of the files of this directory are read: making the index of all sessions would take too long while the user types.
    """
    from click.shell_completion import CompletionItem

    from ..disk.paths.project import slug
    from ..disk.settings_files import settings_in_force
    from ..disk.transcripts.search import list_sessions
    from ..history.sessions import homes_of

    try:
        cwd = Path.cwd()
        homes = homes_of(settings_in_force(cwd), os.environ)
        shared = dict.fromkeys(home for origin, home in homes.items() if origin in ("lamina", "claude-code"))
        found = list_sessions(home / "projects" / slug(cwd) for home in shared)
    except (LaminaError, OSError):
        found = []
    offered = [CompletionItem(info.id[:SHORT_ID], help=info.title) for info in found if info.id.startswith(incomplete)]
    return offered or [CompletionItem(incomplete, type="file")]


def _memories(memory: Memory) -> Offers:
    return ((each.name, each.description) for each in memory.headers())


@_completion
def memories() -> Offers:
    with _memory() as memory:
        yield from _memories(memory)


@_completion
def removed() -> Offers:
    """Offer removed memories first, since those are restored most often, then existing ones with older versions."""
    from ..memory.store.journal import find_trash

    with _memory() as memory:
        yield from ((version.name, "in the trash") for version in find_trash(memory.log()))
        yield from _memories(memory)


@_completion
def proposals() -> Offers:
    with _memory() as memory:
        yield from ((each.id, each.name) for each in memory.waiting())


@_completion
def settings() -> Offers:
    from ..core.settings import SETTINGS

    yield from ((row.key, row.help) for row in SETTINGS)


@_completion
def dreams() -> Offers:
    """Offer dreams that can be undone, newest first."""
    from ..layers.l6_dream.record import read_records

    with _memory() as memory:
        yield from ((one.id, None) for one in read_records(memory.store("private").store.root) if one.status == "completed")


@_completion
def days() -> Offers:
    """Offer the days with a daily log, newest first."""
    from ..memory.store.daily_logs import list_logs

    with _memory() as memory:
        yield from ((each.day.isoformat(), None) for each in list_logs(memory.store("private").store.root))
    yield from (("today", None), ("yesterday", None))

"""What a shell offers behind a command: sessions, memories and proposals of the working directory, and settings.

A key that was pressed waits for this, and what goes wrong there would be printed into the line that is being typed: so whatever cannot be
read offers nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import LaminaError

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

SHORT_ID = 8


def sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Newest first; an id is offered by its beginning, and files as well."""
    from click.shell_completion import CompletionItem

    from ..disk.paths.project import slug
    from ..disk.transcripts.session_list import list_sessions
    from .sessions import homes

    try:
        found = list_sessions([home / "projects" / slug(Path.cwd()) for home in homes("all")])
    except (LaminaError, OSError):
        found = []
    offered = [CompletionItem(info.id[:SHORT_ID], help=info.title) for info in found if info.id.startswith(incomplete)]
    return offered or [CompletionItem(incomplete, type="file")]


def removed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What lies in the trash first: that is what is mostly brought back; then what has older versions."""
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory
    from .memory import trash

    try:
        with Memory.open(Path.cwd()) as memory:
            gone = [version.name for version in trash(memory.log())]
    except (LaminaError, OSError):
        return []
    offered = [CompletionItem(name, help="in the trash") for name in gone if name.startswith(incomplete)]
    return [*offered, *memories(ctx, param, incomplete)]


def proposals(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory

    try:
        with Memory.open(Path.cwd()) as memory:
            waiting = memory.waiting()
    except (LaminaError, OSError):
        return []
    return [CompletionItem(each.id, help=each.name) for each in waiting if each.id.startswith(incomplete)]


def settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ..core.settings import SETTINGS

    return [CompletionItem(row.key, help=row.help) for row in SETTINGS if row.key.startswith(incomplete)]


def memories(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory

    try:
        with Memory.open(Path.cwd()) as memory:
            found = memory.headers()
    except (LaminaError, OSError):
        return []
    return [CompletionItem(each.name, help=each.description) for each in found if each.name.startswith(incomplete)]


def dreams(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Those that can be taken back, the newest first."""
    from click.shell_completion import CompletionItem

    from ..layers.l6_dream.record import read_records
    from ..memory.memory import Memory

    try:
        with Memory.open(Path.cwd()) as memory:
            known = read_records(memory.store("private").store.root)
    except (LaminaError, OSError):
        return []
    return [CompletionItem(one.id) for one in known if one.status == "completed" and one.id.startswith(incomplete)]


def days(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Those that have a daily log, the newest first."""
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory
    from ..memory.store.daily_logs import days as known

    try:
        with Memory.open(Path.cwd()) as memory:
            found = [each.day.isoformat() for each in known(memory.store("private").store.root)]
    except (LaminaError, OSError):
        return []
    return [CompletionItem(each) for each in (*found, "today", "yesterday") if each.startswith(incomplete)]

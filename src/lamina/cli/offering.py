"""What a shell offers behind a command: sessions and memories of the working directory.

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

    from ..disk.listing import list_sessions
    from ..disk.paths import slug
    from .sessions import homes

    try:
        found = list_sessions([home / "projects" / slug(Path.cwd()) for home in homes("all")])
    except (LaminaError, OSError):
        found = []
    offered = [CompletionItem(info.id[:SHORT_ID], help=info.title) for info in found if info.id.startswith(incomplete)]
    return offered or [CompletionItem(incomplete, type="file")]


def memories(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from ..memory.memory import Memory

    try:
        with Memory.open(Path.cwd()) as memory:
            found = memory.headers()
    except (LaminaError, OSError):
        return []
    return [CompletionItem(each.name, help=each.description) for each in found if each.name.startswith(incomplete)]

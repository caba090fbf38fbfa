"""The number of recalls of each memory, over all sessions that name them: those of Lamina and Claude Code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core.settings import Settings
from ..disk.settings_files import lamina_home
from .catalogue import Catalogue, IndexedFile, Tell, with_catalogue
from .sessions import follow_sessions


class Recalls(NamedTuple):
    times: int
    last: str  # the time of the newest one


def sum_recalls(rows: Iterable[IndexedFile]) -> dict[str, Recalls]:
    """Return the recalls of sessions that are indexed, by the path of the memory's file."""
    found: dict[str, Recalls] = {}
    for row in rows:
        for path, (count, last) in row.scan.recalls.items():
            before = found.get(path, Recalls(0, ""))
            found[path] = Recalls(before.times + count, max(before.last, last))
    return found


def recall_counts(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    unread: list[str] | None = None,
    tell: Tell = lambda done, of: None,
) -> dict[str, Recalls]:
    """Return the recalls by the path of the memory's file, as the session spells it. A memory that was never recalled is missing."""
    variables = os.environ if environ is None else environ
    trouble = [] if unread is None else unread

    def summed(catalogue: Catalogue) -> dict[str, Recalls]:
        return sum_recalls(follow_sessions(catalogue, settings, variables, trouble, tell))

    return with_catalogue(lamina_home(variables), summed)

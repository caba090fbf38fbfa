"""Choose one of the projects that another program keeps in one place."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...core.errors import InputError

# Enough to recognise one's own.
MOST_NAMED = 12


class ProjectChoice(NamedTuple):
    """`wanted` is the name the user gave; `here` is the name of the directory of the current project."""

    wanted: str | None = None
    here: str = ""

    def among(self, names: Collection[str], source: str) -> str:
        """Return the wanted project, else the one named like this directory, else the only one; InputError otherwise."""
        known = {name.casefold(): name for name in names}
        asked = self.wanted if self.wanted is not None else self.here
        if (found := known.get(asked.casefold())) is not None:
            return found
        listed = ", ".join(repr(name[:60]) for name in sorted(names)[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
        if not names:
            raise InputError(source, "contains no project")
        if self.wanted is not None:
            raise InputError(source, f"has no project {self.wanted[:60]!r}", f"use --project with one of {listed}")
        if len(names) > 1:
            raise InputError(source, "contains several projects", f"use --project with one of {listed}")
        return next(iter(names))


# For sources of one project.
ANY_PROJECT = ProjectChoice()

"""Which agent files lie in a working tree or a home: what trust is asked about and what is read as a type are the same files.

Looks only: reads no file and follows no link to a directory. Bounded in number and depth, whatever somebody has put there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

PROJECT = Path(".claude") / "agents"
SUFFIX = ".md"
# More are a mistake or an attack.
MOST_ENTRIES = 200
# Folders within folders: a few keep a large collection in order.
MOST_DEPTH = 4
# Of directories above the working directory.
MOST_ABOVE = 32


def list_agent_places(cwd: str | os.PathLike[str]) -> list[Path]:
    """`.claude/agents` of the working directory and of those above it up to the top of its working tree, the nearest first; outside
    a repository the working directory's alone."""
    here = Path(os.path.abspath(cwd))
    above: list[Path] = []
    for directory in islice((here, *here.parents), MOST_ABOVE):
        above.append(directory)
        if os.path.lexists(directory / ".git"):
            return [each / PROJECT for each in above]
    return [here / PROJECT]


def list_agent_files(directory: Path) -> list[Path]:
    """List the agent files in it and in its folders, in the order of their paths, so that every file system gives the same."""
    return sorted(islice(_below(directory, MOST_DEPTH), MOST_ENTRIES))


def _below(directory: Path, depth: int) -> Iterator[Path]:
    folders: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in islice(entries, MOST_ENTRIES):
                if entry.is_dir(follow_symlinks=False) and not entry.name.endswith(SUFFIX):
                    folders.append(entry.name)
                elif entry.name.endswith(SUFFIX):
                    yield directory / entry.name
    except (OSError, ValueError):
        return
    for name in sorted(folders) if depth > 1 else ():
        yield from _below(directory / name, depth - 1)

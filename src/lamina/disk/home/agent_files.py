"""Finds agent files in a working tree or a home, so that the trust question and the loader see the same files.

Reads no file and follows no link to a directory. The number and depth of the files are bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..regular_file import list_entries

PROJECT = Path(".claude") / "agents"
SUFFIX = ".md"
# A larger number is a mistake or an attack.
MOST_ENTRIES = 200
# Maximum depth of nested directories; a few levels are enough for a large collection.
MOST_DEPTH = 4
# Maximum number of parent directories that are searched.
MOST_ABOVE = 32


def list_agent_places(cwd: str | os.PathLike[str]) -> list[Path]:
    """List `.claude/agents` in the working directory and its parents up to the top of the working tree, the nearest first.

    Outside a repository, only the working directory counts.
    """
    working = Path(os.path.abspath(cwd))
    above: list[Path] = []
    for directory in islice((working, *working.parents), MOST_ABOVE):
        above.append(directory)
        if os.path.lexists(directory / ".git"):
            return [place / PROJECT for place in above]
    return [working / PROJECT]


def list_agent_files(directory: Path) -> list[Path]:
    """List the agent files in a directory and its subdirectories, sorted by path so that every system gives the same order."""
    return sorted(islice(_below(directory, MOST_DEPTH), MOST_ENTRIES))


def _below(directory: Path, depth: int) -> Iterator[Path]:
    folders: list[str] = []
    for entry in list_entries(directory, MOST_ENTRIES):
        if entry.is_dir(follow_symlinks=False) and not entry.name.endswith(SUFFIX):
            folders.append(entry.name)
        elif entry.name.endswith(SUFFIX):
            yield directory / entry.name
    for name in sorted(folders) if depth > 1 else ():
        yield from _below(directory / name, depth - 1)

"""Earlier versions of a file in a git repository, found by their content. The repository is as little trusted as in git_status.py.

Bounded: the last MOST_VERSIONS commits that changed the file, one deadline for each command, and no version larger than asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..disk.git import git_program
from .git_status import SECONDS, ask_git, fields_of, find_repository, git_variables, head_of

MOST_VERSIONS = 40


class FileVersion(NamedTuple):
    commit: str
    time: float
    data: bytes


def find_version(file: Path, is_wanted: Callable[[bytes], bool], *, environ: Mapping[str, str], most: int) -> FileVersion | None:
    """Return the newest version of a file that is wanted; None if no commit of the current branch has it."""
    repository = find_repository(file.parent)
    head = head_of(repository).commit if repository is not None else None
    git = git_program(environ, outside=repository.top) if repository is not None else None
    if repository is None or head is None or git is None:
        return None
    try:
        path = (file.parent.resolve() / file.name).relative_to(repository.top).as_posix()
    except (OSError, ValueError):
        return None
    variables, line = git_variables(repository, environ), [git, "--no-pager", "--literal-pathspecs"]
    log = ("log", "-z", f"--max-count={MOST_VERSIONS}", "--no-show-signature", "--format=%H %ct", head, "--", path)
    for row in fields_of(ask_git([*line, *log], repository, variables, SECONDS)[0]):
        commit, _, seconds = row.partition(" ")
        data, ended_well = ask_git([*line, "cat-file", "blob", f"{commit}:{path}"], repository, variables, SECONDS, most)
        if ended_well and is_wanted(data):
            return FileVersion(commit, float(seconds or 0), data)
    return None

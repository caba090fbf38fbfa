"""The root commits of a repository (B12), asked of git without its configuration, within a time limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ...disk.git import git_program, run_git
from ...memory.store.project_identity import MOST_ROOTS
from ...prompt.git_status import EMPTY_REPOSITORY
from ...prompt.repository import find_repository, head_of

# A million commits take some seconds; who waits for it is told, or does not wait.
SECONDS = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def root_commits(project: Path, *, environ: Mapping[str, str], seconds: float = SECONDS) -> tuple[str, ...] | None:
    """Empty outside a repository and in one without a commit; None where it could not be found out: no git, no time, a shallow clone."""
    repository = find_repository(project)
    head = head_of(repository) if repository is not None else None
    if repository is None or head is None or head.commit is None:
        return ()
    program = git_program(environ, outside=repository.top)
    # The first commit of a shallow clone is not the repository's.
    if program is None or (repository.common / "shallow").exists():
        return None
    printed = run_git(
        program,
        ("rev-list", "--max-parents=0", head.commit),
        git_dir=EMPTY_REPOSITORY,
        environ=environ,
        seconds=seconds,
        more={"GIT_OBJECT_DIRECTORY": str(repository.common / "objects"), "GIT_OPTIONAL_LOCKS": "0"},
    )
    if printed is None:
        return None
    return tuple(sorted(_COMMIT.findall(printed.decode("ascii", "replace")))[:MOST_ROOTS])

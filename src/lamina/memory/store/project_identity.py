"""Project identity: which project a directory of `<home>/projects` belongs to, even after the project moved.

It owns `<home>/projects/<slug>/project.json`: an id, the path, the root commits of the repository, and the directory's
identity on this disk. Invariants: the file is in the home, never in the working tree, so a repository cannot claim another
one's memory. It is written once and then only read, so a start costs one small read. If it cannot be read or written, only
the identity is lost.

A crash at any line leaves the old file or the new one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.files import read, replace
from ...disk.paths.project import slug
from ...disk.regular_file import subdirectories
from ...disk.transcripts.search import list_transcripts, read_session_info
from .scopes import project_root

FILE_NAME = "project.json"
_BYTES = 64 << 10
# A repository has one root, rarely a few; a history joined from dozens is not identified better by more of them.
MOST_ROOTS = 16


class ProjectIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """The identity of a project. `roots` is None until it is looked up. `place` is the directory's device and inode, which
    recognise it after a rename."""

    v: int
    id: str
    path: str
    roots: tuple[str, ...] | None = None
    place: tuple[int, int] | None = None
    was: tuple[str, ...] = ()


class KnownProject(NamedTuple):
    """A directory of the home and its project path."""

    directory: Path
    path: Path
    identity: ProjectIdentity | None


def identify(home: Path, cwd: str | os.PathLike[str]) -> ProjectIdentity | None:
    """Return the identity of the project at `cwd`, recorded the first time. None if that fails."""
    root, directory = project_root(cwd), Path(os.path.realpath(cwd))
    own = _noted(home, root)
    if directory != root and (home / "projects" / slug(directory)).is_dir():
        _noted(home, directory)
    return own


def _noted(home: Path, path: Path) -> ProjectIdentity | None:
    directory = home / "projects" / slug(path)
    identity = read_identity(directory)
    # Two paths may have the same slug: the first one keeps the file.
    if identity is not None:
        return identity if identity.path == str(path) else None
    fresh = ProjectIdentity(1, os.urandom(16).hex(), str(path), None, directory_id(path))
    return fresh if write_identity(directory, fresh) else None


def write_identity(directory: Path, identity: ProjectIdentity) -> bool:
    """Write the file; False if it cannot be written. A path that is not valid text cannot be written as JSON, so it gets no identity."""
    with suppress(DiskError, UnicodeEncodeError):
        replace(directory / FILE_NAME, msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n", durability="process")
        return True
    return False


def read_identity(directory: Path) -> ProjectIdentity | None:
    with suppress(DiskError, msgspec.DecodeError):
        data = read(directory / FILE_NAME, _BYTES)
        return msgspec.json.decode(data, type=ProjectIdentity) if data is not None else None
    return None


def directory_id(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None


def list_known_projects(home: Path) -> list[KnownProject]:
    """List every directory of the home with a known path, taken from its file or its newest transcript."""
    projects = []
    for directory in subdirectories(home / "projects"):
        identity = read_identity(directory)
        if identity is not None:
            path = identity.path
        else:  # a path in the transcripts counts if the directory is named for it
            infos = filter(None, map(read_session_info, sorted(list_transcripts(directory))))
            path = next((info.cwd for info in infos if slug(info.cwd) == directory.name), "")
        if path:
            projects.append(KnownProject(directory, Path(path), identity))
    return projects

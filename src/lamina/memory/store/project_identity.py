"""Which project a directory of `<home>/projects` belongs to, also after the project moved (B12).

Owns `<home>/projects/<slug>/project.json`: an id of its own, the path, the root commits of the repository, and which directory
it is on this disk. Invariants: the file lies in the home, never in the working tree, so a repository cannot claim another's
memory; it is written once and then only read, so a start costs one small read; a file that cannot be read or written costs the
identity and nothing else.

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
from ...disk.transcripts.search import list_transcripts, project_directories
from ...disk.transcripts.session_list import read_session_info
from .scopes import project_root

FILE_NAME = "project.json"
_BYTES = 64 << 10
# A repository has one root, rarely a few; histories that were joined by the dozen say nothing more.
MOST_ROOTS = 16


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """`roots` None: not asked yet. `place`: device and inode of the directory, so that one that was renamed is known again."""

    v: int
    id: str
    path: str
    roots: tuple[str, ...] | None = None
    place: tuple[int, int] | None = None
    was: tuple[str, ...] = ()


class Known(NamedTuple):
    """A directory of the home and the path it stands for."""

    directory: Path
    path: Path
    identity: Identity | None


def identify(home: Path, cwd: str | os.PathLike[str]) -> Identity | None:
    """The identity of the project at `cwd`; noted at the first time. None where that cannot be done."""
    root, here = project_root(cwd), Path(os.path.realpath(cwd))
    own = _noted(home, root)
    if here != root and (home / "projects" / slug(here)).is_dir():
        _noted(home, here)
    return own


def _noted(home: Path, path: Path) -> Identity | None:
    directory = home / "projects" / slug(path)
    found = identity_in(directory)
    # Two paths may have one slug: the first that was there keeps the file.
    if found is not None:
        return found if found.path == str(path) else None
    fresh = Identity(1, os.urandom(16).hex(), str(path), None, place_of(path))
    return fresh if note(directory, fresh) else None


def note(directory: Path, identity: Identity) -> bool:
    with suppress(DiskError):
        replace(directory / FILE_NAME, msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n", durability="process")
        return True
    return False


def identity_in(directory: Path) -> Identity | None:
    with suppress(DiskError, msgspec.DecodeError):
        data = read(directory / FILE_NAME, _BYTES)
        return msgspec.json.decode(data, type=Identity) if data is not None else None
    return None


def place_of(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None


def known_projects(home: Path) -> list[Known]:
    """Every directory of the home whose path is known: from its file, else from its newest transcript."""
    found = []
    for directory in project_directories(home / "projects"):
        identity = identity_in(directory)
        path = identity.path if identity is not None else _path_said(directory)
        if path:
            found.append(Known(directory, Path(path), identity))
    return found


def _path_said(directory: Path) -> str:
    """What the transcripts say, if it is the path this directory is named for."""
    said = ((read_session_info(path) or None) for path in sorted(list_transcripts(directory)))
    return next((info.cwd for info in said if info is not None and slug(info.cwd) == directory.name), "")

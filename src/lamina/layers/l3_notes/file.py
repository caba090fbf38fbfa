"""The notes' file, and the two files by which a person changes how notes are kept (N1, N5).

Owns `session-memory/summary.md` of a session and reads `session-memory/config/` of the home. Invariants: the file is replaced as a
whole and only while it holds what the update began with, so a person's change always wins; what is no longer notes is moved beside,
never removed.

A crash at any line leaves the old notes or the new ones; between moving a file beside and writing a fresh one there is none, and the
next update begins one.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import DiskError
from ...disk.files import read
from ...disk.trees.rootdir import RootDir
from ...disk.user_files import read_whole

DIRECTORY = "session-memory"
NAME = "summary.md"

# Eighty times what the limits allow: a file beyond this holds no notes.
MAX_NOTES = 4 << 20
# Templates and prompts are pages, not books.
MAX_CONFIG = 256 << 10
# Files moved beside in one session; whoever has more has a program that writes there.
MAX_BESIDE = 1_000


def notes_path(session: Path) -> Path:
    return Path(os.path.abspath(session / DIRECTORY / NAME))


def read_file(path: Path) -> bytes | None:
    """All of the notes; None where there are none yet."""
    data = read(path, MAX_NOTES + 1)
    if data is not None and len(data) > MAX_NOTES:
        raise DiskError(str(path), f"is larger than {MAX_NOTES >> 20} MiB", "move it away; a fresh one is begun")
    return data


def read_config(home: Path | None, name: str) -> str | None:
    """The user's `template.md` or `prompt.md`; None where there is none. A person may keep it behind a link."""
    if home is None:
        return None
    path = home / DIRECTORY / "config" / name
    content = read_whole(path, MAX_CONFIG)
    if content is None:
        return None
    try:
        return content.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DiskError(str(path), "is not UTF-8 text", "save it as UTF-8") from error


def publish(path: Path, data: bytes, *, expected: bytes | None) -> bool:
    """Puts the new notes there; False, and nothing written, when the file no longer holds `expected`."""
    with RootDir.open(path.parent) as root:
        return root.replace_if(path.name, data, expected=expected)


def move_beside(path: Path, *, expected: bytes) -> Path | None:
    """Frees the name without losing what stood there; None when it no longer holds `expected`."""
    with RootDir.open(path.parent) as root:
        if root.read_bytes(path.name, len(expected) + 1) != expected:
            return None
        taken = {entry.name for entry in root.listdir()}
        names = (f"{path.stem}.kept-{number}{path.suffix}" for number in range(1, MAX_BESIDE + 1))
        free = next((name for name in names if name not in taken), None)
        if free is None:
            raise DiskError(str(path), f"can't be moved beside, {MAX_BESIDE:,} files lie there already", "remove some of them")
        root.rename(path.name, free)
        return path.with_name(free)

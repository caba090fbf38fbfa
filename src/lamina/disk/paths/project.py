"""Determines the project that a directory belongs to, from files on disk and without running git.

Owns the slug and the canonical git root. Invariant: a `.git` file counts only if the repository it names points back at it, so an
unpacked archive cannot claim another project's memory.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...core.errors import DiskError
from ..files import read

# A `.git` file contains one path.
_POINTER_BYTES = 8_192
MAX_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def slug(path: str | os.PathLike[str]) -> str:
    """Return the directory name for a real path: each UTF-16 unit other than an ASCII letter or digit becomes `-`."""
    text = os.fspath(path)
    plain = re.sub("[^A-Za-z0-9]", lambda found: "--" if found[0] > "\uffff" else "-", text)
    return plain if len(plain) <= MAX_SLUG else f"{plain[:MAX_SLUG]}-{_hash36(text)}"


def _hash36(text: str) -> str:
    """Return the 31-multiplier hash over UTF-16 units: the absolute value of a signed 32-bit number, in base 36."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFF_FFFF
    number = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


def canonical_git_root(cwd: str | os.PathLike[str]) -> Path | None:
    """Return the real path of the main working tree of `cwd`: the same for every subdirectory and every worktree.

    A bare repository is its own root; a submodule counts as a separate repository. Returns None outside any repository.
    """
    start = Path(os.path.realpath(cwd))
    for directory in (start, *start.parents):
        dot_git = directory / ".git"
        if dot_git.is_dir() and (dot_git / "HEAD").exists():
            return directory
        if dot_git.is_file():
            # Its repository counts only if both point at each other.
            git_dir = _pointed(dot_git, "gitdir: ")
            common = git_dir and _pointed(git_dir / "commondir")
            back = git_dir and _pointed(git_dir / "gitdir")
            if git_dir is None or common is None or back != dot_git or git_dir.parent != common / "worktrees":
                return directory
            return common.parent if common.name == ".git" else common
    return None


def _pointed(file: Path, prefix: str = "") -> Path | None:
    """Return the real path written in `file`, resolved against the file's directory."""
    try:
        text = (read(file, _POINTER_BYTES) or b"").decode("utf-8", "surrogateescape").strip("\r\n")
    except DiskError:
        return None
    if not text.startswith(prefix) or len(text) == len(prefix) or "\0" in text:
        return None
    return Path(os.path.realpath(file.parent / text[len(prefix) :]))

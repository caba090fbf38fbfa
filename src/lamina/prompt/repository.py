"""Where a git repository keeps its parts, read off its files; no program is run.

A repository is other people's data: every file is read bounded, a name inside it leads nowhere outside, and a `.git` file counts
only where the directory it names belongs to this working tree.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from .safe_read import FileText, read_text

# Fifty thousand packed refs are 4 MB.
MOST_REFS_BYTES = 16 << 20
_REF = re.compile(r"refs/(?:[^/.\0\s~^:?*\[\\][^/\0\s~^:?*\[\\]*/)*[^/.\0\s~^:?*\[\\][^/\0\s~^:?*\[\\]*")
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SETTING = re.compile(r"[ \t]*(?P<name>[A-Za-z]+)[ \t]*=[ \t]*(?P<value>[A-Za-z]+)[ \t]*(?:[#;].*)?")

# Settings that say how files are compared, and run nothing.
HARMLESS = frozenset({"filemode", "ignorecase", "symlinks", "precomposeunicode", "trustctime", "autocrlf"})
_VALUES = frozenset({"true", "false", "yes", "no", "on", "off", "input"})


class GitRepository(NamedTuple):
    top: Path  # of the working tree
    git: Path  # HEAD and index
    common: Path  # objects and refs


class GitHead(NamedTuple):
    branch: str | None  # None: a commit is checked out, not a branch
    commit: str | None  # None: no commit yet, or none that could be found


def find_repository(cwd: Path) -> GitRepository | None:
    here = Path(os.path.realpath(cwd))
    for top in (here, *here.parents):
        dot = top / ".git"
        if dot.is_dir() and (dot / "HEAD").exists():
            return GitRepository(top, dot, dot)
        if dot.is_file():
            return _linked(top, dot)
    return None


def _linked(top: Path, dot: Path) -> GitRepository | None:
    """A worktree, whose repository points back at it, or a submodule, whose repository lies in the one above."""
    git = _pointed(dot, "gitdir: ")
    if git is None:
        return None
    if _pointed(git / "gitdir") == dot:
        common = _pointed(git / "commondir")
        return GitRepository(top, git, common) if common is not None and git.parent == common / "worktrees" else None
    above = any(git.is_relative_to(directory / ".git" / "modules") for directory in top.parents)
    return GitRepository(top, git, git) if above else None


def _pointed(file: Path, prefix: str = "") -> Path | None:
    text = _content(file)
    if text is None or not text.startswith(prefix) or not text[len(prefix) :].strip():
        return None
    return Path(os.path.realpath(file.parent / text[len(prefix) :].strip("\n")))


def head_of(repository: GitRepository) -> GitHead:
    text = (_content(repository.git / "HEAD") or "").strip()
    if not text.startswith("ref: "):
        return GitHead(None, text if _OBJECT.fullmatch(text) else None)
    ref = text.removeprefix("ref: ").strip()
    return GitHead(ref.removeprefix("refs/heads/"), _commit(repository, ref)) if is_ref(ref) else GitHead(None, None)


def default_branch(repository: GitRepository) -> str | None:
    """The branch its origin calls the main one."""
    text = (_content(repository.common / "refs" / "remotes" / "origin" / "HEAD") or "").strip()
    ref = text.removeprefix("ref: ").strip()
    return ref.removeprefix("refs/remotes/origin/") if is_ref(ref) else None


def comparison_settings(repository: GitRepository) -> dict[str, str]:
    """The settings of the `core` section that say how files are compared; anything that could name a program is not looked at."""
    found: dict[str, str] = {}
    section = ""
    for line in (_content(repository.common / "config") or "").split("\n"):
        if line.lstrip().startswith("["):
            section = line.strip().casefold()
        elif section == "[core]" and (setting := _SETTING.fullmatch(line)):
            name, value = setting["name"].casefold(), setting["value"].casefold()
            if name in HARMLESS and value in _VALUES:
                found[f"core.{name}"] = value
    return found


def is_ref(name: str) -> bool:
    return bool(_REF.fullmatch(name)) and ".." not in name and "@{" not in name


def _commit(repository: GitRepository, ref: str) -> str | None:
    text = (_content(repository.common / ref) or "").strip()
    if _OBJECT.fullmatch(text):
        return text
    packed = _content(repository.common / "packed-refs", MOST_REFS_BYTES) or ""
    end = packed.find(f" {ref}\n")
    commit = packed[packed.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
    return commit if _OBJECT.fullmatch(commit) else None


def _content(path: Path, most: int = 1 << 16) -> str | None:
    content = read_text(Path(os.path.realpath(path)), most=most)
    return content.text if isinstance(content, FileText) else None

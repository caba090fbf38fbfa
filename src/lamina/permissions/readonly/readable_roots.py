"""Where a command may look: inside the given directories, with every link resolved first.

Owns the rule for paths. Invariant: a path is judged by its real path, component by component; nothing leads to or through /proc,
/sys and /dev, whatever the directories are: /proc/self is another place for us than for the command. The root of the disk, which
holds them, is not read either.

What stands at a path can change before the command opens it. That needs another writer in the same directories: a fork writes
plain files there and makes no links.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from .tokenizer import NotReadOnly

_KERNEL = (["proc"], ["sys"], ["dev"])
# As many as Linux follows in one path.
_MAX_LINKS = 40
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://?")


class ReadableRoots:
    """The working directory and the roots, resolved once."""

    __slots__ = ("cwd", "roots")

    def __init__(self, cwd: str | os.PathLike[str], roots: Iterable[str | os.PathLike[str]]) -> None:
        self.cwd = os.path.realpath(cwd)
        self.roots = tuple(os.path.realpath(root) for root in roots)

    def real(self, text: str, *, opens: bool) -> str:
        """The real path that `text` names; NotReadOnly when it is outside, or when opening it could block or do something."""
        if not text:
            raise NotReadOnly("A path is empty; name a file or a directory.")
        if text.startswith("//") or _URL.match(text):
            raise NotReadOnly(f"{text} is a URL or a network path; name a file by its path.")
        real = _resolved(os.path.join(self.cwd, text), text)
        if not any(within(real, root) for root in self.roots):
            raise NotReadOnly(f"{text} is outside the directories that may be read; name a path inside them.")
        if opens and not _is_plain(real):
            raise NotReadOnly(f"{text} is neither a file nor a directory; reading it could wait for ever, so leave it out.")
        return real


def _resolved(path: str, shown: str) -> str:
    """The path without links, followed one by one."""
    here, links = "", 0
    todo = path.split(os.sep)[::-1]
    while todo:
        part = todo.pop()
        if part == "..":
            here = os.path.dirname(here)
        elif part not in ("", "."):
            here, target = _step(f"{here}{os.sep}{part}")
            links += target is not None
            here = "" if target is not None and target.startswith(os.sep) else here
            todo += (target or "").split(os.sep)[::-1]
        if here.split(os.sep)[1:2] in _KERNEL:
            raise NotReadOnly(f"{shown} leads to a system directory; name a path inside the project.")
        if links > _MAX_LINKS:
            raise NotReadOnly(f"{shown} leads through more than {_MAX_LINKS} links; name the file itself.")
    if not here.strip(os.sep):
        raise NotReadOnly(f"{shown} is the root of the disk; name a path inside the project.")
    return here


def _step(path: str) -> tuple[str, str | None]:
    """Where to go on: the path itself, or the directory of a link and where the link leads."""
    try:
        return os.path.dirname(path), os.readlink(path)
    except (OSError, ValueError):
        return path, None


def within(path: str, root: str) -> bool:
    """Whether `path` is `root` or lies below it; both are real paths, compared by whole components."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _is_plain(real: str) -> bool:
    """A file, a directory, or nothing at all: then the command says so itself."""
    try:
        mode = os.stat(real).st_mode
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

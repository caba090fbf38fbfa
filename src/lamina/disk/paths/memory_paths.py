"""Which paths memory may use (G1): the directory itself, and what a model asks for inside it.

Owns the decision from the text; what is opened afterwards is `rootdir`'s business, which follows no link whatever was decided
here. Invariants: the same text gets the same answer on every system; a path is compared component by component, never as a
string; what cannot be understood is refused.

The root must be absolute (or `~/…`), at least three components deep, and neither the home itself or above it, nor a system
directory, before and after its links are resolved. A child is relative to the root or spelled out from it, has no hidden
component, and no component that is a link.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath

from ...core.errors import PathRefused
from .file_names import MAX_PATH_BYTES, bad_name, bad_text, fold, shown

# `/x/y` is near the root of a disk: too much else lives there.
MIN_ROOT_DEPTH = 3
# logs/2026/03/2026-03-31.md has four; a memory nested deeper than this is a mistake or an attack.
MAX_CHILD_DEPTH = 8

# The first component, folded. /var and /root count only where the home is not in them: service accounts live in /var/lib.
_LIBRARIES = ("lib", "lib32", "lib64", "libx32", "nix", "snap", "usr")
_UNIX = ("bin", "boot", "cores", "dev", "efi", "etc", "lost+found", "proc", "run", "sbin", "selinux", "sys", *_LIBRARIES)
_MACOS = ("applications", "library", "network", "system")
_WINDOWS = ("windows", "program files", "program files (x86)", "programdata", "system volume information")
_SYSTEM = frozenset((*_UNIX, *_MACOS, *_WINDOWS))
_SYSTEM_UNLESS_HOME = frozenset({"root", "var"})
# Temporary directories that are under /var on some systems.
_VAR_ALLOWED = frozenset({"folders", "tmp"})
# Directories of the home that hold keys: a file written there by a model is never wanted.
_KEYS = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store"})
# Names that code looks for: another spelling would be the same file on some systems and escape the code's own checks.
_FIXED_NAMES = {fold(name): name for name in ("MEMORY.md", "team", "logs")}
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_ROOT_REMEDY = "name a directory of yours by its full path, such as ~/notes/memory"
_CHILD_REMEDY = "use a plain path inside the memory directory, such as topic.md"


def check_root(text: object, *, home: str | os.PathLike[str]) -> Path:
    """Return the memory directory that `text` (a setting, a variable) names, with all links resolved; PathRefused otherwise."""
    own = os.path.realpath(home)
    try:
        real = os.path.realpath(root_of(text, own))
    except OSError as error:  # a link was taken away while it was read
        raise PathRefused(shown(text), "is being changed by another program", "try it again") from error
    if problem := _bad_place(real, own):
        raise PathRefused(shown(text), problem, _ROOT_REMEDY)
    if os.path.exists(real) and os.path.exists(own) and os.path.samefile(real, own):
        raise PathRefused(shown(text), "is the home directory itself", _ROOT_REMEDY)
    return Path(real)


def root_of(text: object, home: str, *, windows: bool = os.name == "nt") -> str:
    """The part of `check_root` that needs no disk: the absolute path that is meant, links not yet resolved."""
    if not isinstance(text, str) or not text.strip():
        raise PathRefused(shown(text), "is empty", _ROOT_REMEDY)
    drive, spelled = (text[:2], text[2:].replace("\\", "/")) if windows and _DRIVE.match(text) else ("", text)
    base, inside = (home.rstrip("/"), spelled[1:]) if spelled.startswith("~/") else (drive, spelled)
    parts = [part for part in inside.split("/") if part not in ("", ".")]
    path = "/".join([base, *parts])
    if problem := _bad_root(inside) or _first_problem(parts) or _bad_place(path, home):
        raise PathRefused(shown(text), problem, _ROOT_REMEDY)
    return path


def _first_problem(parts: list[str]) -> str | None:
    return next(filter(None, map(bad_name, parts)), None)


def _bad_root(text: str) -> str | None:
    if text.startswith(("//", "\\\\")):
        return "is a network path"
    if _URL.match(text):
        return "is a URL"
    if problem := bad_text(text):
        return problem
    return None if text.startswith("/") else "is not absolute"


def _bad_place(path: str, home: str) -> str | None:
    parts, own = _folded(path), _folded(home)
    if len(parts) < MIN_ROOT_DEPTH:
        return f"is too near the root of the disk: {MIN_ROOT_DEPTH} components are the least"
    if own[: len(parts)] == parts:
        return "is the home directory or holds it"
    if _is_system(parts, own):
        return "is in a system directory"
    if any(part in _KEYS or part == ".git" for part in parts):
        return "is in a directory for keys or of git"
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    return None


def _folded(path: str) -> list[str]:
    """The components without a drive and without what macOS puts before them when links are resolved."""
    parts = [fold(part) for part in re.split(r"[\\/]", re.sub(r"^[A-Za-z]:", "", path)) if part]
    for prefix in (["system", "volumes", "data"], ["private"]):
        if parts[: len(prefix)] == prefix and parts[len(prefix) : len(prefix) + 1] in (["etc"], ["home"], ["tmp"], ["var"]):
            return parts[len(prefix) :]
    return parts


def _is_system(parts: list[str], home: list[str]) -> bool:
    # A Linux on Windows has the drives under /mnt.
    if parts[0] == "mnt" and len(parts[1]) == 1:
        parts = parts[2:]
    if parts[0] == "var" and len(parts) > 1 and parts[1] in _VAR_ALLOWED:
        return False
    if parts[0] in _SYSTEM_UNLESS_HOME:
        return not home or parts[: len(home)] != home
    return parts[0] in _SYSTEM


def check_child(root: str | os.PathLike[str], text: object) -> PurePosixPath:
    """Return the path below `root` that a model's `text` names, absolute or relative to it; PathRefused otherwise.

    The spelling decides first; then what stands on the disk: a component that is a link, a file in the place of a directory, a
    last component that is no regular file.
    """
    if not isinstance(text, str) or not text.strip():
        raise _refused(text, "is empty")
    below = _below(os.fspath(root), text)
    parts = below.split("/")
    problem = bad_text(below) or _first_problem(parts) or _bad_child(parts)
    if not problem and len(os.fsencode(os.fspath(root))) + len(below.encode()) >= MAX_PATH_BYTES:
        problem = f"is longer than {MAX_PATH_BYTES} bytes"
    if problem:
        raise _refused(text, problem)
    _refuse_links(Path(root), parts, text)
    return PurePosixPath(*parts)


def _below(root: str, text: str) -> str:
    """The text without the root, if it begins with it; compared by whole components, letter by letter."""
    if not text.startswith("/") and not _DRIVE.match(text):
        return text
    base = root.replace(os.sep, "/").rstrip("/").split("/")
    given = (text.replace(os.sep, "/") if os.sep != "/" else text).split("/")
    if given[: len(base)] != base:
        raise _refused(text, "is outside the memory directory")
    return "/".join(given[len(base) :])


def _bad_child(parts: list[str]) -> str | None:
    if len(parts) > MAX_CHILD_DEPTH:
        return f"is more than {MAX_CHILD_DEPTH} directories deep"
    for part in parts:
        if part.startswith("."):
            return "has a hidden component"
        if part.startswith("-"):
            return "has a component that a command would read as an option"
        if "~" in part:
            return "holds a tilde (a home or a short name)"
        if _FIXED_NAMES.get(fold(part), part) != part:
            return f"is another spelling of {_FIXED_NAMES[fold(part)]}"
    return None


def _refuse_links(root: Path, parts: list[str], text: object) -> None:
    here = root
    for number, part in enumerate(parts, 1):
        here = here / part
        try:
            mode = os.lstat(here).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _refused(text, f"cannot be looked at ({os.strerror(error.errno or 0)})") from error
        if stat.S_ISLNK(mode):
            raise _refused(text, "leads through a symbolic link")
        if not (stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)):
            raise _refused(text, "has a directory where a file should be, or the other way round")


def _refused(text: object, problem: str) -> PathRefused:
    return PathRefused(shown(text), problem, _CHILD_REMEDY)

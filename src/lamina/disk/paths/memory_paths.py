"""Checks the paths that memory may use: its root directory, and the paths that a model requests inside it.

Owns the decision from the text. `rootdir` opens the files afterwards and follows no link, whatever was decided here. Invariants:
the same text gets the same answer on every system; paths are compared component by component, never as strings; unclear paths are
refused.

The root must be absolute (or `~/…`), at least three components deep, and must not be a system directory, the home directory or a
parent of it, both before and after links are resolved. A child is relative to the root or starts with it, has no hidden
components, and no component that is a link.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath

from ...core.errors import PathRefused
from ...language.text import Text
from .file_names import MAX_PATH_BYTES, bad_name, bad_text, fold, printable_path

# A path such as `/x/y` is too near the root of a disk, next to unrelated files.
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
# Temporary directories below /var on some systems.
_VAR_ALLOWED = frozenset({"folders", "tmp"})
# Directories with keys: a model must never write there.
_KEYS = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store"})
# Names that the code uses: another spelling would be the same file on some systems and bypass the code's checks.
_FIXED_NAMES = {fold(name): name for name in ("MEMORY.md", "team", "logs")}
# Directories in which Lamina keeps versions, proposals and copies of memories. They contain no memories of their own.
INTERNAL = frozenset({".history", ".inbox", ".dreams"})
# Every directory that Lamina has written memories to holds this lock file.
GUARD = ".memory.lock"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_ROOT_REMEDY = "use the full path of a directory you own, such as ~/notes/memory"
_CHILD_REMEDY = "use a plain path inside the memory directory, such as topic.md"


def is_internal(path: Path, *, below: Path) -> bool:
    """Tell whether a file is part of Lamina's bookkeeping in a memory directory. Only components behind `below` count."""
    parts = path.relative_to(below).parts if path.is_relative_to(below) else ()
    places = (index for index, part in enumerate(parts) if part.startswith(".") and fold(part) in INTERNAL)
    return any((below.joinpath(*parts[:index]) / GUARD).exists() for index in places)


def check_root(text: object, *, home: str | os.PathLike[str]) -> Path:
    """Return the memory directory that `text` (a setting or variable) names, links resolved. Raises PathRefused if invalid."""
    own = os.path.realpath(home)
    try:
        real = os.path.realpath(root_of(text, own))
    except OSError as error:  # a link was removed while it was read
        raise PathRefused(printable_path(text), "is being changed by another program", "try again") from error
    if problem := _bad_place(real, own):
        raise PathRefused(printable_path(text), problem, _ROOT_REMEDY)
    if os.path.exists(real) and os.path.exists(own) and os.path.samefile(real, own):
        raise PathRefused(printable_path(text), "is the home directory itself", _ROOT_REMEDY)
    return Path(real)


def root_of(text: object, home: str, *, windows: bool = os.name == "nt") -> str:
    """Return the absolute path that is meant, with links not yet resolved. This part of `check_root` needs no disk."""
    if not isinstance(text, str) or not text.strip():
        raise PathRefused(printable_path(text), "is empty", _ROOT_REMEDY)
    drive, spelled = (text[:2], text[2:].replace("\\", "/")) if windows and _DRIVE.match(text) else ("", text)
    base, inside = (home.rstrip("/"), spelled[1:]) if spelled.startswith("~/") else (drive, spelled)
    parts = [part for part in inside.split("/") if part not in ("", ".")]
    path = "/".join([base, *parts])
    if problem := _bad_root(inside) or _first_problem(parts) or _bad_place(path, home):
        raise PathRefused(printable_path(text), problem, _ROOT_REMEDY)
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
        return Text("is too near the root of the disk (it needs at least {limit} components)", limit=MIN_ROOT_DEPTH)
    if own[: len(parts)] == parts:
        return "is the home directory or contains it"
    if _is_system(parts, own):
        return "is in a system directory"
    if any(part in _KEYS or part == ".git" for part in parts):
        return "is in a git directory or a directory for keys"
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        return Text("is longer than {limit} bytes", limit=MAX_PATH_BYTES)
    return None


def _folded(path: str) -> list[str]:
    """Return the components, without a drive and without the prefix that macOS adds when links are resolved."""
    parts = [fold(part) for part in re.split(r"[\\/]", re.sub(r"^[A-Za-z]:", "", path)) if part]
    for prefix in (["system", "volumes", "data"], ["private"]):
        if parts[: len(prefix)] == prefix and parts[len(prefix) : len(prefix) + 1] in (["etc"], ["home"], ["tmp"], ["var"]):
            return parts[len(prefix) :]
    return parts


def _is_system(parts: list[str], home: list[str]) -> bool:
    # Under WSL, the Windows drives are below /mnt.
    if parts[0] == "mnt" and len(parts[1]) == 1:
        parts = parts[2:]
    if parts[0] == "var" and len(parts) > 1 and parts[1] in _VAR_ALLOWED:
        return False
    if parts[0] in _SYSTEM_UNLESS_HOME:
        return not home or parts[: len(home)] != home
    return parts[0] in _SYSTEM


def check_child(root: str | os.PathLike[str], text: object) -> PurePosixPath:
    """Return the path below `root` that a model's `text` names, absolute or relative. Raises PathRefused if it is not allowed.

    The spelling is checked first, then the disk: no component may be a link, directories must be directories, and the last
    component must be a regular file if it exists.
    """
    if not isinstance(text, str) or not text.strip():
        raise _refused(text, "is empty")
    below = _below(os.fspath(root), text)
    parts = below.split("/")
    problem = bad_text(below) or _first_problem(parts) or _bad_child(parts)
    if not problem and len(os.fsencode(os.fspath(root))) + len(below.encode()) >= MAX_PATH_BYTES:
        problem = Text("is longer than {limit} bytes", limit=MAX_PATH_BYTES)
    if problem:
        raise _refused(text, problem)
    _refuse_links(Path(root), parts, text)
    return PurePosixPath(*parts)


def _below(root: str, text: str) -> str:
    """Return the text without the root, if it starts with it. Whole components are compared, case-sensitively."""
    if not text.startswith("/") and not _DRIVE.match(text):
        return text
    base = root.replace(os.sep, "/").rstrip("/").split("/")
    components = (text.replace(os.sep, "/") if os.sep != "/" else text).split("/")
    if components[: len(base)] != base:
        raise _refused(text, "is outside the memory directory")
    return "/".join(components[len(base) :])


def _bad_child(parts: list[str]) -> str | None:
    if len(parts) > MAX_CHILD_DEPTH:
        return Text("is more than {limit} directories deep", limit=MAX_CHILD_DEPTH)
    for part in parts:
        if part.startswith("."):
            return "has a hidden component"
        if part.startswith("-"):
            return "has a component that a command would read as an option"
        if "~" in part:
            return "contains a tilde (a home or a short name)"
        if _FIXED_NAMES.get(fold(part), part) != part:
            return f"is another spelling of {_FIXED_NAMES[fold(part)]}"
    return None


def _refuse_links(root: Path, parts: list[str], text: object) -> None:
    place = root
    for number, part in enumerate(parts, 1):
        place = place / part
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _refused(text, f"cannot be checked ({os.strerror(error.errno or 0)})") from error
        if stat.S_ISLNK(mode):
            raise _refused(text, "leads through a symbolic link")
        if not (stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)):
            raise _refused(text, "has a directory where a file is expected, or the other way round")


def _refused(text: object, problem: str) -> PathRefused:
    return PathRefused(printable_path(text), problem, _CHILD_REMEDY)

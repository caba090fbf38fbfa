"""Path patterns of rules, as in gitignore. Matching takes time proportional to pattern length times path length.

Invariants: a pattern covers a path or a directory above it, by whole components; `*` and `?` stop at a slash, `**` does not.
`//x` starts at the file system root, `~/x` at the user's home, `/x` at the directory of the settings, `./x` and `x/y` at the
working directory. A name without a slash matches at any depth below the working directory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Literal, TypeAlias

import msgspec

from ...core.globs import PathGlob, compile_name, match_path, quote_name, split_path

Base: TypeAlias = Literal["disk", "home", "settings", "cwd"]
# Each base as spelled and, if different, with links resolved.
Bases: TypeAlias = Mapping[Base, tuple[PurePath, ...]]

_STARTS: tuple[tuple[str, Base], ...] = (("//", "disk"), ("~/", "home"), ("/", "settings"), ("./", "cwd"))


class PathPattern(msgspec.Struct, frozen=True):
    base: Base
    parts: tuple[str, ...]


def read_pattern(text: str) -> PathPattern | str:
    """Parse a pattern; return it, or the problem with it."""
    if text.startswith("!"):
        return "begins with `!`, but a rule can't negate another one"
    start, base = next(((start, base) for start, base in _STARTS if text.startswith(start)), ("", "cwd"))
    path = text.removeprefix(start)
    parts = split_path(path)
    if not parts:
        return "contains no path"
    if ".." in parts:
        return "contains `..`; write an absolute path with // in front"
    if text.startswith("~") and base != "home":
        return "names another user's home; write an absolute path with // in front"
    anywhere = not start and "/" not in path.rstrip("/") and parts != ("**",)
    return PathPattern(base, ("**", *parts) if anywhere else parts)


def covers(pattern: PathPattern, path: PurePath, bases: Bases, *, loosely: bool = False) -> bool:
    """Tell whether the pattern matches the path or a directory above it.

    `loosely` is for restricting rules: case is ignored, and `/x` also counts from the file system root, which is what many
    people mean.
    """
    return any(_below(pattern, path, base, loosely) for base in _starts(pattern, bases, loosely))


def could_cover_below(pattern: PathPattern, directory: PurePath, bases: Bases) -> bool:
    """Tell whether anything below the directory might match: the part before the first wildcard does not lead elsewhere."""
    fixed = [_folded(part) for part in pattern.parts]
    wild = next((number for number, part in enumerate(fixed) if re.search(r"[*?\[\\]", part)), len(fixed))
    folded = [_folded(part) for part in directory.parts]
    for base in _starts(pattern, bases, True):
        start = [_folded(part) for part in base.parts] + fixed[:wild]
        shared = min(len(start), len(folded))
        if start[:shared] == folded[:shared]:
            return True
    return False


def _starts(pattern: PathPattern, bases: Bases, loosely: bool) -> tuple[PurePath, ...]:
    also = bases.get("disk", ()) if loosely and pattern.base == "settings" else ()
    return (*bases.get(pattern.base, ()), *also)


def _below(pattern: PathPattern, path: PurePath, base: PurePath, loosely: bool) -> bool:
    names, start = list(path.parts), list(base.parts)
    same = [_folded(name) for name in names[: len(start)]] == [_folded(name) for name in start]
    if names[: len(start)] != start and not (loosely and same):
        return False
    return match_path(_compiled(pattern.parts, loosely), [unicodedata.normalize("NFC", name) for name in names[len(start) :]])


@lru_cache(maxsize=512)
def _compiled(parts: tuple[str, ...], loosely: bool) -> PathGlob:
    """Compile the pattern and everything below it. A final `**` needs at least one component: `src/**` means the content of
    src."""
    *above, last = (None if part == "**" else compile_name(_spelled(part), ignore_case=loosely) for part in parts)
    return (*above, last or compile_name("*"), None)


def _spelled(part: str) -> str:
    """Translate gitignore syntax to the engine's: a backslash escapes the next character, `[^` means `[!`."""
    return re.sub(
        r"\\(.)|\[\^",
        lambda piece: quote_name(piece[1]) if piece[1] else "[!",
        unicodedata.normalize("NFC", part),
        flags=re.DOTALL,
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def quoted(name: str) -> str:
    """Escape a name so that it matches only itself."""
    return re.sub(r"([*?\[\\])", r"\\\1", name)

"""Path patterns of rules, as in gitignore: read once, matched in time that grows with pattern times path.

Owns what a pattern covers. Invariants: a pattern covers a path or a directory above it, by whole components; `*` and `?` stop at
a slash, `**` does not. `//x` begins at the root of the disk, `~/x` at the person's home, `/x` where the settings lie, `./x` and
`x/y` in the working directory; a name without a slash is found at any depth below the working directory.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Literal, TypeAlias

import msgspec

Base: TypeAlias = Literal["disk", "home", "settings", "cwd"]
# Each place as it is spelled and, where that is another, without links.
Bases: TypeAlias = Mapping[Base, tuple[PurePath, ...]]

_STARTS: tuple[tuple[str, Base], ...] = (("//", "disk"), ("~/", "home"), ("/", "settings"), ("./", "cwd"))


class PathPattern(msgspec.Struct, frozen=True):
    base: Base
    parts: tuple[str, ...]


def read_pattern(text: str) -> PathPattern | str:
    """The pattern, or what is wrong with it."""
    if text.startswith("!"):
        return "begins with `!`, and a rule can't take back another one"
    start, base = next(((start, base) for start, base in _STARTS if text.startswith(start)), ("", "cwd"))
    rest = text.removeprefix(start)
    parts = tuple(part for part in rest.split("/") if part not in ("", "."))
    if not parts:
        return "names no path"
    if ".." in parts:
        return "holds `..`; write the path from the root of the disk, with // before it"
    if text.startswith("~") and base != "home":
        return "names another person's home; write the path from the root of the disk, with // before it"
    anywhere = not start and "/" not in rest.rstrip("/") and parts != ("**",)
    return PathPattern(base, ("**", *parts) if anywhere else parts)


def covers(pattern: PathPattern, path: PurePath, bases: Bases, *, loosely: bool = False) -> bool:
    """Whether the pattern matches the path or a directory above it.

    `loosely` is for rules that hold back: letters in either case match, and `/x` counts from the root of the disk too, which is
    what many people mean by it.
    """
    return any(_below(pattern, path, base, loosely) for base in _starts(pattern, bases, loosely))


def could_cover_below(pattern: PathPattern, directory: PurePath, bases: Bases) -> bool:
    """Whether something below the directory might match: the part before the first wildcard does not lead elsewhere."""
    fixed = [_folded(part) for part in pattern.parts]
    wild = next((number for number, part in enumerate(fixed) if re.search(r"[*?\[\\]", part)), len(fixed))
    here = [_folded(part) for part in directory.parts]
    for base in _starts(pattern, bases, True):
        start = [_folded(part) for part in base.parts] + fixed[:wild]
        shared = min(len(start), len(here))
        if start[:shared] == here[:shared]:
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
    return _matches(pattern.parts, names[len(start) :], loosely)


def _matches(parts: tuple[str, ...], names: list[str], loosely: bool) -> bool:
    """All ways at once: the set of places in the pattern that the names so far can have reached."""
    states = _skipping({0}, parts)
    for name in names:
        found = set[int]()
        for at in states:
            if parts[at] == "**":
                found |= {at, at + 1} if at + 1 == len(parts) else {at}
            elif _component(parts[at], loosely).match(unicodedata.normalize("NFC", name)):
                found.add(at + 1)
        if len(parts) in found:
            return True
        states = _skipping(found, parts)
    return False


def _skipping(states: set[int], parts: tuple[str, ...]) -> set[int]:
    """`**` stands for no directory too, but not at the end: `src/**` is what is in src."""
    found = set(states)
    for at in range(len(parts) - 1):
        if at in found and parts[at] == "**":
            found.add(at + 1)
    return found


@lru_cache(maxsize=1_024)
def _component(text: str, loosely: bool) -> re.Pattern[str]:
    """gitignore's spelling as fnmatch's: a backslash protects the next character, `[^` means `[!`."""
    pieces = re.findall(r"\\.|\[\^|.", unicodedata.normalize("NFC", text), re.DOTALL)
    plain = "".join(_piece(piece) for piece in pieces)
    return re.compile(fnmatch.translate(plain), re.IGNORECASE if loosely else 0)


def _piece(piece: str) -> str:
    if piece == "[^":
        return "[!"
    if len(piece) == 1:
        return piece
    return f"[{piece[1]}]" if piece[1] in "*?[" else piece[1]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def quoted(name: str) -> str:
    """A name as a pattern that matches only itself."""
    return re.sub(r"([*?\[\\])", r"\\\1", name)

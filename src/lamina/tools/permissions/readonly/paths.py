"""Readable paths: a command may read inside the given directories, with every link resolved first.

Invariant: a path is judged by its resolved path, component by component. Nothing leads to or through /proc, /sys and /dev,
whatever the directories are: /proc/self is another place for us than for the command. The file system root, which contains
them, is not readable either.

A path can change before the command opens it. That needs another writer in the same directories; a fork writes plain files
there and creates no links.

Unquoted wildcards are expanded as bash would, in readable directories. Invariants: a name that a command could take for
something other than a file gets `./` in front. A name with a control character, or too many names, ends the plan instead of
being cut. If a word is accepted, the result is the same as in bash: `*` and `?` stop at a slash and skip hidden names, a
word without matches stays unchanged, and names are in byte order. Brackets are accepted only if every locale reads them
alike and nothing in the word is quoted: in `['a-z']` the dash is a dash.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....core.globs import compile_name, quote_name
from ....language.text import Text
from .tokenizer import NotReadOnly, ShellWord

_KERNEL = (["proc"], ["sys"], ["dev"])
# The number of links that Linux follows in one path.
_MAX_LINKS = 40
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://?")


class ReadableRoots:
    """The working directory and the roots, resolved once."""

    __slots__ = ("cwd", "roots")

    def __init__(self, cwd: str | os.PathLike[str], roots: Iterable[str | os.PathLike[str]]) -> None:
        self.cwd = os.path.realpath(cwd)
        self.roots = tuple(os.path.realpath(root) for root in roots)

    def real(self, text: str, *, opens: bool) -> str:
        """Resolve a path. Raises NotReadOnly if it is outside, or if opening it could block or have an effect."""
        if not text:
            raise NotReadOnly(Text("A path is empty; name a file or a directory."))
        if text.startswith("//") or _URL.match(text):
            raise NotReadOnly(Text("{word} is a URL or a network path; use a file path.", word=text))
        real = _resolved(os.path.join(self.cwd, text), text)
        if not any(within(real, root) for root in self.roots):
            raise NotReadOnly(Text("{word} is outside the readable directories; name a path inside them.", word=text))
        if opens:
            try:
                mode = os.stat(real).st_mode
            except (OSError, ValueError):
                return real  # the command reports what is missing
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise NotReadOnly(
                    Text("{word} is neither a file nor a directory, and reading it could block; leave it out.", word=text)
                )
        return real

    def holds(self, text: str) -> bool:
        """Tell whether a path leads into the roots."""
        try:
            return bool(self.real(text, opens=False))
        except NotReadOnly:
            return False

    def entry(self, text: str) -> str:
        """Return the path of a directory entry that must not be followed. Raises NotReadOnly if its directory is outside."""
        above, name = os.path.split(text)
        return os.path.join(self.real(above or ".", opens=False), name)


def _resolved(path: str, shown: str) -> str:
    """Resolve a path, following its links one by one."""
    real, links = "", 0
    todo = path.split(os.sep)[::-1]
    while todo:
        part = todo.pop()
        if part == "..":
            real = os.path.dirname(real)
        elif part not in ("", "."):
            try:
                target = os.readlink(f"{real}{os.sep}{part}")
            except (OSError, ValueError):  # no link
                real = f"{real}{os.sep}{part}"
            else:
                links += 1
                real = "" if target.startswith(os.sep) else real
                todo += target.split(os.sep)[::-1]
        if real.split(os.sep)[1:2] in _KERNEL:
            raise NotReadOnly(Text("{word} leads to a system directory; name a path inside the project.", word=shown))
        if links > _MAX_LINKS:
            raise NotReadOnly(
                Text("{word} leads through more than {most} links; name the file itself.", word=shown, most=_MAX_LINKS)
            )
    if not real.strip(os.sep):
        raise NotReadOnly(Text("{word} is the file system root; name a path inside the project.", word=shown))
    return real


def within(path: str, root: str) -> bool:
    """Tell whether `path` is `root` or below it. Both are resolved paths, compared by whole components."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


# A directory with more entries takes long to list, and no one reads a command line with more names.
MAX_ENTRIES = 20_000
MAX_MATCHES = 1_000

_BRACKET = re.compile(r"\[(?P<no>[!^]?)(?P<set>(?:[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9A-Za-z_.:])+)\]")
# First characters with which every command takes a word for a file name.
_PLAIN_START = re.compile(r"[\w./]")


class _WordStep(NamedTuple):
    """One component of a pattern; `pattern` is None for plain text."""

    text: str
    pattern: re.Pattern[str] | None


def expand_word(word: ShellWord, readable: ReadableRoots) -> tuple[str, ...]:
    """Return the names a word expands to, in order; the word itself if it has no wildcard or nothing matches."""
    if not word.wild:
        return (word.text,)
    names = sorted(matching_names(word, readable), key=os.fsencode)
    if any(not name.isprintable() for name in names):
        raise NotReadOnly(Text("{word} matches a name with invisible characters; list the files one by one.", word=word.text))
    return tuple(name if _PLAIN_START.match(name) else f"./{name}" for name in names) or (word.text,)


def matching_names(word: ShellWord, readable: ReadableRoots) -> list[str]:
    if "//" in word.text:
        raise NotReadOnly(Text("{word} contains a double slash; write a single one.", word=word.text))
    names = [""]
    for step in _steps(word):
        names = [name for base in names for name in _next(base, step, readable)]
        if len(names) > MAX_MATCHES:
            raise NotReadOnly(
                Text("{word} matches more than {most:,} names; use find or a narrower pattern.", word=word.text, most=MAX_MATCHES)
            )
    return names


def _steps(word: ShellWord) -> Iterator[_WordStep]:
    """Yield the components, each with the slash after it; a wildcard never spans two components."""
    start = 0
    for part in re.findall(r"[^/]*/|[^/]+", word.text):
        wild = {place - start for place in word.wild if start <= place < start + len(part)}
        yield _WordStep(part, _pattern(part.rstrip("/"), wild, plain=word.plain) if wild else None)
        start += len(part)


def _pattern(part: str, wild: set[int], *, plain: bool) -> re.Pattern[str]:
    """Translate one component to the engine's syntax. Quoted characters go into brackets, so that they match only
    themselves."""
    pieces, place = list[str](), 0
    while place < len(part):
        piece, end = part[place] if place in wild else quote_name(part[place]), place + 1
        if piece == "[":
            bracket = _BRACKET.match(part, place) if plain else None
            if bracket is None:
                raise NotReadOnly(Text("The bracket in {word} is ambiguous; put it in single quotes or leave it out.", word=part))
            piece, end = f"[{'!' if bracket['no'] else ''}{bracket['set']}]", bracket.end()
        pieces.append(piece)
        place = end
    return compile_name("".join(pieces))


def _next(base: str, step: _WordStep, readable: ReadableRoots) -> Iterator[str]:
    slash = "/" if step.text.endswith("/") else ""
    if step.pattern is None:
        names = [step.text.removesuffix("/")]
    else:
        hidden = step.text.startswith(".")
        names = [name for name in _entries(base, readable) if step.pattern.match(name) and (hidden or not name.startswith("."))]
    for name in names:
        path = os.path.join(readable.cwd, base + name)
        if os.path.isdir(path) if slash else os.path.lexists(path):
            yield base + name + slash


def _entries(base: str, readable: ReadableRoots) -> list[str]:
    try:
        with os.scandir(readable.real(base or ".", opens=True)) as listing:
            names = [entry.name for entry, _ in zip(listing, range(MAX_ENTRIES + 1), strict=False)]
    except OSError:
        return []
    if len(names) > MAX_ENTRIES:
        raise NotReadOnly(
            Text(
                "{directory} contains more than {most:,} names; use find instead of a wildcard.",
                directory=base or Text("The directory"),
                most=MAX_ENTRIES,
            )
        )
    return names

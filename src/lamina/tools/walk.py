"""The files below a directory, in the order of their paths, without what nobody means to look at.

Owns which files Grep (without ripgrep) and Glob look at. Standard library only: the search worker loads it. Invariants: no link
is followed, so the walk stays below its root and ends; only regular files come out; a rule decides by the last line that matches,
as in git. Where a directory belongs to a git repository its .gitignore files count, from the repository's top down, as they do
for ripgrep; version control's own directories, node_modules and __pycache__ are always left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ..core.globs import PathGlob, compile_name, compile_path, expand_braces, match_path, split_path

# Never what is meant, and often larger than everything else together.
SKIPPED = (".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__")
# A .gitignore is a page or two; what is larger is something else.
_MOST_IGNORE_BYTES = 1 << 20
# All entries of a directory are in memory at once, to be sorted.
_MOST_ENTRIES = 200_000
# A pipe or a device that took the place of a file since it was listed must not block us.
_INERT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class FoundFile(NamedTuple):
    parts: tuple[str, ...]  # below the root
    entry: os.DirEntry[str]


class IgnoreRule(NamedTuple):
    name: re.Pattern[str] | None  # of a line without a slash: the last component is compared, at any depth
    glob: PathGlob  # of any other: the whole path
    wanted: bool  # a line that begins with `!` in a .gitignore, and one that does not in a list of globs
    only_directories: bool


class IgnoreRules:
    """The lines of one .gitignore, or a list of globs, for the directory with so many components."""

    __slots__ = ("_names", "_others", "_rules", "base")

    def __init__(self, rules: Sequence[IgnoreRule], base: int, *, others: bool | None = None) -> None:
        self.base = base
        self._rules = tuple(reversed(rules))
        self._others = others  # the verdict on files that no line speaks of
        names = [rule.name.pattern for rule in rules if rule.name is not None]
        # Most rules are names and most names match none of them: one look settles that.
        self._names = re.compile("|".join(names)) if len(names) == len(rules) and names else None

    def verdict(self, path: Sequence[str], is_directory: bool) -> bool | None:
        """Whether the path is wanted; None when no line speaks of it."""
        if self._names is None or self._names.match(path[-1]):
            for rule in self._rules:
                if rule.only_directories and not is_directory:
                    continue
                if rule.name.match(path[-1]) if rule.name is not None else match_path(rule.glob, path[self.base :]):
                    return rule.wanted
        return None if is_directory else self._others


def read_rule(line: str, *, wanted: bool) -> IgnoreRule | None:
    """A line of a .gitignore (wanted=False) or a glob (wanted=True); `!` turns it round."""
    if line.startswith("!"):
        line, wanted = line[1:], not wanted
    line = line.removeprefix("\\")
    parts = split_path(line)
    if not parts:
        return None
    name = compile_name(parts[0]) if "/" not in line.rstrip("/") else None
    return IgnoreRule(name, compile_path(parts), wanted, line.endswith("/"))


def open_read(path: str) -> int:
    return os.open(path, os.O_RDONLY | _INERT)


def read_ignore(directory: str, base: int) -> IgnoreRules | None:
    """The directory's .gitignore; None when there is none that can be read."""
    try:
        fd = open_read(os.path.join(directory, ".gitignore"))
    except OSError:
        return None
    try:
        text = os.read(fd, _MOST_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)
    lines = (line.rstrip("\r").rstrip(" ") for line in text.split("\n") if not line.startswith("#"))
    rules = [rule for line in lines if line and (rule := read_rule(line, wanted=False)) is not None]
    return IgnoreRules(rules, base) if rules else None


def read_globs(patterns: Sequence[str], base: int) -> IgnoreRules:
    """A caller's own patterns: what one names is wanted whatever .gitignore says, and with one that names, nothing else is."""
    rules = [rule for text in patterns for each in expand_braces(text) if (rule := read_rule(each, wanted=True)) is not None]
    return IgnoreRules(rules, base, others=False if any(rule.wanted for rule in rules) else None)


class _OpenDirectory(NamedTuple):
    path: str
    parts: tuple[str, ...]  # from the top of the file system
    in_git: bool
    rules: tuple[IgnoreRules, ...]  # the nearest last


class _WalkOptions(NamedTuple):
    """What the caller asked for."""

    globs: IgnoreRules
    depth: int  # components of the root
    ignore: bool
    skipped: Container[str]
    links_into: str  # links to files are listed if they lead in here; empty: none are


def walk(
    root: str, *, globs: Sequence[str] = (), ignore: bool = True, skipped: Container[str] = SKIPPED, links: bool = False
) -> Iterator[FoundFile | None]:
    """All wanted files; None for each directory, also where nothing is found, so that the caller can look at the clock.

    With `links`, a link to a file is listed where it leads to one below the root. None is ever gone through.
    """
    top = _top(os.path.abspath(root), ignore)
    depth = len(top.parts)
    choice = _WalkOptions(read_globs(globs, depth), depth, ignore, skipped, os.path.realpath(root) if links else "")
    stack: list[_OpenDirectory | FoundFile] = [top]
    while stack:
        match stack.pop():
            case _OpenDirectory() as directory:
                yield None
                stack += reversed(list(_entries(directory, choice)))
            case found:
                yield found


def _entries(directory: _OpenDirectory, choice: _WalkOptions) -> Iterator[_OpenDirectory | FoundFile]:
    try:
        with os.scandir(directory.path) as listing:
            entries = sorted(islice(listing, _MOST_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        # Not ours to read, or gone since it was listed: there is nothing to find in it.
        return
    in_git, rules = _rules_in(directory, {entry.name for entry in entries}) if choice.ignore else (False, ())
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name in choice.skipped if is_directory else not _is_file(entry, choice.links_into):
            continue
        path = (*directory.parts, entry.name)
        said = choice.globs.verdict(path, is_directory)
        if said is None:
            said = _verdict(rules, path, is_directory)
        if said:
            yield _OpenDirectory(entry.path, path, in_git, rules) if is_directory else FoundFile(path[choice.depth :], entry)


def _rules_in(directory: _OpenDirectory, names: set[str]) -> tuple[bool, tuple[IgnoreRules, ...]]:
    """Whether the directory belongs to a repository, and the rules that hold in it. A repository starts afresh."""
    in_git, rules = (True, ()) if ".git" in names else (directory.in_git, directory.rules)
    if in_git and ".gitignore" in names and (own := read_ignore(directory.path, len(directory.parts))) is not None:
        rules = (*rules, own)
    return in_git, rules


def _is_file(entry: os.DirEntry[str], links_into: str) -> bool:
    if entry.is_file(follow_symlinks=False):
        return True
    if not links_into or not entry.is_symlink() or not os.path.isfile(entry.path):
        return False
    real = os.path.realpath(entry.path)
    return real.startswith(os.path.join(links_into, ""))


def _verdict(rules: tuple[IgnoreRules, ...], path: Sequence[str], is_directory: bool) -> bool:
    for one_file in reversed(rules):
        if (said := one_file.verdict(path, is_directory)) is not None:
            return said
    return True


def _top(root: str, ignore: bool) -> _OpenDirectory:
    """The root, with the rules that hold above it: those of its repository."""
    parts = tuple(part for part in root.split(os.sep) if part)
    if not ignore:
        return _OpenDirectory(root, parts, False, ())
    above, directory = list[str](), root
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return _OpenDirectory(root, parts, False, ())
        above.append(directory := parent)
    # The root's own rules are read when it is entered.
    found = (read_ignore(path, len([part for part in path.split(os.sep) if part])) for path in reversed(above))
    return _OpenDirectory(root, parts, True, tuple(rules for rules in found if rules is not None))

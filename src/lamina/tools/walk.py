"""The files below a directory, sorted by path, except the ones that are rarely worth searching.

Decides which files Glob and Grep (without ripgrep) visit. Standard library only, because the search worker loads this
module. Invariants: links are never followed, so the walk stays below its root and ends. Only regular files come out. The
last matching line decides, as in git. In a git repository the .gitignore files count, from the repository's top down, as
they do for ripgrep. Directories of version control, node_modules and __pycache__ are always skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ..core.globs import PathGlob, compile_name, compile_path, expand_braces, match_path, split_path
from ..disk.regular_file import read_start

# Rarely wanted, and often larger than everything else together.
SKIPPED = (".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__")
# A .gitignore is a page or two; a larger file is something else.
_MOST_IGNORE_BYTES = 1 << 20
# All entries of a directory are in memory at once, to be sorted.
_MOST_ENTRIES = 200_000


class FoundFile(NamedTuple):
    parts: tuple[str, ...]  # relative to the root
    entry: os.DirEntry[str]


class IgnoreRule(NamedTuple):
    name: re.Pattern[str] | None  # for a line without a slash: matches the last component, at any depth
    glob: PathGlob  # for any other line: matches the whole path
    wanted: bool  # a line with `!` in a .gitignore, or one without it in a list of globs
    only_directories: bool


class IgnoreRules:
    """The lines of one .gitignore, or a list of globs; `base` is the number of path components of their directory."""

    __slots__ = ("_names", "_others", "_rules", "base")

    def __init__(self, rules: Sequence[IgnoreRule], base: int, *, others: bool | None = None) -> None:
        self.base = base
        self._rules = tuple(reversed(rules))
        self._others = others  # the verdict on files that no line matches
        names = [rule.name.pattern for rule in rules if rule.name is not None]
        # Most rules are names, and most names match none of them: one search settles that.
        self._names = re.compile("|".join(names)) if len(names) == len(rules) and names else None

    def verdict(self, path: Sequence[str], is_directory: bool) -> bool | None:
        """Tell whether the path is wanted; None if no line matches it."""
        if self._names is None or self._names.match(path[-1]):
            for rule in self._rules:
                if rule.only_directories and not is_directory:
                    continue
                if rule.name.match(path[-1]) if rule.name is not None else match_path(rule.glob, path[self.base :]):
                    return rule.wanted
        return None if is_directory else self._others


def read_rule(line: str, *, wanted: bool) -> IgnoreRule | None:
    """Parse a line of a .gitignore (wanted=False) or a glob (wanted=True); `!` inverts it."""
    if line.startswith("!"):
        line, wanted = line[1:], not wanted
    line = line.removeprefix("\\")
    parts = split_path(line)
    if not parts:
        return None
    name = compile_name(parts[0]) if "/" not in line.rstrip("/") else None
    return IgnoreRule(name, compile_path(parts), wanted, line.endswith("/"))


def read_ignore(directory: str, base: int) -> IgnoreRules | None:
    """Read the directory's .gitignore; None if it is missing or unreadable."""
    text = read_start(os.path.join(directory, ".gitignore"), _MOST_IGNORE_BYTES).decode("utf-8", "replace")
    lines = (line.rstrip("\r").rstrip(" ") for line in text.split("\n") if not line.startswith("#"))
    rules = [rule for line in lines if line and (rule := read_rule(line, wanted=False)) is not None]
    return IgnoreRules(rules, base) if rules else None


def read_globs(patterns: Sequence[str], base: int) -> IgnoreRules:
    """Parse a caller's patterns. A match is wanted whatever .gitignore says; if any pattern is positive, nothing else is
    wanted."""
    rules = [rule for text in patterns for each in expand_braces(text) if (rule := read_rule(each, wanted=True)) is not None]
    return IgnoreRules(rules, base, others=False if any(rule.wanted for rule in rules) else None)


class _OpenDirectory(NamedTuple):
    path: str
    parts: tuple[str, ...]  # from the file system root
    in_git: bool
    rules: tuple[IgnoreRules, ...]  # the nearest last


class _WalkOptions(NamedTuple):
    """The options of a walk."""

    globs: IgnoreRules
    depth: int  # number of components of the root
    ignore: bool
    skipped: Container[str]
    links_into: str  # links to files inside this directory are listed; empty for none


def walk(
    root: str, *, globs: Sequence[str] = (), ignore: bool = True, skipped: Container[str] = SKIPPED, links: bool = False
) -> Iterator[FoundFile | None]:
    """Yield all wanted files, and None for each directory, so that the caller can check the clock even if nothing is found.

    With `links`, a link is listed if it leads to a file below the root. Links to directories are never followed.
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
        # The directory is not readable or gone: there is nothing to find in it.
        return
    in_git, rules = _rules_in(directory, {entry.name for entry in entries}) if choice.ignore else (False, ())
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name in choice.skipped if is_directory else not _is_file(entry, choice.links_into):
            continue
        path = (*directory.parts, entry.name)
        wanted = choice.globs.verdict(path, is_directory)
        if wanted is None:
            wanted = _verdict(rules, path, is_directory)
        if wanted:
            yield _OpenDirectory(entry.path, path, in_git, rules) if is_directory else FoundFile(path[choice.depth :], entry)


def _rules_in(directory: _OpenDirectory, names: set[str]) -> tuple[bool, tuple[IgnoreRules, ...]]:
    """Return whether the directory belongs to a repository, and the rules that apply in it. A nested repository starts
    afresh."""
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
        if (wanted := one_file.verdict(path, is_directory)) is not None:
            return wanted
    return True


def _top(root: str, ignore: bool) -> _OpenDirectory:
    """Return the root with the rules of its repository that apply from above."""
    parts = tuple(part for part in root.split(os.sep) if part)
    if not ignore:
        return _OpenDirectory(root, parts, False, ())
    above, directory = list[str](), root
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return _OpenDirectory(root, parts, False, ())
        above.append(directory := parent)
    # The root's own rules are read when the walk enters it.
    found = (read_ignore(path, len([part for part in path.split(os.sep) if part])) for path in reversed(above))
    return _OpenDirectory(root, parts, True, tuple(rules for rules in found if rules is not None))

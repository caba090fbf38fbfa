"""Reads the words of `find`: paths first, then tests that only look.

Owns find's own grammar. Invariant: each primary stands on one of the lists, with exactly the words that find takes after it, so a
value can never be read as an action. No action but printing is on them; neither is -L, which would follow links out of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from .commands import COUNT, SIGNED, TEXT
from .tokenizer import NotReadOnly, ShellWord


def _each(words: str) -> list[str]:
    return words.split()


_ALONE = frozenset(
    _each("""
    -a -and -daystart -depth -empty -executable -false -ls -mount -nogroup -not -nouser -o -or -print -print0 -prune -quit
    -readable -true -writable -xdev""")
)
_NUMBER = rf"{SIGNED}(\.[0-9]{{1,6}})?"
_VALUED = {
    **dict.fromkeys(_each("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -printf"), TEXT),
    **dict.fromkeys(_each("-mtime -mmin -atime -amin -ctime -cmin -uid -gid -links -inum"), _NUMBER),
    **dict.fromkeys(_each("-newermt -newerat -newerct"), TEXT),
    **dict.fromkeys(_each("-maxdepth -mindepth"), COUNT),
    **dict.fromkeys(_each("-user -group"), r"[\w.-]{1,64}"),
    "-type": r"[bcdflps](,[bcdflps])*",
    "-size": rf"{SIGNED}[bcwkMG]?",
    "-perm": r"[-/]?[0-7ugoarwxXst=+,-]{1,40}",
    "-regextype": r"[a-z-]{1,30}",
}
# The value is a file that find looks at.
_FILES = frozenset(_each("-newer -anewer -cnewer -samefile"))
_SIGNS = frozenset({"(", ")", "!", ","})


class FindArguments(msgspec.Struct, frozen=True):
    paths: tuple[ShellWord, ...]
    files: tuple[ShellWord, ...]  # files the tests look at
    values: tuple[ShellWord, ...]  # all other values
    expression: tuple[str, ...]


def read_find(words: Sequence[ShellWord]) -> FindArguments:
    rest = iter(words)
    paths, word = _paths(rest)
    files, values, expression = list[ShellWord](), list[ShellWord](), list[str]()
    while word is not None:
        text = word.text
        expression.append(text)
        if text in _VALUED or text in _FILES:
            value = _value(text, rest)
            expression.append(value.text)
            (files if text in _FILES else values).append(value)
        elif text not in _ALONE and text not in _SIGNS:
            raise NotReadOnly(f"find {text} is not among the tests that are known only to look; leave it out.")
        word = next(rest, None)
    return FindArguments(tuple(paths), tuple(files), tuple(values), tuple(expression))


def _paths(rest: Iterator[ShellWord]) -> tuple[list[ShellWord], ShellWord | None]:
    """The words before the expression, and its first word."""
    paths = list[ShellWord]()
    for word in rest:
        if word.text == "-P" and not paths:
            continue  # what find does anyway
        if word.text.startswith("-") or word.text in _SIGNS:
            return paths, word
        paths.append(word)
    return paths, None


def _value(test: str, rest: Iterator[ShellWord]) -> ShellWord:
    value = next(rest, None)
    if value is None or (test in _VALUED and re.fullmatch(_VALUED[test], value.text) is None):
        raise NotReadOnly(f"find {test} needs a value it can take; give it one.")
    return value

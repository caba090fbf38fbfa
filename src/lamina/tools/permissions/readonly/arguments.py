"""Arguments of read-only commands: split into options and operands by the allow-list; anything else is refused.

Invariant: an option is used only as it appears on the command's list, alone or in a cluster of letters. Abbreviations that
GNU would accept (`--outp`) are refused. The result is in an order that every getopt reads alike: options, `--`, operands.

`find` has a different grammar: paths first, then tests that only look. Invariant: each primary is on one of the lists, with
exactly the words that find expects after it, so a value can never be read as an action. The only action on the lists is
printing. -L is not on them either, because it would follow links out of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from .commands import COUNT, SIGNED, TEXT, LongOption, ReadOnlyCommand
from .tokenizer import NotReadOnly, ShellWord


class CommandArguments:
    """A command's options and operands, each option allowed. The constructor reads all of them."""

    def __init__(self, name: str, command: ReadOnlyCommand, words: Sequence[ShellWord]) -> None:
        self._name = name
        self._command = command
        self._rest = iter(words)
        self.options = list[str]()  # in order, as they will be passed
        self.operands = list[ShellWord]()
        self.names = set[str]()  # letters and long names in use
        self.texts = list[ShellWord]()  # options and values as written: a shell might expand a wildcard in them
        for word in self._rest:
            text = word.text
            if text == "--":
                self.operands += self._rest
            elif not text.startswith("-") or text == "-":
                self.operands.append(word)
            else:
                self.texts.append(word)
                self._long(text) if text.startswith("--") else self._letters(text)

    def _long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        known = self._command.long.get(name)
        if known is None:
            raise self._unknown(name)
        self.names.add(name)
        self.options.append(text)
        if equals:
            self._check(name, value, known.value)
        elif known.value is not None and not known.optional:
            self.options.append(self._following(name, known))

    def _following(self, name: str, known: LongOption) -> str:
        value = next(self._rest, None)
        if value is None:
            raise NotReadOnly(f"{self._name} {name} needs a value.")
        self.texts.append(value)
        self._check(name, value.text, known.value)
        return value.text

    def _letters(self, text: str) -> None:
        if self._command.number and re.fullmatch(r"-[0-9]{1,12}", text):
            self.names.add(self._command.number)
            self.options += (f"-{self._command.number}", text[1:])
            return
        self.options.append(text)
        for place, letter in enumerate(text[1:], 2):
            self.names.add(letter)
            if letter in self._command.attached:
                if text[place:]:
                    self._check(f"-{letter}", text[place:], self._command.attached[letter])
                return
            if letter in self._command.values:
                pattern = self._command.values[letter]
                if text[place:] and self._command.apart:
                    raise NotReadOnly(f"{self._name} -{letter} needs a space before its value.")
                if text[place:]:
                    self._check(f"-{letter}", text[place:], pattern)
                else:
                    self.options.append(self._following(f"-{letter}", LongOption(pattern)))
                return
            if letter not in self._command.flags:
                raise self._unknown(text if len(text) == 2 else f"-{letter} (in {text})")

    def _check(self, name: str, value: str, pattern: str | None) -> None:
        if pattern is None or re.fullmatch(pattern, value) is None:
            raise NotReadOnly(f"{self._name} {name} does not accept this value here; leave it out.")

    def _unknown(self, option: str) -> NotReadOnly:
        return NotReadOnly(f"{self._name} {option} is not on the list of options that only read; leave it out.")


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
            raise NotReadOnly(f"find {text} is not on the list of tests that only read; leave it out.")
        word = next(rest, None)
    return FindArguments(tuple(paths), tuple(files), tuple(values), tuple(expression))


def _paths(rest: Iterator[ShellWord]) -> tuple[list[ShellWord], ShellWord | None]:
    """Return the words before the expression, and the expression's first word."""
    paths = list[ShellWord]()
    for word in rest:
        if word.text == "-P" and not paths:
            continue  # this is the default of find
        if word.text.startswith("-") or word.text in _SIGNS:
            return paths, word
        paths.append(word)
    return paths, None


def _value(test: str, rest: Iterator[ShellWord]) -> ShellWord:
    value = next(rest, None)
    if value is None or (test in _VALUED and re.fullmatch(_VALUED[test], value.text) is None):
        raise NotReadOnly(f"find {test} needs a valid value.")
    return value

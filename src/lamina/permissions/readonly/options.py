"""Reads the words of one command by its list: options here, operands there, anything else refused.

Owns how options are spelled. Invariant: an option is used only as it stands on the command's list, alone or in a cluster of
letters; what GNU would guess (`--outp`) is refused. The result is put in an order that every getopt reads alike: options, `--`,
operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from .commands import LongOption, ReadOnlyCommand
from .tokenizer import NotReadOnly, ShellWord


class CommandArguments(msgspec.Struct, frozen=True):
    """What a command was given, each option allowed."""

    options: tuple[str, ...]  # in their order, as they will be passed
    operands: tuple[ShellWord, ...]
    names: frozenset[str]  # letters and long names that were used
    wild: tuple[ShellWord, ...]  # options and values with an unquoted wildcard: a shell might expand them


class _OptionReader:
    """Walks over the words of one command; it lives only while they are read."""

    def __init__(self, name: str, command: ReadOnlyCommand, words: Sequence[ShellWord]) -> None:
        self.name = name
        self.command = command
        self.rest: Iterator[ShellWord] = iter(words)
        self.options: list[str] = []
        self.operands: list[ShellWord] = []
        self.names: set[str] = set()
        self.wild: list[ShellWord] = []

    def take(self) -> CommandArguments:
        for word in self.rest:
            text = word.text
            if text == "--":
                self.operands += self.rest
            elif not text.startswith("-") or text == "-":
                self.operands.append(word)
            else:
                self.note_wild(word)
                self.long(text) if text.startswith("--") else self.letters(text)
        return CommandArguments(tuple(self.options), tuple(self.operands), frozenset(self.names), tuple(self.wild))

    def note_wild(self, word: ShellWord) -> None:
        if word.wild:
            self.wild.append(word)

    def long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        known = self.command.long.get(name)
        if known is None:
            raise self.unknown(name)
        self.names.add(name)
        self.options.append(text)
        if equals:
            self.check(name, value, known.value)
        elif known.value is not None and not known.optional:
            self.options.append(self.following(name, known))

    def following(self, name: str, known: LongOption) -> str:
        value = next(self.rest, None)
        if value is None:
            raise NotReadOnly(f"{self.name} {name} needs a value; give it one.")
        self.note_wild(value)
        self.check(name, value.text, known.value)
        return value.text

    def letters(self, text: str) -> None:
        if self.command.number and re.fullmatch(r"-[0-9]{1,12}", text):
            self.names.add(self.command.number)
            self.options += (f"-{self.command.number}", text[1:])
            return
        self.options.append(text)
        for place, letter in enumerate(text[1:], 2):
            self.names.add(letter)
            if letter in self.command.values:
                pattern = self.command.values[letter]
                if text[place:]:
                    self.check(f"-{letter}", text[place:], pattern)
                else:
                    self.options.append(self.following(f"-{letter}", LongOption(pattern)))
                return
            if letter not in self.command.flags:
                raise self.unknown(text if len(text) == 2 else f"-{letter} (in {text})")

    def check(self, name: str, value: str, pattern: str | None) -> None:
        if pattern is None or re.fullmatch(pattern, value) is None:
            raise NotReadOnly(f"{self.name} {name} does not take this value here; leave it out.")

    def unknown(self, option: str) -> NotReadOnly:
        return NotReadOnly(f"{self.name} {option} is not among the options that are known only to read; leave it out.")


def read_options(name: str, command: ReadOnlyCommand, words: Sequence[ShellWord]) -> CommandArguments:
    return _OptionReader(name, command, words).take()

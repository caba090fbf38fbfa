"""Kinds of values a setting can have: what is accepted, how two are joined, and what may be shown of them.

A kind reads two spellings: `read` takes a JSON value from a file or an argument, `parse` the text of an environment variable.
Neither raises: what cannot be used comes back as problems, each the end of a sentence that begins with the setting's name. `show`
gives a JSON value that is safe to print: no key, no password and no line of a command reaches a terminal or a log from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ..blocks import scrub

T = TypeVar("T")

# Far above any window, budget or file size, and still exact in every JSON reader.
LARGEST = 1_000_000_000_000
# A guideline or a model's name is shorter; a megabyte of text in a setting is a mistake.
LONGEST_TEXT = 20_000
# An operating system takes no longer path (PATH_MAX on Linux).
LONGEST_PATH = 4_096
# Enough to recognise a value by in a sentence.
SHOWN = 60

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


class Read(NamedTuple, Generic[T]):
    """None as value: nothing usable was found. A value with problems: the rest of it was."""

    value: T | None
    problems: tuple[str, ...] = ()


def bad(problem: str) -> Read[Any]:
    return Read(None, (problem,))


def printable(text: str, longest: int = SHOWN) -> str:
    """One line that moves no cursor: control, format and surrogate characters are spelled out, the rest is cut."""
    safe = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:longest])
    return safe + "…" if len(text) > longest else safe


def seen(raw: object) -> str:
    """What stands there, for a sentence."""
    match raw:
        case None:
            return "null"
        case bool():
            return "true" if raw else "false"
        case int() if abs(raw) > LARGEST:
            return "a number that large"
        case int() | float():
            return repr(raw)
        case str():
            return f'"{printable(raw)}"'
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a value of type {type(raw).__name__}"


def truth(text: str) -> bool | None:
    """F3: 1, true, yes, on and 0, false, no, off, nothing; None for any other word."""
    word = text.strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


class Kind(msgspec.Struct, Generic[T], frozen=True):
    """Base of the kinds; a kind without a `join` of its own is replaced as a whole by a higher level."""

    def says(self) -> str:
        """What is accepted, for the reference and for sentences: "must be …"."""
        raise NotImplementedError

    def read(self, raw: object) -> Read[T]:
        raise NotImplementedError

    def parse(self, text: str) -> Read[T]:
        return self.read(text)

    def join(self, higher: T, lower: T) -> T:
        return higher

    def least(self, value: T, base: T) -> T:
        """The more careful of two: what a working tree may reach without being trusted."""
        raise NotImplementedError(f"{type(self).__name__} knows no less and more")

    def show(self, value: T) -> object:
        return value

    def refuse(self, raw: object) -> Read[T]:
        return bad(f"must be {self.says()}, not {seen(raw)}")


class Switch(Kind[bool], frozen=True):
    def says(self) -> str:
        return "true or false"

    def read(self, raw: object) -> Read[bool]:
        return Read(raw) if isinstance(raw, bool) else self.refuse(raw)

    def parse(self, text: str) -> Read[bool]:
        value = truth(text)
        return bad(f"must be one of 1, true, yes, on or 0, false, no, off, not {seen(text)}") if value is None else Read(value)

    def least(self, value: bool, base: bool) -> bool:
        return value and base


_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_THOUSANDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([kKmM])")


class Whole(Kind[int], frozen=True):
    """`short` also takes 100k and 1m."""

    low: int = 0
    high: int = LARGEST
    short: bool = False

    def says(self) -> str:
        span = f"a whole number of at least {self.low:,}"
        if self.high < LARGEST:
            span = f"a whole number from {self.low:,} to {self.high:,}"
        return span + (" (100k and 1m are understood)" if self.short else "")

    def read(self, raw: object) -> Read[int]:
        if isinstance(raw, str):
            return self.parse(raw) if self.short and _THOUSANDS.fullmatch(raw) else self.refuse(raw)
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        if isinstance(raw, bool) or not isinstance(raw, int) or not self.low <= raw <= self.high:
            return self.refuse(raw)
        return Read(raw)

    def parse(self, text: str) -> Read[int]:
        text = text.strip()
        if _WHOLE.fullmatch(text):
            value = self.read(int(text))
            return value if value.value is not None else self.refuse(text)
        short = _THOUSANDS.fullmatch(text) if self.short else None
        if short is None:
            return self.refuse(text)
        return self.read(round(float(short[1]) * (1_000 if short[2] in "kK" else 1_000_000)))

    def least(self, value: int, base: int) -> int:
        return min(value, base)


class Number(Kind[float], frozen=True):
    low: float = 0
    high: float = float(LARGEST)
    above_low: bool = False  # the low end itself is not accepted

    def says(self) -> str:
        low = f"a number {'above' if self.above_low else 'of at least'} {self.low:g}"
        return low if self.high >= LARGEST else f"{low} and at most {self.high:g}"

    def read(self, raw: object) -> Read[float]:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            return self.refuse(raw)
        inside = self.low <= raw <= self.high and not (self.above_low and raw == self.low)
        return Read(float(raw)) if inside else self.refuse(raw)

    def parse(self, text: str) -> Read[float]:
        try:
            number = float(text)
        except ValueError:
            return self.refuse(text)
        value = self.read(number)
        return value if value.value is not None else self.refuse(text)

    def least(self, value: float, base: float) -> float:
        return min(value, base)

    def show(self, value: float) -> object:
        return int(value) if value.is_integer() else value


class Text(Kind[str], frozen=True):
    longest: int = LONGEST_TEXT

    def says(self) -> str:
        return f"a text of at most {self.longest:,} characters"

    def read(self, raw: object) -> Read[str]:
        if not isinstance(raw, str) or not raw.strip() or len(raw) > self.longest:
            return self.refuse(raw)
        return Read(scrub(raw))


class Choice(Kind[str], frozen=True):
    options: tuple[str, ...]

    def says(self) -> str:
        return "one of " + ", ".join(self.options)

    def read(self, raw: object) -> Read[str]:
        return Read(raw) if isinstance(raw, str) and raw in self.options else self.refuse(raw)


_ABSOLUTE = re.compile(r"/|~/|[A-Za-z]:[\\/]")


class Place(Kind[str], frozen=True):
    """A directory, as it was written. Only its spelling is judged here; whether it may be used is G1's, where it is opened.

    `below`: what will be opened lies this far below it, and is what G1 is asked about.
    """

    below: str = ""

    def says(self) -> str:
        return "an absolute path, or one that begins with ~/"

    def read(self, raw: object) -> Read[str]:
        if not isinstance(raw, str) or len(raw) > LONGEST_PATH or not raw.isprintable() or not _ABSOLUTE.match(raw):
            return self.refuse(raw)
        return Read(raw)


_URL = re.compile(r"(https?://)([^\s/?#@]*@)?([^\s/?#@]+)([^\s?#]*)(\S*)", re.IGNORECASE)


class Url(Kind[str], frozen=True):
    def says(self) -> str:
        return "an address that begins with https:// or http://"

    def read(self, raw: object) -> Read[str]:
        if not isinstance(raw, str) or len(raw) > LONGEST_PATH or not raw.isprintable() or not _URL.fullmatch(raw):
            return bad(f"must be {self.says()}")  # an address can hold a password: it is not repeated
        return Read(raw)

    def show(self, value: str) -> object:
        parts = _URL.fullmatch(value)
        return parts[1] + parts[3] + parts[4] if parts else value


class Secret:
    """A key that does not appear in a repr, a log or a traceback; `reveal` is for the request alone."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(not shown)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


class Key(Kind[Secret], frozen=True):
    def says(self) -> str:
        return "a key without spaces"

    def read(self, raw: object) -> Read[Secret]:
        if isinstance(raw, Secret):
            return Read(raw)
        if not isinstance(raw, str) or not raw.strip() or not raw.strip().isprintable() or " " in raw.strip():
            return bad(f"must be {self.says()}")
        return Read(Secret(raw.strip()))

    def show(self, value: Secret) -> object:
        return "set, not shown"

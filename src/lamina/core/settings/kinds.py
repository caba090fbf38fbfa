"""Kinds of settings that hold one value: what is accepted, how two are joined, and what may be shown of them.

A kind reads two spellings: `read` takes a JSON value from a file or an argument, `read_text` the text of an environment variable.
Neither raises: what cannot be used comes back as problems, each the end of a sentence that begins with the setting's name. `show`
gives a JSON value that is safe to print: no key, no password and no line of a command reaches a terminal or a log from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ..blocks import scrub
from ..policy import LARGEST

T = TypeVar("T")

# A guideline or a model's name is shorter; a megabyte of text in a setting is a mistake.
LONGEST_TEXT = 20_000
# An operating system takes no longer path (PATH_MAX on Linux).
LONGEST_PATH = 4_096
# Enough to recognise a value by in a sentence.
SHOWN = 60

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


class ReadValue(NamedTuple, Generic[T]):
    """None as value: nothing usable was found. A value with problems: the rest of it was."""

    value: T | None
    problems: tuple[str, ...] = ()


def _unordered(value: Any, base: Any) -> Any:
    raise NotImplementedError("this kind of setting knows no less and more")


class Kind(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind without a `join` of its own is replaced as a whole by a higher level."""

    says: str  # what is accepted, for the reference and for sentences: "must be …"
    reader: Callable[[Any, str], ReadValue[T]]  # a JSON value, and what the sentence about a bad one says
    from_text: Callable[[str], object] | None = None  # a variable's text as a JSON value; None: no variable can hold it
    says_of_text: str = ""  # what is accepted in a variable, where that is something else
    join: Callable[[T, T], T] = lambda higher, lower: higher
    least: Callable[[Any, Any], T] = _unordered  # the more careful of two: what a working tree may reach without being trusted
    show: Callable[[T], object] = lambda value: value

    def read(self, raw: object) -> ReadValue[T]:
        return self.reader(raw, self.says)

    def read_text(self, text: str) -> ReadValue[T]:
        assert self.from_text is not None
        return self.reader(self.from_text(text), self.says_of_text or self.says)


def refuse(says: str, raw: object) -> ReadValue[Any]:
    return ReadValue(None, (f"must be {says}, not {describe(raw)}",))


def printable(text: str, longest: int = SHOWN) -> str:
    """One line that moves no cursor: control, format and surrogate characters are spelled out, the rest is cut."""
    safe = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:longest])
    return safe + "…" if len(text) > longest else safe


def describe(raw: object) -> str:
    """A JSON value, for a sentence."""
    match raw:
        case None | bool():
            return msgspec.json.encode(raw).decode()
        case int() | float():
            return "a number that large" if abs(raw) > LARGEST else repr(raw)
        case str():
            return f'"{printable(raw)}"'
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a value of type {type(raw).__name__}"


def one_value(
    says: str,
    accept: Callable[[Any], T | None],
    *,
    from_text: Callable[[str], object] = str,
    secret: bool = False,
    **options: Any,
) -> Kind[T]:
    """A kind from a function that gives None for what it does not accept. A refused `secret` is not repeated in the sentence."""

    def reader(raw: Any, says: str) -> ReadValue[T]:
        value = accept(raw)
        if value is not None:
            return ReadValue(value)
        return ReadValue(None, (f"must be {says}",)) if secret else refuse(says, raw)

    return Kind(says=says, reader=reader, from_text=from_text, **options)


def truth(text: str) -> bool | None:
    """F3: 1, true, yes, on and 0, false, no, off, nothing; None for any other word."""
    word = text.strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


SWITCH: Kind[bool] = one_value(
    "true or false",
    lambda raw: raw if isinstance(raw, bool) else None,
    from_text=lambda text: text if truth(text) is None else truth(text),
    says_of_text="one of 1, true, yes, on or 0, false, no, off",
    least=min,
)

_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_THOUSANDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([kKmM])")


def _inside(raw: Any, low: float, high: float) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and low <= raw <= high


def whole(low: int = 0, high: int = LARGEST, *, short: bool = False) -> Kind[int]:
    """A whole number; `short` also takes 100k and 1m."""

    def accept(raw: Any) -> int | None:
        if short and isinstance(raw, str) and (parts := _THOUSANDS.fullmatch(raw)):
            raw = round(float(parts[1]) * (1_000 if parts[2] in "kK" else 1_000_000))
        return int(raw) if _inside(raw, low, high) and raw == int(raw) else None

    def from_text(text: str) -> object:
        return int(text) if _WHOLE.fullmatch(text.strip()) else text.strip()

    span = f"of at least {low:,}" if high >= LARGEST else f"from {low:,} to {high:,}"
    says = f"a whole number {span}" + (" (100k and 1m are understood)" if short else "")
    return one_value(says, accept, from_text=from_text, least=min)


def real(low: float = 0, high: float = LARGEST, *, above_low: bool = False) -> Kind[float]:
    """A number; with `above_low` the low end itself is not accepted."""

    def accept(raw: Any) -> float | None:
        return float(raw) if _inside(raw, low, high) and not (above_low and raw == low) else None

    def from_text(text: str) -> object:
        try:
            return float(text)
        except ValueError:
            return text

    says = f"a number {'above' if above_low else 'of at least'} {low:g}" + (f" and at most {high:g}" if high < LARGEST else "")
    return one_value(says, accept, from_text=from_text, least=min, show=lambda value: int(value) if value.is_integer() else value)


def free_text(longest: int = LONGEST_TEXT) -> Kind[str]:
    def accept(raw: Any) -> str | None:
        return scrub(raw) if isinstance(raw, str) and raw.strip() and len(raw) <= longest else None

    return one_value(f"a text of at most {longest:,} characters", accept)


def one_of(*options: str) -> Kind[str]:
    return one_value("one of " + ", ".join(options), lambda raw: raw if isinstance(raw, str) and raw in options else None)


def _address(form: str) -> Callable[[Any], str | None]:
    start = re.compile(form, re.IGNORECASE)
    return lambda raw: (
        raw if isinstance(raw, str) and len(raw) <= LONGEST_PATH and raw.isprintable() and start.fullmatch(raw) else None
    )


# Only the spelling of a path is judged here; whether it may be used is G1's, where it is opened.
DIRECTORY = one_value("an absolute path, or one that begins with ~/", _address(r"(/|~/|[a-z]:[\\/]).*"))

_URL = r"(https?://)([^\s/?#@]*@)?([^\s/?#@]+)([^\s?#]*)(\S*)"
URL = one_value(
    "an address that begins with https:// or http://",
    _address(_URL),
    secret=True,
    show=lambda value: re.sub(_URL, r"\1\3\4", value, flags=re.IGNORECASE),
)


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


def _secret(raw: Any) -> Secret | None:
    if isinstance(raw, Secret):
        return raw
    key = raw.strip() if isinstance(raw, str) else ""
    return Secret(key) if key and key.isprintable() and " " not in key else None


API_KEY = one_value("a key without spaces", _secret, secret=True, show=lambda value: "set, not shown")

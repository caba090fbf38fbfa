"""Kinds of settings that hold one value: which values they accept, how two levels merge, and what may be shown.

A kind reads two spellings: `read` takes a JSON value from a file or an argument, `read_text` the text of an environment variable.
Neither raises. Invalid values are returned as problems, each worded to follow the setting's name. `show` returns a JSON value
that is safe to print: no key, password or full command line reaches a terminal or a log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ...language.text import Text
from ...language.wording import shorten
from ..blocks import scrub
from ..policy import LARGEST

T = TypeVar("T")

# Guidelines and model names are shorter; a megabyte of text in a setting is a mistake.
LONGEST_TEXT = 20_000
# The longest path an operating system accepts (PATH_MAX on Linux).
LONGEST_PATH = 4_096
# Enough characters to recognise a value in a message.
SHOWN = 60

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


class ReadValue(NamedTuple, Generic[T]):
    """The result of reading a setting. The value is None if nothing was usable; with problems it is the usable part."""

    value: T | None
    problems: tuple[str, ...] = ()


def _unordered(value: Any, base: Any) -> Any:
    raise NotImplementedError("this kind of setting has no order")


class Kind(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Reads, merges and shows the values of a setting. Without a `join`, a higher level replaces a lower one entirely."""

    says: str  # description of the accepted values, for the reference and for messages ("must be …")
    reader: Callable[[Any, str], ReadValue[T]]  # takes a JSON value, and `says` for the message about a bad one
    from_text: Callable[[str], object] | None = None  # converts a variable's text to JSON; None: no variable can hold it
    says_of_text: str = ""  # description of the accepted texts of a variable, if different
    join: Callable[[T, T], T] = lambda higher, lower: higher
    least: Callable[[Any, Any], T] = _unordered  # the more restrictive of two: the most an untrusted working tree may set
    show: Callable[[T], object] = lambda value: value
    options: tuple[str, ...] = ()  # all accepted values, if a form can list them

    def read(self, raw: object) -> ReadValue[T]:
        return self.reader(raw, self.says)

    def read_text(self, text: str) -> ReadValue[T]:
        assert self.from_text is not None
        return self.reader(self.from_text(text), self.says_of_text or self.says)


def refuse(says: str, raw: object) -> ReadValue[Any]:
    return ReadValue(None, (Text("must be {says}, not {raw}", says=Text.whole(says), raw=describe(raw)),))


def printable(text: str, longest: int = SHOWN) -> str:
    """Return one line that is safe for a terminal: escape control, format and surrogate characters, and truncate."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in shorten(text, longest))


def describe(raw: object) -> str:
    """Describe a JSON value for a message."""
    match raw:
        case None | bool():
            return msgspec.json.encode(raw).decode()
        case int() | float():
            return Text("a number that large") if abs(raw) > LARGEST else repr(raw)
        case str():
            return f'"{printable(raw)}"'
        case Mapping():
            return Text("an object")
        case list() | tuple():
            return Text("a list")
        case _:
            return Text("a value of type {name}", name=type(raw).__name__)


def one_value(
    says: str,
    accept: Callable[[Any], T | None],
    *,
    from_text: Callable[[str], object] = str,
    secret: bool = False,
    **options: Any,
) -> Kind[T]:
    """Make a kind from a function that returns None for invalid values. The message about an invalid `secret` omits the value."""

    def reader(raw: Any, says: str) -> ReadValue[T]:
        value = accept(raw)
        if value is not None:
            return ReadValue(value)
        return ReadValue(None, (Text("must be {says}", says=Text.whole(says)),)) if secret else refuse(says, raw)

    return Kind(says=says, reader=reader, from_text=from_text, **options)


def truth(text: str) -> bool | None:
    """Parse 1, true, yes, on as true and 0, false, no, off and an empty text as false; return None for any other word."""
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
    """Make a kind for whole numbers; with `short` it also accepts 100k and 1m."""

    def accept(raw: Any) -> int | None:
        if short and isinstance(raw, str) and (parts := _THOUSANDS.fullmatch(raw)):
            raw = round(float(parts[1]) * (1_000 if parts[2] in "kK" else 1_000_000))
        return int(raw) if _inside(raw, low, high) and raw == int(raw) else None

    def from_text(text: str) -> object:
        return int(text) if _WHOLE.fullmatch(text.strip()) else text.strip()

    says = Text("a whole number from {low:,} to {high:,}", low=low, high=high)
    if high >= LARGEST:
        says = Text("a whole number of at least {low:,}", low=low)
    if short:
        says = Text("{says} (100k and 1m also work)", says=says)
    return one_value(says, accept, from_text=from_text, least=min)


def real(low: float = 0, high: float = LARGEST, *, above_low: bool = False) -> Kind[float]:
    """Make a kind for numbers; with `above_low` the lower bound itself is excluded."""

    def accept(raw: Any) -> float | None:
        return float(raw) if _inside(raw, low, high) and not (above_low and raw == low) else None

    def from_text(text: str) -> object:
        try:
            return float(text)
        except ValueError:
            return text

    if high < LARGEST:
        form = Text(
            "a number above {low:g} and at most {high:g}" if above_low else "a number of at least {low:g} and at most {high:g}"
        )
        says = Text(form, low=low, high=high)
    else:
        says = Text("a number above {low:g}" if above_low else "a number of at least {low:g}", low=low)
    return one_value(says, accept, from_text=from_text, least=min, show=lambda value: int(value) if value.is_integer() else value)


def free_text(longest: int = LONGEST_TEXT) -> Kind[str]:
    def accept(raw: Any) -> str | None:
        return scrub(raw) if isinstance(raw, str) and raw.strip() and len(raw) <= longest else None

    return one_value(Text("a string of at most {longest:,} characters", longest=longest), accept)


def one_of(*options: str) -> Kind[str]:
    def accept(raw: Any) -> str | None:
        return raw if isinstance(raw, str) and raw in options else None

    return one_value(Text("one of {options}", options=", ".join(options)), accept, options=options)


def _address(form: str) -> Callable[[Any], str | None]:
    start = re.compile(form, re.IGNORECASE)
    return lambda raw: (
        raw if isinstance(raw, str) and len(raw) <= LONGEST_PATH and raw.isprintable() and start.fullmatch(raw) else None
    )


# This checks only the spelling of a path; the path guard decides whether it may be used when it is opened.
DIRECTORY = one_value("an absolute path, or one that starts with ~/", _address(r"(/|~/|[a-z]:[\\/]).*"))

_URL = r"(https?://)([^\s/?#@]*@)?([^\s/?#@]+)([^\s?#]*)(\S*)"
URL = one_value(
    "a URL that starts with https:// or http://",
    _address(_URL),
    secret=True,
    show=lambda value: re.sub(_URL, r"\1\3\4", value, flags=re.IGNORECASE),
)


class Secret:
    """An API key that never appears in a repr, a log or a traceback. Only the code that sends a request calls `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def _secret(raw: Any) -> Secret | None:
    if isinstance(raw, Secret):
        return raw
    key = raw.strip() if isinstance(raw, str) else ""
    return Secret(key) if key and key.isprintable() and " " not in key else None


API_KEY = one_value("a key without spaces", _secret, secret=True, show=lambda value: "set (hidden)")

"""Fences separate untrusted data from Lamina's own text inside a prompt.

Text from memory, files, tools or other agents is put between an opening and a closing tag. Invariant: no text inside a fence can
open or close one of Lamina's tags, not even in a lookalike spelling: different case, spaces, invisible characters, combining marks,
punctuation or other tags between the letters, or letters and brackets of other scripts that look the same.
The first character of such a tag becomes `&lt;` and everything else stays unchanged, so ordinary markup remains readable. Escaping
is a pure, idempotent function of the text, so the same text gives the same bytes on every call.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NewType, TypeAlias, get_args

import msgspec

Tag: TypeAlias = Literal[
    "system-reminder",
    "persisted-output",
    "instruction-file",
    "memory-index",
    "recalled-memory",
    "git-status",
    "editor-selection",
    "agent-message",
    "past-session",
]
TAGS: tuple[Tag, ...] = get_args(Tag)

# Text that is escaped or written by Lamina: only this type may be placed between tags unchanged.
Fenced = NewType("Fenced", str)

# Characters that look like the start of a tag, in any script.
_OPENERS = "<\u00ab\u02c2\u1438\u16b2\u2039\u227a\u22d6\u2329\u276c\u276e\u2770\u27e8\u27ea\u29fc\u2a79\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c"
_CLOSERS = (
    ">\u00bb\u02c3\u1433\u203a\u227b\u22d7\u232a\u276d\u276f\u2771\u27e9\u27eb\u29fd\u2a7a\u3009\u300b\ufe3e\ufe40\ufe65\uff1e"
)
# A longer tag between the letters of a name is not read over.
_INNER_CHARS = 20
_SLASHES = "/\\\u2044\u2215\u2571\u29f8\uff0f\uff3c"
_DASHES = "-_\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u30fc\u3161\u4e00\ufe58\ufe63\uff0d\uff3f"
# Drawn as blank although they are letters or symbols: Hangul fillers, the empty Braille pattern, Khmer inherent vowels.
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
# Alphabets in white on black, and the letters that flags are made of: they have no decomposition.
_ALPHABETS = (0x1F150, 0x1F170, 0x1F1E6)


@cache
def _letters() -> dict[str, str]:
    """Return the letters that a character may be read as.

    lookalikes.json has letters of other scripts that look like the letters in the tags' names. Wide, mathematical, circled and raised
    letters need no entry: their compatibility decomposition is the plain letter.
    """
    lookalikes: dict[str, str] = msgspec.json.decode(Path(__file__).with_name("lookalikes.json").read_bytes())
    letters: dict[str, str] = {}
    pairs = [(looks, letter) for letter, row in lookalikes.items() for looks in row]
    pairs += [(chr(start + place), chr(ord("a") + place)) for start in _ALPHABETS for place in range(26)]
    for looks, letter in pairs:
        for form in {looks, looks.casefold(), looks.upper()}:
            if len(form) == 1 and not form.isascii():
                letters[form] = letters.get(form, "") + letter
    return letters


@lru_cache(maxsize=4_096)
def _read(char: str) -> tuple[str, ...]:
    """Return the characters that a reader may take this one for, one entry for each position; empty if it is invisible."""
    if char in _letters():
        return (_letters()[char],)
    if char in _DASHES:
        return ("-",)
    if char in _SLASHES:
        return ("/",)
    plain = [part for part in unicodedata.normalize("NFKD", char) if not _unseen(part)]
    return tuple(_letters().get(part.casefold(), part.casefold()) for part in plain)


def _unseen(char: str) -> bool:
    """Tell whether a character is drawn as nothing, or only on top of the one before it."""
    return char in _BLANKS or (unicodedata.category(char) in ("Cf", "Cc", "Mn", "Me") and char not in "\t\n\r\f\v")


_NAMES = tuple(tag.replace("-", "") for tag in TAGS)
# Most openers of ordinary markup are ruled out here, by a plain letter that no name begins with.
_OTHER = "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in {tag[0] for tag in TAGS})
_TAG_START = rf"[{re.escape(_OPENERS)}](?!\s*+/?\s*+[{_OTHER}{_OTHER.upper()}])"
# Punctuation, spaces, control characters and short tags between two letters of a name.
_BETWEEN = rf"(?:[^a-z0-9<>]|<[^<>]{{0,{_INNER_CHARS}}}>)*+"


@cache
def _ascii_tag() -> re.Pattern[str]:
    """Compiling takes as long as a small request's preparation, so it waits for the first `<`."""
    names = "|".join(_BETWEEN.join(name) for name in _NAMES)
    return re.compile(rf"<(?=[\s/\\\x00-\x1f]*+(?:{names}))", re.IGNORECASE)


def _opens_tag(text: str, start: int) -> bool:
    """Tell whether the text after an opener reads as the name of one of Lamina's tags.

    Takes linear time over all openers of a text: the search ends at a closer, and an opener goes on only behind its own closer."""
    names, place, index = _NAMES, 0, start
    while index < len(text):
        if text[index] in _OPENERS:
            inner = text[index + 1 : index + _INNER_CHARS + 2]
            length = next((number for number, char in enumerate(inner) if char in _OPENERS or char in _CLOSERS), None)
            if not place or length is None or inner[length] in _OPENERS:
                return False
            index += length + 2
            continue
        if text[index] in _CLOSERS:
            return False
        for reading in _read(text[index]):
            if not reading.isalnum():
                if not place and not (reading in "-/" or reading.isspace()):
                    return False
                continue
            names = tuple(name for name in names if name[place] in reading)
            place += 1
            if not names or any(len(name) == place for name in names):
                return bool(names)
        index += 1
    return False


def escape(text: str) -> Fenced:
    """Escape the text so that it cannot open or close a fence."""
    if text.isascii():
        return Fenced(_ascii_tag().sub("&lt;", text) if "<" in text else text)
    if not re.search(_TAG_START, text):
        return Fenced(text)
    return Fenced(re.sub(_TAG_START, lambda found: "&lt;" if _opens_tag(text, found.end()) else found[0], text))


def escaped_places(text: str) -> list[int]:
    """Return the places of the characters that `escape` replaces."""
    if text.isascii():
        return [opener.start() for opener in _ascii_tag().finditer(text)] if "<" in text else []
    return [opener.start() for opener in re.finditer(_TAG_START, text) if _opens_tag(text, opener.end())]


def fence(tag: Tag, text: str) -> Fenced:
    """Escape the text and put it between the given tags."""
    return Fenced(f"<{tag}>\n{escape(text)}\n</{tag}>")


def reminder(parts: Iterable[Fenced]) -> str:
    """Join fenced parts into one system reminder for the model."""
    return "<system-reminder>\n" + "\n\n".join(parts) + "\n</system-reminder>"

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
from typing import Literal, NewType, TypeAlias, get_args

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
# Letters of other scripts that look like the letters in the tags' names. Wide, mathematical, circled and raised letters need no entry:
# their compatibility decomposition is the plain letter.
_LOOKALIKES = {
    "a": "\u0430\u03b1\u0251\u1d00\uab7a\u13aa\u0561",
    "b": "\u0432\u044c\u0253\u0299\u13f4",
    "c": "\u0441\u03f2\u1d04\uabaf\u2ca5\ua4da\u13df",
    "d": "\u0501\u1d05\u0257\uab70\ua4d2\u13a0",
    "e": "\u0435\u03b5\u1d07\u0454\u04bd\u212e\uab7c\u13ac\u025b\u0259",
    "f": "\u0493\ua730\u0192\u0584\u03dd\ua4dd",
    "g": "\u0261\u0262\u0581\u050d\ua4d6\u13c0",
    "h": "\u043d\u029c\u04bb\u0570\u13bb",
    "i": "\u0456\u04cf\u03b9\u026a\u0131\u0269\u13a5\uab75\u0406\ua647\u05d5\u0627",
    "k": "\u043a\u03ba\u1d0b\u13e6",
    "l": "\u029f\u04cf\u217c\u01c0\u2113\u13de\ua4e1",
    "m": "\u043c\u1d0d\u028d\ua4df\u13b7\u03bc",
    "n": "\u0438\u0274\u03b7\u0578\u057c\ua4e0\u043f\u03bd",
    "o": "\u043e\u03bf\u1d0f\u0585\u0e50\u06c1\u0665\u2c9f\ua4f3\u03c3\u0ae6\u0966",
    "p": "\u0440\u03c1\u1d18\u2ca3\u13e2\ua4d1\u00fe",
    "r": "\u0433\u0280\u1d26\uab8e\u13a1\u13d2\u027e\ua4e3\u044f\u2c85",
    "s": "\u0455\ua731\u01bd\u0282\u13da\uabaa\u0585\ua4e2\u057f\u0283",
    "t": "\u0442\u03c4\u1d1b\u13a2\u0567\ua4d4\u027a",
    "u": "\u057d\u1d1c\u03c5\u028b\u0446\ua4f4\u1200",
    "v": "\u0475\u1d20\u03bd\u05d8",
    "w": "\u0461\u1d21\u051d\u0561\u03c9",
    "x": "\u0445\u03c7\u04b3\u00d7\u1541\u166e\ua4eb",
    "y": "\u0443\u04af\u028f\u03b3\u10e7\u13a9\ua4ec\u03c5",
}
# Alphabets in white on black, and the letters that flags are made of: they have no decomposition.
_ALPHABETS = (0x1F150, 0x1F170, 0x1F1E6)


@cache
def _letters() -> dict[str, str]:
    """Return the letters that a character may be read as."""
    letters: dict[str, str] = {}
    pairs = [(looks, letter) for letter, lookalikes in _LOOKALIKES.items() for looks in lookalikes]
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

"""Fences separate untrusted data from Lamina's own text inside a prompt.

Text from memory, files, tools or other agents is put between an opening and a closing tag. Invariant: no text inside a fence can
open or close one of Lamina's tags, not even in a lookalike spelling: different case, spaces, invisible characters or wide letters.
The first character of such a tag becomes `&lt;` and everything else stays unchanged, so ordinary markup remains readable. Escaping
is a pure, idempotent function of the text, so the same text gives the same bytes on every call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
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
]
TAGS: tuple[Tag, ...] = get_args(Tag)

# Text that is escaped or written by Lamina: only this type may be placed between tags unchanged.
Fenced = NewType("Fenced", str)

# Invisible characters: soft hyphen, joiners, directions, variation selectors, the tag block.
_UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
)
_OPENERS = "<\uff1c\ufe64\u2039\u27e8\u3008"
_DASHES = "\\-_ \u00a0\u2010-\u2015\u2212\ufe58\ufe63\uff0d\uff3f"


def _name(tag: str) -> str:
    """Return a pattern that matches each letter in its normal or wide form. The final pattern ignores case."""
    wide = ord("ａ") - ord("a")
    return "".join(f"[{_DASHES}{_UNSEEN}]*+" if char == "-" else f"[{char}{chr(ord(char) + wide)}][{_UNSEEN}]*+" for char in tag)


# The opener may be followed by spaces, slashes and invisible characters in any order. The quantifiers are possessive, so hostile
# text takes linear time.
@cache
def _tag() -> re.Pattern[str]:
    """Compile the pattern on first use, because compiling it takes as long as starting a small program."""
    names = "|".join(map(_name, TAGS))
    return re.compile(rf"[{_OPENERS}](?=[\s/\\\uff0f\u2044\u2215{_UNSEEN}\x00-\x1f]*+(?:{names}))", re.IGNORECASE)


def escape(text: str) -> Fenced:
    """Escape the text so that it cannot open or close a fence."""
    if not any(opener in text for opener in _OPENERS):
        return Fenced(text)
    return Fenced(_tag().sub("&lt;", text))


def fence(tag: Tag, text: str) -> Fenced:
    """Escape the text and put it between the given tags."""
    return Fenced(f"<{tag}>\n{escape(text)}\n</{tag}>")


def reminder(parts: Iterable[Fenced]) -> str:
    """Join fenced parts into one system reminder for the model."""
    return "<system-reminder>\n" + "\n\n".join(parts) + "\n</system-reminder>"

"""Fences: how text that is data stands inside text that speaks for Lamina (G3).

What comes from memory, files, tools or other agents is put between an opening and a closing tag. Invariant: nothing inside can
open or close any of our tags, nor in a spelling that reads like one: another case, spaces or invisible characters in it, wide
letters. The first character of such a tag becomes `&lt;`; all else stays as it is, so ordinary markup remains readable. Escaping is
a pure function of the text, and escaping twice changes nothing, so the same text gives the same bytes on every call.
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

# Text that was escaped, or that we wrote ourselves: the only kind that goes between tags as it is.
Fenced = NewType("Fenced", str)

# Characters nobody sees: soft hyphen, joiners, directions, variation selectors, the tag block.
_UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
)
_OPENERS = "<\uff1c\ufe64\u2039\u27e8\u3008"
_DASHES = "\\-_ \u00a0\u2010-\u2015\u2212\ufe58\ufe63\uff0d\uff3f"


def _name(tag: str) -> str:
    """Each letter as itself or in its wide form; the pattern ignores case."""
    wide = ord("ａ") - ord("a")
    return "".join(f"[{_DASHES}{_UNSEEN}]*+" if char == "-" else f"[{char}{chr(ord(char) + wide)}][{_UNSEEN}]*+" for char in tag)


# After the opener come spaces, slashes and what nobody sees, in any order. The quantifiers give nothing back, so a hostile text costs
# no more than its length.
@cache
def _tag() -> re.Pattern[str]:
    """Made when a text first needs it: that takes as long as a small program's start."""
    names = "|".join(map(_name, TAGS))
    return re.compile(rf"[{_OPENERS}](?=[\s/\\\uff0f\u2044\u2215{_UNSEEN}\x00-\x1f]*+(?:{names}))", re.IGNORECASE)


def escape(text: str) -> Fenced:
    """The text, unable to open or close a fence."""
    if not any(opener in text for opener in _OPENERS):
        return Fenced(text)
    return Fenced(_tag().sub("&lt;", text))


def fence(tag: Tag, text: str) -> Fenced:
    """Data between tags of its own."""
    return Fenced(f"<{tag}>\n{escape(text)}\n</{tag}>")


def reminder(parts: Iterable[Fenced]) -> str:
    """Parts, each fenced, escaped or ours, as one reminder to the model."""
    return "<system-reminder>\n" + "\n\n".join(parts) + "\n</system-reminder>"

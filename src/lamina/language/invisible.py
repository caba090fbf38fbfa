"""Characters that cannot be seen: removed, except where spelling or an emoji needs them.

A text can hide another one in Unicode tags, direction marks, zero-width characters or variation selectors. A model reads it, a user
does not see it. Persian, Arabic, Syriac and Indic scripts spell words with the joiners U+200C and U+200D, and emoji contain U+200D, one
variation selector, or the tags of a flag. Invariant: a kept joiner stands alone between two characters of such scripts, after a virama
or between two emoji, and a kept selector stands alone behind an emoji. Texts that differ only in joiners must share one key, so a key is
made with `without_joiners`.
"""

from __future__ import annotations

import re

JOINERS = frozenset("\u200c\u200d")
# Arabic to Sinhala, Myanmar, Khmer, Mongolian, and the presentation forms of Arabic.
_SCRIPTS = "\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
# A virama before a joiner asks for another form of its letter, also at the end of a word.
_VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"


def _tags(name: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"


_KEPT = "|".join(
    (
        f"(?<=[{_SCRIPTS}])[\u200c\u200d](?=[{_SCRIPTS}])",
        f"(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])",
        f"(?<=[{_VIRAMAS}])\u200d",
        f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)",
        # The flags of England, Scotland and Wales, the only ones that are written with tags.
        *(f"(?<=\U0001f3f4){_tags(name)}" for name in ("gbeng", "gbsct", "gbwls")),
    )
)
# The code points that Unicode tells programs to ignore, and the marks around annotations.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"({_KEPT})|[{_IGNORABLE}]")


def remove_invisible(text: str) -> str:
    return text if text.isascii() else _INVISIBLE.sub(lambda found: found[1] or "", text)


def has_invisible(text: str) -> bool:
    return remove_invisible(text) != text


def without_joiners(text: str) -> str:
    return text if text.isascii() else text.replace("\u200c", "").replace("\u200d", "")

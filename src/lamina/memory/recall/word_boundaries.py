"""Words as Unicode's text segmentation counts them (UAX 29), as far as it takes to tell one word from several (Q2, B15).

An ideograph, a hiragana and a letter of a script without spaces (Thai, Lao, Khmer, Burmese) are words of their own, as the default
rules have it; katakana, hangul and every alphabet make words of letters in a row. Marks belong to the letter before them. Pure; no table
but those Python has.
"""

from __future__ import annotations

import re
from unicodedata import category

# Letters that are words by themselves: scripts whose words need a dictionary, hiragana, ideographs.
_ALONE = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x3096)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3134F)),
)
# Letters and digits in a row, and what joins two rows of them into one word: can't, 3.14, 10:30.
_RUN = re.compile("\\w+(?:['\u2019.:\u00b7,;]\\w+)*")
# Who has not come to a second word by here has written no sentence.
LOOKED_AT = 2_000


def several_words(text: str) -> bool:
    """Whether the text holds more than one word."""
    words = 0
    for run in _RUN.finditer(_without_marks(text[:LOOKED_AT])):
        words += _in(run[0])
        if words > 1:
            return True
    return False


def _without_marks(text: str) -> str:
    """Accents and vowel signs would end a row of letters, and so would joiners nobody sees."""
    return text if text.isascii() else "".join(char for char in text if category(char) not in ("Mn", "Mc", "Me", "Cf"))


def _in(run: str) -> int:
    """One, or two for any number more."""
    alone = [any(low <= ord(char) <= high for low, high in _ALONE) for char in run] if not run.isascii() else []
    return 2 if any(alone) and len(run) > 1 else 1

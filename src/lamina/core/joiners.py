"""Zero-width joiners in one-line texts: kept where spelling needs them, dropped where they could only hide.

Persian, Arabic, Syriac and Indic scripts spell words with U+200C and U+200D, and joined emoji contain U+200D. Invariant: a kept joiner
stands alone between two characters of such scripts, or between two emoji. Texts that differ only in joiners must share one key, so a
key is made with `without_joiners`.
"""

from __future__ import annotations

import re

JOINERS = frozenset("\u200c\u200d")
# Arabic to Sinhala, Myanmar, Khmer, Mongolian, and the presentation forms of Arabic.
_SCRIPTS = "\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = "\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# A virama before a joiner asks for another form of its letter, also at the end of a word.
_VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
_KEPT = f"(?<=[{_SCRIPTS}])[\u200c\u200d](?=[{_SCRIPTS}])|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_VIRAMAS}])\u200d"
_JOINER = re.compile(f"({_KEPT})|[\u200c\u200d]")


def drop_stray_joiners(text: str) -> str:
    return _JOINER.sub(lambda found: found[1] or "", text)


def without_joiners(text: str) -> str:
    return text if text.isascii() else text.replace("\u200c", "").replace("\u200d", "")

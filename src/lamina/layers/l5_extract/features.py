"""Features of a sentence for the learned judge: word and letter sequences, cues, its shape and the sentences beside it.

`scripts/train_extract.py` and the judge share this module, so the weights fit what the judge sees. A change here needs new weights.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from zlib import crc32

from .cues import CUES

BUCKETS = 1 << 15
# How much the words, the sentences beside it, and the shape of a sentence count.
_WEIGHTS = (1.0, 0.35, 0.5)
_WORDS, _LETTERS = 3, (2, 5)

_SIGNS = "\u3040-\u30ff\u4e00-\u9fff"
_HANGUL = "\uac00-\ud7a3"
_WORD = re.compile(rf"[a-zà-ÿœß']+|0+|[?!:#@/«»\"“”「」、，。,.;—-]|[{_SIGNS}{_HANGUL}]")
_RUN = re.compile(rf"[a-zà-ÿœß']+|[{_SIGNS}]+|[{_HANGUL}]+|0+")
_URL = re.compile(r"https?://\S+")
_CAPITAL = re.compile("[a-z,] [A-Z]")


def features(sentences: Sequence[str], at: int) -> dict[int, float]:
    """Return the features of one sentence of a message: bucket and value."""
    texts = [unicodedata.normalize("NFKC", text).replace("’", "'") for text in sentences[max(0, at - 1) : at + 2]]
    here = min(at, 1)
    before, after = texts[:here], texts[here + 1 :]
    parts: tuple[Mapping[str, float], ...] = (
        Counter([*_words(texts[here], "w"), *_letters(texts[here])]),
        Counter({*_beside(before, "p"), *_beside(after, "n")}),
        dict.fromkeys([*_shape(texts[here], at, len(sentences))], 1.0) | _cues(texts[here], before, after),
    )
    found: dict[int, float] = {}
    for weight, part in zip(_WEIGHTS, parts, strict=True):
        _add(found, weight, part)
    return found


def _add(found: dict[int, float], weight: float, part: Mapping[str, float]) -> None:
    values = {name: 1 + math.log(count) if count >= 1 else count for name, count in part.items()}
    length = math.sqrt(sum(value * value for value in values.values())) or 1.0
    for name, value in values.items():
        bucket = crc32(name.encode()) % BUCKETS
        found[bucket] = found.get(bucket, 0.0) + weight * value / length


def _plain(text: str) -> str:
    return re.sub(r"\d", "0", _URL.sub("http", text.lower()))


def _words(text: str, prefix: str, longest: int = _WORDS) -> Iterator[str]:
    words = ["^", *_WORD.findall(_plain(text)), "$"]
    for length in range(1, longest + 1):
        yield from (prefix + " ".join(words[at : at + length]) for at in range(len(words) - length + 1))


def _letters(text: str) -> Iterator[str]:
    for run in _RUN.findall(_plain(text)):
        padded = f" {run} "
        for length in range(_LETTERS[0], _LETTERS[1] + 1):
            yield from ("c" + padded[at : at + length] for at in range(len(padded) - length + 1))


def _beside(texts: Sequence[str], prefix: str) -> Iterator[str]:
    if not texts:
        yield prefix
    for text in texts:
        yield from _words(text, prefix, 2)


def _shape(text: str, at: int, count: int) -> Iterator[str]:
    yield f"long{min(7, int(1.5 * math.log2(len(_WORD.findall(_plain(text))) + 1)))}"
    yield f"of{min(3, count)}"
    yield f"at{min(2, at)}"
    if _CAPITAL.search(text):
        yield "name"


def _cues(text: str, before: Sequence[str], after: Sequence[str]) -> dict[str, float]:
    here = [name for name, cue in CUES.items() if cue.search(text)]
    found = {f"{'has' if name in here else 'lacks'} {name}": 1.0 for name in CUES}
    found |= {f"{one} and {other}": 0.5 for one, other in combinations(here, 2)}
    for place, texts in (("before", before), ("after", after)):
        found |= {f"{place} {name}": 0.5 for text_ in texts for name, cue in CUES.items() if cue.search(text_)}
    return found

"""Features of sentences for the learned judges: word and letter sequences, cues, their shape and what stands beside them.

`scripts/train_extract.py` and the judges share this module, so the weights fit what the judges see. A change here needs new weights.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from zlib import crc32

from .cues import CUES
from .reason_cues import REASON_CUES
from .subjects import SUBJECTS

BUCKETS = 1 << 15
REASON_BUCKETS = 1 << 14
# The ways to join a clause to the one before it that behave alike.
CLAUSES = ("comma", "dash", "bracket")
# How much the words, the sentences beside it, and the shape of a sentence count.
_WEIGHTS = (1.0, 0.35, 1.0)
# How much the words of a reason, the words of its rule, and the shape of both count.
_PAIR_WEIGHTS = (1.0, 0.3, 2.0)
_WORDS, _LETTERS = 3, (3, 4)

_SIGNS = "\u3040-\u30ff\u4e00-\u9fff"
_HANGUL = "\uac00-\ud7a3"
_WORD = re.compile(rf"[a-zà-ÿœß']+|0+|[?!:#@/«»\"“”「」、，。,.;—-]|[{_SIGNS}{_HANGUL}]")
_RUN = re.compile(rf"[a-zà-ÿœß']+|[{_SIGNS}]+|[{_HANGUL}]+|0+")
_URL = re.compile(r"https?://\S+")
_ENDS = " \t\n.。!！,，;；"
_CAPITAL = re.compile("[a-z,] [A-Z]")
_GROUPS = {**CUES, **SUBJECTS}


def features(sentences: Sequence[str], at: int) -> dict[int, float]:
    """Return the features of one sentence of a message: bucket and value."""
    # Whether a sentence ends with a full stop says nothing about it.
    texts = [_normal(text).rstrip(" .。") for text in sentences[max(0, at - 1) : at + 2]]
    here = min(at, 1)
    before, after = texts[:here], texts[here + 1 :]
    parts: tuple[Mapping[str, float], ...] = (
        Counter([*_words(texts[here], "w"), *_letters(texts[here])]),
        Counter({*_beside(before, "p"), *_beside(after, "n")}),
        dict.fromkeys([*_shape(texts[here], at, len(sentences))], 1.0) | _cues(texts[here], before, after),
    )
    return _hashed(zip(_WEIGHTS, parts, strict=True), BUCKETS)


def pair_features(rule: str, why: str, link: str, kind: str) -> dict[int, float]:
    """Return the features of a rule of some type and of what may be its reason. `link` says how the two are joined."""
    rule, why = (_normal(text).strip(_ENDS) for text in (rule, why))
    parts: tuple[Mapping[str, float], ...] = (
        Counter([*_words(why, "y"), *_letters(why)]),
        Counter(_words(rule, "r", 2)),
        _pair_shape(rule, why, link, kind),
    )
    return _hashed(zip(_PAIR_WEIGHTS, parts, strict=True), REASON_BUCKETS)


def _hashed(parts: Iterable[tuple[float, Mapping[str, float]]], buckets: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for weight, part in parts:
        values = {name: 1 + math.log(count) if count >= 1 else count for name, count in part.items()}
        length = math.sqrt(sum(value * value for value in values.values())) or 1.0
        for name, value in values.items():
            bucket = crc32(name.encode()) % buckets
            found[bucket] = found.get(bucket, 0.0) + weight * value / length
    return found


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("’", "'")


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
    yield f"long{_size(text)}"
    yield f"of{min(3, count)}"
    yield f"at{min(2, at)}"
    if _CAPITAL.search(text):
        yield "name"


def _size(text: str) -> int:
    return min(7, int(1.5 * math.log2(len(_WORD.findall(_plain(text))) + 1)))


def _pair_shape(rule: str, why: str, link: str, kind: str) -> dict[str, float]:
    cues = {**CUES, **REASON_CUES}
    given = [name for name, cue in cues.items() if cue.search(why)]
    found = dict.fromkeys(("pair", f"link {link}", f"kind {kind}", f"kind {kind} {link}", f"long {_size(why)}"), 1.0)
    found |= {f"why {'has' if name in given else 'lacks'} {name}": 1.0 for name in cues}
    place = "clause" if link in CLAUSES else link
    found |= {f"why {name} {beside}": 0.7 for name in given for beside in (place, kind)}
    found |= {f"why {one} and {other}": 0.5 for one, other in combinations(given, 2)}
    return found | {f"rule {name}": 0.5 for name, cue in cues.items() if cue.search(rule)}


def _cues(text: str, before: Sequence[str], after: Sequence[str]) -> dict[str, float]:
    here = _names(text)
    found = {f"{'has' if name in here else 'lacks'} {name}": 1.0 for name in _GROUPS}
    found |= {f"{one} and {other}": 0.5 for one, other in combinations(here, 2)}
    for place, texts in (("before", before), ("after", after)):
        found |= {f"{place} {name}": 0.5 for text_ in texts for name in _names(text_)}
    return found


@lru_cache(maxsize=64)  # a sentence is judged several times, and beside others
def _names(text: str) -> tuple[str, ...]:
    small = text.lower()
    return tuple(name for name, group in _GROUPS.items() if group.search(small if name in SUBJECTS else text))

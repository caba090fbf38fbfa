"""Match a subject in a text (B11). Pure.

Texts are compared in folded form: case, compatibility characters, composed or decomposed accents and invisible characters make
no difference. Blanks in the subject match any run of blanks, hyphens and underscores, so `Anna Lee` finds `anna-lee.md`. A
subject matches whole words: `Ann` does not match `annual`, unless `anywhere` is set. Scripts without blanks between words have
no word borders. JSON escapes, however often escaped, are read as the character they stand for.

`also` contains further lines, taken from memories that are removed as a whole: copies of these lines elsewhere are removed too.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ...core.errors import InputError
from ...language.text import Text

# One letter would match almost everywhere; two are a word in some scripts.
SHORTEST = 2
LONGEST = 200
# A line of at least this length found elsewhere is a copy; a shorter one may be a coincidence.
COPIED_CHARS = 24
# From so many further lines on, a text is searched once for the beginnings of all of them, not once for each.
MANY_LINES = 60

_BLANK = re.compile(r"[\s_-]+")
_ESCAPE = re.compile(
    r"\\+u(?P<high>d[89ab][0-9a-f]{2})\\+u(?P<low>d[c-f][0-9a-f]{2})|\\+u(?P<code>[0-9a-f]{4})|\\+(?P<short>[\"/bfnrt])",
    re.IGNORECASE,
)
_SHORT = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": "\t"}
# Thai to Khmer, Hangul, and from the CJK radicals to the end of Yi, with the planes of further ideographs.
_NO_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\U00020000-\U0003ffff"
# Characters that modify the preceding letter: accents, kana voicing marks, final consonants of a Korean syllable.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f\u11a8-\u11ff"
_LETTER = f"(?:(?![{_NO_BLANKS}])[^\\W_])"
_HAS_BLANKS = re.compile(_LETTER)
_MARK = re.compile(f"[{_MARKS}]")
_INSIDE = re.compile(f"{_LETTER}|[{_MARKS}]")
# Split a text into runs that keep their length when folded, and single characters that may not.
_PLAIN = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]")
_ESCAPED = re.compile(rf"(?i:{_ESCAPE.pattern})|[\x00-\x5b\x5d-\x7f]+|\\|[^\x00-\x7f]")
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


class TextSpan(NamedTuple):
    start: int
    end: int


class _FoldedRun(NamedTuple):
    """A part of a text whose folded form begins at `at`. With `even`, folding keeps its length; without, the part is one character."""

    at: int
    start: int
    end: int
    even: bool


def fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    folded = unicodedata.normalize("NFKD", decomposed)
    for char in _INVISIBLE:
        # Checking first is many times faster, since these characters are rare.
        if char in folded:
            folded = folded.replace(char, "")
    return folded


@lru_cache(maxsize=4_096)
def _fold_one(text: str) -> str:
    return fold(text)


class Subject:
    __slots__ = ("_also", "_anywhere", "_beginnings", "_pattern", "_words", "text")

    def __init__(self, text: str, *, anywhere: bool = False, also: Iterable[str] = ()) -> None:
        self.text = " ".join(text.split())
        words = [word for word in _BLANK.split(fold(self.text)) if word]
        if len("".join(words)) < SHORTEST or len(self.text) > LONGEST:
            raise InputError(
                "subject",
                Text("must have {shortest} to {longest} letters", shortest=SHORTEST, longest=LONGEST),
                "give the name as it is written in the files",
            )
        self._anywhere = anywhere
        self._pattern = re.compile(r"[\s_-]+".join(map(re.escape, words)))
        self._words = words
        self._also = tuple(sorted({line for one in also if len(line := fold(one.strip())) >= COPIED_CHARS}))
        self._beginnings: dict[str, list[str]] = {}
        for line in self._also if len(self._also) >= MANY_LINES else ():
            self._beginnings.setdefault(line[:COPIED_CHARS], []).append(line)

    def with_also(self, lines: Iterable[str]) -> Subject:
        return Subject(self.text, anywhere=self._anywhere, also=(*self._also, *lines))

    def everywhere(self) -> Subject:
        """Return this subject without word borders and further lines, to check whether anything is left."""
        return Subject(self.text, anywhere=True)

    def holds(self, text: str) -> bool:
        """Return whether `spans` would find anything; for most texts one search is enough."""
        folded = fold(text)
        if "\\u" not in folded and not self._may(folded):
            return False
        return any(self._hits(folded)) or ("\\" in text and any(self._hits(fold(_ESCAPE.sub(_meant, text)))))

    def spans(self, text: str) -> list[TextSpan]:
        """Return the places of the subject in order, without overlaps."""
        folded = fold(text)
        if "\\u" not in folded and not self._may(folded):
            return []
        found = self._found(text, _PLAIN)
        if "\\" in text:
            found += self._found(text, _ESCAPED)
        return merge_spans(found)

    def _may(self, folded: str) -> bool:
        return all(word in folded for word in self._words) or any(self._copies(folded))

    def _hits(self, folded: str) -> Iterator[TextSpan]:
        # Find the words first, then check the characters around them.
        for hit in self._pattern.finditer(folded):
            if self._bordered(folded, hit.start(), hit.end()):
                yield TextSpan(hit.start(), hit.end())
        yield from self._copies(folded)

    def _copies(self, folded: str) -> Iterator[TextSpan]:
        """Return the places of the further lines, those of one line without overlaps."""
        for line in () if self._beginnings else self._also:
            at = folded.find(line)
            while at >= 0:
                yield TextSpan(at, at + len(line))
                at = folded.find(line, at + len(line))
        ends = dict[str, int]()
        for at in range(len(folded) - COPIED_CHARS + 1) if self._beginnings else ():
            for line in self._beginnings.get(folded[at : at + COPIED_CHARS], ()):
                if at >= ends.get(line, 0) and folded.startswith(line, at):
                    ends[line] = at + len(line)
                    yield TextSpan(at, at + len(line))

    def _bordered(self, folded: str, start: int, end: int) -> bool:
        if _MARK.match(folded, end):
            return False
        if self._anywhere:
            return True
        if start and _HAS_BLANKS.match(folded, start) and _INSIDE.match(folded, start - 1):
            return False
        return not (_HAS_BLANKS.match(folded, end - 1) and _HAS_BLANKS.match(folded, end))

    def _found(self, text: str, split: re.Pattern[str]) -> list[TextSpan]:
        if text.isascii() and split is _PLAIN:
            return list(self._hits(fold(text)))
        texts, runs, at = list[str](), list[_FoldedRun](), 0
        for run in split.finditer(text):
            part = run[0]
            even = part.isascii() and part[0] != "\\"
            folded = part.lower() if even else _fold_one(_meant(run) if run.lastgroup else part)
            if folded:
                texts.append(folded)
                runs.append(_FoldedRun(at, run.start(), run.end(), even))
                at += len(folded)
        starts = [run.at for run in runs]

        def place(index: int, *, last: bool) -> int:
            run = runs[bisect_right(starts, index) - 1]
            if run.even:
                return run.start + index - run.at + last
            return run.end if last else run.start

        hits = self._hits("".join(texts))
        return [TextSpan(place(hit.start, last=False), place(hit.end - 1, last=True)) for hit in hits]


def _meant(found: re.Match[str]) -> str:
    if found["high"]:
        return chr(0x10000 + ((int(found["high"], 16) & 0x3FF) << 10) + (int(found["low"], 16) & 0x3FF))
    if found["code"]:
        return chr(int(found["code"], 16))
    return _SHORT.get(found["short"].lower(), found["short"])


def merge_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    kept: list[TextSpan] = []
    for span in sorted(spans):
        if kept and span.start <= kept[-1].end:
            kept[-1] = TextSpan(kept[-1].start, max(kept[-1].end, span.end))
        else:
            kept.append(span)
    return kept

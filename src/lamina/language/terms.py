"""Splits texts into terms for comparison: stems in Latin script, pairs of characters in scripts without spaces.

The offline chat and the ranker both use this module, so they agree on which memories match a question. Invariants: equal texts give
equal terms. A Latin term is a prefix of every word it matches, and a pair of characters occurs literally. A plain search in
`normal` text therefore finds every place where a term can occur.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain

# Latin letters and digits form words; letters of any other script are compared in pairs, since a script may have no spaces.
_RUN = re.compile(r"(?P<word>[a-z0-9]+)|[^\W_a-z0-9]+")
# The same in a text that is not normalized.
_LETTERS = re.compile(r"[^\W_]+")
# Accents of Latin, Greek and Cyrillic letters. Marks of other scripts are part of their letters.
_ACCENT = re.compile("[\u0300-\u036f]")
# Characters that may be or contain an accent: letters of these scripts, and struck-out signs.
_MAY_HAVE_ACCENT = re.compile("[\u00c0-\u052f\u1e00-\u1fff\u2190-\u22ff\u2add]")
# Question words and particles in scripts without spaces are removed first, because their character pairs occur in no answer.
_ASKING = re.compile(
    "什么时候|什么|为什么|為什麼|什麼|怎么|怎麼|如何|多少|谁|誰|哪里|哪|何时|是不是|吗|嗎|呢|我们的?|我們的?|你们的?"
    "|何|どこ|いつ|ですか|ますか|무엇|누구|어디|언제|입니까"
)
STOP_WORDS = frozenset(
    [
        *("a", "about", "after", "against", "all", "an", "and", "any", "are", "as", "at", "be", "been", "before", "but", "by"),
        *("can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if"),
        *("in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "ours", "please", "run", "runs"),
        *("s", "she", "should", "so", "some", "such", "t", "tell", "than", "that", "the", "their", "them", "then", "there"),
        *("these", "they", "this", "those", "to", "us", "use", "used", "uses", "using", "was", "we", "were", "what", "when"),
        *("where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your"),
    ]
)
# Longest first. Removing an ending must leave at least three letters, so words with the same ending by chance stay distinct.
_ENDINGS = (
    *("ations", "ation", "ating", "ingly", "ated", "ates", "edly", "ings", "ions", "ate", "ing", "ion", "ies", "ers"),
    *("ed", "es", "er", "ly", "s", "y", "e"),
)
# Endings by their last letter, which is the last letter of the word.
_BY_LAST = {last: tuple(ending for ending in _ENDINGS if ending[-1] == last) for last in {ending[-1] for ending in _ENDINGS}}
_SHORTEST_STEM = 3
# Characters in front of the first matching word of a long text.
LEAD_CHARS = 20
_VOWELS = frozenset("aeou")


def normal(text: str) -> str:
    """Normalize a text: lower case, no accents on Latin letters, wide letters as plain ones."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    if _MAY_HAVE_ACCENT.search(folded) is None:
        return folded
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", folded)))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a word, so that test, tests and testing match. A false match costs little, a missed one an answer."""
    for ending in _BY_LAST.get(word[-1:], ()):
        # The y of "deploy" and "day" belongs to the stem; the y of "query" changes ("queries").
        if ending == "y" and word[-2:-1] in _VOWELS:
            continue
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def terms(text: str) -> list[str]:
    """Return all terms in order, including repeated ones, without stop words."""
    return [stem(term) if is_word(term) else term for term in unstemmed(text)]


def searchable(text: str) -> list[str]:
    """Return all terms that a question about this text may contain, for an index: also question words and single characters."""
    words: list[str] = []
    for run in _RUN.finditer(normal(text)):
        if run["word"] is None:
            words += chain(pairs(run[0]), run[0] if len(run[0]) > 1 else "")
        elif run[0] not in STOP_WORDS:
            words.append(stem(run[0]))
    return words


def unstemmed(text: str) -> list[str]:
    """Return the terms with whole words instead of stems, for an index with a stemmer of its own."""
    words: list[str] = []
    for run in _RUN.finditer(_ASKING.sub(" ", normal(text))):
        if run["word"] is None:
            words += pairs(run[0])
        elif run[0] not in STOP_WORDS:
            words.append(run[0])
    return words


def pairs(run: str) -> list[str]:
    """Return all pairs of adjacent characters; a single character is returned as it is."""
    return [run[index : index + 2] for index in range(max(1, len(run) - 1))]


def sought(text: str) -> list[str]:
    """Return the terms of a question in order, without repetitions."""
    return list(dict.fromkeys(terms(text)))


def is_word(term: str) -> bool:
    """Whether the term is the stem of a Latin word and not a pair of characters."""
    return term.isascii()


def highlights(text: str, question: str, most: int = 1_000) -> list[tuple[int, int]]:
    """Return where a text matches the terms of a question: ranges of whole words, or of characters in scripts without spaces.

    The ranges are in order and do not overlap. At most `most` are returned.
    """
    wanted = set(sought(question))
    ranges: list[tuple[int, int]] = []
    for run in _LETTERS.finditer(text) if wanted else ():
        for start, end in _matches(run[0], wanted):
            if ranges and ranges[-1][1] >= run.start() + start:
                ranges[-1] = (ranges[-1][0], max(ranges[-1][1], run.start() + end))
            else:
                ranges.append((run.start() + start, run.start() + end))
        if len(ranges) >= most:
            return ranges[:most]
    return ranges


def _matches(run: str, wanted: set[str]) -> list[tuple[int, int]]:
    plain = normal(run)
    if len(plain) != len(run):  # letters that fold to several, such as a ligature: the word matches as a whole
        return [(0, len(run))] if not wanted.isdisjoint(searchable(run)) else []
    ranges: list[tuple[int, int]] = []
    for part in _RUN.finditer(plain):
        if part["word"] is not None:
            ranges += [part.span()] if stem(part[0]) in wanted else []
        else:
            steps = ((part.start() + index, pair) for index, pair in enumerate(pairs(part[0])))
            ranges += [(index, index + len(pair)) for index, pair in steps if pair in wanted]
            ranges += [(part.start() + index, part.start() + index + 1) for index, sign in enumerate(part[0]) if sign in wanted]
    return sorted(ranges)


def matches(text: str, query: str, *, exact: bool = False) -> list[tuple[int, int]]:
    """Return where a text matches: the words of the query, or with `exact` the query itself, on one line."""
    if not exact:
        return highlights(text, query)
    return [match.span() for match in re.finditer(re.escape(" ".join(query.split())), text, re.IGNORECASE)]


def excerpt_range(line: str, query: str, most: int, *, exact: bool = False) -> tuple[int, int]:
    """Return where the part of at most `most` characters with the most matches begins and ends. It begins with a whole word."""
    if len(line) <= most:
        return 0, len(line)
    starts = [start for start, _ in matches(line, query, exact=exact)]
    best = max(starts, key=lambda start: (sum(start <= other < start + most for other in starts), -start), default=0)
    begin = max(0, min(best - LEAD_CHARS, len(line) - most))
    begin = line.find(" ", begin, best) + 1 or begin if begin else 0
    return begin, begin + most

"""Recognizes what memory excludes, even when asked: code, file locations, task state, history, fixes, and judgements of people.

The patterns (excluded_kinds.txt) only look at words, in English, German, French, Spanish, Chinese, Japanese and Korean. Of a whole memory,
the description or most lines decide, so a memory may name a file or a ticket. Pure.
"""

from __future__ import annotations

from collections import Counter

from .connectives import marked_reason
from .patterns import read_patterns

JUDGEMENT = "a judgement of a person"
CODE = "code"
TASK = "the current task"
PLACE = "the location of a file"
LIST = "a list of pull requests or tickets"
HISTORY = "the history of the code"
FIX = "how something was fixed"
STRUCTURE = "the structure of the code"
INSTRUCTIONS = "the content of instruction files"
# Kinds of text that are not worth remembering, in the order of the translations in `replies`.
KINDS = (CODE, TASK, PLACE, LIST, HISTORY, FIX, STRUCTURE, INSTRUCTIONS)
# Kinds that a user may want kept, in a large code base.
ARCHITECTURE = frozenset({CODE, PLACE, STRUCTURE, INSTRUCTIONS})
# Kinds that are lists: a sentence with such a description is about something else, such as who decides.
LISTS = frozenset({LIST, STRUCTURE})
# A shorter list is no list. One line may name a ticket or two.
FEWEST_ROWS = 2
FEWEST_NAMED = 3

_PATTERNS = read_patterns("excluded_kinds")
# The kinds that descriptions name, and those of sentences, in the order in which they are looked for.
_TITLES = (("title_list", LIST), ("title_fix", FIX), ("title_shape", STRUCTURE), ("title_task", TASK))
_SENTENCES = (("requests", LIST), ("git", HISTORY), ("fix", FIX), ("shape", STRUCTURE), ("instructions", INSTRUCTIONS))


def find_excluded(description: str, body: str, *, architecture: bool = True) -> str | None:
    """Return the kind of a memory that is not worth keeping; None if it may be. Without `architecture`, its kinds are kept."""
    rows = [row for row in body.splitlines() if not _PATTERNS["labelled"].match(row)]
    kinds = Counter(kind for row in rows if (kind := _row_kind(row, alone=len(rows) < FEWEST_ROWS)) is not None)
    most = next((kind for kind, count in kinds.most_common(1) if 2 * count > len(rows)), None)
    lists = len(rows) >= FEWEST_ROWS or _PATTERNS["separator"].search(body) is not None
    named = (kind for name, kind in _TITLES if _PATTERNS[name].search(description) and (lists or kind not in LISTS))
    decided = (next(named, None), _sentence_kind(description), most)
    return next((kind for kind in decided if kind is not None and (architecture or kind not in ARCHITECTURE)), None)


def _row_kind(row: str, *, alone: bool) -> str | None:
    if len(_PATTERNS["change"].findall(row)) >= (FEWEST_NAMED if alone else 1):
        return LIST
    if not alone and _PATTERNS["tree"].match(row):
        return STRUCTURE
    sentences = [part for part in _PATTERNS["sentence_end"].split(row) if part.strip()]
    kinds = [_sentence_kind(part) for part in sentences]
    return next(filter(None, kinds), None) if 2 * (len(kinds) - kinds.count(None)) > len(kinds) else None


def _sentence_kind(text: str) -> str | None:
    """Return the kind of a sentence of a memory. A path or a piece of code that it only mentions does not count."""
    without_code = _PATTERNS["inline"].sub("code", _PATTERNS["url"].sub(" ", text))
    return no_memory(_PATTERNS["path"].sub("file", without_code))


def no_memory(text: str) -> str | None:
    """Return the kind of a text that is not worth remembering; None if it may be."""
    if _PATTERNS["judges"].search(text):
        return JUDGEMENT
    if _PATTERNS["code"].search(text):
        return CODE
    if _PATTERNS["moment"].search(text) or _PATTERNS["progress"].search(text):
        return TASK
    if marked_reason(text) is not None:
        return None
    bare = _PATTERNS["url"].sub(" ", text)
    if _PATTERNS["path"].search(bare) or _PATTERNS["file"].search(bare):
        return PLACE
    return next((kind for name, kind in _SENTENCES if _PATTERNS[name].search(text)), None)

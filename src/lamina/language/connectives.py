"""Finds the reason in a sentence by the word that introduces it: "because", "so", 因为, ので, weil.

A language has words before a reason that comes first, words before one that comes last, and words before what follows from a reason.
The patterns (connectives.txt) cover seven languages. A purpose ("so that I can read it") counts as a reason. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .patterns import read_patterns


class Reason(NamedTuple):
    """The parts of a sentence: the rule, its reason, and how to apply it. Missing parts are empty."""

    rule: str
    why: str = ""
    how: str = ""


# Shorter parts are not clauses.
FEWEST_CHARS = 4

_PATTERNS = read_patterns("connectives")
_AROUND = " \t\n,;:，；。、：—–-"


def marked_reason(text: str) -> Reason | None:
    """Return the parts of a text whose reason is introduced by a word such as "because"."""
    return _labelled(text) or _first(text) or _last(text) or _ends(text)


def consequence(text: str) -> Reason | None:
    """Return a statement that is followed by "so" and what follows from it, as a reason and its rule."""
    match = _PATTERNS["so"].search(text)
    return _parts(text[match.end() :], text[: match.start()]) if match is not None else None


def without_so(sentence: str) -> str | None:
    """Return a sentence that begins with "so" or "that's why" without these words, or None."""
    match = _PATTERNS["so_begins"].match(sentence)
    return sentence[match.end() :] if match is not None else None


def begins_as_reason(sentence: str) -> str | None:
    """Return the reason that a sentence after a rule gives by its first words or its ending ("Otherwise …", …からです), or None."""
    if (match := _PATTERNS["why_begins"].match(sentence)) is not None:
        return sentence[match.end() :]
    return bare_reason(sentence) if _PATTERNS["is_reason"].search(sentence) else None


def bare_reason(why: str) -> str:
    """Return a reason without the ending that means "because"."""
    return _PATTERNS["reason_end"].sub("", why.strip()) or why


def _labelled(text: str) -> Reason | None:
    match = _PATTERNS["labelled"].search(text)
    return _parts(text[: match.start()], text[match.end() :]) if match is not None else None


def _first(text: str) -> Reason | None:
    if (match := _PATTERNS["first"].match(text)) is None:
        return None
    remainder = text[match.end() :]
    so = None if remainder[:1].isascii() else _PATTERNS["so"].search(remainder)
    end = so or _PATTERNS["end_of_first"].search(remainder)
    return _parts(remainder[end.end() :], remainder[: end.start()]) if end is not None else None


def _last(text: str) -> Reason | None:
    for match in _PATTERNS["last"].finditer(text):
        if (parts := _parts(text[: match.start()], text[match.end() :])) is None:
            continue
        if match["happened"] and not _PATTERNS["we_do"].search(parts.rule):
            continue  # a time
        follows = _PATTERNS["so"].search(parts.why)
        if follows is None:
            return parts
        return Reason(parts.rule, bare_reason(parts.why[: follows.start()]), parts.why[follows.end() :].strip())
    return None


def _ends(text: str) -> Reason | None:
    if (last := _PATTERNS["ends_last"].match(text)) is not None:
        return _parts(last["rule"], last["why"])
    match = _PATTERNS["ends_first"].search(text)
    return _parts(text[match.end() :], text[: match.start()]) if match is not None and "。" not in text[: match.start()] else None


def _parts(rule: str, why: str) -> Reason | None:
    rule, why = rule.strip(f"{_AROUND}(（"), why.strip(_AROUND.replace("。", ""))
    if why.endswith((")", "）")) and not re.search("[(（]", why):
        why = why[:-1]
    return Reason(rule, bare_reason(why)) if min(len(rule), len(why)) >= FEWEST_CHARS else None

"""Divides a sentence into a rule and its reason, by the word that introduces the reason or by a learned judge.

A reason without such a word is a clause after a comma, a dash, a semicolon or a colon, in brackets, or a sentence of its own. The judge
(judge/reason.py) tells it from another wish, the rest of the rule and an aside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...core.connectives import FEWEST_CHARS, Reason, begins_as_reason, consequence, marked_reason
from .sentence_rules import kind_of

# A reason without "because" is looked for only in texts of this length: sentences, not pasted text.
SENTENCE_CHARS = 600
# A sentence with more of these lists things.
MOST_SEPARATORS = 8

_SEPARATOR = re.compile(
    r"(?P<comma>,\s+|，\s*|,(?=[\u3040-\u9fff])|(?<=[いでうすてん])、(?=.{6}))"
    r"|(?P<dash>\s+[—–]\s+|\s+--?\s+|——\s*|(?<=\w)—(?=\w)|\s*[;；]\s*|\s*：\s*|:\s+)|(?P<sentence>[.!]\s+|[。！]\s*(?=.))"
)
_BRACKET = re.compile(r"^(?P<rule>[^(（]{6,})[(（](?P<why>[^()（）]{3,})[)）](?P<rest>[^()（）]*)$")


class ReasonCandidate(NamedTuple):
    rule: str
    why: str
    link: str  # how the two are joined; a way that the judge knows


def reason(text: str, kind: Callable[[str], str] = kind_of) -> Reason:
    """Return the parts of a text. `kind` tells the type of a rule."""
    if (found := marked_reason(text)) is not None:
        return found
    if len(text) > SENTENCE_CHARS:
        return Reason(text)
    return unmarked_reason(text, kind) or Reason(text)


def unmarked_reason(text: str, kind: Callable[[str], str]) -> Reason | None:
    """Return the likeliest division of a sentence into a rule and a reason without "because", if there is one."""
    from .judge.reason import reason_margin  # reads the weights

    judged = ((reason_margin(each.rule, each.why, each.link, kind(each.rule)), each) for each in candidates(text))
    margin, best = max(judged, default=(0.0, None), key=lambda each: each[0])
    return Reason(best.rule, best.why) if best is not None and margin > 0 else None


def reason_beside(rule: str, beside: str, kind: str) -> tuple[str, float]:
    """Return what the sentence after a rule gives as its reason, and by how much it does (above 0)."""
    from .judge.reason import reason_margin  # reads the weights

    if (given := begins_as_reason(beside)) is not None:
        return given, float("inf")
    return beside, reason_margin(rule, beside, "sentence", kind)


def candidates(text: str) -> Iterator[ReasonCandidate]:
    """Yield the divisions of a text that punctuation or "so" allows."""
    if (follows := consequence(text)) is not None:
        yield ReasonCandidate(follows.rule, follows.why, "so")
    if (inside := _BRACKET.match(text)) is not None:
        yield ReasonCandidate(f"{inside['rule'].strip()}{inside['rest']}", inside["why"], "bracket")
    separators = list(_SEPARATOR.finditer(text))
    for found in separators if len(separators) <= MOST_SEPARATORS else ():
        before, after = text[: found.start()], text[found.end() :]
        if min(len(before), len(after)) >= FEWEST_CHARS:
            yield ReasonCandidate(before, after, found.lastgroup or "comma")
            if found.lastgroup != "sentence" and follows is None:
                yield ReasonCandidate(after, before, "first")

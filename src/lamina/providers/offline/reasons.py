"""Divides a sentence into a rule and its reason, by the word that introduces the reason or by a learned judge.

A reason without such a word is a clause after a comma, a dash, a semicolon or a colon, in brackets, or a sentence of its own. The judge
(judge/reason.py) tells it from another wish, the rest of the rule and an aside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ...language.connectives import FEWEST_CHARS, Reason, begins_as_reason, consequence, marked_reason, without_so
from .back_references import points_back, says_nothing
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
_ENDS = " .。!！"


class ReasonCandidate(NamedTuple):
    rule: str
    why: str
    link: str  # how the two are joined; a way that the judge knows
    how: str = ""  # another order after the reason


def reason(text: str, kind: Callable[[str], str] = kind_of) -> Reason:
    """Return the parts of a text. `kind` tells the type of a rule."""
    if (found := marked_reason(text)) is not None:
        return found if can_divide(found.rule, found.why, text) else Reason(text)
    if len(text) > SENTENCE_CHARS:
        return Reason(text)
    return unmarked_reason(text, kind) or Reason(text)


def unmarked_reason(text: str, kind: Callable[[str], str], is_rule: Callable[[str], bool] = lambda _: False) -> Reason | None:
    """Return the likeliest division of a sentence into a rule and a reason without "because", if there is one.

    `is_rule` tells whether a clause is a rule itself, which gives no reason."""
    from .judge.reason import reason_margin  # reads the weights

    judged = ((reason_margin(each.rule, each.why, each.link, kind(each.rule)), each) for each in candidates(text))
    likely = sorted((each for each in judged if each[0] > 0), key=lambda each: each[0], reverse=True)
    return next((Reason(best.rule, best.why, best.how) for _, best in likely if not is_rule(best.why)), None)


def can_divide(rule: str, why: str, text: str) -> bool:
    """Whether both parts of a text say something by themselves: a rule after its reason must not point back to it."""
    if says_nothing(rule) or says_nothing(why):
        return False
    return not (text.rstrip(_ENDS).endswith(rule.rstrip(_ENDS)) and points_back(rule))


def reason_beside(rule: str, beside: str, kind: str) -> tuple[str, float]:
    """Return what the sentence after a rule gives as its reason, and by how much it does (above 0)."""
    from .judge.reason import reason_margin  # reads the weights

    if (given := begins_as_reason(beside)) is not None:
        return given, float("inf")
    return beside, float("-inf") if says_nothing(beside) else reason_margin(rule, beside, "sentence", kind)


def candidates(text: str) -> Iterator[ReasonCandidate]:
    """Yield the divisions of a text that punctuation or "so" allows, and whose parts say something by themselves."""
    for each in _divisions(text):
        if not can_divide(each.rule, each.why, text) or without_so(each.why) is not None:
            continue
        continues = each.link == "first" and _has("continues", each.rule)
        if not continues and not _ends_with_order(each.why):
            yield each


def _ends_with_order(why: str) -> bool:
    last = [found.end() for found in _SEPARATOR.finditer(why)][-1:]
    return bool(last) and _has("orders", why[last[0] :])


def _has(cue: str, clause: str) -> bool:
    from .judge.reason_cues import REASON_CUES  # compiles many patterns

    return REASON_CUES[cue].search(clause.rstrip(_ENDS)) is not None


def _divisions(text: str) -> Iterator[ReasonCandidate]:
    if (follows := consequence(text)) is not None:
        yield ReasonCandidate(follows.rule, follows.why, "so")
    if (inside := _BRACKET.match(text)) is not None:
        yield ReasonCandidate(f"{inside['rule'].strip()}{inside['rest']}", inside["why"], "bracket")
    separators = list(_SEPARATOR.finditer(text))
    if len(separators) > MOST_SEPARATORS:
        return
    for found in separators:
        before, after = text[: found.start()], text[found.end() :]
        if min(len(before), len(after)) >= FEWEST_CHARS:
            yield ReasonCandidate(before, after, found.lastgroup or "comma")
            if found.lastgroup != "sentence" and follows is None:
                yield ReasonCandidate(after, before, "first")
    for one, other in pairwise(separators):
        before, why, how = text[: one.start()], text[one.end() : other.start()], text[other.end() :]
        if min(len(before), len(why), len(how)) >= FEWEST_CHARS and _has("orders", how) and not _has("orders", why):
            yield ReasonCandidate(before, why, one.lastgroup or "comma", how)

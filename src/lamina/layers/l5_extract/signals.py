"""Sentences of a user that hold beyond the current task: about the user, feedback, facts of the project, and places to look.

A learned judge decides for each sentence. Sentences that cannot be meant to last never reach it: questions, hypotheticals, sarcasm, code,
quotations, and what memory excludes in general. Pure, and without the rest of the review: a hook that looks for statements loads this
alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...language.connectives import Reason, marked_reason, without_so
from ...language.excluded_kinds import no_memory
from ...language.invisible import has_invisible
from ...language.memory_requests import asks_for_memory
from ...memory.guard.own_words import split_pasted
from ...memory.guard.support import flips
from ...providers.offline.back_references import divide_content, points_back, says_nothing
from ...providers.offline.judge.cues import ASKED, CUES, NOT_MEANT, ONLY_NOW, TAKEN_BACK
from ...providers.offline.judge.keep import Kind, Worth, worth
from ...providers.offline.reasons import can_divide, reason_beside, unmarked_reason
from .phrases import AT_HAND, CONFIRMATION, FORBIDS, GOES_ON, PRACTICE, PROJECT_WIDE, RECURS, STANDING

Signal: TypeAlias = Kind | Literal["confirmation"]

# Longer messages are not searched for the user's own words, and longer matches are not sentences.
MOST_CHARS = 100_000
SENTENCE_CHARS = 300
FEWEST_CHARS = 6
# A rule whose margin is below this is not worth keeping without its reason, so the two are not divided.
UNSURE = -2.5
# By how much a reason with a word such as "because", and one without, may hide that a rule is worth keeping.
MOST_HIDDEN, LEAST_HIDDEN = 2.0, 0.6
# The margin of an order for all times that follows its reason. With one of these cues, it may be a quotation, an idea or a joke.
SURE = 0.1
# The least margin of an order for all times that stands alone. Below it, most are orders for the program at hand, or idioms.
LEAST_STANDING = -4.0
_DOUBTFUL = ("says", "quote", "if", "irony", "code")

_AROUND = " \t\r\n-*•,，、"
# The point of a title or of a German day ends no sentence: "Dr. Haas", "am 4. Dezember", "nach dem 18. gilt …".
_POINT = (
    r"(?:(?<=\b(?:dr|mr|ms))|(?<=\bmrs)|(?<=\bprof))\.(?= (?-i:[A-ZÄÖÜ]))|"
    r"(?<=\d)\.(?= (?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez))"
    r"|(?:(?<= (?:dem|den|der|vom|zum) \d)|(?<= (?:dem|den|der|vom|zum) \d\d))\.(?= (?-i:[a-zäöü]))"
)
_SENTENCE = re.compile(rf"(?:https?://\S+|[^.!?。！？\n]|[.!?](?=\S)|{_POINT})+[.!?。！？]*", re.IGNORECASE)
# Polite questions that are wishes: "Can you stop apologising in every reply?"
_POLITE = re.compile(
    r"^(?:can|could|would|will) you (?:please )?(?:stop|quit|always|never)\b[^?]*\?$|(?:できますか|もらえますか|いただけますか)[。？]?$",
    re.IGNORECASE,
)


# Quotation marks around a whole sentence.
_QUOTED = re.compile("^[\"'“‘«„「『]")
# Nobody writes one sentence in both.
_HANGUL, _HAN_OR_KANA = re.compile("[\uac00-\ud7a3]"), re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


class FoundSignal(NamedTuple):
    signal: Signal
    parts: Reason  # the rule, with its reason if the sentence or one beside it gives one
    quote: str  # both, as the user wrote them


class _Judged(NamedTuple):
    signal: Signal
    parts: Reason
    margin: float  # by how much it is worth keeping; above 0 it is


def find_signals(text: str) -> Iterator[FoundSignal]:
    """Yield the sentences of a message that are worth keeping, in order."""
    if len(text) > MOST_CHARS or asks_for_memory(text.strip()):
        return  # explicit requests to remember are saved in their own turn
    own = split_pasted(text).own
    # A question beside a statement tells nothing about it.
    spans = [span for span in _divide(own) if not _asks(own[slice(*span)].strip(_AROUND))]
    sentences = [own[begin:end].strip(_AROUND) for begin, end in spans]
    judged = [_judge(sentences, at) for at in range(len(sentences))]
    taken_back = {at - 1 for at, sentence in enumerate(sentences) if TAKEN_BACK.search(sentence)}
    kept = {at: found for at, found in enumerate(judged) if found is not None and found.margin > 0 and at not in taken_back}
    beside = {at: given for at in kept if (given := _find_beside(sentences, judged, at)) is not None}
    for at, found in kept.items():
        if any(at == place for place, _ in beside.values()):
            continue  # the reason of another
        place, parts = beside.get(at, (at, found.parts))
        first, last = sorted((at, place))
        yield FoundSignal(found.signal, parts, own[spans[first][0] : spans[last][1]].strip(_AROUND))


def _divide(own: str) -> list[tuple[int, int]]:
    """Divide a text into sentences. One that only points back belongs to the sentence before it."""
    spans: list[tuple[int, int]] = []
    for found in _SENTENCE.finditer(own):
        sentence = found[0].strip(_AROUND)
        if sentence and spans and _belongs(own[slice(*spans[-1])].strip(_AROUND), sentence):
            spans[-1] = (spans[-1][0], found.end())
        elif sentence:
            spans.append(found.span())
    return spans


def _belongs(before: str, sentence: str) -> bool:
    if not points_back(sentence) or len(before) + len(sentence) >= SENTENCE_CHARS or is_vetoed(before) or says_nothing(before):
        return False
    antecedent = worth([before, sentence], 0)
    if says_nothing(sentence):
        return _is_for_all_times(sentence) and antecedent.kind == "feedback" and antecedent.margin > UNSURE
    return antecedent.margin > 0 and (without_so(sentence) is not None or worth([before, sentence], 1).margin > 0)


def _is_for_all_times(sentence: str) -> bool:
    return CUES["always"].search(sentence) is not None or CONFIRMATION.search(sentence) is not None


def _judge(sentences: Sequence[str], at: int) -> _Judged | None:
    sentence = sentences[at]
    if is_vetoed(sentence):
        return None
    content, repeat = divide_content(sentence)
    whole = worth(sentences, at)
    if _is_for_all_times(repeat) and _is_wish(content.removesuffix(repeat), whole) and not _is_doubtful(sentence):
        return _Judged("feedback", Reason(content), max(whole.margin, SURE))
    if CONFIRMATION.search(sentence):
        return _Judged("confirmation", Reason(sentence), math.inf)
    if not content:
        return None
    if at and (after := without_so(sentence)) and _is_order(after, sentence):
        return _Judged("feedback", Reason(sentence), max(whole.margin, SURE))
    judged = _judge_parts(sentences, at, whole, content)
    marked = marked_reason(sentence)
    if judged.margin > 0 or not _is_standing(marked.rule if marked else content, sentence, judged.margin):
        return judged
    return _Judged("feedback", marked or unmarked_reason(sentence, lambda _: "feedback", _is_rule) or Reason(content), SURE)


def _judge_parts(sentences: Sequence[str], at: int, whole: Worth, content: str) -> _Judged:
    """Judge a sentence as a whole, and as a rule with its reason: the reason may hide that the rule is worth keeping."""

    def judge_rule(rule: str) -> Worth:
        return worth([*sentences[:at], rule, *sentences[at + 1 :]], at)

    sentence, undivided = sentences[at], _Judged(whole.kind, Reason(content), whole.margin)
    marked = marked_reason(sentence)
    parts = marked or unmarked_reason(sentence, lambda rule: judge_rule(rule).kind, _is_rule)
    if parts is None or flips(parts.rule, sentence):
        return undivided
    place = worth([parts.why], 0)
    if place.kind == "reference" and place.margin > 0:  # a place gives no reason to look there
        return _Judged(place.kind, Reason(content), _unhidden(place, whole, MOST_HIDDEN))
    if not can_divide(parts.rule, parts.why, sentence):
        return undivided
    rule = judge_rule(parts.rule)
    leads = marked is not None and rule.margin > 0 and sentence.startswith(parts.rule)
    kind = whole.kind if whole.margin > 0 and not leads else rule.kind
    ordered = kind == "feedback" and sentence.endswith(parts.rule) and _is_order(parts.rule, sentence)
    if marked is None and ((rule.margin < UNSURE and not ordered) or rule.kind != kind or kind == "user"):
        return undivided
    margin = _unhidden(rule, whole, MOST_HIDDEN if marked is not None else LEAST_HIDDEN)
    return _Judged(kind, parts, max(margin, SURE) if ordered else margin)


def _unhidden(part: Worth, whole: Worth, hidden: float) -> float:
    """Return the margin of a sentence, of which the rest may hide that a part is worth keeping, by so much."""
    return max(whole.margin, min(part.margin, whole.margin + hidden))


def _is_wish(content: str, whole: Worth) -> bool:
    """Whether what a sentence asks to repeat is a wish."""
    alone = worth([content], 0)
    return (alone.kind == "feedback" and alone.margin > UNSURE) or (whole.kind == "feedback" and whole.margin > -SURE)


def _is_rule(clause: str) -> bool:
    alone = worth([clause], 0)
    return alone.kind == "feedback" and alone.margin > 0


def _is_doubtful(sentence: str) -> bool:
    return any(CUES[cue].search(sentence) for cue in _DOUBTFUL)


def _is_order(rule: str, sentence: str) -> bool:
    """Whether a rule orders something for all times. After its reason, that is meant to last."""
    return CUES["always do"].search(rule) is not None and not _is_doubtful(sentence)


def _is_standing(rule: str, sentence: str, margin: float) -> bool:
    """Whether a rule orders one thing for all times, or forbids for all times a way to deliver software."""
    rule = PROJECT_WIDE.sub("", rule)
    bare = CUES["from now on"].sub("", rule)
    if _is_doubtful(sentence) or any(CUES[cue].search(bare) for cue in AT_HAND):
        return False
    order = STANDING.search(rule)
    if order is not None and margin > LEAST_STANDING and GOES_ON.search(rule, order.end()) is None:
        return True
    forbids = CUES["not"].search(rule) if order is not None else FORBIDS.search(rule) and RECURS.search(rule)
    return forbids is not None and PRACTICE.search(rule) is not None


def _find_beside(sentences: Sequence[str], judged: Sequence[_Judged | None], at: int) -> tuple[int, Reason] | None:
    """Return the place of the sentence that gives the reason, and the rule with it: the next one, or the one before "So …"."""
    found = judged[at]
    if found is None or found.parts.why:
        return None
    if at and judged[at - 1] is not None and (rule := without_so(sentences[at])) and not points_back(rule):
        return at - 1, Reason(rule, sentences[at - 1])
    following = judged[at + 1] if at + 1 < len(judged) else None
    if following is None or following.signal == "confirmation":
        return None
    kind = "feedback" if found.signal == "confirmation" else found.signal
    why, margin = reason_beside(sentences[at], sentences[at + 1], kind)
    bar = math.inf if found.signal == "user" else max(0.0, following.margin)
    return (at + 1, Reason(found.parts.rule, why)) if margin > bar else None


def _asks(sentence: str) -> bool:
    return ASKED.search(sentence) is not None and _POLITE.search(sentence) is None


def is_vetoed(sentence: str) -> bool:
    """Whether a sentence cannot be meant to last, whatever the judge says."""
    if not FEWEST_CHARS <= len(sentence) <= SENTENCE_CHARS or no_memory(sentence) is not None:
        return True
    if has_invisible(sentence) or _QUOTED.match(sentence) is not None:
        return True
    if _HANGUL.search(sentence) is not None and _HAN_OR_KANA.search(sentence) is not None:
        return True
    return _asks(sentence) or any(veto.search(sentence) is not None for veto in (NOT_MEANT, TAKEN_BACK, ONLY_NOW))

"""Sentences of a user that hold beyond the current task: about the user, feedback, facts of the project, and places to look.

A learned judge decides for each sentence. Sentences that cannot be meant to last never reach it: questions, hypotheticals, sarcasm, code,
quotations, and what memory excludes in general. Pure, and without the rest of the review: a hook that looks for statements loads this
alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...core.memory_requests import asks_for_memory
from ...providers.offline.sentence_rules import bare_reason, no_memory, reason
from .cues import ASKED, NOT_MEANT
from .judge import Kind, gives_reason_for, judge
from .phrases import CONFIRMATION

Signal: TypeAlias = Kind | Literal["confirmation"]

# Longer messages are mostly pasted text, and longer matches are not sentences.
MOST_CHARS = 2_000
SENTENCE_CHARS = 300
FEWEST_CHARS = 6

_MASKED = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*$", re.DOTALL | re.MULTILINE)
_AROUND = " \t\r\n-*•,，、"
# The point of a German day ends no sentence: "am 4. Dezember".
_SENTENCE = re.compile(
    r"(?:https?://\S+|[^.!?。！？\n]|[.!?](?=\S)|(?<=\d)\.(?= (?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)))+[.!?。！？]*",
    re.IGNORECASE,
)
# Polite questions that are wishes: "Can you stop apologising in every reply?"
_POLITE = re.compile(
    r"^(?:can|could|would|will) you (?:please )?(?:stop|quit|always|never)\b[^?]*\?$|(?:できますか|もらえますか|いただけますか)[。？]?$",
    re.IGNORECASE,
)


# Nobody writes one sentence in both.
_HANGUL, _HAN_OR_KANA = re.compile("[\uac00-\ud7a3]"), re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
# Where a clause with the reason may begin.
_CLAUSE = re.compile(r",\s+|，\s*|,(?=[\u3040-\u9fff])|\s*[;；]\s*|\s+[—–]\s+|\s*[:：]\s+|(?<=[いでうす])、(?=.{8})")
_CLAUSE_CHARS = 4


class FoundSignal(NamedTuple):
    signal: Signal
    sentence: str
    why: str = ""  # the clause or the sentence beside it that gives its reason, if no word like "because" does
    quote: str = ""  # both, as the user wrote them


def find_signals(text: str) -> Iterator[FoundSignal]:
    """Yield the sentences of a message that are worth keeping, in order."""
    if len(text) > MOST_CHARS or asks_for_memory(text.strip()):
        return  # explicit requests to remember are saved in their own turn
    masked = _MASKED.sub(" ", text)
    spans = [found.span() for found in _SENTENCE.finditer(masked) if found[0].strip(_AROUND)]
    sentences = [masked[begin:end].strip(_AROUND) for begin, end in spans]
    signals = [_find_signal(sentences, at) for at in range(len(sentences))]
    for at, signal in enumerate(signals):
        if signal is None or signal == "reason":
            continue
        beside = _reason_beside(sentences, signals, at)
        first, last = sorted((at, at if beside is None else beside))
        quote = masked[spans[first][0] : spans[last][1]].strip(_AROUND)
        if beside is not None:
            yield FoundSignal(signal, sentences[at], bare_reason(sentences[beside]), quote)
        else:
            yield FoundSignal(signal, *_split_reason(signal, sentences[at]), quote)


def _reason_beside(sentences: Sequence[str], signals: Sequence[Signal | Literal["reason"] | None], at: int) -> int | None:
    """Return the place of the sentence that gives the reason: the next one, or the one before."""
    if reason(sentences[at]).why:
        return None
    return next((place for place in (at + 1, at - 1) if 0 <= place < len(signals) and signals[place] == "reason"), None)


def _split_reason(signal: Signal, sentence: str) -> tuple[str, str]:
    """Return the rule and its reason if a clause without a word like "because" gives it: "no mocks, they hid a bug"."""
    if signal not in ("feedback", "project") or reason(sentence).why:
        return sentence, ""
    for found in reversed(list(_CLAUSE.finditer(sentence))):
        rule, why = sentence[: found.start()], sentence[found.end() :]
        if min(len(rule), len(why)) >= _CLAUSE_CHARS and gives_reason_for(why, rule):
            return rule, bare_reason(why)
    return sentence, ""


def is_vetoed(sentence: str) -> bool:
    """Whether a sentence cannot be meant to last, whatever the judge says."""
    if not FEWEST_CHARS <= len(sentence) <= SENTENCE_CHARS or no_memory(sentence) is not None:
        return True
    if _HANGUL.search(sentence) is not None and _HAN_OR_KANA.search(sentence) is not None:
        return True
    return (ASKED.search(sentence) is not None and _POLITE.search(sentence) is None) or NOT_MEANT.search(sentence) is not None


def _find_signal(sentences: Sequence[str], at: int) -> Signal | Literal["reason"] | None:
    if is_vetoed(sentences[at]):
        return None
    return "confirmation" if CONFIRMATION.search(sentences[at]) else judge(sentences, at)

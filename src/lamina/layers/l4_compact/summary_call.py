"""Ask the model for a summary (C3, C7, C8), in a fork that shares the cached prefix. A flow; the conversation does not change
here.

A failed call is retried a few times, unless authentication failed. An answer that is not a valid summary is retried with the
reason. A call that is too long is retried without its oldest rounds; after the last try the summary is made without a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...conversation import forks
from ...conversation.compaction.cuts import rounds
from ...conversation.compaction.restoration import size_of, tokens_of
from ...conversation.compaction.user_messages import shortened
from ...conversation.state import Conversation, seconds_between
from ...core.effects import Flow
from ...core.errors import AuthFailed, PromptTooLong, ProviderError
from ...core.usage import Usage
from ...core.view import Item
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, PrefixChanged, altered
from ...providers.models import known
from .offline import mechanical
from .plan import SummaryPlan
from .summary_text import Rejected, directive, read_summary, shown, to_drop, without_media

PURPOSE = "summary"
# The reserve is at most a quarter of the window (T5), which is a third of the effective window.
RESERVE_PART = 3


class SummaryMade(msgspec.Struct, frozen=True):
    text: str
    usage: Usage
    dropped: int = 0  # rounds of the summarised part that no model has seen
    unseen: frozenset[str] = frozenset()  # the items of those rounds
    mechanical: bool = False


class SummaryFailed(msgspec.Struct, frozen=True):
    why: str
    usage: Usage
    answered: bool = False  # the model answered, but not with a valid summary


def summarise(
    c: Conversation, items: Sequence[Item], made: SummaryPlan, *, instructions: str, partial: bool, too_long: PromptTooLong | None
) -> Flow[SummaryMade | SummaryFailed]:
    """Ask for a summary until there is one or the retries are used up.

    `too_long` is the error of a call that was too long. With the directive appended the summary call would be too, so it starts
    shortened."""
    attempt = _Attempt(c, items, made, instructions, partial)
    if too_long is not None and not attempt.shorten(too_long.gap):
        return without_model(c, items, made, attempt.usage)
    while True:
        began = c.clock()
        try:
            outcome: ForkOutcome = yield from run_fork(
                attempt.handover, attempt.directive(), purpose=PURPOSE, max_tokens=reserve(c)
            )
        except PromptTooLong as error:
            if not attempt.shorten(error.gap):
                return without_model(c, items, made, attempt.usage)
            continue
        except (ProviderError, PrefixChanged) as error:
            forks.failed(c, PURPOSE, error)
            if isinstance(error, AuthFailed) or not attempt.again(str(error)):
                return SummaryFailed(str(error), attempt.usage)
            continue
        forks.ended(c, PURPOSE, outcome, seconds_between(began, c.clock()))
        attempt.usage += outcome.usage
        found = read_summary(outcome.reply, most=attempt.size, tokens=lambda words: tokens_of(c, words))
        if not isinstance(found, Rejected):
            return attempt.got(found.text)
        c.record_event("summary_rejected", {"why": found.why})
        if not attempt.again(found.why):
            return SummaryFailed(found.why, attempt.usage, answered=True)


class _Attempt:
    """The state of the tries in one compaction."""

    def __init__(self, c: Conversation, items: Sequence[Item], made: SummaryPlan, instructions: str, partial: bool) -> None:
        self._c = c
        self._items = items
        self._made = made
        self._instructions = instructions
        self._partial = partial
        self._why = ""
        self._failures = 0
        self._shortened = 0
        self._from = 0  # index of the first round that is still sent
        self.size = size_of(c, [block for item in items[made.start : made.end] for block in item.blocks])
        self.handover: Handover = without_media(forks.hand_over(c), items)
        self.usage = Usage()

    def directive(self) -> str:
        return directive(
            self._items,
            self._made,
            instructions=self._instructions,
            dropped=self._from,
            partial=self._partial,
            again=self._why,
        )

    def again(self, why: str) -> bool:
        """Count a failure and return whether to retry."""
        self._failures += 1
        self._why = why
        return self._failures <= self._c.policy.compact.summary_retries

    def shorten(self, gap: int | None) -> bool:
        """Drop the oldest rounds. Return False if the tries are used up or nothing would be left."""
        policy = self._c.policy.compact
        parts = rounds(self._items)
        if self._shortened >= policy.too_long_tries:
            return False
        self._shortened += 1
        sizes = [
            size_of(self._c, [block for item in self._items[part.start : part.end] for block in item.blocks])
            for part in parts[self._from :]
        ]
        self._from += to_drop(sizes, gap=gap, percent=policy.too_long_drop_percent)
        if self._from >= len(parts) or parts[self._from].start >= self._made.end:
            return False
        self.handover = altered(self.handover, shown(self._items[parts[self._from].start :]), "compaction")
        return True

    def got(self, text: str) -> SummaryMade:
        parts = rounds(self._items)
        dropped = [part for part in parts[: self._from] if self._made.start <= part.start < self._made.end]
        unseen = frozenset(item.uuid for part in dropped for item in self._items[part.start : min(part.end, self._made.end)])
        return SummaryMade(text, self.usage, len(dropped), unseen)


def without_model(c: Conversation, items: Sequence[Item], made: SummaryPlan, usage: Usage) -> SummaryMade:
    """Return a summary made by rules. It is always possible, and smaller than the part it replaces."""
    part = items[made.start : made.end]
    whole = size_of(c, [block for item in part for block in item.blocks])
    text = shortened(mechanical(part), min(reserve(c), max(1, whole // 2)), lambda words: tokens_of(c, words), least=200)
    answers = len([one for one in rounds(part) if any(item.role == "assistant" for item in part[one.start : one.end])])
    return SummaryMade(text, usage, answers, frozenset(item.uuid for item in part), mechanical=True)


def reserve(c: Conversation) -> int:
    """Return the tokens reserved for an answer, which is also the maximum length of a summary."""
    info = known(c.prompt.model)
    most = min(c.policy.window.reserve, c.limits.effective // RESERVE_PART)
    return max(1, min(most, info.max_output) if info is not None and info.max_output else most)

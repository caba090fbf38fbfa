"""Ask the model for a summary (C3, C7, C8), in a fork that shares the cached prefix. A flow; the conversation does not change
here.

A failed call is retried after a pause, and an answer that is not a valid summary is retried with the reason, together up to two
times (C8). These are the only retries: the provider sends each of these calls once, so that no two budgets multiply. A call that is
too long is retried without its oldest rounds. When the model cannot do it, `without_model` makes the summary by rules.

A summary can be made ahead in the background, so that no one has to wait for it when the window is full. The job works on frozen
values. Its summary is used only if the conversation it was made from is unchanged: the same records at the start of the view, and
the same chain of digests up to the last of them. Newer messages stay verbatim. The conversation waits for it no longer than for the
notes (N7).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Event

import msgspec

from ...conversation import forks
from ...conversation.compaction.cuts import FOLDED, rounds
from ...conversation.compaction.restoration import size_of, size_of_items, tokens_of
from ...conversation.isolate import take_job_results
from ...conversation.price import is_near
from ...conversation.state import Conversation, seconds_between
from ...conversation.triggers import compaction_at, notes_pay
from ...core.effects import Flow, Sleep, Wait, drive
from ...core.errors import Aborted, LaminaError, PromptTooLong, ProviderError, clause
from ...core.usage import Usage
from ...core.view import Item
from ...fork.background import LOCAL, JobResult
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, altered
from ...providers.models import known
from ...providers.retry import RetryPolicy, draw, plan_retry
from .offline import mechanical
from .plan import SummaryPlan
from .summary_text import Rejected, directive, read_summary, shown, to_drop, without_media

PURPOSE = "summary"
NO_USAGE = Usage()
# The reserve is at most a quarter of the window (T5), which is a third of the effective window.
RESERVE_PART = 3
# Seconds to wait for the server in one compaction. The rules need no server, so the user does not wait longer for a better summary.
PATIENCE = 10.0
TOO_LONG = "the conversation is too long for the call that would write it"


class SummaryMade(msgspec.Struct, frozen=True):
    text: str
    usage: Usage
    dropped: int = 0  # rounds of the summarised part that no model has seen
    unseen: frozenset[str] = frozenset()  # the items of those rounds
    instead: str = ""  # why rules made it and not the model; empty if the model did

    @property
    def mechanical(self) -> bool:
        return bool(self.instead)


class SummaryFailed(msgspec.Struct, frozen=True):
    why: str
    usage: Usage


def summarise(
    c: Conversation,
    items: Sequence[Item],
    planned: SummaryPlan,
    *,
    instructions: str,
    partial: bool,
    too_long: PromptTooLong | None,
) -> Flow[SummaryMade | SummaryFailed]:
    """Ask for a summary until there is one or the retries are used up. A call that stays too long is replaced by rules (C7).

    `too_long` is the error of a call that was too long. With the directive appended the summary call would be too, so it starts
    shortened."""
    attempt = _Attempt(c, items, planned, instructions, partial)
    if too_long is not None and not attempt.shorten(too_long.gap):
        return without_model(c, items, planned, TOO_LONG, attempt.usage)
    while True:
        began = c.clock()
        try:
            outcome: ForkOutcome = yield from run_fork(
                attempt.handover, attempt.directive(), purpose=PURPOSE, max_tokens=reserve(c)
            )
        except PromptTooLong as error:
            if not attempt.shorten(error.gap):
                return without_model(c, items, planned, TOO_LONG, attempt.usage)
            continue
        except Aborted:
            raise
        except LaminaError as error:
            forks.failed(c, PURPOSE, error)
            pause = attempt.pause(error)
            if pause is None:
                return SummaryFailed(str(clause(error)), attempt.usage)
            yield Sleep(pause)
            continue
        forks.ended(c, PURPOSE, outcome, seconds_between(began, c.clock()))
        attempt.usage += outcome.usage
        summary = read_summary(outcome.reply, most=attempt.size, tokens=lambda words: tokens_of(c, words))
        if not isinstance(summary, Rejected):
            return attempt.got(summary.text)
        c.record_event("summary_rejected", {"why": summary.why})
        if not attempt.again(summary.why):
            return SummaryFailed(f"the answer was not usable ({summary.why})", attempt.usage)


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
        self._waited = 0.0
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
        """Count an answer that is not a summary, and return whether to retry."""
        self._failures += 1
        self._why = why
        return self._failures <= self._c.policy.compact.summary_retries

    def pause(self, error: LaminaError) -> float | None:
        """Count a failed call, and return the seconds to wait before the next one, or None if it would fail too or take too
        long."""
        self._failures += 1
        if not isinstance(error, ProviderError):
            return None
        policy = RetryPolicy(max_retries=self._c.policy.compact.summary_retries, budget=PATIENCE)
        pause = plan_retry(error, tries=self._failures, waited=self._waited, heard=False, policy=policy, luck=draw())
        self._waited += pause or 0.0
        return pause

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


def without_model(c: Conversation, items: Sequence[Item], planned: SummaryPlan, why: str, usage: Usage = NO_USAGE) -> SummaryMade:
    """Return a summary made by rules. It is always possible, and smaller than the part it replaces. `why` is the reason why the
    model did not write it."""
    part = items[planned.start : planned.end]
    whole = size_of_items(c, part)
    text = mechanical(part, min(_most_by_rules(c), max(1, whole // 2)), partial(tokens_of, c))
    answered = [span for span in rounds(part) if any(item.role == "assistant" for item in part[span.start : span.end])]
    return SummaryMade(text, usage, len(answered), frozenset(item.uuid for item in part), instead=why)


def reserve(c: Conversation) -> int:
    """Return the tokens reserved for an answer, which is also the maximum length of a summary."""
    info = known(c.prompt.model)
    most = _most_by_rules(c) if c.prompt.model == LOCAL else min(c.policy.window.reserve, c.limits.effective // RESERVE_PART)
    return max(1, min(most, info.max_output) if info is not None and info.max_output else most)


def _most_by_rules(c: Conversation) -> int:
    """Return the maximum length of a summary by rules. It shrinks with the window; a model needs more to write a whole one."""
    return c.limits.scaled(c.policy.window.reserve)


class SummaryAhead(msgspec.Struct):
    """A prefetched summary and the items it was made from. A conversation has at most one."""

    items: tuple[str, ...] = ()  # ids of the summarised items at the start of the view
    links: int = 0  # length of the digest chain; 0 means that there is no summary
    last: bytes = b""  # the last digest of the chain
    most: int = 0  # tokens of the summarised items
    text: str = ""
    usage: Usage = Usage()


def begin_ahead(c: Conversation, count: int) -> None:
    """Start a summary near the threshold, unless one for this conversation exists or is being made."""
    state = c.layer_state(SummaryAhead)
    ahead = c.limits.scaled(c.policy.compact.ahead_tokens)
    near_threshold = bool(ahead) and count >= compaction_at(c) - ahead
    if _notes_will_do(c) or not (near_threshold or is_near(c)):
        return
    if _is_current(c, state) or c.background.running(PURPOSE) is not None:
        return
    items = tuple(c.log.view.items)
    if not any(item.role == "assistant" for item in items) or not c.background.allows(PURPOSE):
        return
    handover, side, most = forks.hand_over(c), forks.side(c), reserve(c)
    directive_text = directive(items, SummaryPlan(0, len(items), len(items)))
    text_handover = without_media(handover, items)

    def job(abort: Event) -> ForkOutcome:
        return drive(run_fork(text_handover, directive_text, purpose=PURPOSE, max_tokens=most), side.until(abort))

    if c.background.start(PURPOSE, job, partial(_take_ahead, c)):
        state.items = tuple(item.uuid for item in items)
        chain, stable = c.log.view.flat.chain, c.log.view.flat.stable_links
        # The conversation continues with the preview of a result that is shown once; the summary has seen the whole.
        state.links = min(handover.links, stable)
        state.last = chain[state.links - 1] if stable < handover.links else handover.last
        state.most = size_of_items(c, items)
        state.text, state.usage = "", Usage()


def is_running_ahead(c: Conversation) -> bool:
    """Return whether a summary of this conversation is being made."""
    return c.background.running(PURPOSE) is not None and _is_current(c, c.layer_state(SummaryAhead))


def _notes_will_do(c: Conversation) -> bool:
    """Return whether the notes will compact the conversation without a call, so that prefetching a summary would waste money.

    A policy may start the notes too late for that."""
    in_time = notes_pay(c) and c.limits.scaled(c.policy.notes.first_at) < compaction_at(c)
    return in_time and c.settings.session_notes and c.settings.notes_compaction and c.directory is not None


def _take_ahead(c: Conversation, job: JobResult) -> None:
    """Take in the result. Its cost is recorded whether the summary is usable or not."""
    if job.error is not None:
        forks.failed(c, PURPOSE, job.error)
        return
    outcome: ForkOutcome = job.value
    forks.ended(c, PURPOSE, outcome, job.seconds)
    state = c.layer_state(SummaryAhead)
    summary = read_summary(outcome.reply, most=state.most, tokens=partial(tokens_of, c))
    if isinstance(summary, Rejected):
        c.record_event("summary_rejected", {"why": summary.why})
    else:
        state.text, state.usage = summary.text, outcome.usage


def ready_ahead(c: Conversation, items: Sequence[Item]) -> Flow[SummaryAhead | None]:
    """Return a summary that can be used now, waiting briefly for one that is being made."""
    state = c.layer_state(SummaryAhead)
    if not _is_current(c, state):
        return None
    age = c.background.running(PURPOSE)
    if age is not None and age < c.policy.notes.stale_seconds:
        yield Wait(PURPOSE, c.policy.notes.wait_seconds)
        take_job_results(c)
    since = items[len(state.items) :]
    if not state.text or not _is_current(c, state) or any(item.kind in FOLDED for item in since):
        return None
    used = msgspec.structs.replace(state)
    state.links = 0  # a summary is used only once
    return used


def _is_current(c: Conversation, state: SummaryAhead) -> bool:
    chain, items = c.log.view.flat.chain, c.log.view.items
    if not state.links or len(chain) < state.links or chain[state.links - 1] != state.last:
        return False
    return tuple(item.uuid for item in items[: len(state.items)]) == state.items

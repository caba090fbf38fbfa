"""A summary prefetched in the background, so that no one has to wait for it when the window is full.

The job works on frozen values. Its summary is used only if the conversation it was made from is unchanged: the same records at
the start of the view, and the same chain of digests up to the last of them. Newer messages stay verbatim. The conversation waits
for it no longer than for the notes (N7).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Event

import msgspec

from ...conversation import forks
from ...conversation.compaction.cuts import FOLDED
from ...conversation.compaction.restoration import size_of, tokens_of
from ...conversation.isolate import take_job_results
from ...conversation.price import is_near
from ...conversation.state import Conversation
from ...conversation.triggers import compaction_at, notes_pay
from ...core.effects import Flow, Wait, drive
from ...core.usage import Usage
from ...core.view import Item
from ...fork.background import JobResult
from ...fork.fork import ForkOutcome, run_fork
from .plan import SummaryPlan
from .summary_call import PURPOSE, reserve
from .summary_text import Rejected, directive, read_summary, without_media


class SummaryAhead(msgspec.Struct):
    """A prefetched summary and the items it was made from. A conversation has at most one."""

    items: tuple[str, ...] = ()  # ids of the summarised items at the start of the view
    links: int = 0  # length of the digest chain; 0 means that there is no summary
    last: bytes = b""  # the last digest of the chain
    most: int = 0  # tokens of the summarised items
    text: str = ""
    usage: Usage = Usage()


def begin(c: Conversation, count: int) -> None:
    """Start a summary near the threshold, unless one for this conversation exists or is being made."""
    state = c.layer_state(SummaryAhead)
    if _notes_will_do(c) or not (_is_near_threshold(c, count) or is_near(c)):
        return
    if _is_current(c, state) or c.background.running(PURPOSE) is not None:
        return
    items = tuple(c.log.view.items)
    if not any(item.role == "assistant" for item in items) or not c.background.allows(PURPOSE):
        return
    handover, side, most = forks.hand_over(c), forks.side(c), reserve(c)
    asked = directive(items, SummaryPlan(0, len(items), len(items)))
    sent = without_media(handover, items)

    def job(abort: Event) -> ForkOutcome:
        return drive(run_fork(sent, asked, purpose=PURPOSE, max_tokens=most), side.until(abort))

    if c.background.start(PURPOSE, job, partial(_take, c)):
        state.items = tuple(item.uuid for item in items)
        chain, stable = c.log.view.flat.chain, c.log.view.flat.stable_links
        # The conversation continues with the preview of a result that is shown once; the summary has seen the whole.
        state.links = min(handover.links, stable)
        state.last = chain[state.links - 1] if stable < handover.links else handover.last
        state.most = size_of(c, [block for item in items for block in item.blocks])
        state.text, state.usage = "", Usage()


def _is_near_threshold(c: Conversation, count: int) -> bool:
    ahead = c.limits.scaled(c.policy.compact.ahead_tokens)
    return bool(ahead) and count >= compaction_at(c) - ahead


def is_running(c: Conversation) -> bool:
    """Return whether a summary of this conversation is being made."""
    return c.background.running(PURPOSE) is not None and _is_current(c, c.layer_state(SummaryAhead))


def _notes_will_do(c: Conversation) -> bool:
    """Return whether the notes will compact the conversation without a call, so that prefetching a summary would waste money.

    A policy may start the notes too late for that."""
    in_time = notes_pay(c) and c.limits.scaled(c.policy.notes.first_at) < compaction_at(c)
    return in_time and c.settings.session_notes and c.settings.notes_compaction and c.directory is not None


def _take(c: Conversation, one: JobResult) -> None:
    """Take in the result. Its cost is recorded whether the summary is usable or not."""
    if one.error is not None:
        forks.failed(c, PURPOSE, one.error)
        return
    outcome: ForkOutcome = one.value
    forks.ended(c, PURPOSE, outcome, one.seconds)
    state = c.layer_state(SummaryAhead)
    found = read_summary(outcome.reply, most=state.most, tokens=lambda words: tokens_of(c, words))
    if isinstance(found, Rejected):
        c.record_event("summary_rejected", {"why": found.why})
    else:
        state.text, state.usage = found.text, outcome.usage


def ready(c: Conversation, items: Sequence[Item]) -> Flow[SummaryAhead | None]:
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

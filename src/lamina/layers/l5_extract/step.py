"""Layer 5 in a turn: a fork reviews the new messages and writes memories in the background.

    after_turn      end of a turn: start a review, or leave the turn to the running one
    _take_results   results of reviews: the cursor, saved memories, cost

The cursor is part of every `extraction` event and every checkpoint, so a resumed session knows what was reviewed. It moves when a result
lands. A crash before that leaves complete memories and an older cursor, and the next review covers the same messages again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from threading import Event as Abort
from typing import assert_never

from msgspec.structs import replace

from ...conversation.forks import ForkDriver, cache_figures, ended, failed, hand_over
from ...conversation.isolate import take_job_results
from ...conversation.state import Conversation
from ...core.blocks import ToolUse, Wire
from ...core.effects import Flow, drive
from ...core.reach import tool_names
from ...fork.background import AskSide, JobResult
from ...fork.fork import ForkOutcome
from ...fork.host import MemoryAccess
from ...fork.tool_runner import ToolRunner
from ...language.text import Text
from ...memory.recall.library import ScopeName
from ...memory.store.modes import plan_write
from ...memory.switches import why_off
from ...tools.permissions.decision import decide
from ...tools.permissions.request import Allow, Deny
from ...tools.tool import FileChange, KeeperVerdict
from .plan import MOST_FAILURES, NEEDED, is_final, stop_reason
from .review import ExtractionOrder, Reviewed, ReviewFailed, ReviewResult, ReviewSkipped, ReviewSlot, find_skip, run_review
from .trigger import EXTRACTION
from .writer import MemoriesWritten, ReviewWriter

# A job that takes no more orders is about to end and only has to hand in its results.
ENDING_SECONDS = 5.0
STOPPED = "The review was stopped. Nothing more is saved."
# Number of refusals in an event: enough to see what a model tried.
MOST_TOLD = 8

PAUSED = Text("Automatic memory is off for the rest of this session: it failed {limit} times in a row.", limit=MOST_FAILURES)


class ExtractState:
    """The cursor, and state that lives only as long as the process."""

    def __init__(self) -> None:
        self.known = False  # whether the cursor was loaded from the log
        self.cursor: str | None = None
        self.turns = 0  # since the last review was started
        self.failures = 0  # in a row
        self.slot = ReviewSlot()
        self.told_skip = ""


def state_of(c: Conversation) -> ExtractState:
    state = c.layer_state(ExtractState)
    if not state.known:
        state.known = True
        event = c.log.events.get(EXTRACTION)
        found = event.data.get("cursor") if event is not None else None
        found = found if isinstance(found, str) else c.resumed.get(EXTRACTION)
        state.cursor = found if isinstance(found, str) else None
        c.checkpoint_with(EXTRACTION, lambda: state.cursor)
    return state


def after_turn(c: Conversation) -> None:
    running = c.background.running(EXTRACTION) is not None
    if not running:
        take_job_results(c)  # a review may have ended since the turn did, and moved the cursor
    state, items, lent = state_of(c), c.log.view.items, c.host.memory
    if lent is None or not is_final(items) or c.log.view.flat.open_calls:
        return
    scopes: tuple[ScopeName, ...] = ("private",) if lent.place.team is None else ("private", "team")
    writable = any(plan_write(c.settings.memory_mode[scope], EXTRACTION) != "refuse" for scope in scopes)
    why = stop_reason(remote=c.settings.remote, off=why_off(c.settings), writable=writable, failures=state.failures)
    if why is not None:
        if state.told_skip != why:
            state.told_skip = why
            c.record_event(EXTRACTION, {"skipped": why, "cursor": state.cursor})
        return
    if running:
        if not c.background.allows(EXTRACTION):  # a queued review costs as much as any other
            return
        order = _make_order(c, lent)
        if not state.slot.put(order):
            c.background.wait(EXTRACTION, ENDING_SECONDS)
            _start(c, state, order, state.slot.reached)
        return
    state.turns += 1
    if state.turns < c.settings.extraction_every or not c.background.allows(EXTRACTION):
        return
    order = _make_order(c, lent)
    if (passed := find_skip(order, state.cursor)) is None:
        _start(c, state, order, state.cursor)
    elif passed.cursor != state.cursor:  # the range is done; if the user wrote nothing new, the next turn is checked again
        state.cursor, state.turns = passed.cursor, 0
        c.record_event(EXTRACTION, {"skipped": passed.why, "cursor": state.cursor})


def _make_order(c: Conversation, lent: MemoryAccess) -> ExtractionOrder:
    """Copy everything a review needs. The job gets no reference to the conversation."""
    return ExtractionOrder(
        items=tuple(c.log.view.items),
        handover=hand_over(c),
        place=lent.place,
        settings=c.settings,
        project=lent.project,
        cwd=c.cwd,
        session=lent.session,
        today=datetime.fromisoformat(c.clock()).astimezone().date().isoformat(),  # local time, as the user means "tomorrow"
        store=lent.write,
        calls_tools=_calls_tools(c),
    )


def _calls_tools(c: Conversation) -> bool:
    """Whether the fork can call what a review needs: the tools are in the prompt, and there is a runner for them."""
    runner = c.host.tool_runner
    return runner is not None and {tool.name for tool in runner.tools} & set(tool_names(c.prompt.tools)) >= NEEDED


def _start(c: Conversation, state: ExtractState, order: ExtractionOrder, cursor: str | None) -> None:
    state.slot.open(cursor)
    if c.background.start(EXTRACTION, _make_job(c, state.slot, order, cursor), partial(_take_results, c)):
        state.turns = 0
    else:
        state.slot.close()


def _make_job(
    c: Conversation, slot: ReviewSlot, first: ExtractionOrder, cursor: str | None
) -> Callable[[Abort], tuple[ReviewResult, ...]]:
    """Return a job that runs a review, and then one for the turn that ended in the meantime."""
    ask, tool_runner = c.ask_side, c.host.tool_runner

    def job(abort: Abort) -> tuple[ReviewResult, ...]:
        ran: list[ReviewResult] = []
        order: ExtractionOrder | None = first
        slot.watch(abort)
        try:
            while order is not None:
                perform = partial(_perform, ask, abort, _runner_for(tool_runner, order, abort))
                ran.append(run_review(order, ran[-1].cursor if ran else cursor, perform))
                order = slot.take(ran[-1].cursor)
        finally:
            slot.close()
        return tuple(ran)

    return job


def _runner_for(tool_runner: ToolRunner | None, order: ExtractionOrder, abort: Abort) -> ToolRunner | None:
    return _restrict_tools(tool_runner, order, abort) if tool_runner is not None and order.calls_tools else None


def _perform(
    ask: AskSide, abort: Abort, tool_runner: ToolRunner | None, flow: Flow[ForkOutcome], writer: ReviewWriter
) -> ForkOutcome:
    if tool_runner is None:
        return drive(flow, ForkDriver(ask, abort))

    def keep(change: FileChange) -> KeeperVerdict:
        return KeeperVerdict(STOPPED, is_error=True) if abort.is_set() else writer(change)

    return drive(
        flow, ForkDriver(ask, abort, replace(tool_runner, context=replace(tool_runner.context, keeper=keep), on_end=writer.saw))
    )


def _restrict_tools(tool_runner: ToolRunner, order: ExtractionOrder, abort: Abort) -> ToolRunner:
    """Restrict the tools to the memory directories. A team directory outside the private one gets the same permissions."""
    private, team = order.place.path, order.place.team
    if team is None or team.is_relative_to(private):
        return tool_runner.restrict(abort=abort, memory_dir=private)
    allowed = [replace(tool_runner.permission, fork=True, only_edit=None, memory_dir=directory) for directory in (private, team)]

    def judged(call: ToolUse) -> Allow | Deny:
        verdicts = [decide(call, mode=tool_runner.mode(), rules=tool_runner.rules(), context=context) for context in allowed]
        chosen = next((verdict for verdict in verdicts if isinstance(verdict, Allow)), verdicts[-1])
        assert isinstance(chosen, Allow | Deny)
        return chosen

    return tool_runner.restrict(abort=abort, memory_dir=private, decide=judged)


# Results


def _take_results(c: Conversation, one: JobResult) -> None:
    state = state_of(c)
    if one.error is not None:  # our own fault: record it; the next turn's review covers the range
        _record_failure(c, state, ReviewFailed(state.cursor, str(one.error) or type(one.error).__name__))
        return
    for ran in one.value:
        match ran:
            case Reviewed():
                state.cursor, state.failures = ran.cursor, 0
                ended(c, EXTRACTION, ran.outcome, one.seconds)
                written = _describe_written(ran.written, ran.outcome.denied)
                c.record_event(EXTRACTION, {"cursor": ran.cursor, **cache_figures(ran.outcome), **written})
                c.notify_once(*ran.written.notices)
            case ReviewSkipped():
                state.cursor = ran.cursor
                c.record_event(EXTRACTION, {"skipped": ran.why, "cursor": ran.cursor})
            case ReviewFailed():
                _record_failure(c, state, ran)
            case _:
                assert_never(ran)


def _record_failure(c: Conversation, state: ExtractState, ran: ReviewFailed) -> None:
    """Record the failure. The cursor stays, so the next range includes the messages that were not reviewed."""
    if ran.error is not None:
        failed(c, EXTRACTION, ran.error)
    if ran.outcome is not None:
        ended(c, EXTRACTION, ran.outcome, 0.0)
    written = (
        _describe_written(ran.written, ran.outcome.denied if ran.outcome is not None else 0) if ran.written is not None else {}
    )
    c.record_event(EXTRACTION, {"failed": ran.why, "cursor": state.cursor, **written})
    c.notify_once(*(ran.written.notices if ran.written is not None else ()))
    state.failures += not ran.stopped
    if state.failures == MOST_FAILURES and PAUSED not in c.notices:
        c.notify(Text("{sentence} Last reason: {why}", sentence=PAUSED, why=ran.why))


def _describe_written(written: MemoriesWritten, denied: int) -> Wire:
    """Describe the saved topic files, without the index. `denied` counts refusals by permissions and by the guard."""
    told: Wire = {"files": list(written.saved), "names": list(written.saved.values()), "denied": denied + len(written.refused)}
    if written.waiting:
        told["waiting"] = written.waiting
    if written.refused:
        told["refused"] = list(written.refused[:MOST_TOLD])
    return told

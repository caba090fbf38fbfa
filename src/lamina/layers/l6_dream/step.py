"""Layer 6 in a turn: tidies up memory in the background, when it is due.

    after_turn     end of a turn, past the time gate: check the more expensive gates, then start the dream
    _take_result   result of the dream: what it changed and cost, or why it failed

The conversation never waits for a dream. The lock, the copy and the run belong to the job's thread, which has no reference to the
conversation. The changes of a dream are recorded in memory itself (`.dreams/`); the log gets an event.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event as Abort
from typing import assert_never

from msgspec.structs import replace

from ...conversation.forks import ForkDriver, cache_figures, ended, failed, hand_over
from ...conversation.state import Conversation, seconds_between
from ...core.blocks import ToolUse, Wire
from ...core.budget import limits_of
from ...core.errors import DiskError, clause
from ...core.reach import tool_names
from ...disk.locks.dream_lock import DreamLock
from ...disk.trees.rootdir import RootDir
from ...fork.background import LOCAL, AskSide, JobResult, Meter
from ...fork.handover import altered
from ...fork.host import MemoryAccess
from ...fork.tool_runner import ToolRunner
from ...language.text import Text
from ...language.wording import plural
from ...memory.store.daily_logs import days_to_distil
from ...memory.store.topic import INDEX
from ...tools.permissions.decision import decide
from ...tools.permissions.request import Allow, Deny
from ...tools.read_state import ReadState
from .bounds import DreamBounds
from .gates import (
    MOST_FAILURES,
    DreamStop,
    check_empty,
    check_sessions,
    check_throttle,
    check_time,
    count_newer,
    find_off,
    find_stop,
    searchable_places,
    transcript_places,
)
from .own_prompt import file_tools, own_handover, own_tool_runner
from .record import DreamRecord
from .run import DreamOrder, DreamOutcome, PerformWith, run_dream
from .trigger import DREAM, ENDING_SECONDS, DreamState, stat_lock, tell_once

PAUSED = Text("Dreams are off for the rest of this session: they failed {limit} times in a row.", limit=MOST_FAILURES)
ON_DISK = Text("The dream failed because of a disk error: {why}. Memory is unchanged, and the next dream starts over.")
HALF = Text(
    "The dream failed while changing memories ({why}). The next session restores them, or run `lamina dream --kill` to do it now."
)
# The tools a dream calls.
NEEDED = frozenset({"Read", "Write"})
# Number of files named in an event; the record names them all.
MOST_TOLD = 20


def after_turn(c: Conversation, lent: MemoryAccess) -> None:
    stop = _find_gate(c, lent)
    if stop is not None:
        if stop.gate != "throttle":
            tell_once(c, stop)
        return
    shared = _shared_runner(c)
    order = _make_order(c, lent, shares=shared is not None)
    runner = shared or own_tool_runner(file_tools(), cwd=c.cwd, environ={}, home=c.home, place=lent.place, settings=c.settings)
    perform_with = dream_tool_runner(runner, c.ask_side, order.cwd)
    c.background.start(
        DREAM, lambda abort: run_dream(order, perform_with, abort), partial(_take_result, c), settles=ENDING_SECONDS
    )


def _shared_runner(c: Conversation) -> ToolRunner | None:
    """Return the conversation's tools if they are those a dream needs, and are in its prompt; None: the dream brings its own."""
    runner = c.host.tool_runner
    if runner is None or not {tool.name for tool in runner.tools} & set(tool_names(c.prompt.tools)) >= NEEDED:
        return None
    return runner


def _find_gate(c: Conversation, lent: MemoryAccess) -> DreamStop | None:
    """Check the gates after the time gate, cheapest first."""
    if (stop := _find_cheap_gate(c)) is not None:
        return stop
    c.layer_state(DreamState).looked_at = c.clock()
    return _find_expensive_gate(c, lent)


def _find_cheap_gate(c: Conversation) -> DreamStop | None:
    state, settings, now = c.layer_state(DreamState), c.settings, c.clock()
    mode = settings.memory_mode["private"]
    stop = find_stop(on=settings.dream, remote=settings.remote, lent=True, mode=mode, failures=state.failures)
    if (stop := find_off(settings) or stop) is not None:
        return stop
    # In assistant mode a new day has a new log to distil, however recent the last look is.
    looked = state.looked_at if not (settings.assistant and _local_day(state.looked_at) != _local_day(now)) else ""
    return check_throttle(seconds_between(looked, now) if looked else None, minutes=settings.dream_scan_minutes)


def _local_day(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone().date().isoformat() if moment else ""


def _find_expensive_gate(c: Conversation, lent: MemoryAccess) -> DreamStop | None:
    if (stop := check_empty(lent.place.path) or _check_new(c, lent)) is not None:
        return stop
    return None if c.background.allows(DREAM) else DreamStop("budget", "today's budget for background work is used up")


def find_next_stop(c: Conversation) -> DreamStop | None:
    """Return why no dream would start at the end of this conversation's next turn; None if one would. Changes nothing."""
    lent = c.host.memory
    if lent is None or not lent.interactive:
        return DreamStop("agent", "this is not an interactive chat with memory")
    if c.background.running(DREAM) is not None:
        return DreamStop("lock", "a dream of this session is running")
    last, now_ns = stat_lock(lent), int(datetime.fromisoformat(c.clock()).timestamp() * 1e9)
    last_ns = last.st_mtime_ns if last is not None else None
    too_soon = check_time(last_ns, now_ns, hours=c.settings.dream_hours, daily=c.settings.assistant)
    # That sessions were counted a moment ago is the reason only if nothing else is.
    stop = _find_cheap_gate(c)
    if stop is not None and stop.gate != "throttle":
        return stop
    return too_soon or _find_expensive_gate(c, lent) or stop


def _check_new(c: Conversation, lent: MemoryAccess) -> DreamStop | None:
    """Stop unless there were enough sessions or, in assistant mode, a daily log of a past day."""
    wanted = c.settings.dream_sessions
    with RootDir.open(lent.place.path, create=False) as root:
        last = DreamLock(root).last_ns()
        if c.settings.assistant:
            now = datetime.fromisoformat(c.clock()).timestamp()
            logs = days_to_distil(root, last / 1e9 if last is not None else None, now)
            return None if logs else DreamStop("nothing", "no earlier day has a new daily log, and today's waits for midnight")
        found = count_newer(transcript_places(root, _own_transcripts(c)), last, own=c.store.path, enough=wanted)
    return check_sessions(found, wanted=wanted)


def _own_transcripts(c: Conversation) -> Path | None:
    return c.store.path.parent if c.store.path is not None else None


def _make_order(c: Conversation, lent: MemoryAccess, *, shares: bool) -> DreamOrder:
    """Copy everything a dream needs. The job gets no reference to the conversation."""
    meter, limits, settings, now = c.ask_side, limits_of(c.settings), c.settings, datetime.fromisoformat(c.clock())
    local = c.prompt.model == LOCAL

    def too_soon(last_ns: int | None) -> DreamStop | None:
        return check_time(last_ns, int(now.timestamp() * 1e9), hours=settings.dream_hours, daily=settings.assistant)

    def spent() -> str | None:
        out = None if local else meter.refused(limits)
        return out.sentence(settings.billing) if out is not None else None

    return DreamOrder(
        # Send the tools and the system prompt, which are cached, but no messages: a dream does not need them, would pay for them with
        # every answer, and must not be influenced by tool results in them.
        handover=altered(hand_over(c), (), "branch")
        if shares
        else own_handover(c.prompt.model, c.prompt.ttl, file_tools(), lent.place, settings),
        place=lent.place,
        settings=settings,
        home=c.home,
        project=lent.project,
        cwd=c.cwd,
        today=now.astimezone().date().isoformat(),
        by="session",
        session=lent.session,
        transcripts=searchable_places(lent.place.path, _own_transcripts(c), c.home) if settings.past_search else (),
        too_soon=too_soon,
        spent=spent,
    )


def dream_tool_runner(tool_runner: ToolRunner, ask: AskSide | Meter, cwd: Path) -> PerformWith:
    """Return a tool runner for dreams: a fork's permissions, with the copy as memory directory, within the dream's bounds."""

    def within(bounds: DreamBounds, abort: Abort) -> ForkDriver:
        copy = bounds.copy
        roots = (*tool_runner.permission.roots, copy.memory, *copy.transcripts)
        permission = replace(tool_runner.permission, roots=roots, memory_dir=copy.work, only_edit=None, fork=True)

        def judged(call: ToolUse) -> Allow | Deny:
            verdict = decide(call, mode=tool_runner.mode(), rules=tool_runner.rules(), context=permission)
            assert isinstance(verdict, Allow | Deny)
            return bounds.judge(call, verdict)

        lent = replace(tool_runner, permission=permission).restrict(abort=abort, memory_dir=copy.work, decide=judged)
        context = replace(lent.context, keeper=bounds.keep, reads=ReadState(), cwd=cwd)
        return ForkDriver(ask, abort, replace(lent, tools=bounds.tools(lent.tools), context=context, on_end=bounds.saw))

    return within


# Results


def _take_result(c: Conversation, one: JobResult) -> None:
    if one.error is not None:  # our own fault, or a disk error before there was a record
        _record_failure(c, {"failed": str(one.error) or type(one.error).__name__}, stopped=False)
        if isinstance(one.error, DiskError | OSError):
            c.notify(Text(ON_DISK, why=clause(one.error)))
        return
    outcome: DreamOutcome = one.value
    c.notify(*outcome.recovered)
    if outcome.error is not None:
        failed(c, DREAM, outcome.error)
    if outcome.fork is not None:
        ended(c, DREAM, outcome.fork, one.seconds)
    if outcome.stop is not None or outcome.record is None:
        if outcome.stop is not None:
            tell_once(c, outcome.stop)
        return
    record = outcome.record
    match record.status:
        case "completed":
            c.layer_state(DreamState).failures = 0
            c.record_event(DREAM, _event_data(record, outcome))
            c.notify(describe_dream(record))
        case "killed":
            _record_failure(c, {"killed": record.why, "id": record.id}, stopped=True)
            c.notify(Text("The dream was stopped: {why}. Memory is unchanged.", why=record.why))
        case "failed" | "running" | "undone":
            _record_failure(c, {"failed": record.why, "id": record.id}, stopped=False)
            if record.phase == "applying":
                c.notify(Text(HALF, why=Text.whole(record.why.rstrip("."))))
            elif outcome.on_disk:
                c.notify(Text(ON_DISK, why=Text.whole(record.why.rstrip("."))))
        case _:
            assert_never(record.status)


def _record_failure(c: Conversation, told: Wire, *, stopped: bool) -> None:
    state = c.layer_state(DreamState)
    state.failures += not stopped
    c.record_event(DREAM, told)
    if state.failures == MOST_FAILURES and PAUSED not in c.notices:
        c.notify(Text("{sentence} Last reason: {failed}", sentence=PAUSED, failed=told["failed"]))


def _event_data(record: DreamRecord, outcome: DreamOutcome) -> Wire:
    told: Wire = {
        "id": record.id,
        "files": list(record.files[:MOST_TOLD]),
        "removed": len(record.removed),
        "merged": len(record.merged),
        "waiting": len(record.waiting),
        "skipped": [[one.file, one.why] for one in record.skipped[:MOST_TOLD]],
        "why": record.why,
    }
    if (fork := outcome.fork) is not None:
        told |= {**cache_figures(fork), "denied": fork.denied}
    return told


def describe_dream(record: DreamRecord) -> str:
    """Summarise a dream for the user."""
    (added, changed), waiting = record.written(), len(record.waiting)
    parts = (
        (len(record.merged), "merged {}"),
        (len(added), "added {}"),
        (len(changed), "changed {}"),
        (len(record.removed), "removed {}"),
        (int(INDEX in record.files), "repaired the index"),
        (waiting, f"{{}} {plural(waiting, 'needs', 'need')} your approval (`lamina inbox`)"),
    )
    shown = [text.format(count) for count, text in parts if count > 0]
    if not shown:
        return "Dream finished: memory is in order, nothing was changed."
    return Text("Dream finished: {shown}. Undo with `lamina dream --undo`.", shown=", ".join(shown))

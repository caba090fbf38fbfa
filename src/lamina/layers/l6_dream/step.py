"""Layer 6 in a turn: tidies up memory in the background, when it is due.

    after_turn     end of a turn, past the time gate: check the more expensive gates, then start the dream
    _take_result   result of the dream: what it changed and cost, or why it failed

A dream that has no agent's prompt and tools to share (started by hand, or under a host without file tools) brings its own, and shares no
cache with a conversation. Its tools have a fork's permissions: they read inside the project, search transcripts narrowly, and write only
the copy of the memory directory.

The conversation never waits for a dream. The lock, the copy and the run belong to the job's thread, which has no reference to the
conversation. The changes of a dream are recorded in memory itself (`.dreams/`); the log gets an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event as Abort
from typing import assert_never

from msgspec.structs import replace

from ...conversation.forks import ForkDriver, cache_figures, ended, failed, hand_over
from ...conversation.request import Prompt
from ...conversation.state import Conversation, seconds_between
from ...core.blocks import ToolUse, Wire, text
from ...core.budget import limits_of
from ...core.errors import DiskError, clause
from ...core.reach import tool_names
from ...core.settings.resolution import Settings
from ...disk.locks.dream_lock import DreamLock
from ...disk.trees.rootdir import RootDir
from ...fork.background import LOCAL, AskSide, JobResult, Meter
from ...fork.handover import Handover, altered
from ...fork.host import MemoryAccess
from ...fork.tool_runner import ToolRunner, tool_runner_for
from ...language.text import Text
from ...language.wording import plural
from ...memory.instructions import memory_instructions
from ...memory.store.scopes import MemoryLocation
from ...memory.store.topic import INDEX
from ...tools.permissions.decision import decide
from ...tools.permissions.request import Allow, Deny
from ...tools.permissions.rules import read_rules
from ...tools.read_state import ReadState
from ...tools.registry import builtin_tools
from ...tools.tool import Tool, definition
from .bounds import DreamBounds
from .gates import (
    MOST_FAILURES,
    DreamStop,
    check_empty,
    check_new,
    check_throttle,
    check_time,
    find_off,
    find_stop,
    searchable_places,
)
from .record import DreamRecord
from .run import DreamOrder, DreamOutcome, PerformWith, run_dream
from .trigger import DREAM, ENDING_SECONDS, DreamState, find_time_stop, tell_once

PAUSED = Text("Dreams are off for the rest of this session: they failed {limit} times in a row.", limit=MOST_FAILURES)
ON_DISK = Text("The dream failed because of a disk error: {why}. Memory is unchanged, and the next dream starts over.")
HALF = Text(
    "The dream failed while changing memories ({why}). The next session restores them, or run `lamina dream --kill` to do it now."
)
# The tools a dream calls.
NEEDED = frozenset({"Read", "Write"})
# Number of files named in an event; the record names them all.
MOST_TOLD = 20
# Fits a long memory, and every known model can produce that much.
MAX_TOKENS = 8_000
# What the directive names. Under another program's loop a dream runs no commands.
FILE_TOOLS = ("Read", "Write", "Edit", "Grep", "Glob")


def after_turn(c: Conversation, lent: MemoryAccess) -> None:
    if (stop := _find_cheap_gate(c)) is None:
        c.layer_state(DreamState).looked_at = c.clock()
        stop = _find_expensive_gate(c, lent)
    if stop is not None:
        if stop.gate != "throttle":
            tell_once(c, stop)
        return
    # The conversation's tools, if they are those a dream needs, and are in its prompt.
    shared = c.host.tool_runner
    if shared is not None and not {tool.name for tool in shared.tools} & set(tool_names(c.prompt.tools)) >= NEEDED:
        shared = None
    order = _make_order(c, lent, shares=shared is not None)
    runner = shared or own_tool_runner(file_tools(), cwd=c.cwd, environ={}, home=c.home, place=lent.place, settings=c.settings)
    perform_with = dream_tool_runner(runner, c.ask_side, order.cwd)
    c.background.start(
        DREAM, lambda abort: run_dream(order, perform_with, abort), partial(_take_result, c), settles=ENDING_SECONDS
    )


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
    if (stop := check_empty(lent.place.path)) is not None:
        return stop
    own, now = c.store.path, datetime.fromisoformat(c.clock()).timestamp()
    with RootDir.open(lent.place.path, create=False) as root:
        last_ns = DreamLock(root).last_ns()
        stop = check_new(root, c.settings, last_ns=last_ns, now=now, transcripts=_own_transcripts(c), own=own)
    if stop is not None:
        return stop
    return None if c.background.allows(DREAM) else DreamStop("budget", "today's budget for background work is used up")


def find_next_stop(c: Conversation) -> DreamStop | None:
    """Return why no dream would start at the end of this conversation's next turn; None if one would. Changes nothing."""
    lent = c.host.memory
    if lent is None or not lent.interactive:
        return DreamStop("agent", "this is not an interactive chat with memory")
    if c.background.running(DREAM) is not None:
        return DreamStop("lock", "a dream of this session is running")
    too_soon = find_time_stop(c, lent)
    # That sessions were counted a moment ago is the reason only if nothing else is.
    stop = _find_cheap_gate(c)
    if stop is not None and stop.gate != "throttle":
        return stop
    return too_soon or _find_expensive_gate(c, lent) or stop


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


# The prompt and the tools of a dream that shares none


def file_tools() -> tuple[Tool, ...]:
    return tuple(tool for tool in builtin_tools() if tool.name in FILE_TOOLS)


def own_handover(
    model: str, ttl: str | None, tools: Sequence[Tool], place: MemoryLocation, settings: Settings, system: Sequence[Wire] = ()
) -> Handover:
    """Return a request without messages: the system prompt with the memory section, and the tools."""
    section = memory_instructions(
        place=place,
        mode=settings.memory_mode["private"],
        tools=[tool.name for tool in tools],
        index=False,
        past=settings.past_search,
        transcripts=None,
        extra=settings.extra_guidelines,
    )
    blocks = [*system, text(section).wire] if section.strip() else list(system)
    prompt = Prompt(model, MAX_TOKENS, blocks, [definition(tool) for tool in tools], {}, ttl)
    return Handover(prompt.head, (), {}, prompt.base, 0, b"", ttl, broken="branch")


def own_tool_runner(
    tools: Sequence[Tool],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    home: Path | None,
    place: MemoryLocation,
    settings: Settings,
) -> ToolRunner:
    rules = read_rules(settings.permissions)
    return tool_runner_for(
        tools,
        cwd=cwd,
        environ=environ,
        home=home,
        memory_dir=place.path,
        mode=lambda: "read-only",  # a fork's permissions apply: nobody is asked
        rules=lambda: rules,
        readable=(place.team,) if place.team is not None else (),
    )


# Results


def _take_result(c: Conversation, result: JobResult) -> None:
    if result.error is not None:  # our own fault, or a disk error before there was a record
        _record_failure(c, {"failed": str(result.error) or type(result.error).__name__}, stopped=False)
        if isinstance(result.error, DiskError | OSError):
            c.notify(Text(ON_DISK, why=clause(result.error)))
        return
    outcome: DreamOutcome = result.value
    c.notify(*outcome.recovered)
    if outcome.error is not None:
        failed(c, DREAM, outcome.error)
    if outcome.fork is not None:
        ended(c, DREAM, outcome.fork, result.seconds)
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


def _record_failure(c: Conversation, event: Wire, *, stopped: bool) -> None:
    state = c.layer_state(DreamState)
    state.failures += not stopped
    c.record_event(DREAM, event)
    if state.failures == MOST_FAILURES and PAUSED not in c.notices:
        c.notify(Text("{sentence} Last reason: {failed}", sentence=PAUSED, failed=event["failed"]))


def _event_data(record: DreamRecord, outcome: DreamOutcome) -> Wire:
    event: Wire = {
        "id": record.id,
        "files": list(record.files[:MOST_TOLD]),
        "removed": len(record.removed),
        "merged": len(record.merged),
        "waiting": len(record.waiting),
        "skipped": [[change.file, change.why] for change in record.skipped[:MOST_TOLD]],
        "why": record.why,
    }
    if (fork := outcome.fork) is not None:
        event |= {**cache_figures(fork), "denied": fork.denied}
    return event


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
    changes = [form.format(count) for count, form in parts if count > 0]
    if not changes:
        return "Dream finished: memory is in order, nothing was changed."
    return Text("Dream finished: {shown}. Undo with `lamina dream --undo`.", shown=", ".join(changes))

"""Layer 6 in a turn: memory is put in order in the background, when it is due (D1-D5).

    after_turn   at the end of a turn, behind the gate of time: the gates that cost more, then the dream is started
    landed       it came back: what it changed, what it cost, or why it came to nothing
    recovered    at the beginning of a session: what a dead dream left

The conversation never waits for it: the lock, the copy and the run belong to the job's thread, which holds nothing of the conversation.
What a dream has changed is memory's own to tell (`.dreams/`); the log keeps an event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event as Abort
from typing import assert_never

from msgspec.structs import replace

from ...conversation.forks import Side, ended, failed, hand_over
from ...conversation.state import Conversation, seconds_between
from ...core.blocks import ToolUse, Wire
from ...core.budget import limits_of
from ...core.effects import Effect
from ...disk.dream_lock import Lock
from ...disk.paths import RootDir
from ...fork.background import JobResult
from ...fork.budget import LOCAL, AskSide, Meter
from ...fork.host import MemoryAccess
from ...fork.tool_runner import Desk
from ...memory.store.daily_logs import to_distil
from ...memory.store.index import INDEX
from ...memory.store.modes import plan_write
from ...permissions.decision import Allow, Deny, decide
from ...tools.reads import ReadState
from .bounds import Bounds, Copy
from .gates import MOST_FAILURES, Standing, Stop, last_dream, looked_lately, stopped, too_few
from .record import Record
from .run import DreamOutcome, Order, Perform, beginning, dream, put_right
from .sessions import is_empty, newer, places
from .trigger import DREAM, ENDING_SECONDS, State, tell_once

PAUSED = f"Memory is not put in order any more in this session: it failed {MOST_FAILURES} times in a row."
HALF = "The dream failed while it changed memories ({why}). What it changed is put back by the next session, or by `lamina dream --kill`."
NOTHING = "nothing is remembered yet"
# Files named in an event; the record has them all.
MOST_TOLD = 20


def after_turn(c: Conversation, lent: MemoryAccess) -> None:
    stop = _stopped(c, lent)
    if stop is not None:
        if stop.gate != "throttle":
            tell_once(c, stop)
        return
    desk = c.host.desk
    assert desk is not None
    order = _order(c, lent)
    c.background.start(DREAM, _job(order, c.ask_side, desk), partial(_take, c), settles=ENDING_SECONDS)


def _stopped(c: Conversation, lent: MemoryAccess) -> Stop | None:
    """The gates behind that of time, the cheapest first."""
    state, settings = c.layer_state(State), c.settings
    standing = Standing(
        on=settings.dream,
        remote=settings.remote,
        lent=c.host.desk is not None,
        interactive=lent.interactive,
        writable=plan_write(settings.memory_mode["private"], DREAM) != "refuse",
        failures=state.failures,
    )
    if (stop := stopped(standing)) is not None:
        return stop
    now = c.clock()
    since = seconds_between(state.looked_at, now) if state.looked_at else None
    if (stop := looked_lately(since, minutes=settings.dream_scan_minutes)) is not None:
        return stop
    state.looked_at = now
    if not lent.place.path.is_dir():
        return Stop("nothing", NOTHING)
    if (stop := _nothing_new(c, lent)) is not None:
        return stop
    return None if c.background.allows(DREAM) else Stop("budget", "today's budget for background work is used up")


def _nothing_new(c: Conversation, lent: MemoryAccess) -> Stop | None:
    """Enough sessions; in assistant mode (W2) a daily log of a day that is over."""
    wanted = c.settings.dream_sessions
    with RootDir.open(lent.place.path, create=False) as root:
        if is_empty(root):
            return Stop("nothing", NOTHING)
        last = Lock(root).last_ns()
        if c.settings.assistant:
            now = datetime.fromisoformat(c.clock()).timestamp()
            logs = to_distil(root, last / 1e9 if last is not None else None, now)
            return None if logs else Stop("nothing", "there is no daily log since the last one")
        found = newer(_places(c, root), last, own=c.store.path, enough=wanted)
    return too_few(found, wanted=wanted)


def _places(c: Conversation, root: RootDir) -> tuple[Path, ...]:
    return places(root, c.store.path.parent if c.store.path is not None else None)


def _order(c: Conversation, lent: MemoryAccess) -> Order:
    """Everything a dream needs is taken now; nothing of the conversation goes with it."""
    meter, limits, settings, now = c.ask_side, limits_of(c.settings), c.settings, datetime.fromisoformat(c.clock())
    local = c.prompt.model == LOCAL

    def too_soon(last_ns: int | None) -> Stop | None:
        return last_dream(last_ns, int(now.timestamp() * 1e9), hours=settings.dream_hours, daily=settings.assistant)

    def spent() -> str | None:
        out = None if local else meter.refused(limits)
        return out.sentence() if out is not None else None

    with RootDir.open(lent.place.path, create=False) as root:
        past = _places(c, root) if settings.past_search else ()
    return Order(
        handover=beginning(hand_over(c)),
        place=lent.place,
        settings=settings,
        home=c.home,
        project=lent.project,
        cwd=c.cwd,
        today=now.astimezone().date().isoformat(),
        by="session",
        session=lent.session,
        transcripts=tuple(place for place in past if ours(place, c.home)),
        too_soon=too_soon,
        spent=spent,
    )


def ours(place: Path, home: Path | None) -> bool:
    """A directory of transcripts may be searched only where Lamina keeps transcripts."""
    return home is not None and place.parent == home / "projects"


def _job(order: Order, ask: AskSide | Meter, desk: Desk) -> Callable[[Abort], DreamOutcome]:
    return lambda abort: dream(order, at_desk(desk, ask, order), abort)


def at_desk(desk: Desk, ask: AskSide | Meter, order: Order) -> Callable[[Bounds, Copy, Abort], Perform]:
    """Where a dream works: what any fork may do (X6), with the copy as its memory directory, less what its bounds say."""

    def sit(bounds: Bounds, copy: Copy, abort: Abort) -> Callable[[Effect], object]:
        roots = (*desk.permission.roots, copy.memory, *copy.transcripts)
        permission = replace(desk.permission, roots=roots, memory_dir=copy.work, only_edit=None, fork=True)

        def judged(call: ToolUse) -> Allow | Deny:
            verdict = decide(call, mode=desk.mode(), rules=desk.rules(), context=permission)
            assert isinstance(verdict, Allow | Deny)
            return bounds.judge(call, verdict)

        lent = replace(desk, permission=permission).restrict(abort=abort, memory_dir=copy.work, decide=judged)
        context = replace(lent.context, keeper=bounds.keep, reads=ReadState(), cwd=order.cwd)
        return Side(ask, abort, replace(lent, tools=bounds.tools(lent.tools), context=context, on_end=bounds.saw))

    return sit


# What came back


def _take(c: Conversation, one: JobResult) -> None:
    if one.error is not None:  # a fault of ours, or a disk's before there was a record
        _failed(c, {"failed": str(one.error) or type(one.error).__name__}, stopped=False)
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
            c.layer_state(State).failures = 0
            c.record_event(DREAM, _told(record, outcome))
            c.notify(sentence(record))
        case "killed":
            _failed(c, {"killed": record.why, "id": record.id}, stopped=True)
            c.notify(f"The dream was stopped: {record.why}. Memory is as it was.")
        case "failed" | "running" | "undone":
            _failed(c, {"failed": record.why, "id": record.id}, stopped=False)
            if record.phase == "applying":
                c.notify(HALF.format(why=record.why.rstrip(".")))
        case _:
            assert_never(record.status)


def _failed(c: Conversation, told: Wire, *, stopped: bool) -> None:
    state = c.layer_state(State)
    state.failures += not stopped
    c.record_event(DREAM, told)
    if state.failures == MOST_FAILURES and PAUSED not in c.notices:
        c.notify(f"{PAUSED} The last reason: {told['failed']}")


def _told(record: Record, outcome: DreamOutcome) -> Wire:
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
        usage = fork.usage
        rate = round(usage.cache_read / usage.prompt, 4) if usage.prompt else 0.0
        told |= {"rounds": fork.rounds, "cache_read": usage.cache_read, "cache_write": usage.cache_write, "hit_rate": rate}
        told |= {"denied": fork.denied}
    return told


def sentence(record: Record) -> str:
    """What a dream has done, for the person."""
    gone, waiting = len(record.removed) + len(record.merged), len(record.waiting)
    counted = (
        (len(record.merged), "merged {}"),
        (sum(file != INDEX for file in record.files) - gone, "changed {}"),
        (len(record.removed), "removed {}"),
        (int(INDEX in record.files), "mended the index"),
        (waiting, f"{{}} wait{'s' if waiting == 1 else ''} for a yes in `lamina inbox`"),
    )
    parts = [said.format(count) for count, said in counted if count > 0]
    if not parts:
        return "Dreamt: memory is in order, nothing was changed."
    return f"Dreamt: {', '.join(parts)}; `lamina dream --undo` takes it back."


def recovered(c: Conversation, lent: MemoryAccess) -> list[str]:
    return put_right(c.cwd, c.home, c.settings)

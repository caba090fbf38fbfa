"""Background work of a conversation: one thread per job, one job per name, results in a bounded inbox.

A job gets frozen values and an Event that asks it to stop; it never touches the conversation. Its result or exception goes to the
inbox, which the conversation's own thread drains. Invariants: at most one job per name runs. No result is lost before it is drained.
Jobs and results together never exceed MOST, so a full inbox starts nothing new. `allowed` (the budget) admits work that no one asked
for; work requested in the conversation is always admitted. Threads are daemons: the interpreter's exit does not wait for them, `close`
does. A process made by os.fork has no threads and starts with nothing running.

`Meter` enforces the budget of background work: a job is admitted while the day's budget lasts, and each of its calls is counted. The
budget is checked only when a job is to start, in the conversation's own thread, so no call of the conversation reads the ledger. Calls
are counted in the job's thread as they end, so dropped or stopped work is counted too. Work that is running when the budget ends
continues to its end, so all sessions together exceed the budget by that at most. Not counted: what the conversation itself waits for (a
summary that is needed now), what was requested in it (agents), and answers of local functions in place of a model. A dream that the user
starts by hand is counted, but not refused.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.effects import Ask
from ..core.errors import Aborted, ProviderError
from ..core.reply import Reply

if TYPE_CHECKING:  # loaded with the first job
    from ..core.budget import Limits, Out
    from ..disk.home.ledger import UsageLedger


# Notes, a summary, an extraction, a dream and a few agents. More at once is a runaway loop.
MOST = 32

JobFunction: TypeAlias = Callable[[Event], Any]
TakeResult: TypeAlias = "Callable[[JobResult], None]"

_JOB: ContextVar[str | None] = ContextVar("lamina_job", default=None)


def current_job() -> str | None:
    """Return the name of the background job this thread runs. None in a conversation's own thread and for work requested in it."""
    return _JOB.get()


class JobResult(msgspec.Struct, frozen=True):
    """The result or exception of a job, and the function that handles it in the conversation's own thread."""

    name: str
    value: Any
    error: BaseException | None
    seconds: float
    take: TakeResult | None = None


class _Running(msgspec.Struct, eq=False):
    name: str
    began: float
    asked: bool
    settles: float
    take: TakeResult | None
    abort: Event = msgspec.field(default_factory=Event)
    ended: Event = msgspec.field(default_factory=Event)


class Background:
    def __init__(self, clock: Callable[[], float] = time.monotonic, allowed: Callable[[str], bool] | None = None) -> None:
        self._clock = clock
        self._allowed = allowed
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._running: dict[str, _Running] = {}
        self._threads: list[Thread] = []
        self._landed: deque[JobResult] = deque()

    def _own_lock(self) -> Lock:
        """Return the lock. In a forked child, whose threads are gone, make a new one: the old one may be held forever."""
        if os.getpid() != self._process:
            self._begin()
        return self._lock

    def allows(self, name: str) -> bool:
        """Whether work of that name is admitted now. Use it before preparing an expensive job; `start` checks by itself."""
        return self._allowed is None or self._allowed(name)

    def start(
        self,
        name: str,
        job: JobFunction,
        take: TakeResult | None = None,
        *,
        asked: bool = False,
        later: bool = False,
        settles: float = 0.0,
    ) -> bool:
        """Start a job. Returns False if it is not admitted, one of that name runs, the inbox is full, this is closed, or the system has
        no threads left.

        `take` is called with the result by the thread that drains. `asked`: requested in the conversation, so it does not count as
        background work. `settles`: seconds that `close` still grants the job after it was asked to stop, to restore what it holds.
        `later`: it may never call a model, and checks the budget itself before it does."""
        if not asked and not later and not self.allows(name):
            return False
        with self._own_lock():
            if self._closed or name in self._running or len(self._running) + len(self._landed) >= MOST:
                return False
            running = _Running(name, self._clock(), asked, settles, take)
            thread = Thread(target=copy_context().run, args=(self._run, running, job), name=f"lamina-{name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._running[name] = running
            self._threads = [*(old for old in self._threads if old.is_alive()), thread]
            return True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the running jobs."""
        with self._own_lock():
            return tuple(self._running)

    def running(self, name: str) -> float | None:
        """Return the seconds since the job was started, or None if no job of that name runs."""
        with self._own_lock():
            running = self._running.get(name)
            return self._clock() - running.began if running is not None else None

    def wait(self, name: str, seconds: float) -> bool:
        """Wait up to `seconds`, and return whether the job has ended. Its result can then be drained."""
        with self._own_lock():
            running = self._running.get(name)
        return running is None or running.ended.wait(seconds)

    @property
    def has_results(self) -> bool:
        """Whether the result of a finished job waits to be drained."""
        with self._own_lock():
            return bool(self._landed)

    def drain(self) -> list[JobResult]:
        with self._own_lock():
            landed = list(self._landed)
            self._landed.clear()
            return landed

    def abort(self, name: str | None = None) -> None:
        """Ask one job to stop at once, or all of them, after which no job is started."""
        with self._own_lock():
            self._closed = self._closed or name is None
            for running in self._running.values():
                if name in (None, running.name):
                    running.abort.set()

    def close(self, timeout: float = 60.0) -> list[str]:
        """Start nothing more and wait for running jobs. Returns the names of those still running; they are asked to stop and dropped."""
        until = time.monotonic() + timeout
        with self._own_lock():
            self._closed = True
            threads = [thread for thread in self._threads if thread is not current_thread()]
        try:
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))
        finally:  # also after Ctrl-C while waiting: leave nothing running
            with self._lock:
                remaining = list(self._running.values())
                self._running.clear()
            for running in remaining:
                running.abort.set()
            for running in remaining:
                running.ended.wait(running.settles)
        return [running.name for running in remaining]

    def _run(self, running: _Running, job: JobFunction) -> None:
        value, error = None, None
        _JOB.set(None if running.asked else running.name)
        try:
            value = job(running.abort)
        except BaseException as raised:  # noqa: BLE001  # it goes to the inbox, and is reported in the conversation's own thread
            error = raised
        with self._lock:
            if self._running.get(running.name) is running:
                del self._running[running.name]
                self._landed.append(JobResult(running.name, value, error, self._clock() - running.began, running.take))
        running.ended.set()


# The model name of answers given without a model.
LOCAL = "offline"

AskSide: TypeAlias = Callable[[Ask, Event], Reply]


class Meter:
    """Answers side calls through `ask`, and counts those of background work."""

    def __init__(
        self, ask: AskSide, *, home: Path | None, project: str, session: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._ask = ask
        self._home = home
        self._project = project
        self._session = session
        self._clock = clock
        self._ledger: UsageLedger | None = None
        self._said: dict[str, str] = {}  # the day of each message's last appearance
        self.out: Out | None = None  # why the last job was refused

    @property
    def ledger(self) -> UsageLedger:
        if self._ledger is None:
            from ..disk.home.ledger import UsageLedger

            self._ledger = UsageLedger(self._home, now=self._clock)
        return self._ledger

    def __call__(self, ask: Ask, abort: Event) -> Reply:
        return self._ask(ask, abort) if current_job() is None else self.counted(ask, abort)

    def counted(self, ask: Ask, abort: Event) -> Reply:
        """Answer a side call and count it, whoever asked for it."""
        try:
            reply = self._ask(ask, abort)
        except (ProviderError, Aborted):  # it was sent, and may be billed
            self._count(ask, None)
            raise
        if reply.model != LOCAL:
            self._count(ask, reply)
        return reply

    def _count(self, ask: Ask, reply: Reply | None) -> None:
        """Add a call to the ledger. `reply` None: it failed."""
        from ..core.budget import LedgerLine
        from ..core.usage import Usage
        from ..providers.models import cost

        model = (reply.model if reply is not None else "") or str(ask.request.get("model", ""))
        usage = reply.usage if reply is not None else None
        used = usage or Usage()
        self.ledger.add(
            LedgerLine(
                self._clock(),
                ask.purpose,
                self._project,
                self._session,
                model,
                input=used.input_tokens,
                cache_read=used.cache_read,
                cache_write=used.cache_write,
                output=used.output_tokens,
                usd=cost(model, used).usd if usage is not None else None,
                failed=reply is None,
            )
        )

    def refused(self, limits: Limits) -> Out | None:
        """Return which limit is used up today, over all sessions of this home. None: there is budget left."""
        from ..core.budget import ran_out

        self.out = ran_out(self.ledger.today(), limits)
        return self.out

    def first(self, message: str) -> bool:
        """Whether this message has not been shown yet today."""
        before, self._said[message] = self._said.get(message), self.ledger.day
        return before != self._said[message]

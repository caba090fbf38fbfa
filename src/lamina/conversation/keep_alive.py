"""Keep-alive requests: in a pause, small requests that only renew the conversation's entries in the prompt cache (P6).

Off unless the policy allows some. A job starts after each answer, waits, and asks for one word behind the same prefix, as often as
allowed; the next call stops it. Each request costs a read of the context. Its usage is recorded like that of any fork, and counts
as background work. After a failure no more are sent in this session.
"""

from __future__ import annotations

import time
from functools import partial
from threading import Event
from typing import NamedTuple

from msgspec.structs import replace

from ..core.budget import limits_of
from ..core.effects import drive
from ..core.errors import Aborted
from ..fork.background import JobResult
from ..fork.fork import ForkOutcome, run_fork
from . import forks
from .cache_life import KEEP_ALIVE
from .state import Conversation

DIRECTIVE = "This request only keeps the prompt cache alive. Answer with the word: ok"
# Enough for that word.
MOST_TOKENS = 8


class KeepAlive:
    def __init__(self) -> None:
        self.failed = False


class Sent(NamedTuple):
    outcome: ForkOutcome
    seconds: float


def can_renew(c: Conversation) -> bool:
    """Return whether the last answer left something in a cache with marks."""
    return c.prompt.ttl is not None and c.last.readable > 0 and not c.layer_state(KeepAlive).failed


def wait_for_pause(c: Conversation) -> None:
    """Start the job after an answer, if it left something that can be renewed."""
    cache = c.policy.cache
    if not can_renew(c):
        return
    handover, side, clock, limits = forks.hand_over(c), forks.side(c), c.clock, limits_of(c.settings)

    def job(abort: Event) -> list[Sent]:
        requests: list[Sent] = []
        for _ in range(cache.keep_alive):
            if abort.wait(cache.keep_alive_seconds) or c.ask_side.refused(limits) is not None:
                break
            began = time.monotonic()
            flow = run_fork(replace(handover, handed_at=clock()), DIRECTIVE, purpose=KEEP_ALIVE, max_tokens=MOST_TOKENS)
            try:
                requests.append(Sent(drive(flow, side.until(abort)), time.monotonic() - began))
            except Aborted:
                break
        return requests

    c.background.start(KEEP_ALIVE, job, partial(_take, c), later=True)


def renew_now(c: Conversation) -> None:
    """Send one such request at once. Replays call it, since their pauses take no time."""
    if can_renew(c):
        flow = run_fork(forks.hand_over(c), DIRECTIVE, purpose=KEEP_ALIVE, max_tokens=MOST_TOKENS)
        forks.ended(c, KEEP_ALIVE, drive(flow, forks.side(c)), 0.0)


def _take(c: Conversation, job: JobResult) -> None:
    if job.error is not None:
        c.layer_state(KeepAlive).failed = True
        forks.failed(c, KEEP_ALIVE, job.error)
        return
    requests: list[Sent] = job.value
    for outcome, seconds in requests:
        forks.ended(c, KEEP_ALIVE, outcome, seconds)

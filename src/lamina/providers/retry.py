"""Retries of failed calls: a pure decision, and one flow for sync and async.

Retries are limited in three ways: their number, the total delay and the delay before each try. The retries of the SDKs are disabled,
so no call is retried twice over; a client that was passed in keeps its `max_retries`, which are counted here. The server's
`retry-after` is respected; if it exceeds the budget, the error is raised immediately instead of after a useless wait. Once a listener
has received part of an answer, the call is not repeated unless the caller allows it: a listener that gets a second `message_start`
must discard the first part. Background work gives up sooner. An abort ends a delay at once, and no request is sent after it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from threading import Event
from typing import NamedTuple

import msgspec

from ..core.effects import Ask, Effect, Flow, Sleep, drive, drive_async
from ..core.errors import Aborted, BadRequest, ProviderError, StreamBroken
from ..core.reply import Reply
from ..language.text import message


class RetryPolicy(msgspec.Struct, frozen=True):
    # Four retries with delays doubling from half a second cover about eight seconds: a restart or a short overload.
    max_retries: int = 4
    first: float = 0.5
    cap: float = 8.0
    # The user waits at most two minutes for a server that asks for a longer delay.
    budget: float = 120.0
    after_partial: bool = False


# Purposes that no user waits for. They get one retry, so that they neither load a busy server nor use up the rate limit of the
# conversation.
BACKGROUND = frozenset({"notes", "extraction", "dream", "select", "agent_summary"})
BACKGROUND_RETRIES = 1
BACKGROUND_BUDGET = 20.0
# Purposes whose caller retries failed calls and unusable answers from one budget. Each of their calls is sent once.
RETRIED_BY_CALLER = frozenset({"summary"})


async def _sleep_async(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


# Our own numbers: a program that seeded `random` gets the same ones from it, whether a call was retried or not.
draw = random.Random().random


class Waits(NamedTuple):
    """The functions for sleeping and randomness; tests pass their own."""

    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = _sleep_async
    random: Callable[[], float] = draw


Adapt = Callable[[BadRequest], bool]


def policy_for(purpose: str, policy: RetryPolicy) -> RetryPolicy:
    if purpose in RETRIED_BY_CALLER:
        return msgspec.structs.replace(policy, max_retries=0)
    if purpose not in BACKGROUND:
        return policy
    return msgspec.structs.replace(
        policy,
        max_retries=min(policy.max_retries, BACKGROUND_RETRIES),
        budget=min(policy.budget, BACKGROUND_BUDGET),
    )


def plan_retry(error: ProviderError, *, tries: int, waited: float, heard: bool, policy: RetryPolicy, luck: float) -> float | None:
    """Return the seconds to wait before the next try, or None to give up.

    `heard` tells whether a listener has received a part of the answer; `luck` is a random number in [0, 1).
    """
    if not error.retryable or tries > policy.max_retries:
        return None
    if heard and not policy.after_partial:
        return None
    # Half of the delay is random, so that clients that failed together do not all retry together.
    pause = min(policy.cap, policy.first * 2 ** (tries - 1)) * (0.5 + luck / 2)
    if error.retry_after is not None:
        pause = error.retry_after + luck * policy.first
    return pause if waited + pause <= policy.budget else None


def asking(ask: Ask, *, policy: RetryPolicy, luck: Callable[[], float], adapt: Adapt | None = None) -> Flow[Reply]:
    """Send the request until there is a reply or no retry is left.

    `adapt` may change how the provider writes the request after a rejection. It returns True only if it changed something, which is
    possible only a few times, so this loop ends.
    """
    tries, waited = 0, 0.0
    while True:
        try:
            reply: Reply = yield ask
            return reply
        except ProviderError as error:
            if adapt is not None and isinstance(error, BadRequest) and adapt(error):
                continue
            tries += 1
            heard = ask.on_event is not None and isinstance(error, StreamBroken) and bool(error.partial)
            pause = plan_retry(error, tries=tries, waited=waited, heard=heard, policy=policy, luck=luck())
            if pause is None:
                raise
            _tell(ask, tries, policy.max_retries, pause, error)
        waited += pause
        yield Sleep(pause)


def _tell(ask: Ask, attempt: int, most: int, pause: float, error: ProviderError) -> None:
    """Send the listener a `retry` event, so that the user knows why the answer takes long."""
    if ask.on_event is not None:
        ask.on_event({"type": "retry", "attempt": attempt, "max_retries": most, "seconds": pause, "error": message(error)})


def ask_retrying(
    once: Callable[[Ask], Reply],
    ask: Ask,
    *,
    policy: RetryPolicy,
    waits: Waits,
    adapt: Adapt | None = None,
    abort: Event | None = None,
) -> Reply:
    def perform(effect: Effect) -> Reply | None:
        if isinstance(effect, Sleep):
            _pause(effect.seconds, waits, abort)
            return None
        assert isinstance(effect, Ask)  # a call neither runs tools nor waits for background work
        if abort is not None and abort.is_set():
            raise Aborted
        return once(effect)

    return drive(asking(ask, policy=policy_for(ask.purpose, policy), luck=waits.random, adapt=adapt), perform)


def _pause(seconds: float, waits: Waits, abort: Event | None) -> None:
    """Sleep until the time is over or the call is aborted. A custom `sleep` is used unchanged."""
    if abort is None or waits.sleep is not time.sleep:
        waits.sleep(seconds)
    else:
        abort.wait(seconds)


async def ask_retrying_async(
    once: Callable[[Ask], Awaitable[Reply]], ask: Ask, *, policy: RetryPolicy, waits: Waits, adapt: Adapt | None = None
) -> Reply:
    async def perform(effect: Effect) -> Reply | None:
        if isinstance(effect, Sleep):
            await waits.sleep_async(effect.seconds)
            return None
        assert isinstance(effect, Ask)
        return await once(effect)

    return await drive_async(asking(ask, policy=policy_for(ask.purpose, policy), luck=waits.random, adapt=adapt), perform)

"""Retries of a call, driven by hand without a clock or a server."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lamina.core.effects import Ask, Sleep
from lamina.core.errors import (
    Aborted,
    AuthFailed,
    BadRequest,
    ConnectionLost,
    Overloaded,
    PromptTooLong,
    ProviderError,
    RateLimited,
    ServerFault,
    StreamBroken,
)
from lamina.core.reply import Reply
from lamina.providers.retry import RetryPolicy, Waits, ask_retrying, ask_retrying_async, asking, plan_retry, policy_for

REPLY = Reply("msg_1", "m", (), "end_turn")
PARTIAL = [{"type": "text", "text": "half"}]


def plan(error: ProviderError, **given: Any) -> float | None:
    values: dict[str, Any] = {"tries": 1, "waited": 0.0, "heard": False, "policy": RetryPolicy(), "luck": 0.0}
    return plan_retry(error, **{**values, **given})


@pytest.mark.parametrize("error", [AuthFailed("no"), BadRequest("no"), PromptTooLong("no")])
def test_what_can_not_succeed_later_is_not_tried_again(error: ProviderError) -> None:
    assert plan(error) is None


@pytest.mark.parametrize("error", [RateLimited("x"), Overloaded("x"), ServerFault("x"), ConnectionLost("x"), StreamBroken("x")])
def test_what_may_pass_is_tried_again(error: ProviderError) -> None:
    assert plan(error) == 0.25


def test_pauses_double_up_to_the_cap() -> None:
    policy = RetryPolicy(max_retries=10)
    assert [plan(ServerFault("x"), tries=tries, policy=policy) for tries in range(1, 8)] == [0.25, 0.5, 1, 2, 4, 4, 4]


def test_half_of_a_pause_is_left_to_chance() -> None:
    assert plan(ServerFault("x"), luck=0.999) == pytest.approx(0.49975)


def test_a_retry_takes_no_number_from_a_program_that_seeded_its_own() -> None:
    before = random.getstate()
    assert 0.0 <= Waits().random() < 1.0
    assert random.getstate() == before


def test_the_servers_own_wish_is_honoured_and_never_shortened() -> None:
    assert plan(RateLimited("x", retry_after=30)) == 30
    assert plan(RateLimited("x", retry_after=30), luck=0.5) == 30.25


def test_a_wish_beyond_the_budget_is_an_error_at_once() -> None:
    assert plan(RateLimited("x", retry_after=3_600)) is None
    assert plan(RateLimited("x", retry_after=30), waited=100) is None


def test_a_server_that_forbids_or_asks_for_another_try_is_obeyed() -> None:
    forbidden, wanted = ServerFault("x"), BadRequest("x")
    forbidden.retryable, wanted.retryable = False, True
    assert plan(forbidden) is None
    assert plan(wanted) is not None


def test_after_a_part_was_heard_there_is_no_other_try_unless_allowed() -> None:
    broken = StreamBroken("x", partial=PARTIAL)
    assert plan(broken, heard=True) is None
    assert plan(broken, heard=True, policy=RetryPolicy(after_partial=True)) is not None


@pytest.mark.parametrize("purpose", ["notes", "extraction", "dream", "select", "agent_summary"])
def test_background_work_gives_up_first(purpose: str) -> None:
    assert policy_for("chat", RetryPolicy()) == RetryPolicy()
    assert policy_for(purpose, RetryPolicy()) == RetryPolicy(max_retries=1, budget=20.0)
    assert policy_for(purpose, RetryPolicy(max_retries=0)).max_retries == 0


def test_the_flow_waits_between_tries_and_ends_with_the_first_reply() -> None:
    ask = Ask({}, "chat")
    flow = asking(ask, policy=RetryPolicy(), luck=lambda: 0.0)
    assert next(flow) is ask
    assert flow.throw(Overloaded("busy")) == Sleep(0.25)
    assert flow.send(None) is ask
    assert flow.throw(RateLimited("busy", retry_after=7)) == Sleep(7)
    assert flow.send(None) is ask
    with pytest.raises(StopIteration) as end:
        flow.send(REPLY)
    assert end.value.value is REPLY


def failing(*errors: Exception) -> tuple[Callable[[Ask], Reply], list[Ask]]:
    asked: list[Ask] = []
    left = list(errors)

    def once(ask: Ask) -> Reply:
        asked.append(ask)
        if left:
            raise left.pop(0)
        return REPLY

    return once, asked


def test_tries_are_bounded_and_the_last_error_comes_out() -> None:
    slept: list[float] = []
    once, asked = failing(*(ServerFault(f"fault {number}") for number in range(9)))
    with pytest.raises(ServerFault, match="fault 4"):
        ask_retrying(once, Ask({}, "chat"), policy=RetryPolicy(), waits=Waits(sleep=slept.append, random=lambda: 0.0))
    assert len(asked) == 5
    assert slept == [0.25, 0.5, 1.0, 2.0]


def test_a_half_answer_nobody_heard_is_dropped_and_asked_for_again() -> None:
    slept: list[float] = []
    once, asked = failing(StreamBroken("cut", partial=PARTIAL))
    waits = Waits(sleep=slept.append, random=lambda: 0.0)
    assert ask_retrying(once, Ask({}, "select"), policy=RetryPolicy(), waits=waits) is REPLY
    assert len(asked) == 2


def test_a_half_answer_somebody_heard_is_handed_over_as_what_it_is() -> None:
    once, asked = failing(StreamBroken("cut", partial=PARTIAL))
    with pytest.raises(StreamBroken) as caught:
        ask_retrying(once, Ask({}, "chat", lambda event: None), policy=RetryPolicy(), waits=Waits())
    assert caught.value.partial == tuple(PARTIAL)
    assert len(asked) == 1


def test_a_rejection_the_provider_can_word_differently_is_asked_again_without_waiting() -> None:
    once, asked = failing(BadRequest("no stream_options"), BadRequest("something else"))
    changes = [True, False]
    with pytest.raises(BadRequest, match="something else"):
        ask_retrying(once, Ask({}, "chat"), policy=RetryPolicy(), waits=Waits(), adapt=lambda error: changes.pop(0))
    assert len(asked) == 2


def test_an_error_of_the_program_goes_straight_through() -> None:
    once, asked = failing(KeyError("mistake"))
    with pytest.raises(KeyError):
        ask_retrying(once, Ask({}, "chat"), policy=RetryPolicy(), waits=Waits())
    assert len(asked) == 1


def test_the_same_flow_runs_on_an_event_loop() -> None:
    slept: list[float] = []
    once, asked = failing(Overloaded("busy"), ConnectionLost("gone"))

    async def once_async(ask: Ask) -> Reply:
        return once(ask)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    waits = Waits(sleep_async=sleep, random=lambda: 0.0)
    reply = asyncio.run(ask_retrying_async(once_async, Ask({}, "chat"), policy=RetryPolicy(), waits=waits))
    assert reply is REPLY
    assert (len(asked), slept) == (3, [0.25, 0.5])


# An abort


def test_an_abort_ends_the_pause_at_once_and_no_further_request_is_sent() -> None:
    abort = threading.Event()
    once, asked = failing(Overloaded("busy", retry_after=100.0))

    def then_stop(ask: Ask) -> Reply:
        try:
            return once(ask)
        finally:
            abort.set()

    with pytest.raises(Aborted):
        ask_retrying(then_stop, Ask({}, "chat"), policy=RetryPolicy(), waits=Waits(), abort=abort)
    assert len(asked) == 1


def test_nothing_is_asked_when_the_abort_came_first() -> None:
    abort = threading.Event()
    abort.set()
    once, asked = failing()
    with pytest.raises(Aborted):
        ask_retrying(once, Ask({}, "chat"), policy=RetryPolicy(), waits=Waits(), abort=abort)
    assert asked == []

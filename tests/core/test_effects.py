"""Effects: one flow gives the same result with both drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import examples

from lamina.core.effects import Ask, Effect, Flow, RunTools, Sleep, Wait, drive, drive_async

EFFECTS: list[Effect] = [Ask({"messages": []}, "chat"), RunTools(()), Sleep(0.5), Wait("notes", 15.0)]


class Lost(Exception):
    pass


def script(plan: list[tuple[int, bool, bool]], seen: list[Any]) -> Flow[str]:
    """A flow from a list of steps, each with an effect, whether it fails, and whether the flow handles the failure."""
    try:
        for which, _, handled in plan:
            try:
                seen.append((yield EFFECTS[which]))
            except Lost as error:
                seen.append(f"caught {error}")
                if not handled:
                    raise
        return f"{len(seen)} steps"
    finally:
        seen.append("cleaned up")


def performer(plan: list[tuple[int, bool, bool]], done: list[Effect]) -> Callable[[Effect], str]:
    steps = iter(plan)

    def perform(effect: Effect) -> str:
        done.append(effect)
        if next(steps)[1]:
            raise Lost(type(effect).__name__)
        return f"did {type(effect).__name__}"

    return perform


def outcome(run: Callable[[], str]) -> str:
    try:
        return run()
    except Lost as error:
        return f"raised {error}"


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=6))
def test_both_drivers_carry_out_the_same_effects_with_the_same_end(plan: list[tuple[int, bool, bool]]) -> None:
    stories = []
    for asynchronous in (False, True):
        seen: list[Any] = []
        done: list[Effect] = []
        perform = performer(plan, done)

        async def awaited(effect: Effect, perform: Callable[[Effect], str] = perform) -> str:
            return perform(effect)

        def run(perform: Any = perform, awaited: Any = awaited, seen: Any = seen, asynchronous: bool = asynchronous) -> str:
            flow = script(plan, seen)
            return asyncio.run(drive_async(flow, awaited)) if asynchronous else drive(flow, perform)

        stories.append((outcome(run), seen, done))
    assert stories[0] == stories[1]
    failed = next((at for at, (_, fails, handled) in enumerate(plan) if fails and not handled), None)
    assert len(stories[0][2]) == (len(plan) if failed is None else failed + 1)
    assert stories[0][1][-1] == "cleaned up"


def test_a_flow_that_asks_for_nothing_returns_at_once() -> None:
    def nothing() -> Flow[int]:
        yield from ()
        return 7

    assert drive(nothing(), lambda effect: pytest.fail("nothing was asked for")) == 7


def test_a_flow_may_answer_a_failure_with_another_effect() -> None:
    def again() -> Flow[str]:
        try:
            return str((yield EFFECTS[0]))
        except Lost:
            yield Sleep(1.0)
            return str((yield EFFECTS[0]))

    answers: list[Any] = [Lost("first"), None, "second"]

    def perform(effect: Effect) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert drive(again(), perform) == "second"
    assert answers == []


def test_the_flow_is_closed_when_it_does_not_handle_a_failure() -> None:
    seen: list[Any] = []
    flow = script([(0, True, False)], seen)
    with pytest.raises(Lost):
        drive(flow, performer([(0, True, False)], []))
    assert seen == ["caught Ask", "cleaned up"]
    with pytest.raises(StopIteration):
        next(flow)


def test_an_interrupt_reaches_the_flow() -> None:
    seen: list[Any] = []

    def perform(effect: Effect) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(script([(0, False, False)], seen), perform)
    assert seen == ["cleaned up"]


def test_cancellation_reaches_the_flow_where_it_waits() -> None:
    story: list[str] = []

    def waiting() -> Flow[None]:
        try:
            yield Wait("notes", 15.0)
        except asyncio.CancelledError:
            story.append("saw the cancellation")
            raise
        finally:
            story.append("cleaned up")

    async def run() -> None:
        started = asyncio.Event()

        async def perform(effect: Effect) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(drive_async(waiting(), perform))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert story == ["saw the cancellation", "cleaned up"]


def test_an_effect_that_stops_iterating_does_not_end_the_flow_silently() -> None:
    def perform(effect: Effect) -> Any:
        raise StopIteration("from inside")

    with pytest.raises(RuntimeError, match="StopIteration"):
        drive(script([(0, False, False)], []), perform)


def test_flows_nest() -> None:
    def inner() -> Flow[str]:
        return str((yield Sleep(1.0)))

    def outer() -> Generator[Effect, Any, str]:
        first = yield from inner()
        second = yield from inner()
        return first + second

    assert drive(outer(), lambda effect: "x") == "xx"

"""Effects and flows: code that calls a model is a flow, written once for sync and async.

A flow is a generator that yields effects from a closed union and receives their results. It contains all decisions and no I/O,
so it can be driven by hand in a test, by `drive` in a thread, or by `drive_async` in an event loop. If an effect fails, its error is
raised at the `yield` of the flow, which may handle it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from .blocks import ToolUse, Wire


class Ask(msgspec.Struct, frozen=True):
    """Send one request; the result is a Reply."""

    request: Wire
    purpose: str  # chat | summary | notes | extraction | dream | select | agent_summary: the key in the offline table
    on_event: Callable[[dict[str, Any]], None] | None = None  # called with each stream event as it arrives


class RunTools(msgspec.Struct, frozen=True):
    """Run the calls of one answer, possibly in parallel; the result is a tuple of ToolResult blocks in the order of the calls."""

    calls: tuple[ToolUse, ...]


class Sleep(msgspec.Struct, frozen=True):
    seconds: float


class Wait(msgspec.Struct, frozen=True):
    """Wait for the named background work, at most `seconds`; the result tells whether it finished in time."""

    name: str
    seconds: float


Effect: TypeAlias = Ask | RunTools | Sleep | Wait

T = TypeVar("T")
Flow: TypeAlias = Generator[Effect, Any, T]


def drive(flow: Flow[T], perform: Callable[[Effect], Any]) -> T:
    """Run a flow to its end; `perform` executes one effect and returns its result."""
    try:
        effect = next(flow)
        while True:
            try:
                result = perform(effect)
            except BaseException as error:  # noqa: BLE001  # the flow decides; throw() raises whatever it does not handle
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


async def drive_async(flow: Flow[T], perform: Callable[[Effect], Awaitable[Any]]) -> T:
    """Run a flow in an event loop, like `drive` with an awaited `perform`."""
    try:
        effect = next(flow)
        while True:
            try:
                result = await perform(effect)
            except BaseException as error:  # noqa: BLE001  # includes cancellation, so that the flow can clean up
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()

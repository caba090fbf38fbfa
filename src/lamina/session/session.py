"""Session: Lamina under a loop of your own.

    with lamina.Session(provider="anthropic:claude-sonnet-5-5", system="…", tools=[…]) as session:
        session.add_user("fix the failing test")
        request = session.before_call()              # client.messages.create(**request) takes it as it is
        reply = session.after_call(response)         # the SDK's response object or a dict
        session.add_tool_result(tool_use_id, output)
        session.end_turn()

A session holds all its state itself: any number of them, for any number of users, live in one process. One session belongs to one
thread at a time; calls from two threads, or two tasks, at once wait for each other. What it decides is in turn.py; this file is the
door.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .. import turn
from ..core.blocks import Wire
from ..core.effects import Ask, Effect, Flow, Sleep, Wait, drive, drive_async
from ..core.errors import BadRequest, PromptTooLong, StreamBroken, UsageError
from ..core.reply import Reply
from ..providers import OnEvent
from .base import SessionBase

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Lock

    from ..conversation.compaction.commit import Compacted
    from ..layers.l4_compact.plan import Pivot

T = TypeVar("T")


class Session(SessionBase):
    """A conversation kept inside its window."""

    def before_call(self) -> Wire:
        """The request to send now: keyword arguments for the SDK's own create()."""
        with self._open():
            return self.provider.render(drive(turn.before_call(self._c), self._perform))

    def after_call(self, response: object) -> Reply:
        """Record the answer; `reply.tool_uses` are the calls that may be executed."""
        with self._open():
            return self._record(response)

    def ask(self, on_event: OnEvent | None = None) -> Reply:
        """before_call, the call through the session's provider, after_call. What arrived of an answer that broke off is kept; a
        request that is refused is mended once."""
        with self._open():
            try:
                return self._exchange(on_event)
            except (BadRequest, PromptTooLong) as error:
                if not self.recover(error):
                    raise
                return self._exchange(on_event)

    def recover(self, error: BaseException) -> bool:
        """For a loop of one's own: the server refused the request with this error (ours, or the SDK's). True: the conversation was
        compacted, or what the server objects to is left out from here on, so call before_call() again; False: nothing helps."""
        with self._open():
            return drive(turn.recover(self._c, self._typed(error)), self._perform)

    def _exchange(self, on_event: OnEvent | None) -> Reply:
        request = drive(turn.before_call(self._c), self._perform)
        try:
            return self._record(self.provider.ask(request, on_event=on_event, abort=self._aborted))
        except StreamBroken as error:
            self._keep_partial(error)
            raise

    def compact(self, instructions: str = "", *, pivot: Pivot | None = None) -> Compacted:
        """Summarise what was said, now: all of it, or only `from` or `up_to` a message. `undo()` takes it back."""
        with self._open():
            return drive(turn.compact_now(self._c, instructions, pivot), self._perform)

    def end_turn(self) -> None:
        """The model gave its final answer."""
        with self._open():
            turn.end_turn(self._c)

    def close(self, timeout: float = 60.0) -> None:
        """Wait for background work up to `timeout` seconds, then let go of the transcript. Closing twice is fine."""
        self._finish(timeout)

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return self._side.ask(effect.request, purpose=effect.purpose, on_event=effect.on_event, abort=self._aborted)
            case Sleep():
                return time.sleep(effect.seconds)
            case Wait():
                return self._c.background.wait(effect.name, effect.seconds)
            case _:
                raise UsageError(f"A session cannot carry out {type(effect).__name__}; an agent can.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncSession(SessionBase):
    """The same conversation for an event loop: whatever may wait for a model is awaited. While one call waits, others of its kind wait
    for it; what is said meanwhile (`add_user`, `sync`, …) is taken at once. Cancelling a call changes nothing that was said."""

    _awaits = True
    _loop: AbstractEventLoop | None = None
    _turn: Lock | None = None

    async def before_call(self) -> Wire:
        async with self._alone():
            return self.provider.render(await self._run(turn.before_call(self._c)))

    async def after_call(self, response: object) -> Reply:
        async with self._alone():
            with self._open():
                return self._record(response)

    async def ask(self, on_event: OnEvent | None = None) -> Reply:
        async with self._alone():
            try:
                return await self._exchange(on_event)
            except (BadRequest, PromptTooLong) as error:
                if not await self._run(turn.recover(self._c, error)):
                    raise
                return await self._exchange(on_event)

    async def recover(self, error: BaseException) -> bool:
        async with self._alone():
            return await self._run(turn.recover(self._c, self._typed(error)))

    async def _exchange(self, on_event: OnEvent | None) -> Reply:
        request = await self._run(turn.before_call(self._c))
        try:
            response = await self.provider.ask_async(request, on_event=on_event)
        except StreamBroken as error:
            with self._open():
                self._keep_partial(error)
            raise
        with self._open():
            return self._record(response)

    async def compact(self, instructions: str = "", *, pivot: Pivot | None = None) -> Compacted:
        async with self._alone():
            return await self._run(turn.compact_now(self._c, instructions, pivot))

    async def end_turn(self) -> None:
        async with self._alone():
            with self._open():
                turn.end_turn(self._c)

    async def close(self, timeout: float = 60.0) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._finish, timeout)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One task at a time. The lock belongs to the event loop it is used in; a session may outlive one."""
        import asyncio

        if self._turn is None or self._loop is not asyncio.get_running_loop():
            self._loop, self._turn = asyncio.get_running_loop(), asyncio.Lock()
        async with self._turn:
            self._check_open()
            yield

    async def _run(self, flow: Flow[T]) -> T:
        return await drive_async(self._stepwise(flow), self._perform)

    def _stepwise(self, flow: Flow[T]) -> Flow[T]:
        """Each step of a flow holds the session, as a whole call of a `Session` does; while it waits for a model nobody does. A session
        that was closed meanwhile writes nothing more."""
        answer: Any = None
        error: BaseException | None = None
        try:
            while True:
                if error is not None and self._closed:
                    raise error
                with self._open():
                    try:
                        effect = flow.send(answer) if error is None else flow.throw(error)
                    except StopIteration as stop:
                        value: T = stop.value
                        return value
                try:
                    answer, error = (yield effect), None
                except GeneratorExit:
                    raise
                except BaseException as raised:  # noqa: BLE001  # cancellation too: the flow sees it and can clean up
                    error = raised
        finally:
            flow.close()

    def _ask_side(self, ask: Ask, abort: Event) -> Reply:
        """A client that knows only its event loop is asked there."""
        if self._loop is None or not getattr(self._side, "only_async", False):
            return super()._ask_side(ask, abort)
        from ..fork.model_call import ask_on_loop

        return ask_on_loop(self._loop, abort, self._side, ask)

    async def _perform(self, effect: Effect) -> Any:
        import asyncio

        match effect:
            case Ask():
                return await self._side.ask_async(effect.request, purpose=effect.purpose, on_event=effect.on_event)
            case Sleep():
                return await asyncio.sleep(effect.seconds)
            case Wait():
                return await asyncio.to_thread(self._c.background.wait, effect.name, effect.seconds)
            case _:
                raise UsageError(f"A session cannot carry out {type(effect).__name__}; an agent can.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

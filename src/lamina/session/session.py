"""Session and AsyncSession: the public API for your own agent loop.

    with lamina.Session("anthropic:claude-sonnet-5-5", system="…", tools=[…]) as session:
        session.add_user("fix the failing test")
        request = session.before_call()              # client.messages.create(**request) takes it as it is
        reply = session.after_call(response)         # the SDK's response object or a dict
        session.add_tool_result(tool_use_id, output)
        session.end_turn()

Sessions share no state: one process can hold any number of them for any number of users. A session runs one call at a time;
concurrent calls from other threads or tasks wait. The steps of a turn are in turn.py; this file only exposes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .. import turn
from ..core.blocks import Wire
from ..core.effects import Ask, Effect, Flow, Sleep, Wait, drive, drive_async
from ..core.errors import UsageError
from ..core.reply import Reply
from ..providers import OnEvent
from .methods import SessionMethods

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Lock

    from ..conversation.compaction.commit import Compacted
    from ..layers.l4_compact.plan import Pivot

T = TypeVar("T")
NO_DRIVER = "A session cannot perform the effect {name}. Use an Agent for it."


class Session(SessionMethods):
    """A conversation that Lamina keeps within the model's context window.

    Add input with `add_user`, `add_tool_result` or `sync`. Then call `before_call`, send the request with your own client, and pass
    the response to `after_call`; or let `ask` do all three. Call `end_turn` when the model has given its final answer. Use the
    session as a context manager, or call `close` when you are done.
    """

    def before_call(self) -> Wire:
        """Prepare the conversation and return the next request.

        This is where large tool results are moved to files, old ones are cleared, and the conversation is compacted if it has
        outgrown its window. A compaction may call the model. Tool calls that still lack a result get an error result.

        Returns:
            The keyword arguments for the SDK's `create()`. The dict is new; its message dicts are shared, so do not change them.

        Raises:
            NothingToSend: No message was added since the last answer.
            WindowFull: The conversation has reached the blocking limit and compaction could not make room.
            SessionClosed: The session is closed.
        """
        with self._open():
            return self.provider.render(drive(self._preparing(), self._perform))

    def after_call(self, response: object) -> Reply:
        """Record the model's answer.

        Recording the same response twice has no effect.

        Args:
            response: The SDK's response object, or the same data as a dict.

        Returns:
            The answer in Lamina's own form. Execute the calls in `reply.tool_uses`; it is empty if the answer was cut off.
        """
        with self._open():
            return self._record(response)

    def ask(self, on_event: OnEvent | None = None) -> Reply:
        """Send the next request through the session's provider and record the answer.

        This combines `before_call`, the model call and `after_call`. If the server rejects the request as invalid or too long,
        the session repairs it and tries once more (see `recover`).

        Args:
            on_event: Called with each event while the answer streams in.

        Returns:
            The answer, already recorded.

        Raises:
            StreamBroken: The stream ended early. The partial answer is kept in the transcript; none of its tool calls may be
                executed.
            ProviderError: The call failed in another way, or the repaired request failed too.
            NothingToSend, WindowFull, SessionClosed: As for `before_call`.
        """
        with self._open():
            return drive(self._asking(on_event), self._perform)

    def recover(self, error: BaseException) -> bool:
        """Try to repair the conversation after the server rejected a request. Use this when you make the model calls yourself.

        A request that was too long leads to a compaction. A block that the server refuses is left out of this and all later
        requests.

        Args:
            error: The exception your client raised: the SDK's or one of Lamina's.

        Returns:
            True if the next request will differ: call `before_call` again. False if this error cannot be repaired.
        """
        with self._open():
            return drive(self._recovering(error), self._perform)

    def compact(self, instructions: str = "", *, pivot: Pivot | None = None) -> Compacted:
        """Compact the conversation now: replace messages by a summary.

        Pinned texts stay word for word. `undo` restores the messages, `expand` shows them, and `preview_compaction` tells you
        beforehand what would be summarised.

        Args:
            instructions: What the summary should focus on.
            pivot: Limits the compaction to the messages `from` or `up_to` a message. By default all messages are summarised.

        Returns:
            How it was done, what it cost, the tokens before and after, and the id for `undo` (`boundary`).

        Raises:
            NotCompacted: Nothing changed; `why` gives the reason.
        """
        with self._open():
            return drive(self._compacting(instructions, pivot), self._perform)

    def end_turn(self) -> None:
        """Mark the end of a turn, after the model's final answer.

        This may start background work: extracting memories from the turn, and consolidating them (a dream). Neither is waited
        for.
        """
        with self._open():
            turn.end_turn(self._c)

    def close(self, timeout: float = 60.0) -> None:
        """Close the session: finish background work, write everything to disk and release the transcript.

        Closing a session twice has no effect. To stop without waiting, use `abort`.

        Args:
            timeout: Maximum number of seconds to wait for background work. Jobs that take longer are cancelled and reported in
                `notices`.
        """
        self._finish(timeout)

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return self._provider_of(effect).ask(
                    effect.request, purpose=effect.purpose, on_event=effect.on_event, abort=self._aborted
                )
            case Sleep():
                return self._aborted.wait(effect.seconds)
            case Wait():
                return self._c.background.wait(effect.name, effect.seconds)
            case _:
                raise UsageError(NO_DRIVER.format(name=type(effect).__name__))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncSession(SessionMethods):
    """The async version of `Session`.

    The methods that may wait for a model are coroutines: `before_call`, `after_call`, `ask`, `recover`, `compact`, `end_turn` and
    `close`. They run one at a time. Adding input (`add_user`, `add_tool_result`, `sync`) never waits, not even while one of them is
    waiting for a model. Cancelling a coroutine leaves the recorded conversation intact.
    """

    _awaits = True
    _loop: AbstractEventLoop | None = None
    _turn: Lock | None = None

    async def before_call(self) -> Wire:
        """Prepare the conversation and return the next request. See `Session.before_call`."""
        async with self._alone():
            return self.provider.render(await self._run(self._preparing()))

    async def after_call(self, response: object) -> Reply:
        """Record the model's answer. See `Session.after_call`."""
        async with self._alone():
            with self._open():
                return self._record(response)

    async def ask(self, on_event: OnEvent | None = None) -> Reply:
        """Send the next request through the session's provider and record the answer. See `Session.ask`."""
        async with self._alone():
            return await self._run(self._asking(on_event))

    async def recover(self, error: BaseException) -> bool:
        """Try to repair the conversation after the server rejected a request. See `Session.recover`."""
        async with self._alone():
            return await self._run(self._recovering(error))

    async def compact(self, instructions: str = "", *, pivot: Pivot | None = None) -> Compacted:
        """Compact the conversation now: replace messages by a summary. See `Session.compact`."""
        async with self._alone():
            return await self._run(self._compacting(instructions, pivot))

    async def end_turn(self) -> None:
        """Mark the end of a turn, after the model's final answer. See `Session.end_turn`."""
        async with self._alone():
            with self._open():
                turn.end_turn(self._c)

    async def close(self, timeout: float = 60.0) -> None:
        """Close the session: finish background work, write everything to disk and release the transcript. See `Session.close`."""
        import asyncio

        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._finish, timeout)
        for provider in self._own_providers():
            await provider.aclose()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Let one task in at a time. A session may outlive its event loop, so each loop gets a new lock."""
        import asyncio

        if self._turn is None or self._loop is not asyncio.get_running_loop():
            self._loop, self._turn = asyncio.get_running_loop(), asyncio.Lock()
        async with self._turn:
            self._check_open()
            yield

    async def _run(self, flow: Flow[T]) -> T:
        return await drive_async(self._stepwise(flow), self._perform)

    def _stepwise(self, flow: Flow[T]) -> Flow[T]:
        """Hold the session's lock during each step of the flow, but not while it waits for a model.

        If the session is closed during a wait, the flow's next step raises instead of writing.
        """
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
        """Call an async-only client on its event loop, any other from the current thread."""
        if self._loop is None or not getattr(self._side, "only_async", False):
            return super()._ask_side(ask, abort)
        from ..fork.model_call import ask_on_loop

        return ask_on_loop(self._loop, abort, self._side, ask)

    async def _perform(self, effect: Effect) -> Any:
        import asyncio

        match effect:
            case Ask():
                return await self._provider_of(effect).ask_async(effect.request, purpose=effect.purpose, on_event=effect.on_event)
            case Sleep():
                return await asyncio.sleep(effect.seconds)
            case Wait():
                return await asyncio.to_thread(self._c.background.wait, effect.name, effect.seconds)
            case _:
                raise UsageError(NO_DRIVER.format(name=type(effect).__name__))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

"""Session: Lamina under a loop of your own.

    with lamina.Session(provider="anthropic:claude-sonnet-5-5", system="…", tools=[…]) as session:
        session.add_user("fix the failing test")
        request = session.before_call()              # client.messages.create(**request) takes it as it is
        reply = session.after_call(response)         # the SDK's response object or a dict
        session.add_tool_result(tool_use_id, output)
        session.end_turn()

A session holds all its state itself: any number of them, for any number of users, live in one process. One session belongs to one
thread at a time; calls from two at once wait for each other. What it decides is in turn.py; this file is the door.
"""

from __future__ import annotations

import time
from typing import Any, Self

from . import turn
from .core.blocks import Wire
from .core.effects import Ask, Effect, Sleep, drive, drive_async
from .core.errors import StreamBroken, UsageError
from .core.reply import Reply
from .door import Door
from .providers import OnEvent


class Session(Door):
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
        """before_call, the call through the session's provider, after_call. What arrived of an answer that broke off is kept."""
        with self._open():
            request = drive(turn.before_call(self._c), self._perform)
            try:
                return self._record(self.provider.ask(request, on_event=on_event))
            except StreamBroken as error:
                self._keep_partial(error)
                raise

    def end_turn(self) -> None:
        """The model gave its final answer."""
        with self._open():
            turn.end_turn(self._c)

    def close(self, timeout: float = 60.0) -> None:
        """Wait for background work up to `timeout` seconds, then let go of the transcript. Closing twice is fine."""
        self._finish()

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return self.provider.ask(effect.request, purpose=effect.purpose, on_event=effect.on_event)
            case Sleep():
                return time.sleep(effect.seconds)
            case _:
                raise UsageError(f"A session cannot carry out {type(effect).__name__}; an agent can.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncSession(Door):
    """The same conversation for an event loop: whatever may wait for a model is awaited."""

    async def before_call(self) -> Wire:
        self._check_open()
        return self.provider.render(await drive_async(turn.before_call(self._c), self._perform))

    async def after_call(self, response: object) -> Reply:
        with self._open():
            return self._record(response)

    async def ask(self, on_event: OnEvent | None = None) -> Reply:
        self._check_open()
        request = await drive_async(turn.before_call(self._c), self._perform)
        try:
            return self._record(await self.provider.ask_async(request, on_event=on_event))
        except StreamBroken as error:
            self._keep_partial(error)
            raise

    async def end_turn(self) -> None:
        with self._open():
            turn.end_turn(self._c)

    async def close(self, timeout: float = 60.0) -> None:
        self._finish()

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return await self.provider.ask_async(effect.request, purpose=effect.purpose, on_event=effect.on_event)
            case Sleep():
                import asyncio

                return await asyncio.sleep(effect.seconds)
            case _:
                raise UsageError(f"A session cannot carry out {type(effect).__name__}; an agent can.")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

"""The main conversation as the tool loop drives it: everything in it is logged.

`Driver` is the loop's Conversable and performs its effects, in the conversation's own thread. An abort ends a model call at once; the
part of the answer that has arrived is kept.

`MainThreadQueue` holds what other threads need from a conversation; the conversation's own thread does it while it waits for them. An
answer's calls run in their own threads, but log records and questions to the user belong to the conversation. Invariants: requests are
handled one at a time, in order; one that fails stops none of the others, and is raised when all calls are done.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from .. import turn
from ..conversation.state import Conversation
from ..core.blocks import ToolResult, ToolUse, Wire
from ..core.effects import Ask, Effect, Flow, RunTools, Sleep, Wait, drive
from ..core.errors import Aborted, ProviderError
from ..core.reply import Reply
from ..fork import loop
from ..fork.model_call import GLANCE, ask_until
from ..fork.tool_runner import AskPermission, CompletedCall, DenialWithWords, PermissionAnswer
from ..layers.l1_results.step import HandedIn
from ..providers.stream import StreamState
from ..session.base import add_results, side_provider, working
from ..tools.permissions.request import AskUser

if TYPE_CHECKING:
    from .agent import Agent


class Driver:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._session = agent.session
        self._abort = agent.context.abort

    def carry_on(self, rounds: int) -> loop.Outcome:
        """Call the model and run tools until it is done."""
        with working(self._session):
            return drive(loop.run(self, rounds=rounds), self.perform)

    # The Conversable protocol

    def request(self) -> Flow[Wire]:
        with working(self._session) as c:
            return (yield from turn.before_call(c))

    def answered(self, reply: Reply) -> Reply:
        with working(self._session) as c:
            flat = c.log.view.flat
            kept = self._session.after_call(loop.with_unique_ids(reply, lambda call: flat.fate_of_call(call) is not None))
        self._agent.tell({"type": "answer", "reply": kept})
        return kept

    def run(self, calls: tuple[ToolUse, ...]) -> Flow[str | None]:
        ran: tuple[CompletedCall, ...] = yield RunTools(calls)
        add_results(self._session, [_hand_in(one) for one in ran])
        self._agent._after_results(ran)
        if self._abort.is_set():
            raise Aborted
        return next((one.ends for one in ran if one.ends is not None), None)

    def results(self, results: Sequence[ToolResult]) -> None:
        add_results(self._session, results)
        self._agent._after_results(())

    def recover(self, error: ProviderError) -> Flow[bool]:
        with working(self._session) as c:
            return (yield from turn.recover(c, error))

    # Effects of the loop and of the layers

    def perform(self, effect: Effect) -> Any:
        match effect:
            case Ask(purpose="chat"):
                return self._ask(effect)
            case Ask():  # a side call that the turn waits for, such as a summary
                return ask_until(self._abort, side_provider(self._session), effect)
            case RunTools():
                return self._agent._run_calls(effect.calls)
            case Sleep():
                self._abort.wait(effect.seconds)
                return None
            case Wait():
                with working(self._session) as c:
                    return c.background.wait(effect.name, effect.seconds)
            case _:
                assert_never(effect)

    def _ask(self, effect: Ask) -> Reply:
        heard = StreamState()

        def hear(event: dict[str, Any]) -> None:
            nonlocal heard
            if event.get("type") == "message_start":  # a second one means a retry, which voids the first part
                heard = StreamState()
            heard.feed(event)
            self._agent.tell(event)

        try:
            reply = ask_until(self._abort, self._session.provider, effect, hear)
        except BaseException as error:
            # The loop keeps the content of a broken stream. After an abort or a failing listener, keep what has arrived.
            if not isinstance(error, ProviderError):
                partial = loop.partial(heard.partial(), self._session.provider.model)
                if partial.blocks:
                    self.answered(partial)
            raise
        if self._agent._under is not None:
            self._agent._under.saw(effect.request, reply)
        return reply


def _hand_in(ran: CompletedCall) -> HandedIn:
    """Return the result. Output too large to show is already in a file, and is not written a second time."""
    file = ran.output.facts.get("output_file")
    return HandedIn(ran.result, file if isinstance(file, str) else None, ours=ran.output.fenced)


def result_event(ran: CompletedCall) -> dict[str, Any]:
    """Return the event for a finished call."""
    output = ran.output
    told = {"id": ran.call.id, "is_error": output.is_error, "content": output.content, "facts": output.facts}
    return {"type": "tool_result", **told}


MainThreadRequest: TypeAlias = Callable[[Conversation], None]


class MainThreadQueue:
    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[MainThreadRequest] = queue.SimpleQueue()
        self._failed: Exception | None = None

    def put(self, request: MainThreadRequest) -> None:
        self._requests.put(request)

    def run_until(self, done: Future[Any], c: Conversation, abort: threading.Event) -> None:
        """Handle requests until the future is done. Ctrl-C reaches only this thread: it aborts the workers, then waits for them."""
        done.add_done_callback(lambda _: self.put(lambda _: None))  # wakes the waiting thread
        while not done.done():
            try:
                self._handle(self._requests.get(timeout=GLANCE), c)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                abort.set()
        while not self._requests.empty():
            self._handle(self._requests.get(), c)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _handle(self, request: MainThreadRequest, c: Conversation) -> None:
        try:
            request(c)
        except Exception as error:  # noqa: BLE001  # running agents must be waited for, whatever went wrong here
            self._failed = self._failed or error

    def asking(self, ask: AskPermission, abort: threading.Event) -> AskPermission:
        """Return an `ask` that puts one question at a time to the user, in the conversation's own thread."""

        def asked(call: ToolUse, question: AskUser) -> PermissionAnswer | DenialWithWords:
            answer: Future[PermissionAnswer | DenialWithWords] = Future()

            def put_question(_: Conversation) -> None:
                if answer.set_running_or_notify_cancel():
                    try:
                        answer.set_result(ask(call, question))
                    except BaseException as error:
                        answer.set_exception(error if isinstance(error, Exception) else Aborted())
                        raise

            self.put(put_question)
            while True:
                with suppress(TimeoutError):
                    return answer.result(GLANCE)
                if abort.is_set():
                    answer.cancel()
                    return "no"

        return asked

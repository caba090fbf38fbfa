"""What other threads want of a conversation, done by the thread it belongs to while that waits for them.

The calls of an answer run in threads of their own; a line in the log and a question to the person are the conversation's. Invariants:
wishes are done one at a time, in the order they came; one that fails stops none of the others, and is raised when all calls are done.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeAlias

from ..conversation.state import Conversation
from ..core.blocks import ToolUse
from ..core.errors import Aborted
from ..fork.model_call import GLANCE
from ..fork.tool_runner import AskPerson, Consent, No
from ..permissions.decision import Ask

Request: TypeAlias = Callable[[Conversation], None]


class MainThreadQueue:
    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._failed: Exception | None = None

    def put(self, wish: Request) -> None:
        self._todo.put(wish)

    def until(self, done: Future[Any], c: Conversation, abort: threading.Event) -> None:
        """Do what is wished until the future is done. Ctrl-C reaches only this thread: whoever works is told, and waited for."""
        done.add_done_callback(lambda _: self.put(_nothing))  # whoever waits looks again
        while not done.done():
            try:
                self._do(self._todo.get(timeout=GLANCE), c)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                abort.set()
        self.rest(c)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def rest(self, c: Conversation) -> None:
        """What is wished already; nobody waits for more."""
        while not self._todo.empty():
            self._do(self._todo.get(), c)

    def _do(self, wish: Request, c: Conversation) -> None:
        try:
            wish(c)
        except Exception as error:  # noqa: BLE001  # the agents that still work must be waited for, whatever went wrong here
            self._failed = self._failed or error

    def asking(self, ask: AskPerson, abort: threading.Event) -> AskPerson:
        """The person is asked in the conversation's own thread, one question at a time."""

        def asked(call: ToolUse, question: Ask) -> Consent | No:
            answer: Future[Consent | No] = Future()

            def wish(_: Conversation) -> None:
                if answer.set_running_or_notify_cancel():
                    try:
                        answer.set_result(ask(call, question))
                    except BaseException as error:
                        answer.set_exception(error if isinstance(error, Exception) else Aborted())
                        raise

            self.put(wish)
            return _answered(answer, abort)

        return asked


def _answered(answer: Future[Consent | No], abort: threading.Event) -> Consent | No:
    while True:
        try:
            return answer.result(GLANCE)
        except TimeoutError:
            if abort.is_set():
                answer.cancel()
                return "no"
        except CancelledError:
            return "no"


def _nothing(_: Conversation) -> None:
    """Wakes whoever waits."""

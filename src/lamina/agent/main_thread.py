"""What other threads want of a conversation, done by the thread it belongs to while that waits for them.

The calls of an answer run in threads of their own; a line in the log and a question to the person are the conversation's. Invariants:
requests are done one at a time, in the order they came; one that fails stops none of the others, and is raised when all calls are done.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias

from ..conversation.state import Conversation
from ..core.blocks import ToolUse
from ..core.errors import Aborted
from ..fork.model_call import GLANCE
from ..fork.tool_runner import AskPermission, DenialWithWords, PermissionAnswer
from ..permissions.request import AskUser

MainThreadRequest: TypeAlias = Callable[[Conversation], None]


class MainThreadQueue:
    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[MainThreadRequest] = queue.SimpleQueue()
        self._failed: Exception | None = None

    def put(self, request: MainThreadRequest) -> None:
        self._requests.put(request)

    def run_until(self, done: Future[Any], c: Conversation, abort: threading.Event) -> None:
        """Do what is requested until the future is done. Ctrl-C reaches only this thread: whoever works is told, and waited for."""
        done.add_done_callback(lambda _: self.put(lambda _: None))  # whoever waits looks again
        while not done.done():
            try:
                self._do(self._requests.get(timeout=GLANCE), c)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                abort.set()
        while not self._requests.empty():
            self._do(self._requests.get(), c)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _do(self, request: MainThreadRequest, c: Conversation) -> None:
        try:
            request(c)
        except Exception as error:  # noqa: BLE001  # the agents that still work must be waited for, whatever went wrong here
            self._failed = self._failed or error

    def asking(self, ask: AskPermission, abort: threading.Event) -> AskPermission:
        """The person is asked in the conversation's own thread, one question at a time."""

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

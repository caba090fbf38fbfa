"""The input of a session: user messages, tool results, and message lists kept by the caller. Nothing here waits for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from .. import turn
from ..conversation.state import Conversation
from ..core.blocks import RedactedThinking, Text, Thinking, ToolResult, ToolUse, read_content
from ..core.errors import InputError
from ..core.inputs import check_type
from ..core.records import Message
from ..layers.l1_results import step as results
from ..layers.l1_results.step import HandedIn
from ..providers import Provider
from .sync import MessageListSync

if TYPE_CHECKING:
    from ..providers.chat_rows import ChatRows


class SessionInput:
    """The methods that add messages to a session."""

    provider: Provider
    open_calls: tuple[str, ...]
    _c: Conversation
    _open: Callable[[], AbstractContextManager[None]]
    _begin: Callable[[], None]
    _list_sync: MessageListSync
    _chat_rows: ChatRows | None = None

    def add_user(self, content: str | Sequence[Mapping[str, Any]]) -> str:
        """Add a user message.

        Args:
            content: The text, or a list of content blocks (text, images, documents).

        Returns:
            The id of the message, as used by `pin` and `hide_messages`.

        Raises:
            InputError: The message is empty, malformed, or contains tool or thinking blocks.
            WindowFull: The conversation has reached the blocking limit and a compaction would not make room.
            SessionClosed: The session is closed.
        """
        with self._open():
            blocks = read_content(content, where="add_user")
            if not any(not isinstance(block, Text) or block.text.strip() for block in blocks):
                raise InputError("add_user", "the message is empty", "pass some text or a file")
            if any(isinstance(block, ToolResult | ToolUse) for block in blocks):
                raise InputError("add_user", "user messages cannot contain tool blocks", "use add_tool_result() for results")
            if any(isinstance(block, Thinking | RedactedThinking) for block in blocks):
                raise InputError("add_user", "user messages cannot contain thinking blocks", "remove them")
            self._begin()
            return self._list_sync.note(turn.add_user(self._c, blocks)).uuid

    def add_tool_result(self, tool_use_id: str, output: object, *, is_error: bool = False) -> str:
        """Add the result of a tool call.

        A result that is too large for the conversation is written to a file, and the model sees a preview of it.

        Args:
            tool_use_id: The id of the call, as in `reply.tool_uses`.
            output: A string, a list of content blocks, any JSON value, or bytes. An open file, pipe or response works too: it is
                read in pieces, and closing it remains your job.
            is_error: Whether the tool failed.

        Returns:
            The id of the message.

        Raises:
            InputError: The call does not exist or already has a result.
            SessionClosed: The session is closed.
        """
        check_type("tool_use_id", tool_use_id, str)
        return self._add_result(tool_use_id, output, is_error=is_error).uuid

    def _add_result(
        self, tool_use_id: str, output: object, *, is_error: bool, fenced: bool = False, unlisted: bool = False
    ) -> Message:
        """Add a result. `fenced`: its text has fences around the data in it. `unlisted`: the caller's list need not hold it."""
        with self._open():
            fate = self._c.log.view.flat.fate_of_call(tool_use_id)
            if fate is None or fate == "answered":
                problem = f"tool call {tool_use_id!r} already has a result" if fate else f"unknown tool call {tool_use_id!r}"
                raise InputError("add_tool_result", problem, f"open calls: {', '.join(self.open_calls) or 'none'}")
            handed = results.hand_in(self._c, tool_use_id, output, is_error=is_error)
            handed = msgspec.structs.replace(handed, ours=fenced)
            return self._list_sync.note(turn.add_results(self._c, (handed,), unlisted=unlisted))

    def _add_results(self, results: Sequence[ToolResult | HandedIn]) -> None:
        """Add several tool results as one message."""
        with self._open():
            self._list_sync.note(turn.add_results(self._c, results))

    def sync(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Bring the session in step with your own message list, in the form your SDK uses.

        New messages are appended. The conversation branches at the first message that differs from the recorded one. The list need
        not hold the results of Lamina's own tools: Lamina keeps them, also after a branch or a resume. Messages are
        compared by identity first, so a list that has only grown costs no more than its new messages. To change a message, replace
        its dict: a block edited in place goes unnoticed.

        Args:
            messages: All messages of the conversation, oldest first.

        Raises:
            InputError: A message is malformed. The session is then unchanged.
            SessionClosed: The session is closed.
        """
        with self._open():
            if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
                raise InputError("messages", f"must be a list of messages, not {type(messages).__name__}")
            rows: Sequence[Mapping[str, Any]] = list(messages)
            if self.provider.capabilities.wire == "chat":
                if self._chat_rows is None:
                    from ..providers.chat_rows import ChatRows

                    self._chat_rows = ChatRows()
                rows = self._chat_rows.canonical(rows)
            self._begin()
            self._list_sync.sync(rows)

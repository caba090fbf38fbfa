"""The public methods and properties that both kinds of session have: input, edits by hand, and what can be read. None waits for a model.

Each one checks its arguments, takes the lock, and calls the function that does the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec

from .. import turn
from ..conversation.isolate import isolate
from ..conversation.triggers import base
from ..conversation.window.thresholds import WindowState, state_of
from ..core.blocks import RedactedThinking, Text, Thinking, ToolResult, ToolUse, Wire, read_content
from ..core.errors import InputError
from ..core.inputs import check_type
from ..core.records import Message
from ..core.settings import Settings
from ..core.usage import Usage
from ..layers.l1_results import step as results
from ..prompt.break_causes import CacheBreak
from ..providers import Provider
from ..providers.models import Cost
from . import edits
from .base import SessionBase
from .edits import Decision, TurnInView, UndoneTurn
from .provider import limits_for, no_wider, provider_for

if TYPE_CHECKING:  # layer 4, memory and tools are imported on first use
    from ..fork.host import Source
    from ..layers.l4_compact.plan import Pivot
    from ..layers.l4_compact.step import CompactionPreview
    from ..memory.store.change_sets import UndoneSet
    from ..tools.tool import ExpandedPage
    from .own_tools import Called


class SessionStatus(msgspec.Struct, frozen=True):
    """What the session has used, what runs in the background, and current problems."""

    usage: Usage  # tokens of the model calls made through this object, without side calls
    cost: Cost  # of those calls: `usd`, or None if a model's prices are unknown; `units` in prices of one input token
    open_calls: tuple[str, ...]  # ids of the tool calls that have no result yet
    background_jobs: tuple[str, ...]  # names of the running jobs
    side_usage: Usage  # tokens of forks (notes, summaries), estimated if no model answered; not part of `usage`
    side_cost: Cost  # cost of the forks that a model answered
    budget_exhausted: str | None  # the daily limit that blocks background work: calls, tokens or dollars
    write_error: str | None  # why the transcript cannot be written; None if everything is on disk
    cache_breaks: int  # requests that did not start with the previous one; each has a record with the reason
    cache_misses: tuple[CacheBreak, ...]  # cache misses that no change of ours explains, newest last


class SessionMethods(SessionBase):
    """A session without the steps that may call a model."""

    # Input

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
        with self._open() as c:
            blocks = read_content(content, where="add_user")
            if not any(not isinstance(block, Text) or block.text.strip() for block in blocks):
                raise InputError("add_user", "the message is empty", "pass some text or a file")
            if any(isinstance(block, ToolResult | ToolUse) for block in blocks):
                raise InputError("add_user", "user messages cannot contain tool blocks", "use add_tool_result() for results")
            if any(isinstance(block, Thinking | RedactedThinking) for block in blocks):
                raise InputError("add_user", "user messages cannot contain thinking blocks", "remove them")
            self._context.begin()
            return self._list_sync.note(turn.add_user(c, blocks)).uuid

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
        with self._open() as c:
            fate = c.log.view.flat.fate_of_call(tool_use_id)
            if fate is None or fate == "answered":
                problem = f"tool call {tool_use_id!r} already has a result" if fate else f"unknown tool call {tool_use_id!r}"
                raise InputError("add_tool_result", problem, f"open calls: {', '.join(c.log.view.flat.open_calls) or 'none'}")
            handed = results.hand_in(c, tool_use_id, output, is_error=is_error)
            handed = msgspec.structs.replace(handed, ours=fenced)
            return self._list_sync.note(turn.add_results(c, (handed,), unlisted=unlisted))

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
            rows = self._list_sync.rows(messages, chat=self.provider.capabilities.wire == "chat")
            self._context.begin()
            self._list_sync.sync(rows)

    def note_read(self, path: str | Path) -> None:
        """Tell the session that the model has seen a file.

        The files seen last are shown again after a compaction, with their content at that time, and instruction files next to them are
        added to the conversation. If you name your read tool in `read_tool`, this happens by itself.

        Args:
            path: The file. A relative path starts at the session's working directory.
        """
        check_type("path", path, str, PathLike)
        with self._open():
            self._context.note_read(str(path), {})

    def answer_tool(self, call: Called) -> ToolResult | None:
        """Run a call of one of Lamina's own tools and record its result. Pass `offer_tools=True` to offer them to the model.

        If you keep your own message list, it need not hold the result.

        Args:
            call: A call from `reply.tool_uses`.

        Returns:
            The result as the model sees it. None if the tool is yours: run it yourself and call `add_tool_result`.
        """
        with self._open() as c:
            from ..tools.tool import failure
            from .own_tools import Called, find_own, run_own

            check_type("call", call, Called, words="an item of reply.tool_uses")
            tool = find_own(c, self._context.own_tools, call.name)
            if tool is None:
                return None
            failed = failure(f"{tool.name} failed. Continue without it.")
            output = isolate(c, tool.name, lambda _: run_own(c, tool, call), failed)
            record = self._add_result(call.id, output.content, is_error=output.is_error, fenced=output.fenced, unlisted=True)
            return next(block for block in record.blocks if isinstance(block, ToolResult))

    # Edits by hand

    def pin(self, text: str | None = None, *, message: str | None = None) -> str:
        """Keep a text or a message word for word through every compaction.

        Args:
            text: The text to keep.
            message: Id of the message to keep. Give either this or `text`.

        Returns:
            The id of the pin; pass it to `undo` to remove the pin. Pinning the same message again returns the existing pin.

        Raises:
            InputError: Both or neither of the arguments are given, the message is not in view, or the text is too large.
        """
        check_type("text", text, str, NoneType)
        check_type("message", message, str, NoneType)
        with self._open() as c:
            return edits.pin(c, text, message)

    def hide_messages(self, first: str = "", last: str = "", *, turns: str = "") -> str:
        """Hide messages from the model. The transcript keeps them, and `undo` shows them again.

        Args:
            first: Id of the first message to hide.
            last: Id of the last message to hide. Defaults to `first`.
            turns: Hide whole turns instead, by their position in the list `turns`, counted from 1: `"2"` or `"2-4"`.

        Returns:
            The id of the change, for `undo` and `expand`.

        Raises:
            InputError: The messages or turns do not exist, or cannot be hidden.
            UsageError: The setting `lamina.snip` disables hiding.
        """
        for name, text in {"first": first, "last": last, "turns": turns}.items():
            check_type(name, text, str)
        with self._open() as c:
            return edits.hide(c, first, last, turns)

    def undo(self, decision: str | None = None) -> Decision:
        """Undo a compaction, a clearing, hidden or collapsed messages, or a pin.

        Args:
            decision: Id of the change, or the start of it. Defaults to the latest change other than a pin.

        Returns:
            The change that was undone.

        Raises:
            UsageError: There is nothing to undo.
            UndoOrder: A later change depends on this one and must be undone first.
            InputError: The id is unknown or ambiguous.
        """
        check_type("decision", decision, str, NoneType)
        with self._open() as c:
            return edits.undo(c, decision)

    def decisions(self) -> list[Decision]:
        """Return the changes of what the model sees that are in force, oldest first: compactions, clearings, spills, hidden messages, pins.

        Changes from before the last compaction are part of it and not listed.
        """
        with self._open() as c:
            return edits.decisions(c)

    def undo_turn(self) -> UndoneTurn:
        """Undo the last turn, so that the conversation continues before the user's last message.

        The transcript keeps everything. Files that tools changed stay changed, and so do memories; pass the result to
        `undo_memories` to take those back too.

        Returns:
            What was removed, and the memories that the turn saved, changed, removed or proposed.

        Raises:
            UsageError: There is no turn to undo.
        """
        with self._open() as c:
            return edits.undo_turn(c, self._context.memory)

    def undo_memories(self, turn: UndoneTurn) -> UndoneSet:
        """Take back what an undone turn changed in memory.

        Args:
            turn: The result of `undo_turn`.

        Returns:
            What was undone (`back`), and what was left (`left`, with `sentences`): a memory that was changed since stays as it
            is. A memory that the turn created goes to the trash.
        """
        check_type("turn", turn, UndoneTurn, words="the result of undo_turn()")
        with self._open():
            return self._context.memory.undo_changes(turn.messages)

    def expand(self, node: str, *, page_number: int = 1) -> ExpandedPage:
        """Return the original text behind a summary, placeholder, marker, spilled result or pin.

        Args:
            node: The id of the summary, change, tool call or pin.
            page_number: The page to return, counted from 1.

        Returns:
            The text of the page, its number and the number of pages.

        Raises:
            InputError: The id or the page does not exist.
        """
        check_type("node", node, str)
        check_type("page_number", page_number, int)
        with self._open() as c:
            from .expand import open_page

            return open_page(c, node, page_number)

    def preview_compaction(self, *, pivot: Pivot | None = None) -> CompactionPreview:
        """Return what `compact` would do, without calling a model or changing anything.

        Args:
            pivot: As for `compact`.

        Returns:
            The ids that would be summarised and kept, the token counts before and after (an estimate), and the files and pins that
            would be restored.
        """
        with self._open() as c:
            from ..layers.l4_compact.plan import Pivot
            from ..layers.l4_compact.step import preview

            check_type("pivot", pivot, Pivot, NoneType)
            return preview(c, pivot=pivot)

    def restore_after_compaction(self, kind: str, key: str, text: Source | None) -> None:
        """Show a text to the model again after every compaction.

        Args:
            kind: What the text is: `skill`, `plan`, `tools`, `agents`, `mcp`, or a kind you define.
            key: Identifies the text within its kind. Registering the same kind and key again replaces the text and makes it the
                newest.
            text: The text, or a function that is called at each compaction and returns the text or None. None unregisters it.

        Raises:
            InputError: The kind or the key is empty.
        """
        check_type("kind", kind, str)
        check_type("key", key, str)
        with self._open() as c:
            if not kind.strip() or not key.strip():
                raise InputError("restore_after_compaction", "the kind or the key is empty", "pass both")
            c.register_restorable(kind, key, text)

    # The loop on top

    def switch_model(self, provider: str | Provider, *, window: int | None = None) -> None:
        """Continue the conversation with another model.

        The next request breaks the prompt cache; the break is recorded with its reason. Token counting starts afresh, because the
        old model's counts do not apply to the new one. Background work started with the old model is cancelled.

        Args:
            provider: Wire format and model, such as `"openai:gpt-5"`, or a provider object.
            window: Size of its context window in tokens. By default a window given when the session was opened still applies,
                up to the size the new model is known to support.
        """
        check_type("window", window, int, NoneType)
        with self._open() as c:
            named, provider = isinstance(provider, str), provider_for(provider, None)
            self._opened_providers += [provider] if named else []
            asked = window if window is not None else no_wider(self._window, provider.model)
            limits = limits_for(provider, c.policy, c.settings, window=asked, options=c.prompt.options, notices=c.notices)
            self._window = window if window is not None else self._window
            # Running jobs were started with the old model's requests.
            for name in c.background.names:
                c.background.abort(name)
            self.provider, self._answers_side = provider, None
            c.switch_model(provider.model, provider.capabilities, limits)
            self._tell_left_out_tools()

    # What can be read

    @property
    def settings(self) -> Settings:
        """The settings currently in effect."""
        return self._c.settings

    @property
    def notices(self) -> list[str]:
        """Messages for the user, oldest first, such as a failed write or a forked session. Read-only: the session appends to it."""
        return self._c.notices

    @property
    def path(self) -> Path | None:
        """Path of the transcript file, or None for an in-memory session."""
        return self._c.store.path

    @property
    def turns(self) -> list[TurnInView]:
        """The turns that the model currently sees, oldest first."""
        return edits.turns_in_view(self._c)

    @property
    def messages(self) -> list[Wire]:
        """The messages that the model would see now. The list is new; its dicts are shared, so do not change them."""
        return self._c.log.view.messages()

    @property
    def window_state(self) -> WindowState:
        """The state of the context window in tokens: how many are used, the limit, the reserve for the answer, and the thresholds."""
        c = self._c
        margin = c.count.judged - c.count.tokens
        return state_of(c.count.tokens, c.limits, margin=margin, autocompact_on=c.autocompact, base=base(c))

    @property
    def status(self) -> SessionStatus:
        """Usage and cost, open tool calls, background jobs, write errors, and cache breaks."""
        c = self._c
        out = c.ask_side.out
        return SessionStatus(
            usage=c.spent,
            cost=self._cost,
            open_calls=c.log.view.flat.open_calls,
            background_jobs=c.background.names,
            side_usage=c.side.usage,
            side_cost=c.side.cost,
            budget_exhausted=out.what if out is not None else None,
            write_error=c.store.trouble,
            cache_breaks=c.last.breaks,
            cache_misses=tuple(c.last.findings),
        )

"""Flattening: visible items become a message list the API accepts, at every moment (C11, Z6).

Theory. Between two answers of the model stands exactly one user message. So the flat form is a row of *turns*, roles alternating:

- an assistant turn gathers every record of one answer (same message id), wherever in the file they stand;
- a user turn gathers everything up to the next answer: first the tool results, then the rest (texts, images, injected context),
  each in order of arrival. The API wants results first; a reminder that arrived between two results moves behind them.

A tool call still open when the next answer begins gets a synthetic error result; its real result, should it still come, becomes
text. A result without a call is dropped, a second result for the same call is dropped. Rendering leaves out what the API
refuses: empty text, thinking without a signature, thinking at the end of an answer, a call whose id was used before, a server's
tool call without its result and the other way round, blocks that only the other role may send. The one exception is an answer
that stands last: a server that paused gets its open call back as it sent it. A turn with nothing left is void: its neighbours
merge.

A rendered message is never changed: when a turn grows, its message is built anew and the ones before it are shared. `chain`
holds one prefix link per block (see prefix.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Literal

from .blocks import (
    Block,
    Document,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    Wire,
    text,
    tool_result,
)
from .prefix import ROOT, link

# What the model reads in place of a result that never came.
MISSING_RESULT = "No result: the call was interrupted before it finished."
# A conversation must begin with the user; one whose beginning is gone begins with this.
OPENING = "(The beginning of this conversation is not shown.)"
# Tools that run at the provider have call and result in one answer; their block types are many and end like this.
SERVER_CALL = "_tool_use"
SERVER_RESULT = "_tool_result"
# Blocks that only one of the two may send.
USERS_OWN = ToolResult | Image | Document
MODELS_OWN = Thinking | RedactedThinking | ToolUse


class Turn:
    """One message in the making. `results` and `calls` are used by user and assistant turns respectively."""

    __slots__ = ("calls", "keys", "others", "results", "role")

    def __init__(self, role: Literal["user", "assistant"]) -> None:
        self.role = role
        self.keys: set[str] = set()  # message ids of the answer, or of several with nothing between them
        self.results: list[ToolResult] = []
        self.others: list[Block] = []
        self.calls: dict[str, str] = {}  # tool_use id → tool name

    def rendered(self, open_calls: Iterable[str], *, last: bool) -> list[Block]:
        if self.role == "assistant":
            return _legal_answer(self.others, paused=last)
        missing = [tool_result(call, MISSING_RESULT, is_error=True) for call in open_calls]
        return [*self.results, *missing, *self.others]


class Flat:
    """The flat form of a row of items, kept up to date as items are added. Same items, same result, in one go or one by one."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._open: dict[str, None] = {}  # calls of the last answer without a result, in order
        self._answered: dict[str, bool] = {}  # call → was its result synthetic
        self._home: dict[str, int] = {}  # tool_use id → turn that holds its result
        self._wire: list[Wire] = []
        self._from: list[int] = []  # per wire message: its first turn
        self._to: list[int] = []  # and its last
        self._links: list[int] = []  # per wire message: links before it
        self.chain: list[bytes] = []
        self._dirty = 0  # turns from here on are not rendered yet
        # A list made ahead for the next request, and how many of its messages are still those of the conversation.
        self._spare: list[Wire] | None = None
        self._same = 0

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Calls that a request sent now would have to answer with a synthetic result."""
        return tuple(self._open)

    def fate_of_call(self, tool_use_id: str) -> Literal["open", "answered", "made up"] | None:
        """Whether a call waits for its result, has it, or was answered with a synthetic one; None: there is no such call."""
        if tool_use_id in self._open:
            return "open"
        if tool_use_id not in self._answered:
            return None
        return "made up" if self._answered[tool_use_id] else "answered"

    def links_before_last_answer(self) -> int:
        """Links of the request that the last answer replied to; 0 where there is no answer."""
        self._render()
        for index in range(len(self._wire) - 1, -1, -1):
            if self._wire[index]["role"] == "assistant":
                return self._links[index]
        return 0

    def tool_name(self, tool_use_id: str) -> str | None:
        for turn in reversed(self._turns):
            if tool_use_id in turn.calls:
                return turn.calls[tool_use_id]
        return None

    def messages(self) -> list[Wire]:
        """The message list for a request: a new list, its dicts shared and read-only."""
        self._render()
        spare, self._spare = self._spare, None
        if spare is None:
            return self._wire.copy()
        del spare[self._same :]
        spare += self._wire[self._same :]
        return spare

    def prepare(self) -> None:
        """Copy the list ahead of the next request: touching thousands of messages is what a long conversation costs, and it costs
        nobody anything while the tools run. What is new is not rendered yet: open calls may still get their results."""
        self._spare = self._wire.copy()
        self._same = len(self._wire)

    def add(
        self, role: Literal["user", "assistant"], blocks: Iterable[Block], *, key: str | None = None, synthetic: bool = False
    ) -> None:
        if role == "assistant":
            self._add_answer(blocks, key)
        else:
            self._add_said(blocks, synthetic)

    def replace_result(self, old: ToolResult, new: ToolResult) -> bool:
        """Put another block in the place of this very one; False where it is not shown as a result (dropped, or come late)."""
        at = self._home.get(old.tool_use_id)
        if at is None:
            return False
        results = self._turns[at].results
        for index, block in enumerate(results):
            if block is old:
                results[index] = new
                self._touch(at)
                return True
        return False

    def _add_answer(self, blocks: Iterable[Block], key: str | None) -> None:
        at = self._answer_in_progress(key)
        if at is None:
            for call in tuple(self._open):
                self._add_result(tool_result(call, MISSING_RESULT, is_error=True), synthetic=True)
            self._turns.append(Turn("assistant"))
            at = len(self._turns) - 1
        turn = self._turns[at]
        if key is not None:
            turn.keys.add(key)
        for block in blocks:
            if isinstance(block, ToolUse):
                if block.id in self._answered or block.id in self._open:
                    continue
                turn.calls[block.id] = block.name
                self._open[block.id] = None
            turn.others.append(block)
        self._touch(at)

    def _answer_in_progress(self, key: str | None) -> int | None:
        """The turn these blocks belong to: the last answer, if it has the same id, or stands last and has no call open."""
        for at in range(len(self._turns) - 1, max(-1, len(self._turns) - 3), -1):
            turn = self._turns[at]
            if turn.role != "assistant":
                continue
            same = key is not None and key in turn.keys
            last = at == len(self._turns) - 1
            return at if same or (last and not self._open) else None
        return None

    def _add_said(self, blocks: Iterable[Block], synthetic: bool) -> None:
        for block in blocks:
            if isinstance(block, ToolResult):
                self._add_result(block, synthetic)
            elif _may_stand(block, MODELS_OWN):
                self._turns[self._user_turn()].others.append(block)

    def _add_result(self, block: ToolResult, synthetic: bool) -> None:
        call = block.tool_use_id
        if call in self._open:
            del self._open[call]
            at = self._home[call] = self._user_turn()
            self._answered[call] = synthetic
            self._turns[at].results.append(block)
        elif self._answered.get(call) and not synthetic:
            self._answered[call] = False
            late = text(f"Late result of {self.tool_name(call) or 'a tool'} (call {call}):\n{block.text or '(no text)'}")
            self._turns[self._user_turn()].others.append(late)

    def _user_turn(self) -> int:
        """The turn what is said goes into. Only what is sent opens one: a void user turn would part an answer in two."""
        if not self._turns or self._turns[-1].role != "user":
            self._turns.append(Turn("user"))
        self._touch(len(self._turns) - 1)
        return len(self._turns) - 1

    def _touch(self, at: int) -> None:
        self._dirty = min(self._dirty, at)

    def _render(self) -> None:
        """Render what changed. Rendering starts at the wire message that holds the first changed turn, since void turns merge
        their neighbours."""
        first = self._dirty
        if first >= len(self._turns):
            return
        # An answer reads otherwise once it no longer stands last.
        first -= first > 0 and self._turns[first - 1].role == "assistant"
        keep = len(self._wire)
        while keep and self._to[keep - 1] >= first:
            keep -= 1
        start, links = first, len(self.chain)
        if keep < len(self._wire):
            # An opening stands there for the answer behind it, and goes with it.
            keep -= keep > 0 and self._from[keep - 1] == self._from[keep]
            start, links = min(first, self._from[keep]), self._links[keep]
        before, messages = self.chain[links:], self._wire[keep:]
        del self.chain[links:]
        del self._wire[keep:], self._from[keep:], self._to[keep:], self._links[keep:]
        # The message before may take in what is rendered now (same role), so it may become another.
        self._same = min(self._same, max(0, keep - 1))
        self._render_from(start)
        self._dirty = len(self._turns)
        for at, message in enumerate(messages[: len(self._wire) - keep], start=keep):
            if self._wire[at] == message:
                self._wire[at] = message
        if self.chain[links : links + len(before)] != before:
            # What was rendered is not repeated: whoever holds the chain as it was sent keeps it.
            held, self.chain = self.chain, self.chain.copy()
            held[links:] = before

    def _render_from(self, start: int) -> None:
        for at in range(start, len(self._turns)):
            turn = self._turns[at]
            last = at == len(self._turns) - 1
            open_calls = self._open if last and turn.role == "user" else ()
            self._emit(turn.role, turn.rendered(open_calls, last=last and not self._open), at)
        if self._open and self._turns[-1].role == "assistant":
            self._emit("user", [tool_result(call, MISSING_RESULT, is_error=True) for call in self._open], len(self._turns))

    def _emit(self, role: str, blocks: list[Block], at: int) -> None:
        if not blocks:
            return
        if not self._wire and role == "assistant":
            self._emit("user", [text(OPENING)], at)
        content = [block.wire for block in blocks]
        if self._wire and self._wire[-1]["role"] == role:
            self._wire[-1] = {"role": role, "content": self._wire[-1]["content"] + content}
            self._to[-1] = at
        else:
            self._wire.append({"role": role, "content": content})
            self._from.append(at)
            self._to.append(at)
            self._links.append(len(self.chain))
        last = self.chain[-1] if self.chain else ROOT
        for block in blocks:
            last = link(last, role, block.digest)
            self.chain.append(last)


def _legal_answer(blocks: list[Block], *, paused: bool) -> list[Block]:
    """The blocks of an answer that the API takes back. `paused`: it stands last, so a server's call may still be open."""
    served = _served(blocks, paused=paused) if any(isinstance(block, Unknown) for block in blocks) else ()
    kept = [block for at, block in enumerate(blocks) if at in served or _may_stand(block, USERS_OWN)]
    while kept and isinstance(kept[-1], Thinking | RedactedThinking):
        kept.pop()
    return kept


def _served(blocks: list[Block], *, paused: bool) -> set[int]:
    """Where the server's own tool calls stand that have a result behind them, and those results: one of each."""
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for at, block in enumerate(blocks):
        if not isinstance(block, Unknown):
            continue
        if block.kind.endswith(SERVER_CALL):
            calls.setdefault(str(block.wire.get("id")), at)
        elif block.kind.endswith(SERVER_RESULT) and (name := str(block.wire.get("tool_use_id"))) in calls:
            results.setdefault(name, at)
    return {at for name, at in calls.items() if paused or name in results} | set(results.values())


def _may_stand(block: Block, of_others: UnionType) -> bool:
    """Whether the API takes a block in a message that may not hold `of_others`."""
    match block:
        case Text():
            return bool(block.text.strip())
        case Unknown(kind=kind):
            return not kind.endswith((SERVER_CALL, SERVER_RESULT))
        case Thinking() if of_others is USERS_OWN:
            return bool(block.signature)
        case _:
            return not isinstance(block, of_others)

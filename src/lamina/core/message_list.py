"""Flattening turns visible items into a message list that the API accepts at any moment.

Between two answers of the model there is exactly one user message. So the flat form is a sequence of *turns* with alternating roles:

- an assistant turn collects all records of one answer (same message id), wherever they are in the file;
- a user turn collects everything up to the next answer: first the tool results, then the rest (texts, images, injected context),
  each in order of arrival. The API requires results first, so a reminder that arrived between two results moves after them.
  Results that are shown once come after the other results, because everything after them is sent again with their previews.

A tool call that is still open when the next answer begins gets a synthetic error result. If its real result arrives later, it
becomes text. A result without a call is dropped, and so is a second result for the same call. Rendering leaves out everything that
the API rejects: empty text, thinking without a signature, thinking at the end of an answer, a call whose id was used before,
a server tool call without its result and vice versa, and blocks that only the other role may send. There is one exception: if the
last message is an answer in which the server paused, its open call is sent back unchanged. A turn without any blocks is void, and
its neighbours merge.

A rendered message never changes: when a turn grows, its message is built again and the ones before it are shared. `chain` contains
one prefix link per block (see prefix.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType, UnionType
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
from .copies import copy_with_containers
from .prefix import ROOT, link

# Replaces a result that never arrived.
MISSING_RESULT = "No result: the call was interrupted before it finished."
# A conversation must start with a user message; this one is used if the original start is no longer in view.
OPENING = "(The beginning of this conversation is not shown.)"
# Tools that run at the provider have their call and result in one answer; the names of their many block types end like this.
SERVER_CALL = "_tool_use"
SERVER_RESULT = "_tool_result"
# Blocks that only one of the two roles may send.
USERS_OWN = ToolResult | Image | Document
MODELS_OWN = Thinking | RedactedThinking | ToolUse


NONE_ONCE: Mapping[str, str] = MappingProxyType({})


class MessageDraft:
    """One message under construction. User turns use `results`, assistant turns use `calls`."""

    __slots__ = ("calls", "keys", "once", "others", "results", "role")

    def __init__(self, role: Literal["user", "assistant"]) -> None:
        self.role = role
        self.keys: set[str] = set()  # message ids of the answer, or of several consecutive answers
        self.results: list[ToolResult] = []
        self.once: list[ToolResult] = []  # results that are shown once, or their previews
        self.others: list[Block] = []
        self.calls: dict[str, str] = {}  # tool_use id → tool name

    def copy(self) -> MessageDraft:
        made = MessageDraft(self.role)
        made.keys, made.calls = self.keys.copy(), self.calls.copy()
        made.results, made.once, made.others = self.results.copy(), self.once.copy(), self.others.copy()
        return made

    def rendered(self, open_calls: Iterable[str], *, last: bool) -> list[Block]:
        if self.role == "assistant":
            return _legal_answer(self.others, paused=last)
        missing = [tool_result(call, MISSING_RESULT, is_error=True) for call in open_calls]
        return [*self.results, *missing, *self.once, *self.others]


class Flat:
    """The flat form of a sequence of items, updated as items are added. The result does not depend on how they are added."""

    def __init__(self, once: Mapping[str, str] = NONE_ONCE) -> None:
        """`once` maps the ids of results that are shown once to their previews. The caller may add to it."""
        self._once = once
        self.unseen: dict[str, int] = {}  # results shown whole that no complete answer has seen → turn
        self._turns: list[MessageDraft] = []
        self._open: dict[str, None] = {}  # calls of the last answer without a result, in order
        self._answered: dict[str, bool] = {}  # call → whether its result is synthetic
        self._home: dict[str, int] = {}  # tool_use id → turn that contains its result
        self._wire: list[Wire] = []
        self._from: list[int] = []  # first turn of each wire message
        self._to: list[int] = []  # last turn of each wire message
        self._links: list[int] = []  # number of links before each wire message
        self.chain: list[bytes] = []
        self._dirty = 0  # turns from here on are not rendered yet
        # A list prepared for the next request, and how many of its messages are still valid.
        self._spare: list[Wire] | None = None
        self._same = 0

    def copy(self, once: Mapping[str, str]) -> Flat:
        """Return a copy that goes on without this one. `once` is that of the copy."""
        made = copy_with_containers(self)
        made._once, made._spare = once, None
        made._turns = [turn.copy() for turn in self._turns]
        return made

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Calls without a result. A request sent now would contain synthetic results for them."""
        return tuple(self._open)

    def fate_of_call(self, tool_use_id: str) -> Literal["open", "answered", "made up"] | None:
        """Whether a call waits for its result, has it, or got a synthetic one; None if the call does not exist."""
        if tool_use_id in self._open:
            return "open"
        if tool_use_id not in self._answered:
            return None
        return "made up" if self._answered[tool_use_id] else "answered"

    def links_before_last_answer(self) -> int:
        """Return the number of links that the request of the last answer left in the cache, or 0 without an answer.

        A result that it showed once, and everything after it, was not cached.
        """
        self._render()
        for index in range(len(self._wire) - 1, -1, -1):
            if self._wire[index]["role"] == "assistant":
                return self._links_before(index - 1, self._once) if index and self._once else self._links[index]
        return 0

    @property
    def stable_links(self) -> int:
        """The number of links that later requests repeat: all, or those before the first result shown once that is still whole."""
        self._render()
        if not self.unseen:
            return len(self.chain)
        first, index = min(self.unseen.values()), len(self._wire) - 1
        while index and self._from[index] > first:
            index -= 1
        return self._links_before(index, self.unseen)

    def unstable_blocks(self) -> list[Block]:
        """Return the blocks that the next request shows and later ones may not repeat at their place."""
        if not self.unseen:
            return []
        first = min(self.unseen.values())
        here = self._turns[first]
        return [
            *here.once,
            *here.others,
            *(block for turn in self._turns[first + 1 :] for block in turn.rendered((), last=False)),
        ]

    def _links_before(self, message: int, calls: Container[str]) -> int:
        """Return the number of links before the first of these results in a message, or up to its end."""
        content = self._wire[message]["content"]
        found = (at for at, block in enumerate(content) if block.get("tool_use_id") in calls)
        return self._links[message] + next(found, len(content))

    def tool_name(self, tool_use_id: str) -> str | None:
        for turn in reversed(self._turns):
            if tool_use_id in turn.calls:
                return turn.calls[tool_use_id]
        return None

    def messages(self) -> list[Wire]:
        """Return the message list for a request: a new list whose dicts are shared and must not be changed."""
        self._render()
        spare, self._spare = self._spare, None
        if spare is None:
            return self._wire.copy()
        del spare[self._same :]
        spare += self._wire[self._same :]
        return spare

    def prepare(self) -> None:
        """Copy the list ahead of the next request.

        Copying thousands of messages is the main cost of a long conversation, and no one waits for it while tools run. New turns
        are not rendered yet, because open calls may still get their results.
        """
        self._spare = self._wire.copy()
        self._same = len(self._wire)

    def add(
        self,
        role: Literal["user", "assistant"],
        blocks: Iterable[Block],
        *,
        key: str | None = None,
        synthetic: bool = False,
        complete: bool = False,
    ) -> None:
        """Add an item. After a complete answer, no result is unseen."""
        if role == "assistant":
            self._add_answer(blocks, key)
            if complete:
                self.unseen.clear()
        else:
            self._add_user_blocks(blocks, synthetic)

    def replace_result(self, old: ToolResult, new: ToolResult) -> bool:
        """Replace this exact block. Return False if it is not shown as a result because it was dropped or arrived late."""
        at = self._home.get(old.tool_use_id)
        if at is None:
            return False
        for results in (self._turns[at].results, self._turns[at].once):
            for index, block in enumerate(results):
                if block is old:
                    results[index] = new
                    self.unseen.pop(old.tool_use_id, None)
                    self._touch(at)
                    return True
        return False

    def _add_answer(self, blocks: Iterable[Block], key: str | None) -> None:
        at = self._answer_in_progress(key)
        if at is None:
            for call in tuple(self._open):
                self._add_result(tool_result(call, MISSING_RESULT, is_error=True), synthetic=True)
            self._turns.append(MessageDraft("assistant"))
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
        """Return the turn that these blocks continue: the last answer, if it has the same id or is last and has no open call."""
        for at in range(len(self._turns) - 1, max(-1, len(self._turns) - 3), -1):
            turn = self._turns[at]
            if turn.role != "assistant":
                continue
            same = key is not None and key in turn.keys
            last = at == len(self._turns) - 1
            return at if same or (last and not self._open) else None
        return None

    def _add_user_blocks(self, blocks: Iterable[Block], synthetic: bool) -> None:
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
            if call not in self._once or synthetic:
                self._turns[at].results.append(block)
                return
            self._turns[at].once.append(block)
            if block.content != self._once[call]:
                self.unseen[call] = at
        elif self._answered.get(call) and not synthetic:
            self._answered[call] = False
            late = text(f"Late result of {self.tool_name(call) or 'a tool'} (call {call}):\n{block.text or '(no text)'}")
            self._turns[self._user_turn()].others.append(late)

    def _user_turn(self) -> int:
        """Return the current user turn, or start one. Call it only for blocks to send: a void user turn would split an answer."""
        if not self._turns or self._turns[-1].role != "user":
            self._turns.append(MessageDraft("user"))
        self._touch(len(self._turns) - 1)
        return len(self._turns) - 1

    def _touch(self, at: int) -> None:
        self._dirty = min(self._dirty, at)

    def _render(self) -> None:
        """Render all changes, starting at the wire message with the first changed turn, since void turns merge their neighbours."""
        first = self._dirty
        if first >= len(self._turns):
            return
        # An answer may be rendered differently once it is no longer last.
        first -= first > 0 and self._turns[first - 1].role == "assistant"
        keep = len(self._wire)
        while keep and self._to[keep - 1] >= first:
            keep -= 1
        start, links = first, len(self.chain)
        if keep < len(self._wire):
            # An opening belongs to the answer after it and is removed with it.
            keep -= keep > 0 and self._from[keep - 1] == self._from[keep]
            start, links = min(first, self._from[keep]), self._links[keep]
        before, messages = self.chain[links:], self._wire[keep:]
        del self.chain[links:]
        del self._wire[keep:], self._from[keep:], self._to[keep:], self._links[keep:]
        # The previous message may absorb the new blocks (same role), so it may change too.
        self._same = min(self._same, max(0, keep - 1))
        self._render_from(start)
        self._dirty = len(self._turns)
        for at, message in enumerate(messages[: len(self._wire) - keep], start=keep):
            if self._wire[at] == message:
                self._wire[at] = message
        if self.chain[links : links + len(before)] != before:
            # The rendering changed, so continue on a copy: callers that hold the chain as it was sent keep it.
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
    """Return the blocks of an answer that the API accepts. `paused`: the answer is last, so a server call may still be open."""
    served = _served(blocks, paused=paused) if any(isinstance(block, Unknown) for block in blocks) else ()
    kept = [block for at, block in enumerate(blocks) if at in served or _may_stand(block, USERS_OWN)]
    while kept and isinstance(kept[-1], Thinking | RedactedThinking):
        kept.pop()
    return kept


def _served(blocks: list[Block], *, paused: bool) -> set[int]:
    """Return the positions of server tool calls that have a result, and of these results, one of each per id."""
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
    """Whether the API accepts the block in a message that must not contain `of_others`."""
    match block:
        case Text():
            return bool(block.text.strip())
        case Unknown(kind=kind):
            return not kind.endswith((SERVER_CALL, SERVER_RESULT))
        case Thinking() if of_others is USERS_OWN:
            return bool(block.signature)
        case _:
            return not isinstance(block, of_others)

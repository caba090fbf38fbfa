"""MessageListSync a message list that the caller owns (Session.sync).

The caller's list and the log meet at the level of blocks: what was said, in order, by digest. The common beginning is kept, the
rest is appended, and where the list departs from what was said the conversation branches. Messages are compared by identity
first, so a list that only grew costs what is new in it. A list that cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import turn
from ..conversation import revision
from ..conversation.exchange import record_answer
from ..conversation.state import Conversation
from ..core.blocks import Block, RedactedThinking, Thinking, ToolResult, ToolUse, read_content
from ..core.errors import InputError
from ..core.log import Log
from ..core.records import Message
from ..core.reply import Reply, plain
from ..layers.l1_results import step as results


class LoggedBlock(NamedTuple):
    """One block as it was said, for callers who keep their own list."""

    role: str
    digest: bytes
    record: str
    unit: str  # what a branch leaves out as a whole: a record of the user's, an answer of the model's


class SyncedMessage(NamedTuple):
    """A message of the caller's list as it was at the last sync: same objects, same message."""

    message: Mapping[str, Any]
    content: object
    parts: object  # a copy of the content's list: the same parts, were it to grow or change
    end: int  # blocks up to and including this message


class NewMessage(NamedTuple):
    """A message of the caller's list that is not known yet."""

    message: Mapping[str, Any]
    role: str
    blocks: tuple[Block, ...]


class MessageListSync:
    def __init__(self, conversation: Conversation, *, resumed: bool) -> None:
        self._c = conversation
        # A resumed session reads back what was said when it is first asked for.
        self._said: list[LoggedBlock] | None = None if resumed else []
        self._seen: list[SyncedMessage] = []

    def sync(self, rows: Sequence[Mapping[str, Any]]) -> None:
        agreed = self._agreed(rows)
        new = [read_message(index, row) for index, row in enumerate(rows[agreed:], start=agreed)]
        position = self._seen[agreed - 1].end if agreed else 0
        self._seen = self._seen[:agreed]
        for message in new:
            position = self._follow(message, position)
        if position < len(self._spoken):
            self._branch(position)

    def note(self, record: Message) -> Message:
        """Something was said through the session itself."""
        if self._said is not None:
            self._said.extend(_blocks_said(record))
        return record

    def _agreed(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """How many leading messages are the very objects of the last sync."""
        for index, ((known, content, parts, _), message) in enumerate(zip(self._seen, rows, strict=False)):
            # Comparing a list with its copy looks at identity first, and no deeper where that is enough.
            if known is not message or content is not message.get("content") or content != parts:
                return index
        return min(len(self._seen), len(rows))

    def _follow(self, read: NewMessage, position: int) -> int:
        role, blocks = read.role, read.blocks
        new = 0
        while new < len(blocks) and position + new < len(self._spoken):
            said = self._spoken[position + new]
            if said.role != role or not self._same(said, blocks[new]):
                self._branch(position + new)
                break
            new += 1
        if new < len(blocks):
            self._append(role, blocks[new:])
        position += len(blocks)
        content = read.message.get("content")
        self._seen.append(
            SyncedMessage(read.message, content, content.copy() if isinstance(content, list) else content, position)
        )
        return position

    def _same(self, said: LoggedBlock, block: Block) -> bool:
        """A result that was too large, or empty, stands in the log in another form than in the caller's list."""
        return said.digest == block.digest or said.digest == results.kept_as(self._c, block).digest

    def _append(self, role: str, blocks: Sequence[Block]) -> None:
        if role == "assistant":
            # Neighbours of one role are one message to the API: what follows an answer directly belongs to it.
            last = self._spoken[-1] if self._spoken else None
            key = last.unit if last is not None and last.role == "assistant" else None
            for record in record_answer(self._c, Reply("", self._c.prompt.model, tuple(blocks), "end_turn"), key):
                self.note(record)
        else:
            # A result is owed to the model: words beside it come in with it.
            owed = any(isinstance(block, ToolResult) for block in blocks)
            self.note((turn.add_results if owed else turn.add_user)(self._c, blocks))

    def _branch(self, position: int) -> None:
        """Leave out what was said from `position` on. A unit cut in the middle leaves whole, and its beginning is said again."""
        spoken = self._spoken
        start = position
        while start and spoken[start - 1].unit == spoken[position].unit:
            start -= 1
        again = self._blocks_of(spoken[start:position])
        revision.rewind(self._c, spoken[start - 1].record if start else None)
        role = spoken[position].role
        del spoken[start:]
        if again:
            self._append(role, again)

    def _blocks_of(self, said: Sequence[LoggedBlock]) -> list[Block]:
        """These blocks, the first ones of their unit, as they were said."""
        if not said:
            return []
        wanted = {one.record for one in said}
        shown = [block for item in self._c.log.view.items if item.uuid in wanted for block in item.blocks][: len(said)]
        if [block.digest for block in shown] == [one.digest for one in said]:
            return shown
        # What the view shows in another form, or no longer, stands in the log as it was said.
        records = {
            record.uuid: record for record in self._c.store.read() if isinstance(record, Message) and record.uuid in wanted
        }
        return [block for record in records.values() for block in record.blocks][: len(said)]

    @property
    def _spoken(self) -> list[LoggedBlock]:
        if self._said is None:
            self._said = self._recall_said()
        return self._said

    def _recall_said(self) -> list[LoggedBlock]:
        """Everything the caller may have in their list, what was compacted since included."""
        tree = Log.load(self._c.store.read).tree if self._c.start else self._c.log.tree
        return [
            said
            for record in self._c.store.read()
            if isinstance(record, Message)
            and record.uuid in tree.members
            and not (record.meta or record.summary or record.synthetic or record.silent)
            for said in _blocks_said(record)
        ]


def read_message(index: int, message: object) -> NewMessage:
    where = f"messages[{index}]"
    if not isinstance(message, Mapping):
        raise InputError(where, f"a message must be an object with a role and content, not {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise InputError(where, f"the role {role!r} is neither user nor assistant")
    if isinstance(content, list | tuple):
        # `messages.append({"role": "assistant", "content": response.content})`: the SDK's objects.
        content = [plain(part) if hasattr(part, "model_dump") else part for part in content]
    blocks = read_content(content, where=f"{where}.content")
    wrong = ToolUse | Thinking | RedactedThinking if role == "user" else ToolResult
    for block in blocks:
        if isinstance(block, wrong):
            raise InputError(f"{where}.content", f"a {block.wire['type']} block is nothing the {role} says")
    return NewMessage(message, role, blocks)


def _blocks_said(record: Message) -> Iterator[LoggedBlock]:
    unit = record.message_id or record.uuid
    return (LoggedBlock(record.role, block.digest, record.uuid, unit) for block in record.blocks)

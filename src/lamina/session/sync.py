"""Keeps the log in step with a message list that the caller owns (Session.sync).

List and log are compared block by block, in order, by digest. The common prefix is kept and the rest is appended. The conversation
branches at the first block that differs, and the user is notified. Messages are compared by identity first, so a list that has only
grown costs no more than its new messages. An invalid list changes nothing: all new messages are read before the first one is
recorded.

The leading system and developer messages are the system prompt. If the session has none, they become it; if it contains them already,
nothing happens. All others are context in the middle of the conversation. Not every model accepts the role `system` there, so the text is
sent in place as a reminder, and recorded as injected context. Both keep the prefix of the requests.

What Lamina added is not part of the comparison: results of its own tools, results that stand for missing ones, and reminders. The list
may hold it or not. A result of an own tool stays as long as its call does, also if the list holds another text for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from .. import turn
from ..conversation import revision
from ..conversation.exchange import record_answer
from ..conversation.state import Conversation
from ..core.blocks import Block, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown, read_content, text
from ..core.errors import InputError
from ..core.fence import escape, reminder
from ..core.message_list import MISSING_RESULT
from ..core.records import Attachment, Message
from ..core.reply import Reply, plain
from ..disk.transcripts.store import load_whole
from ..language.wording import counted, plural
from ..layers.l1_results import step as results
from ..layers.l1_results.step import HandedIn

if TYPE_CHECKING:
    from ..providers.conversion import ChatRows

ROLES = ("system", "developer")
KIND = "system_message"
# How a block of context begins that Lamina added.
REMINDER = "<system-reminder>"
EDITED = "Lamina sends its own text for the result of {tool} (call {call}), not the text in the message list."
UNSENDABLE = "Tool calls or results that the message list repeats or misplaces are sent once or not at all: {calls}."
NOT_SENT = (
    "A message in the list has its own output_config, which is not sent: it would drop the prompt cache. "
    "Set it for all requests with options={'output_config': …}."
)
Recorded = TypeVar("Recorded", Message, Attachment)


class LoggedBlock(msgspec.Struct, frozen=True):
    """One recorded block, to be compared with the caller's list."""

    role: str
    digest: bytes
    record: str
    unit: str  # the user record or model answer it belongs to; a branch drops units as a whole


class SyncedMessage(NamedTuple):
    """A message of the caller's list at the last sync. If its objects are still the same, the message is too."""

    message: Mapping[str, Any]
    content: object
    parts: object  # a copy of the content list, to notice if the caller's list grows or changes
    end: int  # number of blocks up to and including this message


class OwnResult(NamedTuple):
    """The result that one of Lamina's own tools gave to a call."""

    call: bytes  # digest of the call: another branch may use its id for another call
    block: ToolResult


class NewMessage(msgspec.Struct, frozen=True):
    """A message of the caller's list that the last sync did not have."""

    message: Mapping[str, Any]
    role: str
    blocks: tuple[Block, ...]
    words: str = ""  # text of a system message


class MessageListSync:
    """Appends what is new in a message list and branches where it differs."""

    def __init__(self, conversation: Conversation, *, resumed: bool) -> None:
        self._c = conversation
        # None: not loaded yet. A resumed session reads the recorded blocks on first use.
        self._loaded: list[LoggedBlock] | None = None if resumed else []
        self._own_results: dict[str, OwnResult] = {}  # by call id, of all branches
        self._reminders: dict[bytes, bool] = {}  # texts that look like a reminder → whether Lamina added them
        self._synced: list[SyncedMessage] = []
        self._chat_rows: ChatRows | None = None

    def rows(self, messages: Iterable[Mapping[str, Any]], *, chat: bool) -> Sequence[Mapping[str, Any]]:
        """Return the caller's messages in the form of the Messages API. `chat`: they have that of Chat Completions."""
        if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
            raise InputError("messages", f"must be a list of messages, not {type(messages).__name__}")
        if not chat:
            return list(messages)
        if self._chat_rows is None:
            from ..providers.conversion import ChatRows

            self._chat_rows = ChatRows()
        return self._chat_rows.canonical(list(messages))

    def sync(self, rows: Sequence[Mapping[str, Any]]) -> None:
        agreed = self._agreed(rows)
        new = [read_message(index, row) for index, row in enumerate(rows[agreed:], start=agreed)]
        if agreed < (first := _leading(rows)):
            new = [*self._without_prompt(rows[:first], new[: first - agreed]), *new[first - agreed :]]
        if any(row.message.get("output_config") for row in new):
            self._c.notify_once(NOT_SENT)
        position = self._synced[agreed - 1].end if agreed else 0
        self._synced = self._synced[:agreed]
        for message in new:
            position = self._follow(message, position)
        if position < len(self._logged):
            self._branch(position)

    def _without_prompt(self, rows: Sequence[Mapping[str, Any]], new: Sequence[NewMessage]) -> list[NewMessage]:
        """Take the leading system messages as the system prompt, unless they are recorded as context, or must be sent as such."""
        logged = self._logged
        words = "\n\n".join(filter(None, (read_message(index, row).words for index, row in enumerate(rows))))
        if logged and logged[0].role == "system":
            return list(new)
        if words and not take_prompt(self._c, words, begun=bool(logged)):
            return list(new)
        return [msgspec.structs.replace(row, blocks=()) for row in new]

    def note(self, record: Recorded) -> Recorded:
        """Note a message that was recorded by another method of the session."""
        match record:
            case _ if self._loaded is None:
                pass
            case Message(unlisted=True):
                calls = (self._call(block.tool_use_id) for block in record.blocks if isinstance(block, ToolResult))
                self._note_own(record, {call.id: call.digest for call in calls if call is not None})
            case _:
                self._loaded.extend(_logged_blocks(record))
        return record

    def _note_own(self, record: Message, calls: Mapping[str, bytes]) -> None:
        results = (block for block in record.blocks if isinstance(block, ToolResult))
        self._own_results |= {
            block.tool_use_id: OwnResult(calls[block.tool_use_id], block) for block in results if block.tool_use_id in calls
        }

    def _agreed(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Return how many leading messages are the same objects as at the last sync."""
        for index, ((before, content, parts, _), message) in enumerate(zip(self._synced, rows, strict=False)):
            # List comparison checks identity before equality, so unchanged parts are not compared deeply.
            if before is not message or content is not message.get("content") or content != parts:
                return index
        return min(len(self._synced), len(rows))

    def _follow(self, message: NewMessage, position: int) -> int:
        role, blocks = message.role, message.blocks
        if role == "user":
            blocks = tuple(block for block in blocks if not self._is_ours(block))
        new = 0
        while new < len(blocks) and position + new < len(self._logged):
            logged = self._logged[position + new]
            if logged.role != role or not self._same(logged, blocks[new]):
                self._branch(position + new)
                break
            new += 1
        if new < len(blocks):
            self._append(role, blocks[new:])
        position += len(blocks)
        content = message.message.get("content")
        parts = content.copy() if isinstance(content, list) else content
        self._synced.append(SyncedMessage(message.message, content, parts, position))
        return position

    def _same(self, logged: LoggedBlock, block: Block) -> bool:
        """Compare a logged block with the caller's. A tool result that was too large, or empty, is logged in another form."""
        return logged.digest == block.digest or logged.digest == results.kept_as(self._c, block).digest

    def _is_ours(self, block: Block) -> bool:
        """Return whether Lamina added this block of a user message, so that the list only repeats it."""
        match block:
            case ToolResult():
                own = self._own_result(block.tool_use_id)
                kept = results.kept_as(self._c, block) if own is not None else block
                if own is not None and own.text not in (block.text, kept.text if isinstance(kept, ToolResult) else ""):
                    tool = self._c.log.view.flat.tool_name(block.tool_use_id) or "its own tool"
                    self._c.notify_once(EDITED.format(tool=tool, call=block.tool_use_id))
                return own is not None or block.text == MISSING_RESULT
            case Text() if block.text.startswith(REMINDER):
                return self._is_own_reminder(block.digest)
            case _:
                return False

    def _own_result(self, call_id: str) -> ToolResult | None:
        """Return the result that one of Lamina's own tools gave to this call, unless the id is another call's by now."""
        own = self._own_results.get(call_id)
        call = self._call(call_id) if own is not None else None
        return own.block if own is not None and (call is None or call.digest == own.call) else None

    def _call(self, call_id: str) -> ToolUse | None:
        items = (item for item in reversed(self._c.log.view.items) if item.role == "assistant")
        return next(
            (block for item in items for block in item.blocks if isinstance(block, ToolUse) and block.id == call_id), None
        )

    def _is_own_reminder(self, digest: bytes) -> bool:
        if digest not in self._reminders:
            in_view = (block.digest for item, block in self._c.log.view.blocks() if item.kind.startswith("attachment:"))
            # A compaction may have removed it from the view.
            logged = (record for record in self._c.store.read() if isinstance(record, Attachment))
            recorded = (block.digest for record in logged if not _is_listed(record) for block in record.blocks)
            self._reminders[digest] = digest in in_view or digest in recorded
        return self._reminders[digest]

    def _answer_again(self) -> None:
        """Give open calls of Lamina's own tools the results that a branch has dropped."""
        answered = [block for call in self._c.log.view.flat.open_calls if (block := self._own_result(call)) is not None]
        if answered:
            turn.add_results(self._c, [HandedIn(block, ours=True) for block in answered], unlisted=True)

    def _append(self, role: str, blocks: Sequence[Block]) -> None:
        # No request can hold calls that are repeated, or results that are repeated or have no call.
        fate = self._c.log.view.flat.fate_of_call
        calls = [block.id for block in blocks if isinstance(block, ToolUse) and fate(block.id) is not None]
        answered = (block.tool_use_id for block in blocks if isinstance(block, ToolResult))
        if unsendable := [*calls, *(call for call in answered if fate(call) in (None, "answered"))]:
            self._c.notify_once(UNSENDABLE.format(calls=", ".join(unsendable)))
        if role == "assistant":
            # The API merges adjacent messages of one role, so blocks right after an answer belong to it.
            last = self._logged[-1] if self._logged else None
            key = last.unit if last is not None and last.role == "assistant" else None
            for record in record_answer(self._c, Reply("", self._c.prompt.model, tuple(blocks), "end_turn"), key):
                self.note(record)
            self._answer_again()
        elif role == "system":
            context = Attachment(*self._c.head(), KIND, tuple(blocks))
            self._c.append([context])
            self.note(context)
        else:
            # Tool results are accepted even in a full window, and so is text in the same message.
            has_result = any(isinstance(block, ToolResult) for block in blocks)
            self.note((turn.add_results if has_result else turn.add_user)(self._c, blocks))

    def _branch(self, position: int) -> None:
        """Drop everything from `position` on. If that cuts a unit in two, drop all of it and append its first part again."""
        logged = self._logged
        start = position
        while start and logged[start - 1].unit == logged[position].unit:
            start -= 1
        again = self._blocks_of(logged[start:position])
        self._c.notify(
            "The message list no longer matches the recorded conversation, which now branches: "
            f"{counted(len(logged) - position, 'recorded block')} {plural(len(logged) - position, 'is', 'are')} not part of it."
        )
        target: str | None = logged[start - 1].record if start else None
        if not start:  # the context before the caller's first message stays: instruction files, the date
            records = (record for record in self._c.store.read() if isinstance(record, Message))
            target = next((record.parent for record in records if record.uuid == logged[0].record), None)
        revision.rewind(self._c, target)
        role = logged[position].role
        del logged[start:]
        if again:
            self._append(role, again)
        else:
            self._answer_again()

    def _blocks_of(self, logged: Sequence[LoggedBlock]) -> list[Block]:
        """Return the original blocks. They must be the first ones of their unit."""
        if not logged:
            return []
        wanted = {block.record for block in logged}
        blocks = [block for item in self._c.log.view.items if item.uuid in wanted for block in item.blocks][: len(logged)]
        if [block.digest for block in blocks] == [block.digest for block in logged]:
            return blocks
        # The view has changed or dropped some of them; the log has the originals.
        records = {
            record.uuid: record
            for record in self._c.store.read()
            if isinstance(record, Message | Attachment) and record.uuid in wanted
        }
        return [block for record in records.values() for block in record.blocks][: len(logged)]

    @property
    def _logged(self) -> list[LoggedBlock]:
        if self._loaded is None:
            self._loaded = self._load_logged()
        return self._loaded

    def _load_logged(self) -> list[LoggedBlock]:
        """Return every block that the caller's list may contain, including those compacted since. Note the results of own tools."""
        tree = load_whole(self._c.store).tree if self._c.start else self._c.log.tree
        logged: list[LoggedBlock] = []
        calls: dict[str, bytes] = {}
        for record in self._c.store.read():
            if not isinstance(record, Message | Attachment):
                continue
            calls |= {block.id: block.digest for block in record.blocks if isinstance(block, ToolUse)}
            if isinstance(record, Message) and record.unlisted:
                self._note_own(record, calls)
            elif record.uuid in tree.members and _is_listed(record):
                logged += _logged_blocks(record)
        return logged


def read_message(index: int, message: object) -> NewMessage:
    where = f"messages[{index}]"
    if not isinstance(message, Mapping):
        raise InputError(where, f"a message must be an object with a role and content, not {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", *ROLES):
        raise InputError(where, f"invalid role {role!r}", "use 'user', 'assistant' or 'system'")
    if isinstance(content, list | tuple):
        # The content may hold SDK objects: `messages.append({"role": "assistant", "content": response.content})`.
        content = [plain(part) if hasattr(part, "model_dump") else part for part in content]
    blocks = read_content(content, where=f"{where}.content")
    if role in ROLES:
        return NewMessage(message, "system", *_read_system(blocks, where))
    wrong = ToolUse | Thinking | RedactedThinking if role == "user" else ToolResult
    for block in blocks:
        if isinstance(block, wrong):
            raise InputError(f"{where}.content", f"{role} messages cannot contain {block.wire['type']} blocks")
    return NewMessage(message, role, blocks)


def _is_listed(record: Message | Attachment) -> bool:
    """Return whether the caller's list may contain this record."""
    if isinstance(record, Attachment):
        return record.kind == KIND
    return not (record.meta or record.summary or record.synthetic or record.silent)


def _logged_blocks(record: Message | Attachment) -> Iterator[LoggedBlock]:
    role, key = ("system", None) if isinstance(record, Attachment) else (record.role, record.message_id)
    return (LoggedBlock(role, block.digest, record.uuid, key or record.uuid) for block in record.blocks)


def _read_system(blocks: Sequence[Block], where: str) -> tuple[tuple[Block, ...], str]:
    """Return a system message as the block that is sent, and its text."""
    parts = [block for block in blocks if not (isinstance(block, Unknown) and block.kind == "chat_fields")]
    if wrong := next((block for block in parts if not isinstance(block, Text)), None):
        raise InputError(f"{where}.content", f"system messages cannot contain {wrong.wire['type']} blocks")
    words = "\n\n".join(block.text for block in parts if isinstance(block, Text) and block.text.strip())
    return (text(reminder([escape(words)])),) if words else (), words


def _leading(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of system messages before the first other message."""
    return next((index for index, row in enumerate(rows) if row.get("role") not in ROLES), len(rows))


def take_prompt(c: Conversation, words: str, *, begun: bool) -> bool:
    """Use the leading system messages as the system prompt. Return False if they must be sent as context instead.

    If the conversation has begun, a changed text replaces the first part of the prompt, which breaks the cache.
    """
    now = [str(block.get("text", "")) for block in c.prompt.system]
    if any(words in part for part in (*now, "\n\n".join(now))):
        return True
    if now and not begun:
        return False
    c.replace_prompt([text(words).wire, *c.prompt.system[1:]], c.prompt.tools)
    return True

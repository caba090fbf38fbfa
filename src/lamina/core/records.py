"""The records of a transcript, as values.

There are four kinds: (a) messages, one record per assistant block; (b) injected context (`Attachment`); (c) decisions, such as
compactions, clearings, spills, pins and undos; (d) bookkeeping (prompt snapshot, break, checkpoint, fork, event). A record of an
unknown kind becomes a `Foreign`: it keeps its place in the tree, and its bytes in the file are never changed. record_lines.py
defines how each record is written as a line.

The ids of records and sessions are random UUIDs (version 4) as text.
"""

from __future__ import annotations

from os import urandom
from typing import TypeAlias

import msgspec

from .blocks import Block, Role, Wire
from .usage import Usage, count_of

# The event of a session of another program that states the size of its window, as `tokens`.
WINDOW_EVENT = "window"


class Linked(msgspec.Struct, frozen=True):
    """Base of all records that have a parent in the tree."""

    uuid: str
    parent: str | None
    time: str


class Message(Linked, frozen=True):
    """A message of the user or the model, as it is recorded in the transcript."""

    role: Role
    blocks: tuple[Block, ...]
    message_id: str | None = None  # shared by all records of one model response
    usage: Usage | None = None
    stop_reason: str | None = None
    model: str | None = None
    sidechain: bool = False
    meta: bool = False  # inserted by a program, not written by the user
    summary: bool = False  # replaces the messages that a boundary removed
    silent: bool = False  # shown to the user but never sent (an API error displayed as an assistant message)
    synthetic: bool = False  # a placeholder result, made because the real one was missing when the request was sent
    unlisted: bool = False  # results of Lamina's own tools, which the caller's message list need not hold
    by: str | None = None  # the decision this record belongs to; both are revoked together
    request_id: str | None = None  # the provider's id of the request; written for other readers but never read back
    usd: float | None = None  # the cost, if another agent recorded it

    @property
    def from_model(self) -> bool:
        """Whether a model wrote it, so that a request came before it. Some agents write answers themselves."""
        return self.role == "assistant" and not self.silent and not is_placeholder(self.model or "")


def is_placeholder(model: str) -> bool:
    """Whether a name stands for no model, such as `<synthetic>`: the agent wrote the answer itself."""
    return model.startswith("<")


class Attachment(Linked, frozen=True):
    """Context inserted between messages, exactly as it was sent."""

    kind: str
    blocks: tuple[Block, ...]
    sidechain: bool = False
    by: str | None = None
    facts: Wire = {}  # fields that other readers expect in an attachment of this kind; written but never read back
    files: tuple[str, ...] = ()  # files whose text it shows, if another program's record names them; read but never written


class Boundary(msgspec.Struct, frozen=True):
    """A compaction: everything before it leaves the view except `kept`, and its summary follows as a message.

    It takes effect when the first record that depends on it arrives, so a crash in between leaves the old view intact.
    """

    uuid: str
    logical_parent: str | None
    time: str
    trigger: str  # auto | manual
    tokens_before: int = 0
    kept: tuple[str, ...] = ()
    receipt: Wire = {}
    sidechain: bool = False
    preserved: Preserved | None = None


class Preserved(msgspec.Struct, frozen=True):
    """The place where other programs put the kept messages of a compaction: after the anchor, which is the summary, and before the rest."""

    anchor: str
    uuids: tuple[str, ...]


class Spill(Linked, frozen=True):
    """A tool result that is stored in a file. The view shows `preview`, which never changes.

    With `once`, the log holds the whole result too, and the view shows it until the first complete answer after it.
    """

    tool_use_id: str
    preview: str
    path: str = ""
    size: int = 0
    sha256: str = ""
    once: bool = False


class Clear(Linked, frozen=True):
    """Old results and attachments removed from the view, or old answers shortened. What replaces them never changes."""

    markers: dict[str, str]  # tool_use id → the marker that replaces its result
    attachments: tuple[str, ...] = ()
    trigger: str = "size"
    tokens_saved: int = 0
    receipt: Wire = {}
    shortened: dict[str, list[Wire]] = {}  # record of an answer → the blocks shown instead of its own


class Span(Linked, frozen=True):
    """A run of records replaced by one text: a snip (a marker), a collapse (a placeholder that can be expanded) or a partial summary."""

    kind: str  # snip | collapse | partial
    ids: tuple[str, ...]
    text: str
    tokens: int = 0
    receipt: Wire = {}


class Pin(Linked, frozen=True):
    """A message (`target`) or a text that every compaction keeps verbatim."""

    target: str | None = None
    text: str | None = None


class Revoke(Linked, frozen=True):
    """Undoes one decision: the view is the same as if `target` had never been written."""

    target: str


class Rewind(Linked, frozen=True):
    """Continues the conversation from an earlier message: everything after `target` leaves it (None: everything)."""

    target: str | None


class Break(Linked, frozen=True):
    """Announces that the next request does not start with the previous one. It is written before that request is sent."""

    reason: str
    first_changed: int  # index of the first block that differs, counted over tools, system, messages
    tokens: int = 0  # estimated tokens that must be written to the cache again


class Snapshot(Linked, frozen=True):
    """The system prompt, tools and options exactly as sent, so that a resumed session sends the same bytes."""

    system: list[Wire]
    tools: list[Wire]
    options: Wire = {}
    model: str = ""
    max_tokens: int = 0


class Checkpoint(Linked, frozen=True):
    """A point from which a resume may start reading, with the state that it needs from the records before it."""

    boundary: str  # the boundary it follows; if that is revoked, the checkpoint is ignored
    start: int  # byte offset of the oldest record the live view needs
    state: Wire = {}


class Forked(Linked, frozen=True):
    """The first record of a transcript that continues another one."""

    from_session: str
    from_path: str
    reason: str = ""


class Event(Linked, frozen=True):
    """Bookkeeping that never affects the view: costs of forks, findings, layer events."""

    name: str
    data: Wire = {}

    @property
    def window(self) -> int:
        """The size of the window as another program states it in its session; 0 in any other event."""
        return count_of(self.data.get("tokens")) if self.name == WINDOW_EVENT else 0


class Foreign(msgspec.Struct, frozen=True):
    """A record of an unknown kind. With a uuid it is part of the tree, otherwise it is just a line."""

    kind: str
    uuid: str | None = None
    parent: str | None = None
    time: str = ""
    sidechain: bool = False


class Newer(msgspec.Struct, frozen=True):
    """A record in a newer format, which this version must not try to interpret."""

    found: int
    uuid: str | None = None
    parent: str | None = None
    time: str = ""


# Nodes of the conversation; decisions that are attached to a node and change the view; all other records.
Grown: TypeAlias = Message | Attachment | Boundary
Hung: TypeAlias = Spill | Clear | Span | Pin | Snapshot | Revoke
Placed: TypeAlias = Grown | Hung
Record: TypeAlias = Placed | Rewind | Break | Checkpoint | Forked | Event | Foreign | Newer


# The two fixed bits of the variant allow four digits at its position.
VARIANT = "89ab"


def new_id() -> str:
    """Return a random UUID. This is cheaper than `uuid.uuid4`, which creates an object and whose import probes the platform."""
    digits = urandom(16).hex()
    variant = VARIANT[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

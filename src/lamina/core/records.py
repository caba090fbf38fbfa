"""Records: what a transcript holds, as values.

Four kinds: (a) messages, one record per assistant block; (b) injected context, as `Attachment`; (c) decisions: what was compacted,
cleared, spilled, folded, pinned, taken back; (d) bookkeeping (prompt snapshot, break, checkpoint, fork, event). What this version
does not know is a `Foreign`: it keeps its place in the tree and its bytes stay in the file untouched. How each looks as a line is
in record_lines.py.

Ids of records and sessions are random UUIDs (version 4) as text.
"""

from __future__ import annotations

from os import urandom
from typing import TypeAlias

import msgspec

from .blocks import Block, Role, Wire
from .usage import Usage


class Linked(msgspec.Struct, frozen=True):
    """A record that hangs on another one in the tree."""

    uuid: str
    parent: str | None
    time: str


class Message(Linked, frozen=True):
    role: Role
    blocks: tuple[Block, ...]
    message_id: str | None = None  # records of one model answer share it
    usage: Usage | None = None
    stop_reason: str | None = None
    model: str | None = None
    sidechain: bool = False
    meta: bool = False  # put in by a program, not said by the person
    summary: bool = False  # stands for what a boundary removed
    silent: bool = False  # shown to people only, never sent (an API error as the assistant's words)
    synthetic: bool = False  # a result made up because the real one was missing when the request left
    by: str | None = None  # the decision this record belongs to: revoked with it


class Attachment(Linked, frozen=True):
    """Context put in between messages, with exactly what was sent."""

    kind: str
    blocks: tuple[Block, ...]
    sidechain: bool = False
    by: str | None = None
    facts: Wire = {}  # what other readers of such transcripts look for in an attachment of this kind; written, not read back
    files: tuple[str, ...] = ()  # whose text is shown, where another program's record says so; read, never written


class Boundary(msgspec.Struct, frozen=True):
    """A compaction: everything before it leaves the view, but for `kept`; its summary follows as a message. Takes effect when the
    first record that rests on it arrives, so a crash in between leaves the old view."""

    uuid: str
    logical_parent: str | None
    time: str
    trigger: str  # auto | manual
    tokens_before: int = 0
    kept: tuple[str, ...] = ()
    receipt: Wire = {}
    sidechain: bool = False


class Spill(Linked, frozen=True):
    """A result that lives in a file; the view shows `preview`, frozen."""

    tool_use_id: str
    preview: str
    path: str = ""
    size: int = 0
    sha256: str = ""


class Clear(Linked, frozen=True):
    """Old results and attachments taken out of the view, each replaced by a marker that never changes again."""

    markers: dict[str, str]  # tool_use id → what stands in its place
    attachments: tuple[str, ...] = ()
    trigger: str = "size"
    tokens_saved: int = 0
    receipt: Wire = {}


class Span(Linked, frozen=True):
    """A run of records folded into one text: a snip (a marker), a collapse (a placeholder that can be opened again) or the summary of
    a part."""

    kind: str  # snip | collapse | partial
    ids: tuple[str, ...]
    text: str
    tokens: int = 0
    receipt: Wire = {}


class Pin(Linked, frozen=True):
    """A message (`target`) or a text that survives every compaction verbatim."""

    target: str | None = None
    text: str | None = None


class Revoke(Linked, frozen=True):
    """Takes back one decision: the view is what it would be had `target` never been written."""

    target: str


class Rewind(Linked, frozen=True):
    """The conversation goes on from an earlier message: everything behind `target` leaves it (None: everything)."""

    target: str | None


class Break(Linked, frozen=True):
    """The next request does not start with the previous one; written before it is sent."""

    reason: str
    first_changed: int  # index of the first block that differs, counted over tools, system, messages
    tokens: int = 0  # estimate of what has to be written to the cache again


class Snapshot(Linked, frozen=True):
    """What stands before the messages as it was sent, so that a resumed session sends the same bytes."""

    system: list[Wire]
    tools: list[Wire]
    options: Wire = {}
    model: str = ""
    max_tokens: int = 0


class Checkpoint(Linked, frozen=True):
    """Where a resume may start reading, and what it must know of what lies before."""

    boundary: str  # the boundary it follows; a revoked boundary's checkpoint does not count
    start: int  # byte offset of the oldest record the live view needs
    state: Wire = {}


class Forked(Linked, frozen=True):
    """First record of a transcript that continues another one."""

    from_session: str
    from_path: str
    reason: str = ""


class Event(Linked, frozen=True):
    """Bookkeeping that no view depends on: costs of forks, findings, layer events."""

    name: str
    data: Wire = {}


class Foreign(msgspec.Struct, frozen=True):
    """A record of a kind this version does not know. With a uuid it is a link in the tree, else only a line."""

    kind: str
    uuid: str | None = None
    parent: str | None = None
    time: str = ""
    sidechain: bool = False


class Newer(msgspec.Struct, frozen=True):
    """A record in a format this version must not guess at."""

    found: int
    uuid: str | None = None
    parent: str | None = None
    time: str = ""


# Links of the conversation; what hangs on one of them and shapes the view; what no view depends on.
Grown: TypeAlias = Message | Attachment | Boundary
Hung: TypeAlias = Spill | Clear | Span | Pin | Snapshot | Revoke
Placed: TypeAlias = Grown | Hung
Record: TypeAlias = Placed | Rewind | Break | Checkpoint | Forked | Event | Foreign | Newer


# The two bits of the variant leave four digits where it stands.
VARIANT = "89ab"


def new_id() -> str:
    """Cheaper than `uuid.uuid4`, which makes an object first and whose module asks what platform this is."""
    digits = urandom(16).hex()
    variant = VARIANT[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

"""Reads and writes records as the lines of a transcript.

Messages and injected context have the same format as in other programs. Decisions use names that other readers know
(`compact_boundary`, `microcompact_boundary`), or are `system` records with the subtype `lamina` and their data under the key `lamina`.

`read_record` never raises: a line that it cannot interpret becomes a `Foreign`. Only a record in a format newer than FORMAT is
rejected, as `Newer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from ..language.text import encodable
from .blocks import Block, Role, Text, Wire, read_content, scrub
from .errors import InputError
from .fence import Fenced, escape, reminder
from .records import (
    Attachment,
    Boundary,
    Break,
    Checkpoint,
    Clear,
    Event,
    Foreign,
    Forked,
    Message,
    Newer,
    Pin,
    Preserved,
    Record,
    Revoke,
    Rewind,
    Snapshot,
    Span,
    Spill,
)
from .usage import read_usage

# Increase this when the meaning of a record changes for readers of the older format, but not for new optional fields.
FORMAT = 1

EMPTY: Mapping[str, str] = MappingProxyType({})

# Attachments of Claude Code with content that the model worked with. All others describe Claude Code itself: its tools, its agents,
# its environment.
CONTENT = (
    "file",
    "compact_file_reference",
    "plan_file_reference",
    "edited_text_file",
    "nested_memory",
    "relevant_memories",
    "hook_additional_context",
    "invoked_skills",
    "queued_command",
)

# Marks a line that was written again for other readers.
REPEATED = "repeated"

# Old clients clear results without recording the replacement text.
UNRECORDED_MARKER = "[An old tool result stood here; it was cleared to save space.]"


def read_record(raw: Mapping[str, Any]) -> Record:
    """Convert a decoded line to a record."""
    ours = raw.get("lamina")
    ours = ours if isinstance(ours, Mapping) else {}
    version = ours.get("v", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        return Newer(version, _str(raw.get("uuid")), _str(raw.get("parentUuid")), _time(raw))
    if ours.get(REPEATED):
        return Foreign(REPEATED, time=_time(raw))
    try:
        return _read(raw, ours)
    except (InputError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
        # AttributeError: a value is not an object where one was expected.
        return _foreign(raw)


def _read(raw: Mapping[str, Any], ours: Mapping[str, Any]) -> Record:
    uuid = _str(raw.get("uuid"))
    if uuid is None:
        return _foreign(raw)
    kind, subtype = raw.get("type"), raw.get("subtype")
    if kind in ("user", "assistant"):
        return _message(raw, ours, uuid, "user" if kind == "user" else "assistant")
    if kind == "attachment":
        return _attachment(raw, ours, uuid)
    if kind == "system" and subtype == "compact_boundary":
        return _boundary(raw, ours, uuid)
    if kind == "system" and subtype == "microcompact_boundary":
        return _clear(raw, ours, uuid)
    if kind == "system" and subtype == "lamina" and isinstance(ours.get("kind"), str):
        if (struct := _OURS.get(ours["kind"])) is None:
            return _foreign(raw)
        linked = dict(zip(("uuid", "parent", "time"), _link(raw, uuid, ours), strict=True))
        return msgspec.convert({**(ours.get("data") or {}), **linked}, struct)
    return _foreign(raw)


def _message(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str, role: Role) -> Message:
    message = raw["message"]
    return Message(
        *_link(raw, uuid, ours),
        role=role,
        blocks=read_content(message.get("content"), where=f"record {uuid}"),
        message_id=_str(message.get("id")),
        usage=read_usage(message.get("usage")) if role == "assistant" else None,
        stop_reason=_str(message.get("stop_reason")),
        model=_str(message.get("model")),
        sidechain=bool(raw.get("isSidechain")),
        meta=bool(raw.get("isMeta")),
        summary=bool(raw.get("isCompactSummary")),
        silent=bool(raw.get("isApiErrorMessage")) or bool(ours.get("silent")),
        synthetic=bool(ours.get("synthetic")),
        unlisted=bool(ours.get("unlisted")),
        by=_str(ours.get("by")),
    )


def _attachment(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Attachment:
    attachment = raw["attachment"]
    kind = str(attachment.get("type") or "unknown")
    rendered = attachment.get("rendered") or (_sent(raw) if ours or kind in CONTENT else [])
    rendered = [rendered] if isinstance(rendered, str) else rendered
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in rendered]
    return Attachment(
        *_link(raw, uuid, ours),
        kind=kind,
        blocks=read_content(content, where=f"attachment {uuid}"),
        sidechain=bool(raw.get("isSidechain")),
        by=_str(ours.get("by")),
        files=() if ours else _files(attachment.get("memories")),
    )


def _sent(raw: Mapping[str, Any]) -> list[Any]:
    """Return an attachment as it was sent. Older versions of Claude Code record only the file itself."""
    parts = [part for row in raw.get("rendered") or () for part in _parts(row.get("content")) if part]
    content = raw["attachment"].get("content")
    if parts or not (isinstance(content, Mapping) and isinstance(file := content.get("file"), Mapping) and "content" in file):
        return parts
    lines = str(file["content"]).splitlines()
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, int(file.get("startLine") or 1)))
    head = Fenced(f"{escape(str(file.get('filePath')))} was read before the compaction. This was its content then:")
    return [reminder([head, escape(numbered)])]


def _parts(content: object) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _files(memories: object) -> tuple[str, ...]:
    """Return the files of recalled memories in a record of Claude Code, which lists them next to the text."""
    rows = memories if isinstance(memories, list) else ()
    return tuple(row["path"] for row in rows if isinstance(row, dict) and isinstance(row.get("path"), str))


def _boundary(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Boundary:
    meta = raw.get("compactMetadata") or {}
    preserved = meta.get("preservedMessages") or {}
    uuids = ours.get("kept") or preserved.get("uuids") or ()
    return Boundary(
        uuid=uuid,
        logical_parent=_str(raw.get("logicalParentUuid")) or _str(raw.get("parentUuid")),
        time=_time(raw),
        trigger=str(meta.get("trigger") or "auto"),
        tokens_before=int(meta.get("preTokens") or 0),
        kept=tuple(str(item) for item in uuids),
        receipt=dict(ours.get("receipt") or {}),
        sidechain=bool(raw.get("isSidechain")),
        preserved=Preserved(str(preserved["anchorUuid"]), tuple(map(str, preserved["uuids"])))
        if ours and preserved.get("anchorUuid") not in (None, uuid)
        else None,
    )


def _clear(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Clear:
    meta = raw.get("microcompactMetadata") or {}
    markers = ours.get("markers")
    if not isinstance(markers, Mapping):
        markers = {str(item): UNRECORDED_MARKER for item in meta.get("compactedToolIds") or ()}
    return Clear(
        *_link(raw, uuid, ours),
        markers={str(key): str(value) for key, value in markers.items()},
        attachments=tuple(str(item) for item in meta.get("clearedAttachmentUUIDs") or ()),
        trigger=str(meta.get("trigger") or "size"),
        tokens_saved=int(meta.get("tokensSaved") or 0),
        receipt=dict(ours.get("receipt") or {}),
        shortened=msgspec.convert(ours.get("shortened") or {}, dict[str, list[dict[str, Any]]]),
    )


# Record kinds that only Lamina writes; the fields of the struct are stored under `lamina.data`.
_OURS: dict[str, type[Spill | Span | Pin | Revoke | Rewind | Break | Snapshot | Checkpoint | Forked | Event]] = {
    "spill": Spill,
    "span": Span,
    "pin": Pin,
    "revoke": Revoke,
    "rewind": Rewind,
    "break": Break,
    "snapshot": Snapshot,
    "checkpoint": Checkpoint,
    "fork": Forked,
    "event": Event,
}
_KIND_OF = {struct: kind for kind, struct in _OURS.items()}


def _foreign(raw: Mapping[str, Any]) -> Foreign:
    return Foreign(
        kind=str(raw.get("type") or "unknown"),
        uuid=_str(raw.get("uuid")),
        parent=_str(raw.get("parentUuid")) or _str(raw.get("logicalParentUuid")),
        time=_time(raw),
        sidechain=bool(raw.get("isSidechain")),
    )


def repeat_line(raw: Mapping[str, Any]) -> bytes:
    """Return a record as a line to write again, for other readers. They use the last line with an id; Lamina skips this one."""
    ours = raw.get("lamina")
    return msgspec.json.encode({**raw, "lamina": {"v": FORMAT, **(ours if isinstance(ours, Mapping) else {}), REPEATED: True}})


def is_repeated(raw: Mapping[str, Any]) -> bool:
    ours = raw.get("lamina")
    return isinstance(ours, Mapping) and bool(ours.get(REPEATED))


class Envelope(msgspec.Struct, frozen=True):
    """Fields that every record of a session repeats, because other readers of such transcripts expect them."""

    session_id: str
    cwd: str
    version: str  # of the package that writes the record
    git_branch: str = ""
    sidechain: bool = False
    agent_id: str | None = None


def write_record(record: Record, envelope: Envelope, moved: Mapping[str, str] = EMPTY) -> bytes:
    """Return the record as one line, without the newline. `moved` is that of the log (log.py)."""
    parent = getattr(record, "parent", None)
    parent_for_readers = moved.get(parent or "", parent)
    head: Wire = {
        "parentUuid": parent_for_readers,
        "isSidechain": envelope.sidechain,
        "userType": "external",
        "cwd": envelope.cwd,
        "sessionId": envelope.session_id,
        "version": envelope.version,
        "gitBranch": envelope.git_branch,
    }
    if envelope.agent_id is not None:
        head["agentId"] = envelope.agent_id
    tail: Wire = {"uuid": record.uuid, "timestamp": record.time}
    line = head | _body(record) | tail
    if parent_for_readers != parent:
        line["lamina"]["parent"] = parent
    try:
        return msgspec.json.encode(line, enc_hook=encodable)
    except UnicodeEncodeError:  # a lone surrogate in the name of a directory or in an id from a server
        return msgspec.json.encode(scrub(line), enc_hook=encodable)


def _body(record: Record) -> Wire:
    ours: Wire = {"v": FORMAT}
    match record:
        case Message():
            return _message_body(record, ours)
        case Attachment():
            if record.by is not None:
                ours["by"] = record.by
            return {
                "type": "attachment",
                "attachment": {"type": record.kind, **record.facts},
                # Claude Code sends this again as it is; without it, it rejects kinds that it does not know.
                "rendered": [{"content": _rendered(block)} for block in record.blocks],
                "renderedRole": "user",
                "lamina": ours,
            }
        case Boundary():
            meta: Wire = {"trigger": record.trigger, "preTokens": record.tokens_before, **_preserved(record)}
            if record.preserved is not None and record.preserved.uuids != record.kept:
                ours["kept"] = record.kept
            if record.receipt:
                ours["receipt"] = record.receipt
            return {
                "type": "system",
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "logicalParentUuid": record.logical_parent,
                "compactMetadata": meta,
                "lamina": ours,
            }
        case Clear():
            ours["markers"] = record.markers
            if record.shortened:
                ours["shortened"] = record.shortened
            if record.receipt:
                ours["receipt"] = record.receipt
            cleared = {
                "trigger": record.trigger,
                "tokensSaved": record.tokens_saved,
                "compactedToolIds": list(record.markers),
                "clearedAttachmentUUIDs": list(record.attachments),
            }
            return {"type": "system", "subtype": "microcompact_boundary", "microcompactMetadata": cleared, "lamina": ours}
        case Foreign() | Newer():
            raise TypeError("Lamina never writes foreign records")
        case _:
            data = {name: getattr(record, name) for name in record.__struct_fields__ if name not in ("uuid", "parent", "time")}
            return {"type": "system", "subtype": "lamina", "lamina": ours | {"kind": _KIND_OF[type(record)], "data": data}}


def _rendered(block: Block) -> str | list[Wire]:
    return block.text if isinstance(block, Text) and len(block.wire) == 2 else [block.wire]


def _preserved(record: Boundary) -> Wire:
    """Name the kept messages as other programs expect it. They move the segment from `head` to `tail` behind the anchor."""
    preserved = record.preserved or Preserved(record.uuid, record.kept)
    anchor, uuids = preserved.anchor, preserved.uuids
    if not uuids:
        return {}
    return {
        "preservedSegment": {"headUuid": uuids[0], "anchorUuid": anchor, "tailUuid": uuids[-1]},
        "preservedMessages": {"anchorUuid": anchor, "uuids": list(uuids), "allUuids": list(uuids)},
    }


def _message_body(record: Message, ours: Wire) -> Wire:
    message: Wire = {"role": record.role, "content": [block.wire for block in record.blocks]}
    if record.role == "assistant":
        message = {
            "id": record.message_id,
            "type": "message",
            "model": record.model,
            **message,
            "stop_reason": record.stop_reason,
        }
        if record.usage is not None:
            message["usage"] = record.usage.wire()
    body: Wire = {"type": record.role, "message": message}
    if record.role == "assistant" and (request := record.request_id or record.message_id):
        # Readers that add up costs count an answer, which is one record per block, once by this and the message id.
        body["requestId"] = request
    flags = (("isMeta", record.meta), ("isCompactSummary", record.summary), ("isVisibleInTranscriptOnly", record.summary))
    body |= {name: True for name, on in flags if on}
    marks = (("synthetic", record.synthetic), ("unlisted", record.unlisted), ("silent", record.silent))
    ours |= {name: True for name, on in marks if on}
    if record.by is not None:
        ours["by"] = record.by
    body["lamina"] = ours
    return body


def _link(raw: Mapping[str, Any], uuid: str, ours: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """Return id, parent and time. If `parentUuid` is meant for other programs, the parent is stored separately."""
    return uuid, _str(ours.get("parent")) or _str(raw.get("parentUuid")), _time(raw)


def _str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _time(raw: Mapping[str, Any]) -> str:
    value = raw.get("timestamp")
    return value if isinstance(value, str) else ""

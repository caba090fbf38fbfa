"""Reads and writes records as the lines of a transcript.

Messages and injected context have the same format as in other programs. Decisions use names that other readers know
(`compact_boundary`, `microcompact_boundary`), or are `system` records with the subtype `lamina` and their data under the key `lamina`.

`read_record` never raises: a line that it cannot interpret becomes a `Foreign`. Only a record in a format newer than FORMAT is
rejected, as `Newer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .blocks import Role, Wire, read_content, scrub
from .errors import InputError
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

# Old clients clear results without recording the replacement text.
UNRECORDED_MARKER = "[An old tool result stood here; it was cleared to save space.]"


def read_record(raw: Mapping[str, Any]) -> Record:
    """Convert a decoded line to a record."""
    ours = raw.get("lamina")
    ours = ours if isinstance(ours, Mapping) else {}
    version = ours.get("v", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        return Newer(version, _str(raw.get("uuid")), _str(raw.get("parentUuid")), _time(raw))
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
        return _ours(raw, ours, uuid)
    return _foreign(raw)


def _message(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str, role: Role) -> Message:
    message = raw["message"]
    return Message(
        *_link(raw, uuid),
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
        by=_str(ours.get("by")),
    )


def _attachment(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Attachment:
    attachment = raw["attachment"]
    rendered = attachment.get("rendered") or []
    rendered = [rendered] if isinstance(rendered, str) else rendered
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in rendered]
    return Attachment(
        *_link(raw, uuid),
        kind=str(attachment.get("type") or "unknown"),
        blocks=read_content(content, where=f"attachment {uuid}"),
        sidechain=bool(raw.get("isSidechain")),
        by=_str(ours.get("by")),
        files=() if ours else _files(attachment.get("memories")),
    )


def _files(memories: object) -> tuple[str, ...]:
    """Return the files of recalled memories in a record of Claude Code, which lists them next to the text."""
    rows = memories if isinstance(memories, list) else ()
    return tuple(row["path"] for row in rows if isinstance(row, dict) and isinstance(row.get("path"), str))


def _boundary(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Boundary:
    meta = raw.get("compactMetadata") or {}
    kept = (meta.get("preservedMessages") or {}).get("uuids") or ()
    return Boundary(
        uuid=uuid,
        logical_parent=_str(raw.get("logicalParentUuid")) or _str(raw.get("parentUuid")),
        time=_time(raw),
        trigger=str(meta.get("trigger") or "auto"),
        tokens_before=int(meta.get("preTokens") or 0),
        kept=tuple(str(item) for item in kept),
        receipt=dict(ours.get("receipt") or {}),
        sidechain=bool(raw.get("isSidechain")),
    )


def _clear(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Clear:
    meta = raw.get("microcompactMetadata") or {}
    markers = ours.get("markers")
    if not isinstance(markers, Mapping):
        markers = {str(item): UNRECORDED_MARKER for item in meta.get("compactedToolIds") or ()}
    return Clear(
        *_link(raw, uuid),
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


def _ours(raw: Mapping[str, Any], ours: Mapping[str, Any], uuid: str) -> Record:
    struct = _OURS.get(ours["kind"])
    if struct is None:
        return _foreign(raw)
    fields = {**(ours.get("data") or {}), "uuid": uuid, "parent": _str(raw.get("parentUuid")), "time": _time(raw)}
    return msgspec.convert(fields, struct)


def _foreign(raw: Mapping[str, Any]) -> Foreign:
    return Foreign(
        kind=str(raw.get("type") or "unknown"),
        uuid=_str(raw.get("uuid")),
        parent=_str(raw.get("parentUuid")) or _str(raw.get("logicalParentUuid")),
        time=_time(raw),
        sidechain=bool(raw.get("isSidechain")),
    )


class Envelope(msgspec.Struct, frozen=True):
    """Fields that every record of a session repeats, because other readers of such transcripts expect them."""

    session_id: str
    cwd: str
    version: str  # of the package that writes the record
    git_branch: str = ""
    sidechain: bool = False
    agent_id: str | None = None


def write_record(record: Record, envelope: Envelope) -> bytes:
    """Return the record as one line, without the newline."""
    head: Wire = {
        "parentUuid": getattr(record, "parent", None),
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
    try:
        return msgspec.json.encode(line)
    except UnicodeEncodeError:  # a lone surrogate in the name of a directory or in an id from a server
        return msgspec.json.encode(scrub(line))


def _body(record: Record) -> Wire:
    ours: Wire = {"v": FORMAT}
    match record:
        case Message():
            return _message_body(record, ours)
        case Attachment():
            if record.by is not None:
                ours["by"] = record.by
            rendered = [block.wire for block in record.blocks]
            return {
                "type": "attachment",
                "attachment": {"type": record.kind, **record.facts, "rendered": rendered, "renderedRole": "user"},
                "lamina": ours,
            }
        case Boundary():
            meta: Wire = {"trigger": record.trigger, "preTokens": record.tokens_before}
            if record.kept:
                meta["preservedMessages"] = {"uuids": list(record.kept), "allUuids": list(record.kept)}
                meta["preservedSegment"] = {"headUuid": record.kept[0], "anchorUuid": record.uuid, "tailUuid": record.kept[-1]}
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
    flags = (("isMeta", record.meta), ("isCompactSummary", record.summary), ("isVisibleInTranscriptOnly", record.summary))
    body |= {name: True for name, on in flags if on}
    ours |= {name: True for name, on in (("synthetic", record.synthetic), ("silent", record.silent)) if on}
    if record.by is not None:
        ours["by"] = record.by
    body["lamina"] = ours
    return body


def _link(raw: Mapping[str, Any], uuid: str) -> tuple[str, str | None, str]:
    return uuid, _str(raw.get("parentUuid")), _time(raw)


def _str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _time(raw: Mapping[str, Any]) -> str:
    value = raw.get("timestamp")
    return value if isinstance(value, str) else ""

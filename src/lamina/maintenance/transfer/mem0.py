"""mem0's JSON, as `get_all` and exports return it: `{"results": [{"id", "memory", "metadata", "user_id", "created_at", …}]}`.

A bare list and the key `memories` are accepted too. A mem0 memory is a sentence without a name, so its name is made from its
first words. Everything beyond the text (ids, users, dates, metadata) is kept in the field `mem0` and exported unchanged. Data
without a place in mem0 goes into `metadata.lamina`, which mem0 keeps. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...core.errors import InputError
from ...memory.store.topic import Kind, short_digest
from .portable_topic import (
    Imported,
    PortableTopic,
    document,
    extras_beyond,
    format_date,
    kind_of,
    make_description,
    make_name,
    parse_date,
    with_extras,
    without_field,
)

# Keys under which versions and products of mem0 store the text of a memory, and the list of memories.
_TEXTS = ("memory", "text", "data", "content")
_LISTS = ("results", "memories")
# Keys added to our rows because mem0's readers expect them.
_ADDED = ("id", "created_at", "updated_at")


def read_mem0(text: str) -> Imported:
    value = document(text, "The mem0 file")
    listing = list_in(value)
    if listing is None:
        raise InputError("The mem0 file", "has no list of memories", "it should be a list or have one under `results`")
    topics, problems = list[PortableTopic](), list[str]()
    for number, row in enumerate(listing):
        if isinstance(row, dict) and (key := _text_key(row)) is not None:
            topics.append(_topic(row, key))
        else:
            problems.append(f"results[{number}] has no text under `memory` and was skipped")
    if isinstance(value, dict) and value.get("relations"):
        problems.append("mem0's graph of relations was skipped; each memory states its fact itself")
    return Imported(tuple(topics), tuple(problems))


def list_in(value: object) -> list[Any] | None:
    if isinstance(value, list):
        return value
    found = [value[key] for key in _LISTS if isinstance(value.get(key), list)] if isinstance(value, dict) else []
    return found[0] if found else None


def looks_like(value: object) -> bool:
    listing = list_in(value)
    return listing is not None and (not listing or any(isinstance(row, dict) and _text_key(row) for row in listing))


def _text_key(row: Mapping[str, Any]) -> str | None:
    return next((key for key in _TEXTS if isinstance(row.get(key), str)), None)


def _topic(row: Mapping[str, Any], key: str) -> PortableTopic:
    metadata = row.get("metadata")
    extras = metadata.get("lamina") if isinstance(metadata, dict) else None
    rest = {name: value for name, value in row.items() if name != key}
    if isinstance(metadata, dict) and isinstance(extras, dict):
        kept = {name: value for name, value in metadata.items() if name != "lamina"}
        rest["metadata"] = None if extras.get("was") == "null" and not kept else kept
        added = extras.get("added")
        rest = {name: value for name, value in rest.items() if not isinstance(added, list) or name not in added}
    body = row[key]
    modified = parse_date(row.get("updated_at"))
    carried = PortableTopic(
        name=make_name(body) or f"mem0 {short_digest(body)}",
        description=make_description(body),
        type=_kind(row),
        body=body,
        modified=parse_date(row.get("created_at")) if modified is None else modified,
    )
    topic = with_extras(carried, extras)
    own = rest | ({"text_key": key} if key != _TEXTS[0] else {})
    return msgspec.structs.replace(topic, fields={**topic.fields, "mem0": own}) if own else topic


def _kind(row: Mapping[str, Any]) -> Kind | None:
    metadata = row.get("metadata")
    stated = [metadata.get("type"), metadata.get("category")] if isinstance(metadata, dict) else []
    categories = row.get("categories")
    words = [*stated, *(categories if isinstance(categories, list) else [])]
    return next((kind for word in words if (kind := kind_of(word)) is not None), None)


def write_mem0(topics: Sequence[PortableTopic]) -> str:
    listing = {"results": [_again(topic) or _new(topic) for topic in topics]}
    return msgspec.json.format(msgspec.json.encode(listing)).decode() + "\n"


def _again(topic: PortableTopic) -> dict[str, Any] | None:
    """Return the original mem0 row, with later changes in `metadata.lamina`; None if they cannot be expressed there."""
    own = topic.fields.get("mem0")
    if not isinstance(own, dict) or not own:
        return None
    key = own.get("text_key", _TEXTS[0])
    row = {name: value for name, value in own.items() if name != "text_key"} | {str(key): topic.body}
    if _text_key(row) != key:
        return None
    carried = _topic(row, key)
    if carried == topic:
        return row
    extras = extras_beyond(without_field(topic, "mem0"), without_field(carried, "mem0"))
    metadata = own.get("metadata")
    if metadata is None:
        extras |= {"was": "null"} if "metadata" in own else {"added": ["metadata"]}
    row["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "lamina": extras}
    return row if _topic(row, key) == topic else None


def _new(topic: PortableTopic) -> dict[str, Any]:
    """Return a row for a memory new to mem0. Its id is derived from the name, so a second export gives the same file."""
    from uuid import NAMESPACE_URL, uuid5

    key = str(uuid5(NAMESPACE_URL, f"lamina:memory:{topic.name}"))
    date = format_date(topic.modified)
    row = {"id": key, "memory": topic.body} | ({"created_at": date, "updated_at": date} if date else {})
    extras = extras_beyond(topic, without_field(_topic(row, "memory"), "mem0"))
    return row | {"metadata": {"lamina": extras | {"added": [*(name for name in _ADDED if name in row), "metadata"]}}}

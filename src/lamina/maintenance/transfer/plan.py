"""Plan what an import changes, before anything is saved.

Invariants: an existing memory that differs is kept unless replacing was requested. Importing a source twice changes nothing the
second time, because the comparison uses what a save would write (without secrets, one-line fields on one line). Two memories
with the same name in a source are both kept. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import InputError
from ...memory.store.draft import CleanDraft, Draft, clean_draft
from ...memory.store.topic import NAME_CHARS, ORIGIN, Topic, evidence_of, name_key, one_line, origin_of, short_digest
from .formats import Format
from .mcp_memory import as_saved_by_server
from .portable_topic import (
    Imported,
    PortableTopic,
    document,
    format_date,
    in_comment,
    make_description,
    parse_date,
    without_date,
    without_field,
)

Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "conflict", "refused", "proposed"]

# Twenty times what recall is designed for; more is a log, not a memory.
MOST_TOPICS = 10_000
# Ids, users and dates take a few hundred bytes; every recall of the memory includes them.
MOST_BYTES = 2_000

_FOOTER = re.compile(r"\n<!-- lamina:import (?P<data>\{[^\n]*\}) -->\n?\Z")

# Begins the origin of an imported memory.
IMPORTED = "import "


class TransferItem(msgspec.Struct, frozen=True):
    """The outcome for one memory or file. `wish` is what an import would save; None if the memory cannot be saved."""

    name: str
    outcome: Outcome
    why: str = ""
    wish: CleanDraft | None = None

    @property
    def redacted(self) -> tuple[str, ...]:
        """The kinds of secrets removed from what is saved."""
        return self.wish.redacted if self.wish is not None and self.outcome in ("created", "replaced", "proposed") else ()


class ImportPlan(NamedTuple):
    items: tuple[TransferItem, ...]
    problems: tuple[str, ...]


def plan(imported: Imported, there: Mapping[str, Topic], *, origin: Format, replace: bool) -> ImportPlan:
    """Plan the import. `there` are the store's memories by `name_key`.

    Each memory gets a unique name; a memory that is in the source twice counts once.
    """
    items, problems = list[TransferItem](), list(imported.problems)
    taken = set[str]()
    contents: dict[str, set[CleanDraft]] = {}  # for each name in the source, the contents planned under it or a numbered variant
    for topic in imported.topics:
        body, left_out = with_footer(topic, origin)
        if left_out:
            problems.append(f"{topic.name[:80]!a}: {left_out}")
        try:
            wish = _drafted(topic, body, topic.name)
            same = contents.setdefault(name_key(wish.draft.name), set())
            content = wish._replace(draft=msgspec.structs.replace(wish.draft, name="", modified=None))
            if content in same:
                continue
            same.add(content)
            wish = _with_free_name(wish, topic, body, taken, len(same))
        except InputError as error:
            items.append(TransferItem(one_line(topic.name, NAME_CHARS), "refused", error.problem))
        else:
            items.append(_decided(wish, there.get(name_key(wish.draft.name)), origin, replace))
    return ImportPlan(tuple(items), tuple(problems))


def _decided(wish: CleanDraft, old: Topic | None, origin: Format, replace: bool) -> TransferItem:
    draft = wish.draft
    if old is None:
        return TransferItem(draft.name, "created", wish=wish)
    # The source has no description, so the reader took a line of the text.
    if origin == "basic-memory" or draft.description == make_description(draft.body):
        draft = msgspec.structs.replace(draft, description=old.description)
        wish = wish._replace(draft=draft)
    # A save without a type or evidence keeps the existing ones.
    same = {
        "type": draft.type in (None, old.type),
        "description": draft.description == old.description,
        "body": says_the_same(draft.body, old.body) or (origin == "mcp-memory" and draft.body == _from_server(old)),
        "evidence": not draft.evidence or draft.evidence == evidence_of(old),
    }
    differs = [name for name, kept in same.items() if not kept]
    if not differs:
        return TransferItem(draft.name, "unchanged", wish=wish)
    why = f"{' and '.join(differs)} {'differ' if len(differs) > 1 else 'differs'}"
    return TransferItem(draft.name, "replaced" if replace else "conflict", why, wish)


def _with_free_name(wish: CleanDraft, topic: PortableTopic, body: str, taken: set[str], number: int) -> CleanDraft:
    """Give the memory a unique name: its own, or its own with a number."""
    while (key := name_key(wish.draft.name)) in taken:
        number = max(number, 2)
        wish = _drafted(topic, body, f"{one_line(topic.name, NAME_CHARS - 8)} {number}")
        number += 1
        if name_key(wish.draft.name) == key:
            raise InputError(topic.name, "has the name of another memory")
    taken.add(key)
    return wish


def _drafted(topic: PortableTopic, body: str, name: str) -> CleanDraft:
    """Return what a save would write; InputError if it would be rejected."""
    shown = name if one_line(name, NAME_CHARS) else f"memory {short_digest(body)}"
    evidence = topic.fields.get("evidence")
    rests_on = tuple(item for item in evidence if isinstance(item, str)) if isinstance(evidence, list) else ()
    return clean_draft(Draft(shown, topic.type, topic.description, body, rests_on, topic.modified))


def with_footer(topic: PortableTopic, origin: Format) -> tuple[str, str | None]:
    """Return the body to save and a message about dropped fields. Its last line is a comment with its date and its original
    fields:

        <!-- lamina:import {"from":"mem0","modified":"2026-03-31T09:00:00.000Z","fields":{…}} -->

    A store keeps a name, type, description and body, and front matter keeps only strings. The comment keeps the original JSON,
    so that a memory can be exported back to its source and its age stays known. Invariant: `to_portable` removes the line and
    restores the original.
    """
    fields, date = without_field(topic, "evidence").fields, format_date(topic.modified)
    if not fields and date is None:
        return topic.body, None
    left_out = None
    if fields and len(msgspec.json.encode(fields)) > MOST_BYTES:
        left_out = f"its fields ({', '.join(sorted(fields))[:80]}) are longer than {MOST_BYTES:,} bytes and were dropped"
        fields = {}
    data: dict[str, Any] = {"from": origin} | ({"modified": date} if date else {}) | ({"fields": fields} if fields else {})
    body = topic.body
    if not body.endswith("\n"):
        data["open"] = True
        body += "\n"
    return f"{body}\n<!-- lamina:import {in_comment(data)} -->\n", left_out


def _from_server(old: Topic) -> str:
    """Return the body of a memory as it reads back once it was exported and the MCP memory server has saved its file."""
    body = with_footer(as_saved_by_server(to_portable(old)), "mcp-memory")[0]
    return body if not body or body.endswith("\n") else f"{body}\n"


def says_the_same(body: str, now: str) -> bool:
    """Return whether an imported body equals the existing one. The date in an import comment makes no difference."""
    text, fields = _without_footer(body)
    old_text, old_fields = _without_footer(now)
    return text == old_text and fields == old_fields


def _without_footer(body: str) -> tuple[str, Any]:
    found = _FOOTER.search(body)
    data = _data(found["data"]) if found else None
    return (body, None) if found is None or data is None else (body[: found.start()], data.get("fields"))


def to_portable(topic: Topic) -> PortableTopic:
    """Convert a memory of the store for export, restoring the fields of its import comment."""
    found = _FOOTER.search(topic.body)
    if origin_of(topic).startswith(IMPORTED):  # the other program knows it as its own
        topic = msgspec.structs.replace(topic, fields={key: value for key, value in topic.fields.items() if key != ORIGIN})
    # File times are more precise than written dates; round to what a date can carry.
    changed = parse_date(format_date(topic.modified))
    data = _data(found["data"]) if found else None
    if found is None or data is None:
        return PortableTopic(topic.name, topic.description, topic.type, topic.body.removesuffix("\n"), changed, topic.fields)
    ended = topic.body[: found.start()]
    body = ended.removesuffix("\n") if data.get("open") is True else ended
    fields = data.get("fields")
    date = parse_date(data.get("modified"))
    own = topic.fields if date is None else without_date(topic.fields)
    kept: dict[str, Any] = {**own, **fields} if isinstance(fields, dict) else own
    return PortableTopic(topic.name, topic.description, topic.type, body, changed if date is None else date, kept)


def _data(text: str) -> dict[str, Any] | None:
    found = document(text, "", strict=False)
    return found if isinstance(found, dict) else None

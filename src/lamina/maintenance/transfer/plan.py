"""What an import changes, decided before anything is saved.

Owns the decision. Invariants: a memory that is there with other content is kept unless replacing was asked for; a source imported twice
changes nothing the second time, because what is compared is what a save would write (secrets gone, one line where one line is meant);
of two memories with one name in a source none is lost. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import InputError
from ...memory.store.draft import CleanDraft, Draft, clean_draft
from ...memory.store.topic import NAME_CHARS, Topic, evidence_of, name_key, one_line, short_digest
from .formats import Format
from .portable_topic import Imported, PortableTopic, document, format_date, in_comment, parse_date, without_date, without_field

Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "conflict", "refused", "proposed"]

# Twenty times what recall is made for; more is a log, not a memory.
MOST_TOPICS = 10_000
# Ids, users and dates take some hundred bytes; every recall of the memory carries them along.
MOST_BYTES = 2_000

_FOOTER = re.compile(r"\n<!-- lamina:import (?P<data>\{[^\n]*\}) -->\n?\Z")


class TransferItem(msgspec.Struct, frozen=True):
    """What becomes of one memory or file. `wish` is what an import would save; None where the memory can't be."""

    name: str
    outcome: Outcome
    why: str = ""
    wish: CleanDraft | None = None

    @property
    def redacted(self) -> tuple[str, ...]:
        """The kinds of secrets that are taken out of what is saved."""
        return self.wish.redacted if self.wish is not None and self.outcome in ("created", "replaced", "proposed") else ()


class ImportPlan(NamedTuple):
    items: tuple[TransferItem, ...]
    problems: tuple[str, ...]


def plan(imported: Imported, there: Mapping[str, Topic], *, origin: Format, replace: bool) -> ImportPlan:
    """`there`: the memories of the store whose names the source has, by `name_key`.

    Each memory gets a name of its own; one that stands in the source twice counts once.
    """
    items, problems = list[TransferItem](), list(imported.problems)
    taken = set[str]()
    said: dict[str, set[CleanDraft]] = {}  # for each name of the source, what was saved under it or a number of it
    for topic in imported.topics:
        body, left_out = with_footer(topic, origin)
        if left_out:
            problems.append(f"{topic.name[:80]!a}: {left_out}")
        try:
            wish = _drafted(topic, body, topic.name)
            same = said.setdefault(name_key(wish.draft.name), set())
            content = wish._replace(draft=msgspec.structs.replace(wish.draft, name="", modified=None))
            if content in same:
                continue
            same.add(content)
            wish = _with_free_name(wish, topic, body, taken, len(same))
        except InputError as error:
            items.append(TransferItem(one_line(topic.name, NAME_CHARS), "refused", error.problem))
        else:
            items.append(_decided(wish, there.get(name_key(wish.draft.name)), replace))
    return ImportPlan(tuple(items), tuple(problems))


def _decided(wish: CleanDraft, old: Topic | None, replace: bool) -> TransferItem:
    draft = wish.draft
    if old is None:
        return TransferItem(draft.name, "created", wish=wish)
    # A save without a type or evidence leaves those that are there.
    same = {
        "type": draft.type in (None, old.type),
        "description": draft.description == old.description,
        "body": says_the_same(draft.body, old.body),
        "evidence": not draft.evidence or draft.evidence == evidence_of(old),
    }
    differs = [name for name, kept in same.items() if not kept]
    if not differs:
        return TransferItem(draft.name, "unchanged", wish=wish)
    why = f"{' and '.join(differs)} {'differ' if len(differs) > 1 else 'differs'}"
    return TransferItem(draft.name, "replaced" if replace else "conflict", why, wish)


def _with_free_name(wish: CleanDraft, topic: PortableTopic, body: str, taken: set[str], number: int) -> CleanDraft:
    """The memory under a name that no other has: its own, or with the number it is the how-manieth of that name."""
    while (key := name_key(wish.draft.name)) in taken:
        number = max(number, 2)
        wish = _drafted(topic, body, f"{one_line(topic.name, NAME_CHARS - 8)} {number}")
        number += 1
        if name_key(wish.draft.name) == key:
            raise InputError(topic.name, "has the name of another memory")
    taken.add(key)
    return wish


def _drafted(topic: PortableTopic, body: str, name: str) -> CleanDraft:
    """What a save would write; InputError for what it would refuse."""
    shown = name if one_line(name, NAME_CHARS) else f"memory {short_digest(body)}"
    evidence = topic.fields.get("evidence")
    rests_on = tuple(item for item in evidence if isinstance(item, str)) if isinstance(evidence, list) else ()
    return clean_draft(Draft(shown, topic.type, topic.description, body, rests_on, topic.modified))


def with_footer(topic: PortableTopic, origin: Format) -> tuple[str, str | None]:
    """The body to save, and what had to be left out of it. Its last line is a comment with its date and what its first home knew of it:

        <!-- lamina:import {"from":"mem0","modified":"2026-03-31T09:00:00.000Z","fields":{…}} -->

    A store keeps a name, a type, a description and a body, and front matter keeps texts only; the comment keeps JSON as it came, so that a
    memory can go back where it came from and its age stays known. Invariant: taking the line off (`to_portable`) gives what it was put on.
    """
    fields, date = without_field(topic, "evidence").fields, format_date(topic.modified)
    if not fields and date is None:
        return topic.body, None
    left_out = None
    if fields and len(msgspec.json.encode(fields)) > MOST_BYTES:
        left_out = f"its fields ({', '.join(sorted(fields))[:80]}) are longer than {MOST_BYTES:,} bytes and are left out"
        fields = {}
    data: dict[str, Any] = {"from": origin} | ({"modified": date} if date else {}) | ({"fields": fields} if fields else {})
    body = topic.body
    if not body.endswith("\n"):
        data["open"] = True
        body += "\n"
    return f"{body}\n<!-- lamina:import {in_comment(data)} -->\n", left_out


def says_the_same(body: str, now: str) -> bool:
    """Whether a body that comes in says what stands there already: a line that holds no more than a date adds nothing to it."""
    found = _FOOTER.search(body)
    if body == now or found is None:
        return body == now
    data = _data(found["data"])
    return data is not None and "fields" not in data and body[: found.start()] == now


def to_portable(topic: Topic) -> PortableTopic:
    """A memory of the store as it goes out: the line taken off, what it says put back."""
    found = _FOOTER.search(topic.body)
    # A file's time is finer than any date: the date is what comes back.
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

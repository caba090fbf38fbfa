"""What an import changes, decided before anything is saved.

Owns the decision. Invariants: a memory that is there with other content is kept unless replacing was asked for; a source imported twice
changes nothing the second time, because what is compared is what a save would write (secrets gone, one line where one line is meant);
of two memories with one name in a source none is lost. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import InputError
from ...memory.store.draft import Cleaned, Draft, cleaned
from ...memory.store.topic import NAME_CHARS, Topic, evidence_of, one_line, same_name, short_digest
from .footer import says_the_same, with_footer
from .formats import Format
from .portable_topic import Imported, PortableTopic

Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "conflict", "refused", "proposed"]

# Twenty times what recall is made for; more is a log, not a memory.
MOST_TOPICS = 10_000


class TransferItem(msgspec.Struct, frozen=True):
    """What becomes of one memory or file. `wish` is what an import would save; None where the memory can't be."""

    name: str
    outcome: Outcome
    why: str = ""
    wish: Cleaned | None = None

    @property
    def redacted(self) -> tuple[str, ...]:
        """The kinds of secrets that are taken out of what is saved."""
        return self.wish.redacted if self.wish is not None and self.outcome in ("created", "replaced", "proposed") else ()


class ImportPlan(NamedTuple):
    items: tuple[TransferItem, ...]
    problems: tuple[str, ...]


def plan(imported: Imported, there: Mapping[str, Topic], *, origin: Format, replace: bool) -> ImportPlan:
    """`there`: the memories of the store whose names the source has, by `same_name`.

    Each memory gets a name of its own; one that stands in the source twice counts once.
    """
    items, problems = list[TransferItem](), list(imported.problems)
    taken = set[str]()
    said: dict[str, set[Cleaned]] = {}  # for each name of the source, what was saved under it or a number of it
    for topic in imported.topics:
        body, left_out = with_footer(topic, origin)
        if left_out:
            problems.append(f"{topic.name[:80]!a}: {left_out}")
        try:
            wish = _drafted(topic, body, topic.name)
            same = said.setdefault(same_name(wish.draft.name), set())
            content = wish._replace(draft=msgspec.structs.replace(wish.draft, name="", modified=None))
            if content in same:
                continue
            same.add(content)
            wish = _with_free_name(wish, topic, body, taken, len(same))
        except InputError as error:
            items.append(TransferItem(one_line(topic.name, NAME_CHARS), "refused", error.problem))
        else:
            items.append(_decided(wish, there.get(same_name(wish.draft.name)), replace))
    return ImportPlan(tuple(items), tuple(problems))


def _decided(wish: Cleaned, old: Topic | None, replace: bool) -> TransferItem:
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


def _with_free_name(wish: Cleaned, topic: PortableTopic, body: str, taken: set[str], number: int) -> Cleaned:
    """The memory under a name that no other has: its own, or with the number it is the how-manieth of that name."""
    while (key := same_name(wish.draft.name)) in taken:
        number = max(number, 2)
        wish = _drafted(topic, body, f"{one_line(topic.name, NAME_CHARS - 8)} {number}")
        number += 1
        if same_name(wish.draft.name) == key:
            raise InputError(topic.name, "has the name of another memory")
    taken.add(key)
    return wish


def _drafted(topic: PortableTopic, body: str, name: str) -> Cleaned:
    """What a save would write; InputError for what it would refuse."""
    shown = name if one_line(name, NAME_CHARS) else f"memory {short_digest(body)}"
    evidence = topic.fields.get("evidence")
    rests_on = tuple(item for item in evidence if isinstance(item, str)) if isinstance(evidence, list) else ()
    return cleaned(Draft(shown, topic.type, topic.description, body, rests_on, topic.modified))

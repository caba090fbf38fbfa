"""What an import changes, decided before anything is saved.

Owns the decision. Invariants: a memory that is there with other content is kept unless replacing was asked for; a source imported twice
changes nothing the second time, because what is compared is what a save would write (secrets gone, one line where one line is meant);
of two memories with one name in a source none is lost. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import InputError
from ...memory.store.draft import CleanDraft, Draft, clean_draft
from ...memory.store.topic import NAME_CHARS, Topic, evidence_of, name_key, one_line, short_digest
from .footer import says_the_same, with_footer
from .formats import Format
from .values import Imported, Portable

Action: TypeAlias = Literal["create", "unchanged", "conflict", "replace", "refuse"]

# Twenty times what recall is made for; more is a log, not a memory.
MOST_TOPICS = 10_000


class Step(msgspec.Struct, frozen=True):
    """`wish` is what would be saved; None where the memory can't be."""

    name: str
    action: Action
    wish: CleanDraft | None = None
    why: str = ""


class Steps(NamedTuple):
    steps: tuple[Step, ...]
    problems: tuple[str, ...]


class _Named(NamedTuple):
    topic: Portable
    wish: CleanDraft | None
    refusal: str


def plan(imported: Imported, there: Mapping[str, Topic], *, origin: Format, replace: bool) -> Steps:
    """`there`: the memories of the store whose names the source has, by `name_key`."""
    problems = list(imported.problems)
    steps = list[Step]()
    for named in named_apart(imported.topics, origin, problems):
        if named.wish is None:
            steps.append(Step(one_line(named.topic.name, NAME_CHARS), "refuse", None, named.refusal))
        else:
            steps.append(_step(named.wish, there.get(name_key(named.wish.draft.name)), replace))
    return Steps(tuple(steps), tuple(problems))


def _step(wish: CleanDraft, old: Topic | None, replace: bool) -> Step:
    draft = wish.draft
    if old is None:
        return Step(draft.name, "create", wish)
    if differs := _differences(draft, old):
        why = f"{' and '.join(differs)} {'differ' if len(differs) > 1 else 'differs'}"
        return Step(draft.name, "replace" if replace else "conflict", wish, why)
    return Step(draft.name, "unchanged", wish)


def _differences(draft: Draft, old: Topic) -> list[str]:
    """A save without a type or evidence leaves those that are there."""
    pairs = {
        "type": (draft.type or old.type, old.type),
        "description": (draft.description, old.description),
        "body": (says_the_same(draft.body, old.body), True),
        "evidence": (draft.evidence or evidence_of(old), evidence_of(old)),
    }
    return [name for name, (new, now) in pairs.items() if new != now]


def named_apart(topics: Iterable[Portable], origin: Format, problems: list[str]) -> list[_Named]:
    """Each memory as it would be saved, under a name of its own; one that stands there twice counts once."""
    taken = set[str]()
    said: dict[str, set[CleanDraft]] = {}  # for each name of the source, what was saved under it or a number of it
    found = list[_Named]()
    for topic in topics:
        body, left_out = with_footer(topic, origin)
        if left_out:
            problems.append(f"{topic.name[:80]!a}: {left_out}")
        named = _drafted(topic, body, topic.name)
        if named.wish is not None:
            same = said.setdefault(name_key(named.wish.draft.name), set())
            content = named.wish._replace(draft=msgspec.structs.replace(named.wish.draft, name="", modified=None))
            if content in same:
                continue
            same.add(content)
            named = _free(named, body, taken, len(same))
        found.append(named)
    return found


def _free(named: _Named, body: str, taken: set[str], number: int) -> _Named:
    """The memory under a name that no other has: its own, or with the number it is the how-manieth of that name."""
    first = named.topic.name
    while named.wish is not None and (key := name_key(named.wish.draft.name)) in taken:
        number = max(number, 2)
        named = _drafted(named.topic, body, f"{one_line(first, NAME_CHARS - 8)} {number}")
        number += 1
        if named.wish is not None and name_key(named.wish.draft.name) == key:
            return _Named(named.topic, None, "has the name of another memory")
    if named.wish is not None:
        taken.add(name_key(named.wish.draft.name))
    return named


def _drafted(topic: Portable, body: str, name: str) -> _Named:
    shown = name if one_line(name, NAME_CHARS) else f"memory {short_digest(body)}"
    evidence = topic.fields.get("evidence")
    rests_on = tuple(item for item in evidence if isinstance(item, str)) if isinstance(evidence, list) else ()
    try:
        wish = clean_draft(Draft(shown, topic.type, topic.description, body, rests_on, topic.modified))
    except InputError as error:
        return _Named(topic, None, error.problem)
    return _Named(topic, wish, "")

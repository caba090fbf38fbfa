"""What an import changes, decided before anything is saved.

Owns the decision. Invariants: a memory that is there with other content is kept unless replacing was asked for; a source imported twice
changes nothing the second time, because what is compared is what a save would write (secrets gone, one line where one line is meant);
of two memories with one name in a source none is lost. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..core.errors import InputError
from ..memory.store import Draft, drafted
from ..memory.topic import NAME_CHARS, Topic, evidence_of, file_name, one_line, same_name, short_digest
from .footer import with_footer
from .formats import Format
from .values import Imported, Portable

Action: TypeAlias = Literal["create", "unchanged", "conflict", "replace", "refuse"]

# Twenty times what recall is made for; more is a log, not a memory.
MOST_TOPICS = 10_000


class Step(msgspec.Struct, frozen=True):
    """`draft` is what would be saved; None where the memory can't be."""

    name: str
    action: Action
    draft: Draft | None = None
    why: str = ""
    modified: float | None = None  # when it was last changed, where the source knows


class Steps(NamedTuple):
    steps: tuple[Step, ...]
    problems: tuple[str, ...]


class _Named(NamedTuple):
    topic: Portable
    draft: Draft | None
    refusal: str


def plan(imported: Imported, there: Mapping[str, Topic], *, origin: Format, replace: bool) -> Steps:
    """`there`: the memories of the store whose names the source has, by `same_name`."""
    problems = list(imported.problems)
    steps = list[Step]()
    for named in named_apart(imported.topics, origin, problems):
        if named.draft is None:
            steps.append(Step(one_line(named.topic.name, NAME_CHARS), "refuse", None, named.refusal))
        else:
            step = _step(named.draft, there.get(same_name(named.draft.name)), replace)
            steps.append(msgspec.structs.replace(step, modified=named.topic.modified))
    return Steps(tuple(steps), tuple(problems))


def _step(draft: Draft, old: Topic | None, replace: bool) -> Step:
    if old is None:
        return Step(draft.name, "create", draft)
    if differs := _differences(draft, old):
        why = f"{' and '.join(differs)} {'differ' if len(differs) > 1 else 'differs'}"
        return Step(draft.name, "replace" if replace else "conflict", draft, why)
    return Step(draft.name, "unchanged", draft)


def _differences(draft: Draft, old: Topic) -> list[str]:
    """A save without a type or evidence leaves those that are there."""
    pairs = {
        "type": (draft.type or old.type, old.type),
        "description": (draft.description, old.description),
        "body": (draft.body, old.body),
        "evidence": (draft.evidence or evidence_of(old), evidence_of(old)),
    }
    return [name for name, (new, now) in pairs.items() if new != now]


def named_apart(topics: Iterable[Portable], origin: Format, problems: list[str]) -> list[_Named]:
    """Each memory as it would be saved, under a name of its own; one that stands there twice counts once."""
    taken = set[str]()
    said: dict[str, set[Draft]] = {}  # for each name of the source, what was saved under it or a number of it
    found = list[_Named]()
    for topic in topics:
        body, left_out = with_footer(topic, origin)
        if left_out:
            problems.append(f"{topic.name[:80]!a}: {left_out}")
        named = _drafted(topic, body, topic.name)
        if named.draft is not None:
            same = said.setdefault(same_name(named.draft.name), set())
            content = named.draft._replace(name="")
            if content in same:
                continue
            same.add(content)
            named = _free(named, body, taken, len(same))
        found.append(named)
    return found


def _free(named: _Named, body: str, taken: set[str], number: int) -> _Named:
    """The memory under a name that no other has: its own, or with the number it is the how-manieth of that name."""
    first = named.topic.name
    while named.draft is not None and (key := same_name(named.draft.name)) in taken:
        number = max(number, 2)
        named = _drafted(named.topic, body, f"{one_line(first, NAME_CHARS - 8)} {number}")
        number += 1
        if named.draft is not None and same_name(named.draft.name) == key:
            return _Named(named.topic, None, "has the name of another memory")
    if named.draft is not None:
        # A store finds a memory by its file too: `a-b` would be saved over `A: B`.
        taken |= {same_name(named.draft.name), same_name(file_name(named.draft.name))}
    return named


def _drafted(topic: Portable, body: str, name: str) -> _Named:
    shown = name if one_line(name, NAME_CHARS) else f"memory {short_digest(body)}"
    evidence = topic.fields.get("evidence")
    rests_on = [item for item in evidence if isinstance(item, str)] if isinstance(evidence, list) else []
    try:
        draft = drafted(shown, type=topic.type, description=topic.description, body=body, evidence=rests_on)
    except InputError as error:
        return _Named(topic, None, error.problem)
    return _Named(topic, draft, "")

"""What can be seen of a memory without understanding it: where a dream should look first. Pure.

Owns the sentences of the first look: memories that are nearly the same, relative dates, evidence that is not what it was, lines of the
index that lead nowhere or are too long. The same memory gives the same sentences, and never many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain, islice
from typing import NamedTuple

from ...core.dates import relative_dates
from ...memory.store.index import INDEX
from ...memory.store.lint import LineFault, find_near_pairs, plan_index
from ...memory.store.topic import Topic

# Of one kind, and so that all kinds have room in one look.
MOST_OF_A_KIND = 15
# The last moment a date can be of.
LAST = 253_402_300_799.0
# Characters of a phrase that is quoted.
_QUOTED = 40

_FAULTS = {
    "dead": "points at {file}, which is not there",
    "double": "is a second line for {file}",
    "long": "is {chars} characters long",
    "long and fixed": "is {chars} characters long",
    "content": "is {chars} characters long and leads to no memory",
    "outside": "leads out of memory",
}


class Stale(NamedTuple):
    """A memory whose evidence is not what it was."""

    file: str
    why: str


def findings(topics: Sequence[Topic], index: str, stale: Sequence[Stale]) -> list[str]:
    kinds = (
        _twins(topics),
        (f"{one.file}: {one.why}" for one in stale),
        chain.from_iterable(map(_dates, topics)),
        _lines(topics, index),
    )
    return [found for kind in kinds for found in islice(kind, MOST_OF_A_KIND)]


def _twins(topics: Sequence[Topic]) -> Iterator[str]:
    for pair in find_near_pairs([topic.body for topic in topics]):
        yield f"{topics[pair.second].file} and {topics[pair.first].file} say nearly the same"


def _dates(topic: Topic) -> Iterator[str]:
    phrases = relative_dates(topic.body, day_of(topic.modified))
    if phrases:
        said = ", ".join(f'"{" ".join(phrase.text.split())[:_QUOTED]}" ({phrase.says})' for phrase in phrases[:3])
        yield f"{topic.file}: relative dates, by the day it was written: {said}"


def day_of(moment: float) -> date:
    """The day a memory was written; one whose time is beyond all days was written today at the latest."""
    return datetime.fromtimestamp(min(max(moment, 0.0), LAST), UTC).date()


def _lines(topics: Sequence[Topic], index: str) -> Iterator[str]:
    files = {topic.file for topic in topics}
    plan = plan_index(index, exists=files.__contains__, topics=topics)
    yield from (f"{INDEX}, line {fault.line} {_said(fault)}" for fault in plan.faults)
    yield from (f"{file} has no line in {INDEX}" for file in plan.unlisted)


def _said(fault: LineFault) -> str:
    return _FAULTS[fault.fault].format(file=fault.file, chars=fault.chars)

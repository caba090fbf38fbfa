"""The rules of a review beyond the guard: a type, no second memory on a subject, nothing emptied. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...language.terms import terms
from ...memory.guard.judgement import AcceptedMemory, RefusedMemory, WantedMemory, judge, repeats_known
from ...memory.guard.sources import Sources, words
from ...memory.store.topic import Topic, read_topic

# A change that keeps less of the text than this counts as a removal.
LEFT = 0.25
# Two descriptions that share this much of their terms have the same subject.
SAME = 0.6
FEWEST_TERMS = 3

NO_TYPE = "The memory has no type. Begin the file with front matter that sets name, description and type."
EMPTIED = "This would delete most of the memory. A review may add to a memory or correct it, but must keep the rest."
GONE = "The memory {file} was removed in the meantime. Do not save its content again."
ECHO = "This is known already: it came into this conversation from memory or from instruction files."
TWICE = "{file} already covers this subject ({about}). Read it, and Edit it if something is missing."


class ExistingMemory(NamedTuple):
    """A memory that is already saved."""

    file: str
    description: str


def judge_review(
    wanted: WantedMemory, heard: Sources, there: Sequence[ExistingMemory], gone: Callable[[str], bool] = lambda _: False
) -> AcceptedMemory | RefusedMemory:
    """Accept or refuse a memory of a review. `gone` tells whether a listed memory has been removed."""
    topic = read_topic(wanted.file, wanted.text, 0)
    old = read_topic(wanted.file, wanted.before, 0) if wanted.before is not None else None
    if topic.type is None:
        return RefusedMemory(NO_TYPE)
    if old is not None and len(words(topic.body)) < LEFT * len(words(old.body)):
        return RefusedMemory(EMPTIED)
    done = judge(wanted, heard)
    if wanted.before is None and (twin := _find_duplicate(topic, there)) is not None:
        return RefusedMemory((GONE if gone(twin.file) else TWICE).format(file=twin.file, about=twin.description))
    return RefusedMemory(ECHO) if repeats_known(wanted, heard) else done


def _find_duplicate(topic: Topic, there: Sequence[ExistingMemory]) -> ExistingMemory | None:
    """Return a memory with the same subject under another name."""
    mine = set(terms(topic.description))
    if len(mine) < FEWEST_TERMS:
        return None
    for known in there:
        theirs = set(terms(known.description))
        if len(theirs) >= FEWEST_TERMS and len(mine & theirs) / len(mine | theirs) >= SAME:
            return known
    return None

"""Finds text that a memory copied word for word from another text. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..store.evidence import read_evidence
from ..store.topic import Topic, evidence_of
from .sources import RUN, Runs, runs_of, strings_in, weigh_words, word_runs, words

# A memory counts as copied if half of it appears word for word in another text, or if a whole sentence or a longer part of one does,
# whatever surrounds it.
TAKEN = 0.5
SENTENCE = 4
PART = 6

# The end of a sentence in a memory.
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？;；\n]")


def visible_texts(topic: Topic) -> list[str]:
    """Return everything a later conversation sees of a memory."""
    stem = topic.file.rsplit("/", 1)[-1].removesuffix(".md")
    fields = {key: value for key, value in topic.fields.items() if key != "evidence"}
    # A path is evidence, no matter who named it. Any other text in its place is not.
    odd = read_evidence(evidence_of(topic)).unreadable
    return [stem, topic.name, topic.description, topic.body, *strings_in(fields, keys=True), *odd]


def is_copied(topic: Topic, texts: Sequence[str], said: Runs, before: Runs) -> bool:
    """Whether half of the new content, or a whole sentence, is copied from these texts and is not in the user's own words."""
    parts = [words(part) for part in visible_texts(topic)]
    sentences = [words(each) for part in visible_texts(topic) for each in _SENTENCE_END.split(part)]
    every = frozenset(run for part in parts for run in runs_of(part))
    new, own = every - before, said | before
    found = set[tuple[str, ...]]()
    for text in texts:
        hits = every & word_runs(text)
        if hits <= own:
            continue
        found |= hits - own
        if len(found) >= TAKEN * len(new) or any(_has_copied_run(part, hits, own, PART, whole=False) for part in parts):
            return True
        if any(_has_copied_run(each, hits, own, SENTENCE, whole=True) for each in sentences):
            return True
    return False


def _has_copied_run(found: Sequence[str], hits: Runs, own: Runs, least: float, *, whole: bool) -> bool:
    """Whether `least` words in a row are hits and not all the user's own. With `whole`, all of the words must be."""
    begin, foreign = 0, False
    for at, run in enumerate(zip(*(found[at:] for at in range(RUN)), strict=False)):
        if run not in hits:
            if whole:
                return False
            begin, foreign = at + 1, False
            continue
        foreign = foreign or run not in own
        if not whole and foreign and weigh_words(found[begin : at + RUN]) >= least:
            return True
    return whole and foreign and weigh_words(found) >= least

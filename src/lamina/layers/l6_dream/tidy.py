"""Tidies up memories by rules, for dreams without a model. Pure.

Owns the rules. Memories that say nearly the same are merged into one that keeps every fact of both. A relative date in a project memory
gets its date, counted from the day the memory was written, also in the description and in the index. The index loses dead and duplicate
lines, and long lines are shortened. Invariants: no sentence is lost, nor its context (its place in a list, a table, code or under a
heading); anything uncertain stays as it is, and two sentences that may contradict each other never end up in one memory; the same memory
always gives the same changes, and an orderly memory gives none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ...language.dates import dated, relative_dates
from ...memory.guard.facts import WORDED_ANEW, Facts, exact_words, facts_of, folded_words, is_mostly_in, is_said, negates
from ...memory.store.index import read_entries
from ...memory.store.lint import find_near_pairs, plan_index
from ...memory.store.topic import Topic, evidence_of, fold_name, read_topic, write_topic
from .plan import MOST_CHARS

# A shorter description may fit many subjects.
_ABOUT_CHARS = 20
# A shorter fact may hold for many things.
_FACT_WORDS = 5
# A fact that more memories than this share is just a phrase.
_MOST_HAVING = 8
# Characters of an index line in a report.
LINE_QUOTE = 60
# Facts about a project belong to a day. Rules and preferences hold on any day.
_OF_A_DAY = "project"

# Words that do not change the meaning of a sentence.
_FILLING = frozenset(("a", "an", "and", "also", "the", *"在的了是要请"))

# A line whose meaning depends on its position: heading, table row, code, nested item, or an introduction to what follows.
_PLACED = re.compile(r"^(?:\s*(?:#|\||```|~~~)|[ \t]{2,}\S|.*[:：]\s*$)", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")


class MemoryPage(NamedTuple):
    """A memory as it was read, and the day it was written."""

    file: str
    text: str
    day: date


class Tidied(msgspec.Struct, frozen=True):
    """The result. `texts` are the new file contents, empty to remove a file. `index` is None if it stays."""

    texts: Mapping[str, str]
    index: str | None
    merged: int = 0
    dated: int = 0
    lines: int = 0  # of the index
    faulty: tuple[str, ...] = ()  # the beginnings of index lines that could not be repaired


class _DatedPage(NamedTuple):
    """A memory after its relative dates were replaced."""

    page: MemoryPage
    topic: Topic
    dates: int


def tidy_pages(pages: Sequence[MemoryPage], index: str, exists: Callable[[str], bool]) -> Tidied:
    """Compute all changes. `exists` tells whether a file exists, even if it was not read."""
    memories = [_replace_dates(page) for page in sorted(pages, key=lambda page: page.file)]
    listed = {entry.file for entry in read_entries(index)}
    partners = _find_partners(memories)
    ranked = sorted(range(len(memories)), key=lambda number: _rank(memories[number], listed))
    texts, wholes, into = dict[str, str](), dict[int, Topic](), dict[int, int]()
    for number in ranked:
        near = {into[other]: wholes[into[other]] for other in partners.get(number, ()) if other in into}
        into[number], whole = _merge_into(memories[number], near) or (number, memories[number].topic)
        wholes[into[number]] = whole
    for number in ranked:
        if into[number] != number:
            texts[memories[number].page.file] = ""
        elif text := _new_text(memories[number], wholes[number]):
            texts[memories[number].page.file] = text
    gone = [file for file, text in texts.items() if not text]
    topics = [read_topic(page.file, texts.get(page.file, page.text), 0) for page, _, _ in memories if page.file not in gone]
    plan = plan_index(_date_lines(index, memories), exists=lambda file: exists(file) and file not in gone, topics=topics)
    dates = sum(memory.dates for memory in memories if texts.get(memory.page.file))
    faulty = tuple(index.split("\n")[number - 1][:LINE_QUOTE] for number in plan.left)
    new_index, repaired = plan.text if plan.text != index else None, len(plan.removed) + len(plan.shortened)
    return Tidied(texts, new_index, len(gone), dates, repaired, faulty)


def _replace_dates(page: MemoryPage) -> _DatedPage:
    topic = read_topic(page.file, page.text, 0)
    body = relative_dates(topic.body, page.day)
    # A bare weekday in the description counts if it is a date of the body.
    sure, days = relative_dates(topic.description, page.day), {phrase.says for phrase in body}
    planned = relative_dates(topic.description, page.day, plan=True)
    about = [phrase for phrase in planned if phrase in sure or phrase.says in days]
    if topic.type != _OF_A_DAY or topic.problems or not (body or about):
        return _DatedPage(page, topic, 0)
    description = dated(topic.description, about)
    fields = {**topic.fields, "description": description}
    changed = replace(topic, body=dated(topic.body, body), description=description, fields=fields)
    return _DatedPage(page, changed, max(len(body), len(about)))


def _date_lines(index: str, memories: Sequence[_DatedPage]) -> str:
    """Return the index with the new descriptions of the memories whose dates were replaced."""
    lines = index.split("\n")
    for page, topic, dates in memories:
        old = read_topic(page.file, page.text, 0).description if dates else ""
        for number, line in enumerate(lines):
            if old and f"]({page.file})" in line and old in line:
                lines[number] = line.replace(old, topic.description, 1)
    return "\n".join(lines)


def _rank(memory: _DatedPage, listed: set[str]) -> tuple[bool, int, date, str]:
    """Sort key for the memory to keep: listed in the index, more facts, older."""
    file, text, day = memory.page
    return file not in listed, -len(facts_of(text).each), day, file


def _find_partners(memories: Sequence[_DatedPage]) -> dict[int, list[int]]:
    """Map each memory to those it may be merged with, of the same type. Most have none. A memory whose dates were just replaced is merged
    by the next dream, because until then its words differ from its duplicate's."""
    partners = dict[int, list[int]]()
    for first, second in find_similar_pairs([memory.topic for memory in memories]):
        one_type = memories[first].topic.type == memories[second].topic.type is not None
        if one_type and not any(memories[number].topic.problems or memories[number].dates for number in (first, second)):
            partners.setdefault(first, []).append(second)
            partners.setdefault(second, []).append(first)
    return partners


class _MergedTopic(NamedTuple):
    """A memory that is kept, including what it took over."""

    number: int
    topic: Topic


def _merge_into(memory: _DatedPage, wholes: Mapping[int, Topic]) -> _MergedTopic | None:
    """Merge the memory into the first one that can take over all of it. None: it stays."""
    for number, whole in wholes.items():
        if _agree(memory.topic, whole):
            joined = merge_topics(whole, memory.topic)
            if _keeps_all(write_topic(joined), memory):
                return _MergedTopic(number, joined)
    return None


def find_similar_pairs(topics: Sequence[Topic], pause: Callable[[], None] = lambda: None) -> list[tuple[int, int]]:
    """Return similar pairs: by their words, by all their facts, or by their description. `pause` is called before each memory."""
    bodies, wholes = [topic.body for topic in topics], [f"{topic.description}\n{topic.body}" for topic in topics]
    pairs = [(pair.first, pair.second) for texts in (bodies, wholes) for pair in find_near_pairs(texts, pause)]
    same = dict[object, int]()
    for number, topic in enumerate(topics):
        pause()
        about = fold_name(topic.description) if len(topic.description) >= _ABOUT_CHARS else ""
        for key in (frozenset(facts_of(topic.body).each), about):
            if key:
                pairs.append((same.setdefault(key, number), number))
    return [*(pair for pair in pairs if pair[0] != pair[1]), *_find_contained([facts_of(topic.body).each for topic in topics])]


def _find_contained(facts: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Return memories whose facts are all contained in another one, looked up by the rarest fact."""
    having = dict[str, list[int]]()
    for number, own in enumerate(facts):
        for fact in own:
            having.setdefault(fact, []).append(number)
    pairs = list[tuple[int, int]]()
    for number, own in enumerate(facts):
        if not any(fact.count(" ") + 1 >= _FACT_WORDS for fact in own):
            continue
        rarest = min((having[fact] for fact in own), key=len)
        pairs += [(number, other) for other in rarest[:_MOST_HAVING] if other != number and set(own) <= set(facts[other])]
    return pairs


def _agree(topic: Topic, whole: Topic) -> bool:
    """Whether no fact of one may contradict a fact of the other, and no line loses its position."""
    mine, theirs = facts_of(topic.body), facts_of(whole.body)
    if _PLACED.search(topic.body) and mine.lines not in theirs.lines:
        return False
    own = (*mine.each, *_own_description(topic, mine))
    others = (*theirs.each, *_own_description(whole, theirs))
    return not any(_contradict(fact, other) for fact in own for other in others)


def _own_description(topic: Topic, facts: Facts) -> list[str]:
    """Return the description as a fact, unless all its words are in the body."""
    words = _FILLING.union(facts.lines.split())
    return [fact for fact in _description_facts(topic.description) if not words.issuperset(fact.split())]


def _description_facts(description: str) -> list[str]:
    """Return the description as a fact. A few words are only a name."""
    fact = folded_words(description)
    return [fact] if fact.count(" ") + 1 >= _FACT_WORDS else []


def _contradict(fact: str, other: str) -> bool:
    """Whether two facts share most words, but each also has its own (another day, number or name), or one has an extra "not"."""
    own, theirs = set(fact.split()) - _FILLING, set(other.split()) - _FILLING
    if len(own & theirs) < WORDED_ANEW * max(len(own), len(theirs)):
        return False
    return not (own <= theirs or own >= theirs) or negates(" ".join(own ^ theirs))


def merge_topics(kept: Topic, other: Topic) -> Topic:
    """Return the first memory with every sentence and all evidence of the second that it lacks, and its description if that says more than
    the texts."""
    body, evidence = kept.body.rstrip(), list(evidence_of(kept))
    words = folded_words(f"{other.body} {kept.body} {kept.description}").split()
    is_known = is_mostly_in(" ".join(_description_facts(other.description)), words)
    text = other.body if is_known else f"{other.body.rstrip()}\n{other.description}"
    for line in _missing_lines(text, body):
        gap = "\n" if _BULLET.match(line) and _BULLET.match(body.rsplit("\n", 1)[-1]) else "\n\n"
        body = f"{body}{gap}{line}"
    evidence += [anchor for anchor in evidence_of(other) if anchor not in evidence]
    fields = {**kept.fields, "evidence": evidence} if evidence != list(evidence_of(kept)) else kept.fields
    return replace(kept, body=f"{body}\n" if body != kept.body.rstrip() else kept.body, fields=fields)


def _missing_lines(text: str, whole: str) -> list[str]:
    """Return the sentences and lines of a text that are not contained in `whole`, verbatim. Sentences of one line stay on one line."""
    lines = list[str]()
    for line in text.splitlines():
        parts = [part for part in _SENTENCE.split(line) if not all(is_said(fact, whole) for fact in facts_of(part).each)]
        if parts:
            bullet = _BULLET.match(line)
            begins = bullet[0] if bullet is not None and not _BULLET.match(parts[0]) else ""
            lines.append(f"{begins}{' '.join(parts)}".rstrip())
    return lines


def _keeps_all(text: str, memory: _DatedPage) -> bool:
    """Whether a text may replace a memory: it loses nothing and is not too long."""
    old = memory.page.text
    has_facts = all(is_said(fact, text) for fact in facts_of(old).each)
    return has_facts and exact_words(old) <= exact_words(text) and len(text) <= MOST_CHARS


def _new_text(memory: _DatedPage, topic: Topic) -> str:
    """Return the new file content, or "" if the file stays. A different line ending alone is not a change."""
    old = read_topic(memory.page.file, memory.page.text, 0)
    same = old.body.rstrip() == topic.body.rstrip() and old.fields == topic.fields
    return "" if same else write_topic(topic, before=memory.page.text)

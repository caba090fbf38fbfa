"""Check memories (front matter, descriptions, duplicates, dates, secrets, evidence) and daily logs (S5, B7, B8, S7, W2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from itertools import accumulate

from ...core.errors import DiskError
from ...disk.files import is_bookkeeping
from ...disk.trees.rootdir import RootDir
from ...disk.trees.survey import SurveyedEntry
from ...language.dates import Phrase, relative_dates
from ...memory.guard.contradictions import find_contradictions
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import LOGS, PATTERN
from ...memory.store.daily_logs import MOST_BYTES as MOST_LOG_BYTES
from ...memory.store.daily_logs import log_day as log_day
from ...memory.store.draft import MOST_BYTES
from ...memory.store.evidence import Anchor, Freshness, combine_freshness, judge_anchor, read_evidence, read_target
from ...memory.store.index import read_entries
from ...memory.store.journal_check import said_since
from ...memory.store.lint import (
    Alike,
    find_identical,
    find_near_pairs,
    find_same_bodies,
    find_same_descriptions,
    find_same_names,
    find_secrets,
    is_vague,
    order_by_worth,
)
from ...memory.store.topic import HIDDEN, KINDS, Topic, evidence_of
from .finding import DateIt, Finding, ToTrash
from .memory_snapshot import MemorySnapshot, TopicFile, day_of

# The limit of the index too (S4). A longer memory is a document, and recall shows only its beginning.
LONG_TOPIC = 25_000
# Distinct files that evidence refers to; each is read once, up to 4 MB.
MOST_PATHS = 1_000
# The search for secrets is the slowest check, about a second per megabyte; longer memories are reported as too long anyway.
SECRETS_CHARS = 64 << 10
# Daily logs searched for secrets, newest first: about some months.
MOST_LOGS_SEARCHED = 1 << 20
# More than anyone decides at once.
MOST_CONTRADICTIONS = 100
# Memories between two progress updates, about a tenth of a second.
_TOLD = 500


def check_topics(memory: MemorySnapshot, tell: Callable[[str], None]) -> Iterator[Finding]:
    for number, page in enumerate(memory.pages):
        if number % _TOLD == 0:
            tell(f"checking memory {number + 1:,} of {len(memory.pages):,}")
        yield from _about_file(memory, page)
        yield from _about_description(memory, page.topic)
        yield from _secrets(memory, page.topic.file, page.text[:SECRETS_CHARS], with_line=True)
        yield from _dates(memory, page)
    yield from _doubles(memory)
    yield from _contradictions(memory)
    yield from _evidence(memory)


def _about_file(memory: MemorySnapshot, page: TopicFile) -> Iterator[Finding]:
    topic, file = page.topic, page.topic.file
    for problem in topic.problems:
        if problem.startswith("unknown type"):
            text = f"{file} has the {problem}, which is ignored."
            yield memory.finding("unknown-type", text, file, advice=f"Use one of {', '.join(KINDS)}.")
        elif problem == HIDDEN:
            yield memory.finding("hidden-text", f"{file}: {problem}.", file)
        elif problem != "no description":
            yield memory.finding("front-matter", f"{file}: {problem}.", file)
    if not page.utf8:
        advice = "Save it as UTF-8; until then Lamina does not change it."
        yield memory.finding("unreadable", f"{file} is not UTF-8 text.", file, advice=advice)
    if not topic.body.strip() and page.whole:
        yield memory.finding("empty-body", f"{file} has no text below its front matter.", file)
    if page.size > LONG_TOPIC:
        more = f", and Lamina saves at most {MOST_BYTES:,}" if page.size > MOST_BYTES else ""
        text = f"recall shows only its beginning{more}"
        if not page.whole:
            text = f"only the first {MOST_READ:,} are read, and Lamina does not change it"
        yield memory.finding("oversize", f"{file} has {page.size:,} bytes; {text}.", file)


def _about_description(memory: MemorySnapshot, topic: Topic) -> Iterator[Finding]:
    if not topic.description:
        text = f"{topic.file} has no description, so recall cannot select it."
        yield memory.finding("no-description", text, topic.file)
    elif is_vague(topic.description, topic.name):
        text = f"The description of {topic.file} ({topic.description!r}) would fit any memory."
        yield memory.finding("vague-description", text, topic.file)


def _secrets(memory: MemorySnapshot, file: str, text: str, *, with_line: bool = False) -> Iterator[Finding]:
    if kinds := find_secrets(text):
        # The first line that contains a whole secret; a multi-line key has no such line.
        lines = text.split("\n") if with_line else ()
        line = next((number for number, line in enumerate(lines, 1) if find_secrets(line)), None)
        yield memory.finding("secret", f"{file} contains what looks like a secret ({', '.join(kinds)}).", file, line=line)


# Dates


def _dates(memory: MemorySnapshot, page: TopicFile) -> Iterator[Finding]:
    file = page.topic.file
    for phrase, written, sure in dates_in(memory, page):
        where = f"line {phrase.line}" if phrase.line else "the description"
        basis = "It was written" if sure else "According to the file's date, it was written"
        text = f"{file} says {phrase.text!r} ({where}). {basis} on {written.isoformat()}, so it means {phrase.says}."
        fix = DateIt(str(memory.where.path), file) if sure and may_be_dated(page.topic, phrase) else None
        yield memory.finding("relative-date", text, file, line=phrase.line or None, fix=fix)


def dates_in(memory: MemorySnapshot, page: TopicFile) -> Iterator[tuple[Phrase, date, bool]]:
    """Yield each relative date, the day it was written, and whether that day is certain because the journal recorded it.

    Phrases in the description have line 0.
    """
    topic = page.topic
    head = page.text[: len(page.text) - len(topic.body)].count("\n")
    rough = day_of(topic.modified)
    for text, first in ((topic.description, None), (topic.body, head)):
        if rough is None or not (found := relative_dates(text, rough)):
            continue
        as_of: dict[date, dict[int, Phrase]] = {}
        for phrase in found:
            since = said_since(memory.journal, topic.file, page.digest, _sentence(text, phrase)) if first is not None else None
            day = day_of(since) if since is not None else None
            if day is not None and day not in as_of:
                as_of[day] = {each.start: each for each in relative_dates(text, day)}
            meant = phrase if day is None else as_of[day].get(phrase.start, phrase._replace(certain=False))
            yield meant._replace(line=0 if first is None else meant.line + first), day or rough, day is not None


def _sentence(text: str, phrase: Phrase) -> str:
    """Return the line of a phrase, to look for it in older versions."""
    end = text.find("\n", phrase.end)
    return text[text.rfind("\n", 0, phrase.start) + 1 : len(text) if end < 0 else end]


def may_be_dated(topic: Topic, phrase: Phrase) -> bool:
    """Return whether a phrase may be replaced by its date: only in project facts, since rules and preferences mean any day."""
    return phrase.certain and topic.type == "project" and phrase.line > 0


# Duplicates


def _doubles(memory: MemorySnapshot) -> Iterator[Finding]:
    topics = memory.topics
    listed = {entry.file for entry in read_entries(memory.index_text)}
    paired: set[frozenset[int]] = set()
    for group in find_identical(topics):
        kept, *others = order_by_worth(group, topics, listed)
        paired |= {frozenset((first, second)) for first in group for second in group}
        for other in others:
            fix = ToTrash(str(memory.where.path), topics[other].file, topics[kept].file)
            yield _same(memory, "identical", kept, other, "are identical", fix)
    for group in find_same_bodies(topics):
        yield from _each(memory, "same-body", group, paired, "have the same text")
    for group in find_same_names(topics):
        yield from _each(memory, "same-name", group, paired, "have the same name")
    bare = set(paired)
    for pair in find_near_pairs([topic.body for topic in topics]):
        if frozenset(pair[:2]) not in paired and not memory.are_distinct(topics[pair.first].file, topics[pair.second].file):
            text = f"have nearly the same text ({pair.likeness:.0%} similar)"
            yield _same(memory, "near-duplicate", pair.first, pair.second, text)
            paired.add(frozenset(pair[:2]))
    for group in find_same_descriptions(topics):
        yield from _each(memory, "same-description", group, bare, "have the same description")


def _each(memory: MemorySnapshot, kind: str, group: Alike, paired: set[frozenset[int]], text: str) -> Iterator[Finding]:
    first, *others = group
    for other in others:
        if frozenset((first, other)) not in paired:
            paired.add(frozenset((first, other)))
            yield _same(memory, kind, first, other, text)


def _same(memory: MemorySnapshot, kind: str, first: int, second: int, text: str, fix: ToTrash | None = None) -> Finding:
    one, other = memory.pages[first].topic.file, memory.pages[second].topic.file
    return memory.finding(kind, f"{other} and {one} {text}.", other, fix=fix)


def _contradictions(memory: MemorySnapshot) -> Iterator[Finding]:
    found = find_contradictions(memory.topics, lambda old, new: memory.are_distinct(old.file, new.file))
    for old, new in found[:MOST_CONTRADICTIONS]:
        text = f'{old.topic.file} says "{old.text}", but {new.topic.file} says "{new.text}".'
        yield memory.finding("contradiction", text, old.topic.file)


# Evidence


def _evidence(memory: MemorySnapshot) -> Iterator[Finding]:
    """Check the evidence of all memories, reading each file once and combining the results per memory."""
    stated = {page.topic.file: read_evidence(found) for page in memory.pages if (found := evidence_of(page.topic))}
    by_path: dict[str, list[tuple[str, Anchor]]] = {}
    for file, evidence in stated.items():
        for anchor in evidence.anchors:
            by_path.setdefault(anchor.path, []).append((file, anchor))
    judged: dict[str, list[Freshness]] = {}
    for path in list(by_path)[:MOST_PATHS]:
        seen = read_target(path, memory.where.project)
        for file, anchor in by_path[path]:
            judged.setdefault(file, []).append(judge_anchor(anchor, seen))
    for file, evidence in stated.items():
        state, why = combine_freshness(judged.get(file, ()), evidence.unreadable)
        if state == "stale":
            yield memory.finding("stale-evidence", f"The evidence of {file} has changed: {why}.", file)
        elif state == "unverifiable":
            yield memory.finding("unverifiable-evidence", f"The evidence of {file} cannot be checked: {why}.", file)


# Daily logs


def check_daily(memory: MemorySnapshot) -> Iterator[Finding]:
    if memory.where.shared:
        return
    logs: list[SurveyedEntry] = []
    for seen in memory.found.entries:
        if seen.path.startswith(f"{LOGS}/") and seen.kind == "file" and not is_bookkeeping(seen.name):
            if log_day(seen.path) is not None:
                logs.append(seen)
            else:
                text = f"{seen.path} is not a daily log; those are named {PATTERN}."
                yield memory.finding("stray-log", text, seen.path)
    newest = sorted(logs, key=lambda seen: seen.path, reverse=True)
    sizes = accumulate(min(seen.size, MOST_LOG_BYTES) for seen in newest)
    with RootDir.open(memory.where.path, create=False) as root:
        for seen in newest[: sum(size <= MOST_LOGS_SEARCHED for size in sizes)]:
            try:
                data = root.read_bytes(seen.path, MOST_LOG_BYTES)
            except DiskError:
                continue  # reported as `not-plain` or `unreadable`
            yield from _secrets(memory, seen.path, (data or b"").decode("utf-8", "replace"))

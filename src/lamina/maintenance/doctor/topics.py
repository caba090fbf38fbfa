"""What is wrong with the memories themselves: front matter, descriptions, doubles, dates, secrets, evidence; and with the daily
logs beside them (S5, B7, B8, S7, W2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from itertools import accumulate

from ...core.dates import Phrase, relative_dates
from ...core.errors import DiskError
from ...disk.files import is_bookkeeping
from ...disk.trees.rootdir import RootDir
from ...disk.trees.survey import SurveyedEntry
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import LOGS, PATTERN
from ...memory.store.daily_logs import MOST_BYTES as MOST_LOG_BYTES
from ...memory.store.daily_logs import day_of as log_day
from ...memory.store.draft import MOST_BYTES
from ...memory.store.evidence import Anchor, Freshness, judge, look, read_evidence, taken_together
from ...memory.store.index import entries
from ...memory.store.journal_check import said_since
from ...memory.store.lint import Same, first_kept, identical, is_vague, same_bodies, same_descriptions, same_names, secrets_in
from ...memory.store.similarity import near_pairs
from ...memory.store.topic import KINDS, Topic, evidence_of
from .finding import DateIt, Finding, ToTrash
from .memory_snapshot import MemorySnapshot, TopicFile, day_of

# What a session is sent of an index (S4); a memory that is longer is a document, and a recall shows only its beginning.
LONG_TOPIC = 25_000
# Distinct files that evidence names; each is read once, up to 4 MB.
MOST_PATHS = 1_000
# The search for secrets is the slowest of all, a second or so a megabyte; a memory that is longer is named as too long anyway.
SECRETS_CHARS = 64 << 10
# Of daily logs: the newest of some months, as people fill them.
MOST_LOGS_SEARCHED = 1 << 20
# A tenth of a second or so.
_TOLD = 500


def check_topics(memory: MemorySnapshot, tell: Callable[[str], None]) -> Iterator[Finding]:
    for number, page in enumerate(memory.pages):
        if number % _TOLD == 0:
            tell(f"looking at memory {number + 1:,} of {len(memory.pages):,}")
        yield from _about_file(memory, page)
        yield from _about_description(memory, page.topic)
        yield from _secrets(memory, page.topic.file, page.text[:SECRETS_CHARS], with_line=True)
        yield from _dates(memory, page)
    yield from _doubles(memory)
    yield from _evidence(memory)


def _about_file(memory: MemorySnapshot, page: TopicFile) -> Iterator[Finding]:
    topic, file = page.topic, page.topic.file
    for problem in topic.problems:
        if problem.startswith("unknown type"):
            text = f"{file} has the {problem}; it is read as having none."
            yield memory.finding("unknown-type", text, file, advice=f"Use one of {', '.join(KINDS)}.")
        elif problem != "no description":
            yield memory.finding("front-matter", f"{file}: {problem}.", file)
    if not page.utf8:
        advice = "Save it as UTF-8; until then it is never changed."
        yield memory.finding("unreadable", f"{file} is no UTF-8 text.", file, advice=advice)
    if not topic.body.strip() and page.whole:
        yield memory.finding("empty-body", f"{file} has no text below its front matter.", file)
    if page.size > LONG_TOPIC:
        more = f", and more than {MOST_BYTES:,} are not saved" if page.size > MOST_BYTES else ""
        text = f"a recall shows its beginning only{more}"
        if not page.whole:
            text = f"only the first {MOST_READ:,} are read, and it is never changed"
        yield memory.finding("oversize", f"{file} has {page.size:,} bytes; {text}.", file)


def _about_description(memory: MemorySnapshot, topic: Topic) -> Iterator[Finding]:
    if not topic.description:
        text = f"{topic.file} has no description, and the description is all that is looked at when memories are chosen."
        yield memory.finding("no-description", text, topic.file)
    elif is_vague(topic.description, topic.name):
        text = f"The description of {topic.file} ({topic.description!r}) fits any memory."
        yield memory.finding("vague-description", text, topic.file)


def _secrets(memory: MemorySnapshot, file: str, said: str, *, with_line: bool = False) -> Iterator[Finding]:
    if kinds := secrets_in(said):
        # The first line that has one for itself; a key of many lines has none.
        lines = said.split("\n") if with_line else ()
        line = next((number for number, line in enumerate(lines, 1) if secrets_in(line)), None)
        yield memory.finding("secret", f"{file} holds what looks like a secret ({', '.join(kinds)}).", file, line=line)


# Dates


def _dates(memory: MemorySnapshot, page: TopicFile) -> Iterator[Finding]:
    file = page.topic.file
    for phrase, written, sure in dates_in(memory, page):
        where = f"line {phrase.line}" if phrase.line else "the description"
        basis = "It was written" if sure else "By the date of the file it was written"
        text = f"{file} says {phrase.text!r} ({where}). {basis} on {written.isoformat()}, so that means {phrase.says}."
        fix = DateIt(str(memory.where.path), file) if sure and may_be_dated(page.topic, phrase) else None
        yield memory.finding("relative-date", text, file, line=phrase.line or None, fix=fix)


def dates_in(memory: MemorySnapshot, page: TopicFile) -> Iterator[tuple[Phrase, date, bool]]:
    """Each relative date, the day it was written, and whether that day is certain: only where the journal saw it come in.

    A phrase of the description has the line 0.
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
    """The line a phrase stands in, as it must stand in an older version too."""
    end = text.find("\n", phrase.end)
    return text[text.rfind("\n", 0, phrase.start) + 1 : len(text) if end < 0 else end]


def may_be_dated(topic: Topic, phrase: Phrase) -> bool:
    """Facts about a project happen on a day; rules and preferences speak of any day."""
    return phrase.certain and topic.type == "project" and phrase.line > 0


# Doubles


def _doubles(memory: MemorySnapshot) -> Iterator[Finding]:
    topics = memory.topics
    listed = {entry.file for entry in entries(memory.index_text)}
    paired: set[frozenset[int]] = set()
    for group in identical(topics):
        kept, *others = first_kept(group, topics, listed).positions
        paired |= {frozenset((first, second)) for first in group.positions for second in group.positions}
        for other in others:
            fix = ToTrash(str(memory.where.path), topics[other].file, topics[kept].file)
            yield _same(memory, "identical", kept, other, "say the same in every word", fix)
    for group in same_bodies(topics):
        yield from _each(memory, "same-body", group, paired, "have the same text")
    for group in same_names(topics):
        yield from _each(memory, "same-name", group, paired, "have the same name")
    bare = set(paired)
    for pair in near_pairs([topic.body for topic in topics]):
        if frozenset(pair[:2]) not in paired:
            text = f"say nearly the same ({pair.likeness:.0%} alike)"
            yield _same(memory, "near-duplicate", pair.first, pair.second, text)
            paired.add(frozenset(pair[:2]))
    for group in same_descriptions(topics):
        yield from _each(memory, "same-description", group, bare, "have the same description")


def _each(memory: MemorySnapshot, kind: str, group: Same, paired: set[frozenset[int]], text: str) -> Iterator[Finding]:
    first, *others = group.positions
    for other in others:
        if frozenset((first, other)) not in paired:
            paired.add(frozenset((first, other)))
            yield _same(memory, kind, first, other, text)


def _same(memory: MemorySnapshot, kind: str, first: int, second: int, text: str, fix: ToTrash | None = None) -> Finding:
    one, other = memory.pages[first].topic.file, memory.pages[second].topic.file
    return memory.finding(kind, f"{other} and {one} {text}.", other, fix=fix)


# Evidence


def _evidence(memory: MemorySnapshot) -> Iterator[Finding]:
    """Each file is read once, whoever names it; the judgements are put together for each memory."""
    stated = {page.topic.file: read_evidence(list(found)) for page in memory.pages if (found := evidence_of(page.topic))}
    by_path: dict[str, list[tuple[str, Anchor]]] = {}
    for file, evidence in stated.items():
        for anchor in evidence.anchors:
            by_path.setdefault(anchor.path, []).append((file, anchor))
    judged: dict[str, list[Freshness]] = {}
    for path in list(by_path)[:MOST_PATHS]:
        seen = look(path, memory.where.project)
        for file, anchor in by_path[path]:
            judged.setdefault(file, []).append(judge(anchor, seen))
    for file, evidence in stated.items():
        state, why = taken_together(judged.get(file, ()), evidence.unreadable)
        if state == "stale":
            yield memory.finding("stale-evidence", f"{file} rests on what has changed: {why}.", file)
        elif state == "unverifiable":
            yield memory.finding("unverifiable-evidence", f"What {file} rests on cannot be checked: {why}.", file)


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
                text = f"{seen.path} lies among the daily logs and is none: those are {PATTERN}."
                yield memory.finding("stray-log", text, seen.path)
    newest = sorted(logs, key=lambda seen: seen.path, reverse=True)
    sizes = accumulate(min(seen.size, MOST_LOG_BYTES) for seen in newest)
    with RootDir.open(memory.where.path, create=False) as root:
        for seen in newest[: sum(size <= MOST_LOGS_SEARCHED for size in sizes)]:
            try:
                data = root.read_bytes(seen.path, MOST_LOG_BYTES)
            except DiskError:
                continue  # `not-plain` and `unreadable` say it
            yield from _secrets(memory, seen.path, (data or b"").decode("utf-8", "replace"))

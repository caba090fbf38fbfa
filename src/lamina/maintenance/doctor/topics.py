"""What is wrong with the memories themselves: front matter, descriptions, doubles, dates, secrets, evidence (S5, B7, B8, S7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from ...core.dates import Phrase, relative_dates
from ...memory.store.contract import MOST_READ
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
from ...memory.store.topic import KINDS, Topic, evidence_of
from .finding import DateIt, Finding, ToTrash
from .memory_snapshot import Page, Reading, day_of

# What a session is sent of an index (S4); a memory that is longer is a document, and a recall shows only its beginning.
LONG_TOPIC = 25_000
# Distinct files that evidence names; each is read once, up to 4 MB.
MOST_PATHS = 1_000
# The search for secrets is the slowest of all, a second or so a megabyte; a memory that is longer is named as too long anyway.
SECRETS_CHARS = 64 << 10
# A tenth of a second or so.
_TOLD = 500


def check_topics(reading: Reading, tell: Callable[[str], None]) -> Iterator[Finding]:
    for number, page in enumerate(reading.pages):
        if number % _TOLD == 0:
            tell(f"looking at memory {number + 1:,} of {len(reading.pages):,}")
        yield from _about_file(reading, page)
        yield from _about_description(reading, page.topic)
        yield from _secrets(reading, page)
        yield from _dates(reading, page)
    yield from _doubles(reading)
    yield from _evidence(reading)


def _finding(reading: Reading, file: str, kind: str, problem: str, remedy: str, line: int | None = None) -> Finding:
    return Finding("memory", kind, problem, remedy, reading.full(file), line)


def _about_file(reading: Reading, page: Page) -> Iterator[Finding]:
    topic = page.topic
    for problem in topic.problems:
        if problem.startswith("unknown type"):
            text = f"{topic.file} has the {problem}; it is read as having none."
            yield _finding(reading, topic.file, "unknown-type", text, f"Use one of {', '.join(KINDS)}.")
        elif problem != "no description":
            yield _finding(
                reading, topic.file, "front-matter", f"{topic.file}: {problem}.", "Begin it with name, description and type."
            )
    if not page.utf8:
        yield _finding(
            reading,
            topic.file,
            "unreadable",
            f"{topic.file} is no UTF-8 text.",
            "Save it as UTF-8; until then it is never changed.",
        )
    if not topic.body.strip() and page.whole:
        yield _finding(
            reading,
            topic.file,
            "empty-body",
            f"{topic.file} has no text below its front matter.",
            "Write what it is about, or remove it.",
        )
    if page.size > LONG_TOPIC:
        yield _finding(reading, topic.file, "oversize", _long(page), "Keep what matters, or split it into several memories.")


def _long(page: Page) -> str:
    if not page.whole:
        return f"{page.topic.file} has {page.size:,} bytes; only the first {MOST_READ:,} are read, and it is never changed."
    more = f", and more than {MOST_BYTES:,} are not saved" if page.size > MOST_BYTES else ""
    return f"{page.topic.file} has {page.size:,} bytes; a recall shows its beginning only{more}."


def _about_description(reading: Reading, topic: Topic) -> Iterator[Finding]:
    if not topic.description:
        text = f"{topic.file} has no description, and the description is all that is looked at when memories are chosen."
        yield _finding(reading, topic.file, "no-description", text, "Say in one line when it helps.")
    elif is_vague(topic.description, topic.name):
        text = f"The description of {topic.file} ({topic.description!r}) fits any memory."
        yield _finding(reading, topic.file, "vague-description", text, "Say in one line what is in it and when it helps.")


def _secrets(reading: Reading, page: Page) -> Iterator[Finding]:
    said = page.text[:SECRETS_CHARS]
    if kinds := find_secrets(said):
        text = f"{page.topic.file} holds what looks like a secret ({', '.join(kinds)})."
        remedy = "Take it out, and change the secret: it has been on disk and may have been sent to a model."
        yield _finding(reading, page.topic.file, "secret", text, remedy, _line_of_secret(said))


def _line_of_secret(text: str) -> int | None:
    """The first line that has one for itself; a key of many lines has none."""
    return next((number for number, line in enumerate(text.split("\n"), 1) if find_secrets(line)), None)


# Dates


def _dates(reading: Reading, page: Page) -> Iterator[Finding]:
    for phrase, written, sure in dates_in(reading, page):
        where = f"line {phrase.line}" if phrase.line else "the description"
        basis = "It was written" if sure else "By the date of the file it was written"
        text = f"{page.topic.file} says {phrase.text!r} ({where}). {basis} on {written.isoformat()}, so that means {phrase.says}."
        fixable = sure and may_be_dated(page.topic, phrase) and reading.where.writable
        fix = DateIt(str(reading.where.path), page.topic.file) if fixable else None
        found = _finding(reading, page.topic.file, "relative-date", text, "Put the date there.", phrase.line or None)
        yield Finding(found.area, found.kind, found.problem, found.remedy, found.file, found.line, fix)


def dates_in(reading: Reading, page: Page) -> Iterator[tuple[Phrase, date, bool]]:
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
            since = said_since(reading.journal, topic.file, page.digest, _sentence(text, phrase)) if first is not None else None
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


def _doubles(reading: Reading) -> Iterator[Finding]:
    topics = reading.topics
    listed = {entry.file for entry in read_entries(reading.index_text)}
    paired: set[frozenset[int]] = set()
    for group in find_identical(topics):
        kept, *others = order_by_worth(group, topics, listed)
        paired |= {frozenset((first, second)) for first in group for second in group}
        for other in others:
            yield _same(
                reading, "identical", kept, other, "say the same in every word", "One is enough; the other goes to the trash."
            )
    for group in find_same_bodies(topics):
        yield from _each(reading, "same-body", group, paired, "have the same text", "Keep one, with the better description.")
    for group in find_same_names(topics):
        yield from _each(
            reading, "same-name", group, paired, "have the same name", "Rename one: only the first is found by its name."
        )
    bare = set(paired)
    for pair in find_near_pairs([topic.body for topic in topics]):
        if frozenset(pair[:2]) not in paired:
            text = f"say nearly the same ({pair.likeness:.0%} alike)"
            yield _same(reading, "near-duplicate", pair.first, pair.second, text, "Merge them, if they mean the same.")
            paired.add(frozenset(pair[:2]))
    for group in find_same_descriptions(topics):
        yield from _each(reading, "same-description", group, bare, "have the same description", "Say what tells them apart.")


def _each(reading: Reading, kind: str, group: Alike, paired: set[frozenset[int]], text: str, remedy: str) -> Iterator[Finding]:
    first, *others = group
    for other in others:
        if frozenset((first, other)) not in paired:
            paired.add(frozenset((first, other)))
            yield _same(reading, kind, first, other, text, remedy)


def _same(reading: Reading, kind: str, first: int, second: int, text: str, remedy: str) -> Finding:
    one, other = reading.pages[first].topic, reading.pages[second].topic
    fix = ToTrash(str(reading.where.path), other.file, one.file) if kind == "identical" and reading.where.writable else None
    return Finding("memory", kind, f"{other.file} and {one.file} {text}.", remedy, reading.full(other.file), fix=fix)


# Evidence


def _evidence(reading: Reading) -> Iterator[Finding]:
    """Each file is read once, whoever names it; the judgements are put together for each memory."""
    stated = {page.topic.file: read_evidence(found) for page in reading.pages if (found := evidence_of(page.topic))}
    by_path: dict[str, list[tuple[str, Anchor]]] = {}
    for file, evidence in stated.items():
        for anchor in evidence.anchors:
            by_path.setdefault(anchor.path, []).append((file, anchor))
    judged: dict[str, list[Freshness]] = {}
    for path in list(by_path)[:MOST_PATHS]:
        seen = read_target(path, reading.where.project)
        for file, anchor in by_path[path]:
            judged.setdefault(file, []).append(judge_anchor(anchor, seen))
    for file, evidence in stated.items():
        state, why = combine_freshness(judged.get(file, ()), evidence.unreadable)
        if state == "stale":
            yield _finding(
                reading, file, "stale-evidence", f"{file} rests on what has changed: {why}.", "Check whether it still holds."
            )
        elif state == "unverifiable":
            yield _finding(
                reading,
                file,
                "unverifiable-evidence",
                f"What {file} rests on cannot be checked: {why}.",
                "Name files of the project.",
            )

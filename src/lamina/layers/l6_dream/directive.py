"""The instructions for a dream: the copy, the list of memories, the findings of a first scan, and other places to look at.

Owns the choice of listed memories (those with findings, then the newest) and the sentences of the first scan: near duplicates, relative
dates, evidence that has changed, faulty index lines. The same memory always gives the same few sentences. Reads only, and is bounded
whatever the memory contains. The texts are in `prompts/`. The lines with the copy and the date, and the list, have a fixed form,
because the offline rules parse them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...language.dates import relative_dates
from ...memory.recall.selection import manifest_line
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import LOGS, list_logs
from ...memory.store.daily_logs import MOST_BYTES as LOG_BYTES
from ...memory.store.directory import DirectoryStore
from ...memory.store.evidence import check_evidence, read_evidence
from ...memory.store.index import LINE_CHARS, MOST_LINES
from ...memory.store.index import MOST_BYTES as INDEX_BYTES
from ...memory.store.lint import find_near_pairs, plan_index
from ...memory.store.scopes import MemoryLocation
from ...memory.store.topic import INDEX, PERSONAL, Topic, evidence_of
from ...memory.store.topic_files import MOST_IN_MANIFEST, TopicHeader
from ...prompt.instruction_files import shown
from .bounds import MOST_BYTES, MOST_FILES, MOST_HITS, MOST_SEARCHES, AboutPerson

# The record shows this many answers, so a user can watch all of them. Each phase takes a handful.
ROUNDS = 30
FINDING_CHARS = 300
# Scanning this many memories takes a fraction of a second. If there are more, the newest are scanned.
MOST_LOOKED_AT = 2_000
# Two months of daily logs. Older ones are left as they are after a longer absence.
MOST_LOGS = 60
# Limit per kind of finding, so that every kind gets room.
MOST_OF_A_KIND = 15
# The latest representable timestamp.
LAST = 253_402_300_799.0
# Maximum length of a quoted phrase.
_QUOTED = 40

_FAULTS = {
    "dead": "points at {file}, which does not exist",
    "double": "is a duplicate line for {file}",
    "long": "is {chars} characters long",
    "long and fixed": "is {chars} characters long",
    "content": "is {chars} characters long and does not point at a memory",
    "outside": "points outside the memory directory",
}
_WORK = re.compile(r"^- You work on a copy of the memory directory: (?P<path>.+)$", re.MULTILINE)
_LOG = re.compile(r"^- A daily log that no dream has seen: (?P<path>.+\.md)$", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)
_MORE = re.compile(r"^\(Not in this list: \d+ more\.", re.MULTILINE)
_LINE = re.compile(r"^- \[(?P<type>\w+)\] (?P<file>.+?\.md) \((?P<day>\d{4}-\d\d-\d\d)[^()]*\): (?P<about>.*)$", re.MULTILINE)


class DreamScene(NamedTuple):
    """The input of a dream's directive."""

    work: Path
    project: Path
    today: str
    listed: Sequence[str] = ()  # one line per memory
    unlisted: int = 0  # number of memories that are not listed
    findings: Sequence[str] = ()  # of the scan without a model
    logs: Path | None = None
    transcripts: Sequence[Path] = ()
    team: Path | None = None
    unseen: Sequence[Path] = ()  # daily logs that no dream has seen, newest first


class DreamDirective(NamedTuple):
    """A directive parsed back from its text, for the offline dream."""

    work: str
    listed: Mapping[str, str]  # file → the date it was written
    more: bool  # some memories are not listed
    logs: tuple[str, ...] = ()  # daily logs that no dream has seen


def render_directive(scene: DreamScene) -> str:
    texts = prompt_sections(__file__, "dream")
    manifest, findings = texts["nothing"], ""
    if scene.listed:
        more = f"\n\n{texts['more'].format(left=scene.unlisted)}" if scene.unlisted else ""
        manifest = str(fence("memory-index", "\n".join(scene.listed))) + more
    if scene.findings:
        rows = "\n".join(f"- {escape(printable(finding, FINDING_CHARS))}" for finding in scene.findings)
        findings = f"\n{texts['findings'].format(list=rows)}\n"
    return texts["directive"].format(
        work=shown(scene.work),
        today=scene.today,
        places="".join(f"{line}\n" for line in _list_places(scene, texts)),
        manifest=manifest,
        findings=findings,
        rounds=ROUNDS,
        hits=MOST_HITS,
        searches=MOST_SEARCHES,
        line=LINE_CHARS,
        lines=MOST_LINES,
        kilobytes=INDEX_BYTES // 1_000,
        files=MOST_FILES,
        written=MOST_BYTES >> 10,
    )


def _list_places(scene: DreamScene, texts: Mapping[str, str]) -> list[str]:
    lines = [texts["project"].format(project=shown(scene.project))]
    if scene.logs is not None:
        lines.append(texts["logs"].format(logs=shown(scene.logs)))
        lines += [texts["log"].format(log=shown(path)) for path in scene.unseen]
    lines += [texts["transcripts"].format(transcripts=shown(place)) for place in scene.transcripts]
    if scene.team is not None:
        lines.append(texts["team"].format(team=shown(scene.team)))
    return lines


def read_directive(text: str) -> DreamDirective:
    work, listed = _WORK.search(text), _LISTED.search(text)
    rows = _LINE.finditer(listed["list"]) if listed else ()
    return DreamDirective(
        work["path"].strip() if work else "",
        {row["file"]: row["day"] for row in rows},
        _MORE.search(text) is not None,
        tuple(log["path"] for log in _LOG.finditer(text)),
    )


def read_scene(
    store: DirectoryStore,
    place: MemoryLocation,
    work: Path,
    *,
    project: Path,
    today: str,
    transcripts: Sequence[Path] = (),
    since: float | None = None,
    by_hand: bool = False,
) -> DreamScene:
    """Collect the input of a directive. `since` is the time of the last dream; a dream started by hand includes today's log."""
    headers = store.topic_files.headers()
    topics = [topic for header in headers[:MOST_LOOKED_AT] if (topic := store.topic_files.topic(header.file)) is not None]
    findings = find_faults(topics, store.index(), _find_stale(topics, project))
    listed = _choose_listed(headers, findings)
    logs = place.path / LOGS
    first, end = date.min if since is None else date.fromtimestamp(since), "" if by_hand else today
    unseen = [log for log in list_logs(store.root) if log.day >= first and (not end or log.day.isoformat() < end)]
    return DreamScene(
        work,
        project,
        today,
        [manifest_line(header) for header in listed],
        len(headers) - len(listed),
        findings,
        logs if logs.is_dir() else None,
        transcripts,
        place.team if place.team is not None and place.team.is_dir() else None,
        [place.path / log.file for log in unseen[:MOST_LOGS]],
    )


def read_about_person(store: DirectoryStore, place: MemoryLocation, scene: DreamScene) -> AboutPerson:
    """Collect what is known about the user: their memories, and the daily logs this dream covers."""
    personal = [header.file for header in store.topic_files.headers() if header.type in PERSONAL][:MOST_LOOKED_AT]
    texts = [data.decode("utf-8", "replace") for file in personal if (data := store.root.read_bytes(file, MOST_READ)) is not None]
    logs = [store.root.read_bytes(path.relative_to(place.path), LOG_BYTES) for path in scene.unseen]
    bullets = [line for data in logs if data is not None for line in data.decode("utf-8", "replace").splitlines()]
    return AboutPerson(texts, bullets)


def _find_stale(topics: Sequence[Topic], project: Path) -> Iterator[str]:
    for topic in topics:
        if anchors := evidence_of(topic):
            freshness = check_evidence(read_evidence(list(anchors)), project)
            if freshness.state == "stale":
                yield f"{topic.file}: {freshness.why}"


def _choose_listed(headers: Sequence[TopicHeader], findings: Sequence[str]) -> list[TopicHeader]:
    if len(headers) <= MOST_IN_MANIFEST:
        return list(headers)
    words = {word.rstrip(":,") for finding in findings for word in finding.split()}
    first = [header for header in headers if header.file in words][:MOST_IN_MANIFEST]
    others = [header for header in headers if header.file not in words]
    return [*first, *others[: MOST_IN_MANIFEST - len(first)]]


# The first scan


def find_faults(topics: Sequence[Topic], index: str, stale: Iterable[str]) -> list[str]:
    """Return the findings of the first scan. `stale` are sentences about memories whose evidence has changed."""
    pairs = find_near_pairs([topic.body for topic in topics])
    duplicates = (f"{topics[pair.second].file} and {topics[pair.first].file} are nearly the same" for pair in pairs)
    kinds = (duplicates, stale, chain.from_iterable(map(_find_dates, topics)), _find_line_faults(topics, index))
    return [finding for kind in kinds for finding in islice(kind, MOST_OF_A_KIND)]


def _find_dates(topic: Topic) -> Iterator[str]:
    phrases = relative_dates(topic.body, day_of(topic.modified))
    if phrases:
        dates = ", ".join(f'"{" ".join(phrase.text.split())[:_QUOTED]}" ({phrase.says})' for phrase in phrases[:3])
        yield f"{topic.file}: relative dates, counted from the day it was written: {dates}"


def day_of(moment: float) -> date:
    """Return the date a memory was written. Timestamps outside the valid range are clamped."""
    return datetime.fromtimestamp(min(max(moment, 0.0), LAST), UTC).date()


def _find_line_faults(topics: Sequence[Topic], index: str) -> Iterator[str]:
    files = {topic.file for topic in topics}
    plan = plan_index(index, exists=files.__contains__, topics=topics)
    for fault in plan.faults:
        yield f"{INDEX}, line {fault.line} {_FAULTS[fault.fault].format(file=fault.file, chars=fault.chars)}"
    yield from (f"{file} has no line in {INDEX}" for file in plan.unlisted)

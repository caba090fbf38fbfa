"""What a dream is asked and shown at its beginning (D3): the copy, the list of memories, what a first look found, where else it may look.

Owns the choice of what is listed (the memories the first look found something about, then the newest) and the sentences of the first
look: memories that are nearly the same, relative dates, evidence that has changed, faulty lines of the index. The same memory gives the
same sentences, and never many. Reads only; bounded, whatever the memory holds. The words are in `prompts/`; the lines with the copy and
the day, and the list, have a fixed form, which the offline rules read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from ...core.dates import relative_dates
from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...memory.recall.selection import manifest_line
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import LOGS, DailyLog, list_logs
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

# As many answers as are shown of a dream (D4), so that all of it can be watched; the phases take a handful each.
ROUNDS = 30
FINDING_CHARS = 300
# Looking at so many memories takes a fraction of a second; of more the newest are looked at.
MOST_LOOKED_AT = 2_000
# Two months of days: who was away longer has older logs left as they are.
MOST_LOGS = 60
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
_WORK = re.compile(r"^- You work on a copy of the memory directory: (?P<path>.+)$", re.MULTILINE)
_LOG = re.compile(r"^- A daily log that no dream has seen: (?P<path>.+\.md)$", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)
_MORE = re.compile(r"^\(\d+ more are not in this list;", re.MULTILINE)
_LINE = re.compile(r"^- \[(?P<type>\w+)\] (?P<file>.+?\.md) \((?P<day>\d{4}-\d\d-\d\d)[^()]*\): (?P<about>.*)$", re.MULTILINE)


class DreamScene(NamedTuple):
    """What there is to look at."""

    work: Path
    project: Path
    today: str
    listed: Sequence[str] = ()  # a line for each memory
    left: int = 0  # memories that are not in the list
    found: Sequence[str] = ()  # what a look without a model found
    logs: Path | None = None
    transcripts: Sequence[Path] = ()
    team: Path | None = None
    unseen: Sequence[Path] = ()  # daily logs that no dream has seen, newest first


class DreamDirective(NamedTuple):
    """A directive, read again by who answers without a model."""

    work: str
    listed: Mapping[str, str]  # file → the day it was written
    more: bool  # there are memories that are not listed
    logs: tuple[str, ...] = ()  # daily logs that no dream has seen


def render_directive(scene: DreamScene) -> str:
    texts = prompt_sections(__file__, "dream")
    return texts["directive"].format(
        work=shown(scene.work),
        today=scene.today,
        places="".join(f"{line}\n" for line in _places(scene, texts)),
        manifest=_manifest(scene, texts),
        findings=_findings(scene, texts),
        rounds=ROUNDS,
        hits=MOST_HITS,
        searches=MOST_SEARCHES,
        line=LINE_CHARS,
        lines=MOST_LINES,
        kilobytes=INDEX_BYTES // 1_000,
        files=MOST_FILES,
        written=MOST_BYTES >> 10,
    )


def _places(scene: DreamScene, texts: Mapping[str, str]) -> list[str]:
    lines = [texts["project"].format(project=shown(scene.project))]
    if scene.logs is not None:
        lines.append(texts["logs"].format(logs=shown(scene.logs)))
        lines += [texts["log"].format(log=shown(path)) for path in scene.unseen]
    lines += [texts["transcripts"].format(transcripts=shown(place)) for place in scene.transcripts]
    if scene.team is not None:
        lines.append(texts["team"].format(team=shown(scene.team)))
    return lines


def _manifest(scene: DreamScene, texts: Mapping[str, str]) -> str:
    if not scene.listed:
        return texts["nothing"]
    said = str(fence("memory-index", "\n".join(scene.listed)))
    return f"{said}\n\n{texts['more'].format(left=scene.left)}" if scene.left else said


def _findings(scene: DreamScene, texts: Mapping[str, str]) -> str:
    if not scene.found:
        return ""
    rows = "\n".join(f"- {escape(printable(each, FINDING_CHARS))}" for each in scene.found)
    return f"\n{texts['findings'].format(list=rows)}\n"


def read_directive(text: str) -> DreamDirective:
    work, listed = _WORK.search(text), _LISTED.search(text)
    rows = _LINE.finditer(listed["list"]) if listed else ()
    return DreamDirective(
        work["path"].strip() if work else "",
        {row["file"]: row["day"] for row in rows},
        _MORE.search(text) is not None,
        tuple(found["path"] for found in _LOG.finditer(text)),
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
    """`since` is when the last dream was; one by hand looks at the log of today too."""
    headers = store.topic_files.headers()
    topics = [topic for header in headers[:MOST_LOOKED_AT] if (topic := store.topic_files.topic(header.file)) is not None]
    found = find_faults(topics, store.index(), _stale(topics, project))
    listed = _listed(headers, found)
    logs = place.path / LOGS
    return DreamScene(
        work,
        project,
        today,
        [manifest_line(header) for header in listed],
        len(headers) - len(listed),
        found,
        logs if logs.is_dir() else None,
        transcripts,
        place.team if place.team is not None and place.team.is_dir() else None,
        [place.path / each.file for each in _unseen(store, since, "" if by_hand else today)],
    )


def read_about_person(store: DirectoryStore, place: MemoryLocation, scene: DreamScene) -> AboutPerson:
    """What is known of the person: their memories, and the daily logs this dream is to look at."""
    personal = [header.file for header in store.topic_files.headers() if header.type in PERSONAL][:MOST_LOOKED_AT]
    texts = [data.decode("utf-8", "replace") for file in personal if (data := store.root.read_bytes(file, MOST_READ)) is not None]
    logs = [store.root.read_bytes(path.relative_to(place.path), LOG_BYTES) for path in scene.unseen]
    bullets = [line for data in logs if data is not None for line in data.decode("utf-8", "replace").splitlines()]
    return AboutPerson(texts, bullets)


def _unseen(store: DirectoryStore, since: float | None, before: str) -> list[DailyLog]:
    """The daily logs no dream has seen whole, newest first (W2)."""
    first = date.min if since is None else date.fromtimestamp(since)
    found = [each for each in list_logs(store.root) if each.day >= first and (not before or each.day.isoformat() < before)]
    return found[:MOST_LOGS]


def _stale(topics: Sequence[Topic], project: Path) -> Iterator[str]:
    for topic in topics:
        if anchors := evidence_of(topic):
            freshness = check_evidence(read_evidence(list(anchors)), project)
            if freshness.state == "stale":
                yield f"{topic.file}: {freshness.why}"


def _listed(headers: Sequence[TopicHeader], found: Sequence[str]) -> list[TopicHeader]:
    if len(headers) <= MOST_IN_MANIFEST:
        return list(headers)
    words = {word.rstrip(":,") for each in found for word in each.split()}
    first = [header for header in headers if header.file in words][:MOST_IN_MANIFEST]
    rest = [header for header in headers if header.file not in words]
    return [*first, *rest[: MOST_IN_MANIFEST - len(first)]]


# The first look


def find_faults(topics: Sequence[Topic], index: str, stale: Iterable[str]) -> list[str]:
    """`stale`: what is said of memories whose evidence has changed."""
    kinds = (_twins(topics), stale, chain.from_iterable(map(_dates, topics)), _lines(topics, index))
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
    for fault in plan.faults:
        yield f"{INDEX}, line {fault.line} {_FAULTS[fault.fault].format(file=fault.file, chars=fault.chars)}"
    yield from (f"{file} has no line in {INDEX}" for file in plan.unlisted)

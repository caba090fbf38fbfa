"""What a dream is shown at its beginning: the list of memories, what a first look found, where else it may look.

Owns the choice of what is listed: the memories the first look found something about, then the newest. Reads only; bounded, whatever
the memory holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from ...memory.recall.selection import manifest_line
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import LOGS, DailyLog, list_logs
from ...memory.store.daily_logs import MOST_BYTES as LOG_BYTES
from ...memory.store.directory import DirectoryStore
from ...memory.store.evidence import check_evidence, read_evidence
from ...memory.store.scopes import MemoryLocation
from ...memory.store.topic import Topic, evidence_of
from ...memory.store.topic_files import MOST_IN_MANIFEST, TopicHeader
from .about_person import PERSONAL, AboutPerson
from .directive import Scene
from .findings import Stale, findings

# Looking at so many memories takes a fraction of a second; of more the newest are looked at.
MOST_LOOKED_AT = 2_000
# Two months of days: who was away longer has older logs left as they are.
MOST_LOGS = 60


def scene_of(
    store: DirectoryStore,
    place: MemoryLocation,
    work: Path,
    *,
    project: Path,
    today: str,
    transcripts: Sequence[Path] = (),
    since: float | None = None,
    by_hand: bool = False,
) -> Scene:
    """`since` is when the last dream was; one by hand looks at the log of today too."""
    headers = store.topic_files.headers()
    topics = [topic for header in headers[:MOST_LOOKED_AT] if (topic := store.topic_files.topic(header.file)) is not None]
    found = findings(topics, store.index(), _stale(topics, project))
    listed = _listed(headers, found)
    logs = place.path / LOGS
    return Scene(
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


def about_person(store: DirectoryStore, place: MemoryLocation, scene: Scene) -> AboutPerson:
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


def _stale(topics: Sequence[Topic], project: Path) -> list[Stale]:
    found = ((topic, check_evidence(read_evidence(evidence_of(topic)), project)) for topic in topics if evidence_of(topic))
    return [Stale(topic.file, freshness.why) for topic, freshness in found if freshness.state == "stale"]


def _listed(headers: Sequence[TopicHeader], found: Sequence[str]) -> list[TopicHeader]:
    if len(headers) <= MOST_IN_MANIFEST:
        return list(headers)
    words = {word.rstrip(":,") for each in found for word in each.split()}
    first = [header for header in headers if header.file in words][:MOST_IN_MANIFEST]
    rest = [header for header in headers if header.file not in words]
    return [*first, *rest[: MOST_IN_MANIFEST - len(first)]]

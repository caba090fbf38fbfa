"""The copy a dream works on: `<memory>/.dreams/<id>/work/`, and what of it may count when it is done (B4, D4).

Owns the directory of a dream: its making, its reading and its end. Invariants: the copy holds the private scope's topic files and its
index and nothing else, and nothing real changes while a dream runs; what is read back are plain texts of an ordinary size, everything
else a dream or somebody else put there is passed over and named, and what it covers is not taken for removed; the copy is gone when
the dream ends, however it ends; the last five dreams are kept.

A crash at any line leaves a directory whose record says "running": the next recovery removes the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rewrite import remove_tree
from ...disk.trees.rootdir import RootDir
from ...disk.trees.scan import read_heads
from ...disk.trees.survey import SurveyedEntry, survey
from ...memory.store.contract import MOST_READ
from ...memory.store.index import MOST_INDEX
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.topic import INDEX
from ...memory.store.topic_files import is_topic
from .record import (
    DIRECTORY,
    DreamRecord,
    Status,
    dream_home,
    dream_ids,
    is_open,
    is_real,
    read_record,
    read_records,
    write_record,
)

WORK = "work"
# The index right before a dream wrote it as a whole, and as it wrote it.
FOUND = "found.md"
MADE = "made.md"
# Of dreams that changed something, and as many that did not. One a day: what is older was lived with.
KEPT = 5
# Five times the largest memory we measure with; a larger one is no memory, and its copy would fill the disk.
MOST_FILES = 50_000
MOST_COPIED = 256 << 20
# Read together, so that no more than this many files are in memory at once.
_BATCH = 64


class DreamStage(NamedTuple):
    """`path` is the copy. `base` are its files with the digest they had; `listing` is the index as it was, None: there was none."""

    path: Path
    base: Mapping[str, str]
    listing: bytes | None


class StagedWork(NamedTuple):
    """The copy as a dream left it. `ignored` are entries that are no texts of a memory, and why; their files stay."""

    texts: Mapping[str, str]
    listing: str | None
    ignored: Mapping[str, str]


def stage_copy(gated: GatedStore, record: DreamRecord) -> DreamStage:
    """Writes the record and copies. SettingError, before anything is written, where the mode lets nothing be changed."""
    gated.check("dream")
    root = gated.store.root
    write_record(root, record)
    path = root.path / dream_home(record.id) / WORK
    with RootDir.open(path, below=root.path) as work:
        index = root.read_bytes(INDEX, MOST_INDEX)
        if index is not None:
            work.write_new({INDEX: index})
        return DreamStage(path, _copied(gated, work), index)


def _copied(gated: GatedStore, work: RootDir) -> dict[str, str]:
    root, base, size = gated.store.root, dict[str, str](), 0
    files = sorted(found.file for found in gated.store.topic_files.files())
    for texts in _text_files(root, files):
        base |= {file: digest_of(data) for file, data in texts.items()}
        size += sum(map(len, texts.values()))
        if len(base) > MOST_FILES or size > MOST_COPIED:
            raise DiskError(str(root.path), "is too large for a dream", "move away what is no memory")
        work.write_new(texts)
    return base


def _is_text(data: bytes) -> bool:
    """Whether the store would change such a file at all: the others are read and left."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return len(data) < MOST_READ


def read_copy(stage: DreamStage) -> StagedWork:
    """What the dream made of the copy."""
    found = survey(stage.path, most=2 * MOST_FILES)
    if found is None or not found.whole:
        raise DiskError(str(stage.path), "is gone, or holds more than any memory", "nothing was changed; start the dream again")
    ignored = {seen.path: problem for seen in found.entries if (problem := _problem(seen))}
    usable = [seen.path for seen in found.entries if seen.path not in ignored]
    ignored |= dict.fromkeys(found.unread, "could not be read")
    with RootDir.open(stage.path, create=False) as work:
        texts = _topics(work, usable)
        data = work.read_bytes(INDEX, MOST_INDEX) if INDEX in usable else None
    lost = (path for path in usable if path not in texts and is_topic(path))
    ignored |= dict.fromkeys(lost, "is no text, or could not be read")
    return StagedWork(texts, data.decode("utf-8", "replace") if data is not None else None, ignored)


def _problem(seen: SurveyedEntry) -> str:
    """Why an entry of the copy counts for nothing; empty where it counts."""
    if seen.kind == "directory":
        return ""
    if seen.kind != "file" or seen.links > 1 or not seen.ours:
        return "is no plain file"
    if not is_topic(seen.path) and seen.path != INDEX:
        return "is no file of a memory"
    limit = MOST_INDEX if seen.path == INDEX else MOST_READ
    return "is too large for a memory" if seen.size >= limit else ""


def read_topics(gated: GatedStore) -> dict[str, str]:
    """The topic files as they are now, those a dream may change."""
    return _topics(gated.store.root, sorted(found.file for found in gated.store.topic_files.files()))


def _topics(root: RootDir, files: Iterable[str]) -> dict[str, str]:
    batches = _text_files(root, [file for file in files if is_topic(file)])
    return {file: data.decode() for texts in batches for file, data in texts.items()}


def _text_files(root: RootDir, files: list[str]) -> Iterator[dict[str, bytes]]:
    for at in range(0, len(files), _BATCH):
        found = read_heads(root, files[at : at + _BATCH], MOST_READ)
        yield {file: data for file, data in found.items() if _is_text(data)}


def end_dream(root: RootDir, record: DreamRecord, *, status: Status, now: float, why: str = "") -> DreamRecord:
    """The dream is over: its copy goes, and its record says how it ended. One that was stopped while memories changed keeps its
    record, for the recovery to take that back; one whose record says already how it ended keeps that."""
    there = read_record(root, record.id)
    if there is None or (there.status == "running" and there.phase != "applying"):
        record = msgspec.structs.replace(record, status=status, ended=now, why=why or record.why)
        write_record(root, record)
    else:
        record = there
    remove_copy(root, record.id)
    prune_dreams(root)
    return record


def remove_copy(root: RootDir, dream: str) -> None:
    remove_tree(root.path / dream_home(dream) / WORK)
    root.unlink(f"{dream_home(dream)}/stop")


def prune_dreams(root: RootDir) -> None:
    """Removes what is older than the dreams that are kept, and what has no record."""
    known = read_records(root)
    finished = [record for record in known if not is_open(record)]
    changing = [record.id for record in finished if is_real(record)]
    others = [record.id for record in finished if not is_real(record)]
    names = {record.id for record in known}
    for name in (*changing[KEPT:], *others[KEPT:], *(name for name in dream_ids(root) if name not in names)):
        remove_tree(root.path / DIRECTORY / name)

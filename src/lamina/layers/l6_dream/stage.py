"""The copy a dream works on, `<memory>/.dreams/<id>/work/`, and the rules for reading it back.

Owns the directory of a dream: creating, reading and removing it. Invariants: the copy contains the private scope's topic files and index
and nothing else, and no real file changes while a dream runs; only plain text files of ordinary size are read back; any other entry is
ignored and named, and what it covers does not count as removed; the copy is deleted when the dream ends, whatever the outcome; the last
five dreams are kept.

A crash at any line leaves a directory whose record says "running"; the next recovery removes the copy.
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
# Applies to dreams that changed something, and separately to those that did not. At one a day, older ones are no longer in question.
KEPT = 5
# Five times the largest memory we test with. A larger directory is not a memory, and its copy would fill the disk.
MOST_FILES = 50_000
MOST_COPIED = 256 << 20
# Read in batches, to limit the number of files in memory at once.
_BATCH = 64


class DreamStage(NamedTuple):
    """`path` is the copy, `base` its files with their original digests, `listing` the original index (None: there was none)."""

    path: Path
    base: Mapping[str, str]
    listing: bytes | None


class StagedWork(NamedTuple):
    """The copy as a dream left it. `ignored` maps entries that are not memory texts to the reason; their real files stay."""

    texts: Mapping[str, str]
    listing: str | None
    ignored: Mapping[str, str]


def stage_copy(gated: GatedStore, record: DreamRecord) -> DreamStage:
    """Write the record and copy memory. Raises SettingError, before anything is written, if the mode forbids changes."""
    gated.check("dream")
    root = gated.store.root
    write_record(root, record)
    path = root.path / dream_home(record.id) / WORK
    with RootDir.open(path, below=root.path) as work:
        index = root.read_bytes(INDEX, MOST_INDEX)
        if index is not None:
            work.write_new({INDEX: index})
        base, size = dict[str, str](), 0
        for texts in _read_text_files(root, sorted(topic.file for topic in gated.store.topic_files.files())):
            base |= {file: digest_of(data) for file, data in texts.items()}
            size += sum(map(len, texts.values()))
            if len(base) > MOST_FILES or size > MOST_COPIED:
                raise DiskError(str(root.path), "is too large for a dream", "move files that are not memories elsewhere")
            work.write_new(texts)
        return DreamStage(path, base, index)


def _is_text(data: bytes) -> bool:
    """Whether the store could change this file at all. Other files are not copied."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return len(data) < MOST_READ


def read_copy(stage: DreamStage) -> StagedWork:
    """Read the copy as the dream left it."""
    tree = survey(stage.path, most=2 * MOST_FILES)
    if tree is None or not tree.whole:
        raise DiskError(str(stage.path), "is missing or too large for a memory", "nothing was changed; start the dream again")
    ignored = {entry.path: problem for entry in tree.entries if (problem := _problem(entry))}
    usable = [entry.path for entry in tree.entries if entry.path not in ignored]
    ignored |= dict.fromkeys(tree.unread, "could not be read")
    with RootDir.open(stage.path, create=False) as work:
        texts = _read_topics(work, usable)
        data = work.read_bytes(INDEX, MOST_INDEX) if INDEX in usable else None
    lost = (path for path in usable if path not in texts and is_topic(path))
    ignored |= dict.fromkeys(lost, "is not a text file, or could not be read")
    return StagedWork(texts, data.decode("utf-8", "replace") if data is not None else None, ignored)


def _problem(entry: SurveyedEntry) -> str:
    """Return why an entry of the copy is ignored, or "" if it counts."""
    if entry.kind == "directory":
        return ""
    if entry.kind != "file" or entry.links > 1 or not entry.ours:
        return "is not a regular file"
    if not is_topic(entry.path) and entry.path != INDEX:
        return "is not a memory file"
    limit = MOST_INDEX if entry.path == INDEX else MOST_READ
    return "is too large for a memory" if entry.size >= limit else ""


def read_topics(gated: GatedStore) -> dict[str, str]:
    """Return the current texts of the topic files that a dream may change."""
    return _read_topics(gated.store.root, sorted(topic.file for topic in gated.store.topic_files.files()))


def _read_topics(root: RootDir, files: Iterable[str]) -> dict[str, str]:
    batches = _read_text_files(root, [file for file in files if is_topic(file)])
    return {file: data.decode() for texts in batches for file, data in texts.items()}


def _read_text_files(root: RootDir, files: list[str]) -> Iterator[dict[str, bytes]]:
    for start in range(0, len(files), _BATCH):
        contents = read_heads(root, files[start : start + _BATCH], MOST_READ)
        yield {file: data for file, data in contents.items() if _is_text(data)}


def end_dream(root: RootDir, record: DreamRecord, *, status: Status, now: float, why: str = "") -> DreamRecord:
    """Finish the dream: remove its copy and record the outcome. A dream that was stopped while memories changed keeps its record, so that
    recovery can take it back. A record that already has an outcome keeps it."""
    stored = read_record(root, record.id)
    if stored is None or (stored.status == "running" and stored.phase != "applying"):
        record = msgspec.structs.replace(record, status=status, ended=now, why=why or record.why)
        write_record(root, record)
    else:
        record = stored
    remove_copy(root, record.id)
    prune_dreams(root)
    return record


def remove_copy(root: RootDir, dream: str) -> None:
    remove_tree(root.path / dream_home(dream) / WORK)
    root.unlink(f"{dream_home(dream)}/stop")


def prune_dreams(root: RootDir) -> None:
    """Remove dreams beyond the number kept, and directories without a record."""
    records = read_records(root)
    finished = [record for record in records if not is_open(record)]
    changing = [record.id for record in finished if is_real(record)]
    others = [record.id for record in finished if not is_real(record)]
    names = {record.id for record in records}
    for name in (*changing[KEPT:], *others[KEPT:], *(name for name in dream_ids(root) if name not in names)):
        remove_tree(root.path / DIRECTORY / name)

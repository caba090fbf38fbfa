"""The dreams of all projects as the page shows them: records, changes grouped by what became of them, and facts with numbers.

Reads only. Other processes know a running dream by its record and the lock, and so does the page.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..agent.dream_gate import find_gate
from ..core.errors import LaminaError
from ..disk.locks.dream_lock import DreamLock
from ..language.text import message
from ..layers.l6_dream.changes import DreamedFile, DreamFact, list_dream_facts, list_dreamed_files
from ..layers.l6_dream.gates import DreamStop
from ..layers.l6_dream.record import DIRECTORY, DreamRecord, is_real, read_record, read_records
from ..layers.l6_dream.stage import read_topics
from ..memory.guard.facts import folded_words
from ..memory.store.topic import read_topic
from .memory_index import MemoryIndex
from .memory_places import Place

# Records whose file is looked at for changes: a running dream is among the newest.
NEWEST = 3


class PlaceDreams(NamedTuple):
    """The dreams of a place, newest first. `running` is the record of the one that runs; `alive` whether its process does."""

    place: Place
    records: tuple[DreamRecord, ...]
    running: DreamRecord | None
    alive: bool


class ChangeGroup(NamedTuple):
    """Files that belong together: memories that were merged with the one that took them over, or one file."""

    files: tuple[DreamedFile, ...]
    facts: tuple[DreamFact, ...]

    @property
    def merged(self) -> bool:
        return len(self.files) > 1

    @property
    def lost(self) -> tuple[DreamFact, ...]:
        return tuple(fact for fact in self.facts if not fact.now_in)


class DreamDetail(NamedTuple):
    """A dream with its changes."""

    record: DreamRecord
    groups: tuple[ChangeGroup, ...]

    @property
    def facts(self) -> tuple[DreamFact, ...]:
        return tuple(fact for group in self.groups for fact in group.facts)

    @property
    def files(self) -> tuple[DreamedFile, ...]:
        return tuple(one for group in self.groups for one in group.files)

    @property
    def active(self) -> tuple[DreamedFile, ...]:
        """The changes that an undo would take back: those in force, and proposals that wait."""
        return tuple(one for one in self.files if one.state in ("applied", "waiting") and one.before != one.after)

    @property
    def can_undo(self) -> bool:
        """Whether there is something left to undo. A dream may have changed nothing but the index."""
        return self.record.status == "completed" and bool(self.active or (not self.groups and is_real(self.record)))

    @property
    def can_redo(self) -> bool:
        """Whether the dream was undone as a whole, by a version that can apply it again."""
        return self.record.status == "undone" and bool(self.record.undo)


def list_dreams(index: MemoryIndex) -> list[PlaceDreams]:
    """Return the dreams of every place that had one."""
    return [found for place in index.places.all() if (found := dreams_of(index, place)) is not None]


def dreams_of(index: MemoryIndex, place: Place) -> PlaceDreams | None:
    if not place.own or not (place.path / DIRECTORY).is_dir():
        return None
    try:
        with index.gated(place) as gated:
            records = tuple(read_records(gated.store.root))
            holder = DreamLock(gated.store.root).holder()
    except (LaminaError, OSError):
        return None
    running = next((one for one in records if one.status == "running"), None) if holder is not None else None
    return PlaceDreams(place, records, running, holder is not None and holder.alive)


def find_next(index: MemoryIndex, place: Place, home: Path | None) -> DreamStop | None:
    """Return why no dream of a place would start by itself now; None if one is due."""
    try:
        with index.gated(place) as gated:
            root = gated.store.root
            settings, last = index.places.settings_of(place), DreamLock(root).last_ns()
            return find_gate(root, cwd=place.project or place.path, home=home, settings=settings, last_ns=last)
    except (LaminaError, OSError) as error:
        return DreamStop("failures", message(error))


def read_dream(index: MemoryIndex, place: Place, id: str) -> DreamDetail | None:
    """Return a dream with its changes; None if it is not kept."""
    try:
        with index.gated(place) as gated:
            record = read_record(gated.store.root, id)
            if record is None:
                return None
            files = list_dreamed_files(gated, record)
            others = read_topics(gated)
    except LaminaError:
        return None
    facts = list_dream_facts(files, others)
    return DreamDetail(record, tuple(_groups(files, facts, others)))


def _groups(files: Sequence[DreamedFile], facts: Sequence[DreamFact], others: Mapping[str, str]) -> list[ChangeGroup]:
    """Put each removed memory beside the one that states most of its facts now, also if that one did not change."""
    homes: dict[str, str] = {}
    for one in files:
        into = Counter(fact.now_in for fact in facts if fact.file == one.file and fact.now_in and fact.now_in != one.file)
        homes[one.file] = into.most_common(1)[0][0] if one.after is None and into else one.file
    groups: dict[str, list[DreamedFile]] = {}
    for one in sorted(files, key=lambda one: one.after is not None):
        groups.setdefault(homes[one.file], []).append(one)
    made = []
    for file, group in groups.items():
        if all(one.file != file for one in group):
            group.append(DreamedFile(file, others[file], others[file], "applied"))
        names = {one.file for one in group}
        made.append(ChangeGroup(tuple(group), tuple(fact for fact in facts if fact.file in names)))
    return sorted(made, key=lambda group: (not group.lost, not group.merged))


def name_of(one: DreamedFile) -> str:
    text = one.after if one.after is not None else one.before
    return read_topic(one.file, text or "", 0).name


def numbers_in(sentence: str, facts: Sequence[DreamFact]) -> list[int]:
    """Return the numbers of the facts that a sentence states."""
    folded = f" {folded_words(sentence)} "
    return [fact.number for fact in facts if (words := folded_words(fact.text)) and f" {words} " in folded]


def dream_state(index: MemoryIndex) -> list[object]:
    """Return what changes whenever a dream starts, goes on or ends."""
    found: list[object] = []
    for place in index.places.all():
        directory = place.path / DIRECTORY
        try:
            names = sorted(os.listdir(directory), reverse=True)[:NEWEST] if place.own else []
        except OSError:
            continue
        for name in names:
            try:
                found.append([place.id, name, os.stat(directory / name / "record.json").st_mtime_ns])
            except OSError:
                found.append([place.id, name, 0])
    return found

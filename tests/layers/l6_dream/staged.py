"""A memory with a few topics, and a dream that a test drives by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lamina.core.settings.collection_kinds import Mode
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.apply import apply_dream
from lamina.layers.l6_dream.record import DreamRecord
from lamina.layers.l6_dream.stage import DreamStage, end_dream, stage_copy
from lamina.memory.store.contract import ChangeAuthor, ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.modes import GatedStore

NOW = 1_800_000_000.0
_numbers = itertools.count()


def an_id(number: int) -> str:
    return f"20270115T{number // 60 % 24:02}{number % 60:02}-{number % 65_536:04x}"


def topic(name: str, body: str, description: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description or f'about {name}'}\ntype: project\n---\n\n{body}\n"


@contextmanager
def memory(path: Path, mode: Mode = "auto") -> Iterator[GatedStore]:
    with DirectoryStore.open(path, durability="process") as store:
        yield GatedStore(store, mode)


def save(gated: GatedStore, name: str, body: str, *, who: ChangeAuthor = "extraction", evidence: tuple[str, ...] = ()) -> None:
    gated.store.save(Draft(name, "project", f"about {name}", f"{body}\n", evidence), why=ChangeReason(who, "a test"))


def some(gated: GatedStore, count: int, *, who: ChangeAuthor = "extraction") -> None:
    for number in range(count):
        save(gated, f"t{number:03}", f"Fact number {number} about the parser is kept here.", who=who)


class Dream(NamedTuple):
    gated: GatedStore
    stage: DreamStage
    record: DreamRecord
    hold: HeldDreamLock

    def write(self, file: str, text: str) -> None:
        path = self.stage.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def remove(self, file: str) -> None:
        (self.stage.path / file).unlink(missing_ok=True)

    def conclude(self) -> DreamRecord:
        done = apply_dream(self.gated, self.stage, self.record, self.hold, now=NOW)
        end_dream(self.gated.store.root, done, status=done.status, now=NOW)
        self.hold.commit()
        return done


@contextmanager
def dream(gated: GatedStore, number: int | None = None) -> Iterator[Dream]:
    root = gated.store.root
    lock = DreamLock(root)
    hold = lock.acquire(lock.last_ns())
    assert isinstance(hold, HeldDreamLock), hold
    order = next(_numbers)
    record = DreamRecord(an_id(order if number is None else number), NOW + order, 1, "hand")
    with hold:
        yield Dream(gated, stage_copy(gated, record), record, hold)


def dreamt(gated: GatedStore, change: Callable[[Dream], None]) -> DreamRecord:
    with dream(gated) as one:
        change(one)
        return one.conclude()


def snapshot(path: Path) -> dict[str, bytes]:
    """Return every memory and the index, byte for byte."""
    found = (file for file in path.rglob("*.md") if not any(part.startswith(".") for part in file.relative_to(path).parts))
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in found}


def times(path: Path) -> dict[str, int]:
    return {file: (path / file).stat().st_mtime_ns for file in snapshot(path) if file != "MEMORY.md"}

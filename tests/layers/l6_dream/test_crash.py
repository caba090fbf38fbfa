"""A dream, its undo and its recovery, stopped before every system call: memory is as before or as the dream left it, never in between."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.disk.crash.harness import Extent, Fail, Kill, Say, every
from tests.disk.processes import needs_fork

from lamina.disk import crash_points as crash
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.apply import apply_dream
from lamina.layers.l6_dream.record import DIRECTORY, DreamRecord, is_open, read_records
from lamina.layers.l6_dream.stage import end_dream
from lamina.layers.l6_dream.undo import recover, redo, undo
from lamina.memory.store.index import read_entries

from .staged import NOW, Dream, dream, dreamt, memory, save, snapshot, times, topic

pytestmark = needs_fork

NUMBER = 7
FACTS = ("The first thing is here.", "The second thing is here.")
# A dream has about 350 crash points, the first 160 before anything real changes. This tries a few, each with its own fault.
# `python -m bench.dream_crash` tries them all.
SOME = [(Kill(), 128, 19), (Kill(torn=True), 134, 47), (Fail(errno.ENOSPC), 130, 43)]


def change(one: Dream) -> None:
    """Perform a merge, add a file and change the index."""
    one.write("a.md", topic("a", "The first thing is here. The second thing is here."))
    one.remove("b.md")
    one.write("n.md", topic("n", "New."))
    one.write("MEMORY.md", "# Dreamt\n- [a](a.md) — short\n")


def prepare(directory: Path) -> None:
    with memory(directory / "m") as gated:
        save(gated, "a", "The first thing is here.")
        save(gated, "b", "The second thing is here.")


def prepare_dreamt(directory: Path) -> None:
    prepare(directory)
    with memory(directory / "m") as gated:
        dreamt(gated, change)


def states(tmp_path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return memory before and after such a dream."""
    prepare(tmp_path)
    before = snapshot(tmp_path / "m")
    with memory(tmp_path / "m") as gated:
        dreamt(gated, change)
    return before, snapshot(tmp_path / "m")


def do_dream(directory: Path, say: Say) -> None:
    with memory(directory / "m") as gated, dream(gated, NUMBER) as one:
        change(one)
        done = apply_dream(gated, one.stage, one.record, one.hold, now=NOW)
        end_dream(gated.store.root, done, status=done.status, now=NOW)
        one.hold.commit()
        say("done")


def do_undo(directory: Path, say: Say) -> None:
    with memory(directory / "m") as gated:
        undo(gated)
        say("done")


def put_right(where: Path) -> list[str]:
    """Recover as the next session does, and check the invariants."""
    with memory(where) as gated:
        said = recover(gated, DreamLock(gated.store.root), now=NOW)
        known = read_records(gated.store.root)
        assert not any(is_open(record) for record in known)
        assert not list((where / DIRECTORY).glob("*/work"))
        assert {entry.file for entry in read_entries(gated.index())} == {topic.file for topic in gated.topics()}
        assert recover(gated, DreamLock(gated.store.root), now=NOW) == []
        lock = DreamLock(gated.store.root)
        with lock.acquire(lock.last_ns()) as hold:  # type: ignore[union-attr]
            assert isinstance(hold, HeldDreamLock)
        return said


@pytest.mark.spec("B4", "Z5", "Z12")
@pytest.mark.parametrize(("fault", "start", "step"), SOME, ids=str)
@pytest.mark.usefixtures("crash_points")
def test_a_dream_that_is_stopped_anywhere_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, fault: Kill | Fail, start: int, step: int
) -> None:
    (tmp_path / "states").mkdir()
    before, after = states(tmp_path / "states")
    seen, half = set[bool](), 0
    for run in every(tmp_path, prepare, do_dream, fault, step=step, start=start):
        where = run.directory / "m"
        torn = snapshot(where) not in (before, after)
        said = put_right(where)
        half += torn
        if isinstance(fault, Fail) and run.said:
            # A file that could not be read was skipped, and the record names it. Its content is still there.
            assert all(fact in "".join(map(bytes.decode, snapshot(where).values())) for fact in FACTS), run
            continue
        assert not torn or said or isinstance(fault, Fail), run
        assert snapshot(where) in (before, after), run
        seen.add(snapshot(where) == after)
        assert not run.said or snapshot(where) == after, run
    if isinstance(fault, Kill):
        assert seen == {True, False}
        assert half or not Extent.every  # the first and the last point alone leave nothing half done


@pytest.mark.spec("B4", "Z5", "Z12")
@pytest.mark.parametrize(("fault", "step"), [(Kill(), 19), (Fail(errno.EIO), 53)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_an_undo_that_is_stopped_anywhere_is_finished_or_was_never_begun(tmp_path: Path, fault: Kill | Fail, step: int) -> None:
    (tmp_path / "states").mkdir()
    before, after = states(tmp_path / "states")
    seen = set[bool]()
    for run in every(tmp_path, prepare_dreamt, do_undo, fault, step=step):
        where = run.directory / "m"
        put_right(where)
        assert snapshot(where) in (before, after), run
        seen.add(snapshot(where) == before)
        assert not run.said or snapshot(where) == before, run
        if snapshot(where) == before:
            assert [record.status for record in records_at(where)] == ["undone"], run
            do_redo(run.directory, lambda _: None)
            assert snapshot(where) == after, run
    assert seen == {True, False}


def prepare_undone(directory: Path) -> None:
    prepare_dreamt(directory)
    with memory(directory / "m") as gated:
        undo(gated)


def do_redo(directory: Path, say: Say) -> None:
    with memory(directory / "m") as gated:
        redo(gated)
        say("done")


@pytest.mark.spec("B4", "Z5", "Z12")
@pytest.mark.parametrize(("fault", "step"), [(Kill(), 19), (Fail(errno.EIO), 53)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_a_redo_that_is_stopped_anywhere_is_finished_by_the_same_call(tmp_path: Path, fault: Kill | Fail, step: int) -> None:
    (tmp_path / "states").mkdir()
    _, after = states(tmp_path / "states")
    for run in every(tmp_path, prepare_undone, do_redo, fault, step=step):
        where = run.directory / "m"
        put_right(where)
        if snapshot(where) != after:
            do_redo(run.directory, lambda _: None)
        assert snapshot(where) == after, run
        assert [record.status for record in records_at(where)] == ["completed"], run


def records_at(where: Path) -> list[DreamRecord]:
    with memory(where) as gated:
        return read_records(gated.store.root)


def do_recover(directory: Path, say: Say) -> None:
    with memory(directory / "m") as gated:
        recover(gated, DreamLock(gated.store.root), now=NOW)
        say("done")


def prepare_half(directory: Path) -> None:
    """Stop in the middle of the second file: the record exists, and the lock's owner is dead."""
    prepare(directory)
    with memory(directory / "m") as gated, dream(gated, NUMBER) as one:
        change(one)
        stopped = False

        def stop(name: str, _: int) -> None:
            nonlocal stopped
            if not stopped and name == "temp.create" and "The second" in (directory / "m" / "a.md").read_text():
                stopped = True
                raise KeyboardInterrupt

        with crash.watched(stop), pytest.raises(KeyboardInterrupt):
            apply_dream(gated, one.stage, one.record, one.hold, now=NOW)


@pytest.mark.spec("B4", "Z12")
@pytest.mark.parametrize("step", [37])
@pytest.mark.usefixtures("crash_points")
def test_a_recovery_that_is_stopped_is_finished_by_the_next(tmp_path: Path, step: int) -> None:
    (tmp_path / "states").mkdir()
    before, _ = states(tmp_path / "states")
    when = None
    for run in every(tmp_path, prepare_half, do_recover, Kill(), step=step):
        put_right(run.directory / "m")
        assert snapshot(run.directory / "m") == before, run
        when = times(run.directory / "m")
    assert when

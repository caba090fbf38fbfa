"""Change sets: made, undone and redone as one, byte for byte, by any number of processes, and after a crash at any line."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.disk.crash.harness import Act, Extent, Fail, Kill, Say, every
from tests.disk.processes import needs_fork, together

from lamina.core.errors import DiskError
from lamina.disk import crash_points as crash
from lamina.memory.store.change_sets import LOST, NAME_TAKEN, SINCE, turn_act
from lamina.memory.store.contract import ChangeReason, Proposed
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.index import read_entries
from lamina.memory.store.modes import GatedStore

ME = ChangeReason("user", "a test")
INDEX = "MEMORY.md"


@contextmanager
def opened(where: Path, mode: str = "auto") -> Iterator[GatedStore]:
    times = itertools.count(1)
    with DirectoryStore.open(where, durability="process", clock=lambda: float(next(times))) as store:
        yield GatedStore(store, mode)  # type: ignore[arg-type]


def save(gated: GatedStore, name: str, body: str, act: str = "") -> None:
    gated.store.save(Draft(name, "project", f"about {body}", body), why=ChangeReason("user", "a test", act=act))


def topics(where: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in where.glob("*.md") if path.name != INDEX}


def everything(where: Path) -> dict[str, tuple[bytes, int]]:
    """Return every memory with its time, and the index."""
    found = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in where.glob("*.md")}
    return {name: (data, 0 if name == INDEX else time) for name, (data, time) in found.items()}


def rewrite(gated: GatedStore, act: str) -> None:
    """Make a set that changes, adds, renames and removes memories and rewrites the index."""
    why = ChangeReason("dream", "tidied", act=act)
    with gated.store.change_set(why):
        gated.store.save(Draft("a", "project", "about a", "a, and what b said"), why=why)
        gated.store.remove("b", why=why)
        gated.store.save(Draft("new", "project", "about new", "new"), why=why)
        there = gated.store.index_file.data()
        gated.store.put_index(
            "# Tidied\n- [new](new.md) — first\n- [c](c.md) — in other words\n- [a](a.md) — x\n", expected=there
        )


def three(gated: GatedStore) -> None:
    for name in "abc":
        save(gated, name, f"{name} as it was")


@pytest.mark.spec("B4")
def test_a_set_is_undone_and_redone_byte_for_byte_with_times_and_index(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as gated:
        three(gated)
        for number, name in enumerate("abc"):
            os.utime(tmp_path / "m" / f"{name}.md", ns=(10**18 + number, 10**18 + number))
        index = tmp_path / "m" / INDEX
        index.write_bytes(b"# Mine \xff\r\n" + index.read_bytes() + b"- [gone](gone.md)\nno newline at the end")
        before = everything(tmp_path / "m")
        rewrite(gated, "set")
        after = everything(tmp_path / "m")
        for _ in range(2):
            done = gated.undo(["set"], why=ME)
            assert (sorted(change.file for change in done.back), done.left) == (["a.md", "b.md", "new.md"], ())
            assert everything(tmp_path / "m") == before
            assert not gated.undo([done.act], why=ME, whole=True).left
            assert everything(tmp_path / "m") == after


@pytest.mark.spec("B4", "Z3")
def test_what_was_changed_since_stays_and_one_sentence_says_so(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with opened(where) as gated:
        three(gated)
        before = topics(where)
        rewrite(gated, "set")
        (where / "a.md").write_text("---\nname: a\n---\n\nby hand\n")
        index = (where / INDEX).read_text()
        (where / INDEX).write_text(index.replace("# Tidied", "# Tidied\nA line of mine."))
        done = gated.undo(["set"], why=ME)
        assert done.sentences == ("a was changed since.",)
        assert topics(where) == before | {"a.md": b"---\nname: a\n---\n\nby hand\n"}
        rows = (where / INDEX).read_text().splitlines()
        assert "A line of mine." in rows
        assert "# Tidied" not in rows
        assert {entry.file for entry in read_entries(gated.index())} == set(topics(where))


@pytest.mark.spec("B4")
def test_a_change_in_the_middle_of_a_turn_is_what_the_turn_goes_back_to(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as gated:
        turn = ChangeReason("agent", "", "s", "m1")
        save(gated, "a", "one")
        gated.store.save(Draft("a", "project", "d", "two"), why=turn)
        save(gated, "a", "by another")
        middle = topics(tmp_path / "m")
        gated.store.save(Draft("a", "project", "d", "three"), why=turn)
        gated.undo([turn_act("s", "m1")], why=ME)
        assert topics(tmp_path / "m") == middle


@pytest.mark.spec("B4", "S6")
def test_a_renamed_memory_gets_its_file_back_unless_it_is_taken(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with opened(where) as gated:
        save(gated, "thursdays", "we deploy")
        before = everything(where)
        text = (where / "thursdays.md").read_text().replace("name: thursdays", "name: mondays")
        why = ChangeReason("user", act="turn")
        gated.store.put("thursdays.md", text, expected=(where / "thursdays.md").read_bytes(), why=why)
        assert set(topics(where)) == {"mondays.md"}
        done = gated.undo(["turn"], why=ME)
        assert everything(where) == before
        gated.undo([done.act], why=ME)
        assert set(topics(where)) == {"mondays.md"}
        save(gated, "thursdays", "another one")
        [left] = gated.undo(["turn"], why=ME).left
        assert left.problem in ("was renamed, and its former file name is taken", NAME_TAKEN)


@pytest.mark.spec("B4")
def test_a_version_that_the_journal_no_longer_has_is_left(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with opened(where) as gated:
        save(gated, "a", "one")
        save(gated, "a", "two", "act")
        journal = where / ".history/journal-000001.jsonl"
        journal.write_bytes(journal.read_bytes().split(b"\n", 1)[1])
        [left] = gated.undo(["act"], why=ME).left
        assert left.problem == LOST


@pytest.mark.spec("B4", "B5")
def test_an_approval_is_a_set_and_its_proposal_waits_again(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with opened(where, "confirm") as gated:
        three(gated)
        before = everything(where)
        proposed = gated.save(Draft("a", "project", "about a", "proposed"), why=ChangeReason("extraction", "heard"))
        assert isinstance(proposed, Proposed)
        waiting = gated.inbox.waiting()
        gated.accept(proposed.id)
        after = topics(where)
        assert gated.inbox.waiting() == []
        gated.take_back(proposed.id, why=ME)
        assert (everything(where), gated.inbox.waiting(), gated.inbox.decided()) == (before, waiting, [])
        gated.accept(proposed.id)
        assert topics(where).keys() == after.keys()
        (where / "a.md").write_text("---\nname: a\n---\nby hand\n")
        [left] = gated.take_back(proposed.id, why=ME).left
        assert left.problem == SINCE
        assert gated.inbox.waiting() == []


@pytest.mark.spec("B4", "Z12")
def test_an_error_in_a_set_undoes_what_it_did_and_a_full_disk_leaves_that_to_the_next_writer(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with opened(where) as gated:
        three(gated)
        before = everything(where)

        def fail() -> None:
            with gated.store.change_set(ChangeReason("user", act="set")):
                save(gated, "a", "half")
                gated.store.remove("b", why=ME)
                raise DiskError("x", "enough")

        with pytest.raises(DiskError, match="enough"):
            fail()
        assert everything(where) == before
        assert gated.changes(["set"]) == []

        def full(name: str, size: int) -> None:
            if not (where / "b.md").exists() and size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def fill_up() -> None:
            with crash.watched(full), gated.store.change_set(ChangeReason("user", act="other")):
                gated.store.remove("b", why=ME)
                save(gated, "a", "half")

        with pytest.raises(DiskError):
            fill_up()
        assert everything(where) != before
    with opened(where) as gated:
        assert [notice for notice in gated.store.notices if "interrupted change" in notice]
        assert everything(where) == before


class Made(NamedTuple):
    """What a set did to each file: the content before, and each content that it left since."""

    files: dict[str, tuple[bytes | None, list[bytes | None]]]

    def note(self, file: str, before: bytes | None, after: bytes | None) -> None:
        start, contents = self.files.get(file, (before, []))
        self.files[file] = (start, [*contents, after]) if contents and contents[-1] == before else (before, [after])

    def undone(self, now: dict[str, bytes], *, whole: bool) -> dict[str, bytes]:
        steps = {file: run for file, run in self.files.items() if now.get(file) != run[0]}
        left = {file for file, run in steps.items() if now.get(file) not in run[1]}
        changed: dict[str, bytes | None] = {
            **now,
            **({} if whole and left else {f: r[0] for f, r in steps.items() if f not in left}),
        }
        return {file: data for file, data in changed.items() if data is not None}


NAMES = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("save"), NAMES, st.sampled_from(["s0", "s1", "s2"])),
    st.tuples(st.just("edit"), NAMES, st.just("")),
    st.tuples(st.just("remove"), NAMES, st.sampled_from(["s0", "s1", "s2"])),
    st.tuples(st.just("set"), NAMES, st.sampled_from(["d0", "d1"])),
    st.tuples(st.just("approve"), NAMES, st.just("")),
    st.tuples(st.just("undo"), st.sampled_from(["s0", "s1", "s2", "d0", "d1"]), st.just("")),
    st.tuples(st.just("redo"), st.just(""), st.just("")),
)


@pytest.mark.spec("B4", "Z5")
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=14))
def test_any_sequence_of_changes_undos_and_redos_is_as_a_model_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    where = tmp_path_factory.mktemp("m") / "m"
    sets: dict[str, Made] = {}
    undos: list[str] = []
    numbers = itertools.count()
    with opened(where) as gated:
        asking = GatedStore(gated.store, "confirm")
        three(gated)
        for kind, name, act in steps:
            now, text = topics(where), f"text {next(numbers)}"
            if kind == "save":
                save(gated, name, text, act)
            elif kind == "edit":
                (where / f"{name}.md").write_text(f"---\nname: {name}\n---\n\n{text}\n")
            elif kind == "remove":
                gated.store.remove(name, why=ChangeReason("user", act=act))
            elif kind == "set":
                why = ChangeReason("dream", act=act)
                with gated.store.change_set(why):
                    gated.store.save(Draft(name, "project", "tidied", text), why=why)
                    gated.store.remove("c" if name != "c" else "a", why=why)
            elif kind == "approve":
                proposed = asking.save(Draft(name, "project", "d", text), why=ChangeReason("extraction"))
                assert isinstance(proposed, Proposed)
                asking.accept(proposed.id)
                act = proposed.id
                if proposed.id[0] in "01234567":  # some approvals are undone at once
                    asking.take_back(proposed.id, why=ME)
                    assert topics(where) == now
                    continue
            else:
                asked = act if kind == "undo" and act else name if kind == "undo" else (undos or [""])[-1]
                expected = sets.get(asked, Made({})).undone(now, whole=kind == "redo")
                done = gated.undo([asked], why=ME, whole=kind == "redo")
                assert topics(where) == expected
                act = done.act
                undos += [act] if act else []
            for file in now.keys() | topics(where).keys():
                if act and now.get(file) != topics(where).get(file):
                    sets.setdefault(act, Made({})).note(file, now.get(file), topics(where).get(file))
        gated.store.save(Draft("end", "project", "d", "end"), why=ME)  # hand edits get their index lines
        assert all((where / entry.file).exists() for entry in read_entries(gated.index()))


# Crash points


def prepare(directory: Path) -> None:
    with opened(directory / "m") as gated:
        three(gated)


def prepare_set(directory: Path) -> None:
    prepare(directory)
    with opened(directory / "m") as gated:
        rewrite(gated, "set")


def prepare_undone(directory: Path) -> None:
    prepare_set(directory)
    with opened(directory / "m") as gated:
        gated.undo(["set"], why=ChangeReason("user", act="undo"))


def prepare_half(directory: Path) -> None:
    """Leave a set that was stopped after its second change, with a dead writer."""
    prepare(directory)
    gone = directory / "m" / "b.md"

    def stop(name: str, _: int) -> None:  # the kernel would release the lock
        if not gone.exists() and not name.startswith("lock."):
            raise KeyboardInterrupt

    with opened(directory / "m") as gated, crash.watched(stop), pytest.raises(KeyboardInterrupt):
        rewrite(gated, "set")


def do_set(directory: Path, say: Say) -> None:
    with opened(directory / "m") as gated:
        rewrite(gated, "set")
        say("done")


def do_undo(directory: Path, say: Say) -> None:
    with opened(directory / "m") as gated:
        gated.undo(["set"], why=ME)
        say("done")


def do_redo(directory: Path, say: Say) -> None:
    with opened(directory / "m") as gated:
        gated.undo(["undo"], why=ME, whole=True)
        say("done")


def do_open(directory: Path, say: Say) -> None:
    with opened(directory / "m"):
        say("done")


@needs_fork
@pytest.mark.spec("B4", "Z5", "Z12")
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True), Fail(errno.ENOSPC), Fail(errno.EIO)], ids=str)
@pytest.mark.parametrize(
    ("ready", "act"), [(prepare, do_set), (prepare_set, do_undo), (prepare_undone, do_redo), (prepare_half, do_open)]
)
@pytest.mark.usefixtures("crash_points")
def test_a_set_that_is_stopped_anywhere_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, fault: Kill | Fail, ready: Act, act: Act
) -> None:
    (tmp_path / "states").mkdir()
    prepare(tmp_path / "states")
    before = {name: data for name, (data, _) in everything(tmp_path / "states" / "m").items()}
    with opened(tmp_path / "states" / "m") as gated:
        rewrite(gated, "set")
    after = {name: data for name, (data, _) in everything(tmp_path / "states" / "m").items()}
    seen = set[bool]()
    for run in every(tmp_path, ready, act, fault):  # type: ignore[arg-type]
        where = run.directory / "m"
        with opened(where) as gated:
            assert {entry.file for entry in read_entries(gated.index())} == set(topics(where)), run
        now = {name: data for name, (data, _) in everything(where).items()}
        assert now in (before, after), run
        seen.add(now == after)
        if run.said and act is not do_open:
            assert now == (before if act is do_undo else after), run
        with opened(where) as gated:
            assert not gated.store.notices, "nothing is left to do"
    if isinstance(fault, Kill) and act is not do_open and Extent.every:
        assert seen == {True, False}


@needs_fork
@pytest.mark.spec("B4", "Z3")
def test_two_processes_that_undo_and_save_at_once_lose_nothing(tmp_path: Path) -> None:
    where = tmp_path / "m"
    rounds = 12
    with opened(where) as gated:
        three(gated)
        for number in range(rounds):
            save(gated, f"shared{number}", "as it was")
            save(gated, f"shared{number}", "of the set", f"set{number}")

    def act(process: int) -> None:
        with opened(where) as gated:
            for number in range(rounds):
                if process == 0:
                    save(gated, f"own{number}", "saved meanwhile")
                else:
                    done = gated.undo([f"set{number}"], why=ME)
                    gated.undo([done.act], why=ME) if done.act and number % 2 else None

    together(3, act)
    with opened(where) as gated:
        found = {topic.name: topic.body.strip() for topic in gated.topics()}
        assert {f"own{number}" for number in range(rounds)} <= found.keys()
        assert {found[f"shared{number}"] for number in range(rounds)} <= {"as it was", "of the set"}
        assert all(found[f"shared{number}"] == "as it was" for number in range(0, rounds, 2))
        assert not gated.store.notices
        assert {entry.file for entry in read_entries(gated.index())} == set(topics(where))


def merge(gated: GatedStore) -> None:
    gated.store.merge(Draft("a", "project", "both", "a, and what b said"), "b", why=ChangeReason("user", act="merge"))


def do_merge(directory: Path, say: Say) -> None:
    with opened(directory / "m") as gated:
        merge(gated)
        say("done")


@needs_fork
@pytest.mark.spec("B4", "Z12")
@pytest.mark.parametrize("fault", [Kill(), Fail(errno.ENOSPC), Fail(errno.EIO)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_a_merge_that_is_stopped_anywhere_is_whole_or_not_made(tmp_path: Path, fault: Kill | Fail) -> None:
    (tmp_path / "states").mkdir()
    prepare(tmp_path / "states")
    before = topics(tmp_path / "states" / "m")
    with opened(tmp_path / "states" / "m") as gated:
        merge(gated)
    after = topics(tmp_path / "states" / "m")
    for run in every(tmp_path, prepare, do_merge, fault):
        where = run.directory / "m"
        with opened(where) as gated:
            assert {entry.file for entry in read_entries(gated.index())} == set(topics(where)), run
        assert topics(where) in (before, after), run
        assert not run.said or topics(where) == after, run

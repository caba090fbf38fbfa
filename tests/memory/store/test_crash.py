"""A save, an update, a removal and a restore, stopped before every system call: each file old or new, no line without a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests.disk.crash.harness import Act, Extent, Fail, Kill, Say, every
from tests.disk.processes import needs_fork

from lamina.disk.temp_files import is_temp
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.index import read_entries

pytestmark = needs_fork

ME = ChangeReason("user", "a test")


def put(store: DirectoryStore, name: str, body: str) -> None:
    store.save(Draft(name, type="project", description=f"d {body}", body=body), why=ME)


def prepare(directory: Path) -> None:
    with DirectoryStore.open(directory / "memory", durability="process") as store:
        put(store, "kept", "kept")
        put(store, "old", "one")


def do_create(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        put(store, "new", "two")
        say("done")


def do_update(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        put(store, "old", "two")
        say("done")


def do_remove(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        store.remove("old", why=ME)
        say("done")


def do_put(directory: Path, say: Say) -> None:
    """As a model's Write leaves it."""
    with DirectoryStore.open(directory / "memory") as store:
        there = (directory / "memory" / "old.md").read_bytes()
        store.put("old.md", "---\nname: old\ndescription: d two\n---\n\ntwo\n", expected=there, why=ME)
        say("done")


def do_restore(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        store.restore("old", store.log("old")[-1].id, why=ME)
        say("done")


def body(store: DirectoryStore, name: str) -> str | None:
    topic = store.get(name)
    return None if topic is None else topic.body.strip()


def prepare_twice(directory: Path) -> None:
    prepare(directory)
    with DirectoryStore.open(directory / "memory", durability="process") as store:
        put(store, "old", "changed")


CASES = [
    pytest.param(do_create, "new", {None, "two"}, "two", id="create"),
    pytest.param(do_update, "old", {"one", "two"}, "two", id="update"),
    pytest.param(do_put, "old", {"one", "two"}, "two", id="put"),
    pytest.param(do_remove, "old", {"one", None}, None, id="remove"),
    pytest.param(do_restore, "old", {"changed", "one"}, "one", id="restore"),
]


@pytest.mark.spec("S6", "Z1", "Z2")
@pytest.mark.parametrize(("act", "name", "allowed", "done"), CASES)
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True), Fail(errno.ENOSPC), Fail(errno.EIO)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_it_memory_is_whole(
    tmp_path: Path, act: Act, name: str, allowed: set[str | None], done: str | None, fault: Kill | Fail
) -> None:
    seen = set()
    # The two errors take the same ways: each is met before every other call, so that together they meet all.
    start, step = (1 + (fault == Fail(errno.EIO)), 2) if isinstance(fault, Fail) else (1, 1)
    for run in every(tmp_path, prepare_twice if act is do_restore else prepare, act, fault, start=start, step=step):
        memory = run.directory / "memory"
        index = (memory / "MEMORY.md").read_text()
        assert all((memory / entry.file).exists() for entry in read_entries(index)), run
        with DirectoryStore.open(memory, durability="process") as store:
            seen.add(body(store, name))
            assert body(store, name) in allowed, run
            assert not run.said or body(store, name) == done, run
            assert body(store, "kept") == "kept", run
            assert not any(is_temp(path.name) for path in memory.rglob("*")), run
            assert {entry.file for entry in read_entries(store.index())} == {topic.file for topic in store.topics()}, run
            put(store, "after", "works")
            assert body(store, "after") == "works", run
            assert not [version for version in store.log() if version.action == "outside"], run
    assert seen == allowed


def do_rename(directory: Path, say: Say) -> None:
    """A new name changes the file, the file's name and the index line."""
    with DirectoryStore.open(directory / "memory") as store:
        there = (directory / "memory" / "old.md").read_bytes()
        store.put("old.md", "---\nname: fresh\ndescription: d two\n---\n\ntwo\n", expected=there, why=ME)
        say("done")


def prepare_renamed(directory: Path) -> None:
    prepare(directory)
    do_rename(directory, lambda _: None)


def do_restore_name(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        store.restore("old", why=ME)
        say("done")


@pytest.mark.spec("S6", "B4", "Z1")
@pytest.mark.parametrize("act", [do_rename, do_restore_name])
@pytest.mark.parametrize("fault", [Kill(), Fail(errno.ENOSPC)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_a_rename_the_memory_is_there_once_with_its_history(tmp_path: Path, act: Act, fault: Kill | Fail) -> None:
    texts, seen = {"old": "one", "fresh": "two"}, set[tuple[str, ...]]()
    for run in every(tmp_path, prepare if act is do_rename else prepare_renamed, act, fault):
        memory = run.directory / "memory"
        with DirectoryStore.open(memory, durability="process") as store:
            names = [topic.name for topic in store.topics() if topic.name != "kept"]
            assert len(names) == 1, run
            assert body(store, names[0]) == texts[names[0]], run
            seen.add((names[0], *(topic.file for topic in store.topics() if topic.name != "kept")))
            assert not run.said or names == ["fresh" if act is do_rename else "old"], run
            assert {entry.file for entry in read_entries(store.index())} == {topic.file for topic in store.topics()}, run
            put(store, "after", "works")
            put(store, names[0], "again")
            assert {version.memory for version in store.log(names[0])} == {store.log("old")[-1].memory}, run
            assert not [version for version in store.log() if version.action == "outside"], run
    assert {("old", "old.md"), ("fresh", "fresh.md")} <= seen


def do_say(directory: Path, say: Say) -> None:
    """Says what came of a save."""
    with DirectoryStore.open(directory / "memory") as store:
        say("unfinished" if store.save(Draft("new", "project", "d", "two"), why=ME).unfinished else "done")


@pytest.mark.spec("S6", "Z12")
@pytest.mark.parametrize("fault", [Fail(errno.ENOSPC, forever=True), Fail(errno.EDQUOT)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_on_a_full_disk_what_is_said_of_a_save_is_true(tmp_path: Path, fault: Fail) -> None:
    said = set[str]()
    for run in every(tmp_path, prepare, do_say, fault):
        memory = run.directory / "memory"
        said.update(run.said)
        # No answer: an error was raised. Only a directory that could not be confirmed has the file then.
        assert bool(run.said) == (memory / "new.md").exists() or run.point == "dir.fsync", run
        if run.said == ("done",):
            assert "](new.md)" in (memory / "MEMORY.md").read_text(), run
        with DirectoryStore.open(memory, durability="process") as store:
            assert {entry.file for entry in read_entries(store.index())} == {topic.file for topic in store.topics()}, run
    assert said == {"done", "unfinished"} or not Extent.every


@pytest.mark.exhaustive
@pytest.mark.spec("S6", "S3")
def test_an_index_line_that_was_left_old_is_renewed_and_one_that_a_person_worded_is_not(tmp_path: Path) -> None:
    renewed = 0
    for run in every(tmp_path, prepare, do_update, Kill()):
        memory = run.directory / "memory"
        index = (memory / "MEMORY.md").read_text()
        lags = "two" in (memory / "old.md").read_text() and "d one" in index
        if lags and renewed:
            (memory / "MEMORY.md").write_text(index.replace("d one", "my own words"))
            os.utime(memory / "MEMORY.md", ns=(0, 0))
        with DirectoryStore.open(memory, durability="process") as store:
            assert "my own words" in store.index() if lags and renewed else not lags or "d two" in store.index(), run
        renewed += lags
    assert renewed > 1


@pytest.mark.spec("B4", "Z12")
@pytest.mark.usefixtures("crash_points")
def test_a_save_that_failed_is_not_told_as_one_that_happened(tmp_path: Path) -> None:
    failed = 0
    for run in every(tmp_path, prepare, do_create, Fail(errno.ENOSPC)):
        memory = run.directory / "memory"
        with DirectoryStore.open(memory, durability="process") as store:
            told = [version.action for version in store.log("new")]
            if not (memory / "new.md").exists():
                assert told in ([], ["undone", "save"]), run
                failed += len(told)
    assert failed or not Extent.every


@pytest.mark.exhaustive
@pytest.mark.spec("S6", "Z12")
def test_a_removal_that_did_not_reach_its_file_leaves_the_memory_listed(tmp_path: Path) -> None:
    lacked = 0
    for run in every(tmp_path, prepare, do_remove, Kill()):
        memory = run.directory / "memory"
        lacked += (memory / "old.md").exists() and "](old.md)" not in (memory / "MEMORY.md").read_text()
        with DirectoryStore.open(memory, durability="process") as store:
            assert {entry.file for entry in read_entries(store.index())} == {topic.file for topic in store.topics()}, run
    assert lacked


@pytest.mark.exhaustive
@pytest.mark.spec("S6", "Z12")
def test_a_line_that_a_crash_left_out_is_added_and_said(tmp_path: Path) -> None:
    mended = 0
    for run in every(tmp_path, prepare, do_create, Kill()):
        memory = run.directory / "memory"
        lacked = (memory / "new.md").exists() and "new.md" not in (memory / "MEMORY.md").read_text()
        with DirectoryStore.open(memory, durability="process") as store:
            assert lacked == any("lacked the line of new.md" in notice for notice in store.notices), run
            mended += lacked
        with DirectoryStore.open(memory, durability="process") as store:
            assert all("unfinished" in notice for notice in store.notices), run
    assert mended


@pytest.mark.spec("B4")
@pytest.mark.usefixtures("crash_points")
def test_an_acknowledged_change_has_its_line(tmp_path: Path) -> None:
    for run in every(tmp_path, prepare, do_update, Kill()):
        with DirectoryStore.open(run.directory / "memory", durability="process") as store:
            versions = store.log("old")
            assert len(versions) == 2 or not run.said, run
            if body(store, "old") == "two":
                assert (versions[0].action, versions[0].why) == ("save", ME), run


def do_merge(directory: Path, say: Say) -> None:
    with DirectoryStore.open(directory / "memory") as store:
        store.merge(Draft("kept", type="project", description="d both", body="kept and one"), "old", why=ME)
        say("done")


@pytest.mark.spec("S6", "Z1", "Z2")
@pytest.mark.parametrize("fault", [Kill(), Fail(errno.ENOSPC)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_a_merge_that_is_stopped_loses_no_text(tmp_path: Path, fault: Kill | Fail) -> None:
    for run in every(tmp_path, prepare, do_merge, fault):
        memory = run.directory / "memory"
        with DirectoryStore.open(memory, durability="process") as store:
            now = (body(store, "kept"), body(store, "old"))
            assert now in {("kept", "one"), ("kept and one", "one"), ("kept and one", None)}, run
            assert not run.said or now == ("kept and one", None), run
            assert {entry.file for entry in read_entries(store.index())} == {topic.file for topic in store.topics()}, run
            if now[1] is not None:
                do_merge(run.directory, lambda _: None)
                assert (body(store, "kept"), body(store, "old")) == ("kept and one", None), run

"""The journal: who, why and what; contents once; outside changes; a bounded size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.core.errors import InputError, PathRefused
from lamina.disk import crash_points as crash
from lamina.memory.store import history
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.journal import find_trash

ME = ChangeReason("user", "a test", "session-1", "message-1")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def store(memory: Path) -> Iterator[DirectoryStore]:
    with DirectoryStore.open(memory, durability="process", clock=lambda: 5.0) as opened:
        yield opened


def save(store: DirectoryStore, body: str, name: str = "a", why: ChangeReason = ME) -> None:
    store.save(Draft(name, type="project", description="d", body=body), why=why)


def rows(memory: Path) -> list[dict[str, Any]]:
    files = sorted((memory / ".history").glob("journal-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.spec("B4")
def test_each_save_writes_one_line_with_who_why_and_where(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    save(store, "two", why=ChangeReason("dream", "merged"))
    first, second = rows(memory)
    assert first["why"] == {"who": "user", "why": "a test", "session": "session-1", "message": "message-1"}
    assert (second["action"], second["why"]["who"], second["before"]) == ("save", "dream", first["digest"])


def opened_by(act: Callable[[], object]) -> int:
    """Count the files opened in the meantime."""
    count = 0

    def watch(point: str, _: int) -> None:
        nonlocal count
        count += point == "file.open"

    with crash.watched(watch):
        act()
    return count


def test_the_newest_line_is_found_without_the_others(store: DirectoryStore, memory: Path) -> None:
    for number in range(40):
        save(store, f"{number} " + "word " * 500, name=f"n{number}")
    with DirectoryStore.open(memory, durability="process") as again:
        newest = again.history.newest()
        assert (newest, again.history.last("n39.md")) == (store.history.newest(), None)
    path = memory / ".history" / "journal-000001.jsonl"
    with path.open("ab") as journal:
        journal.write(b'{"broken": \n{"file": "torn')
    with DirectoryStore.open(memory, durability="process") as again:
        assert again.history.newest() == newest


def test_a_newest_line_of_any_length_is_found(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    save(store, "word " * 20_000, name="long")
    with DirectoryStore.open(memory, durability="process") as again:
        newest = again.history.newest()
        assert newest is not None
        assert newest.file == "long.md"


def test_a_segment_that_did_not_grow_is_not_opened_again(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    store.history.catch_up()
    assert opened_by(store.history.catch_up) == 0
    with DirectoryStore.open(memory, durability="process") as other:
        save(other, "two", name="b")
    assert opened_by(store.history.catch_up) == 1
    assert store.history.last("b.md") is not None


@pytest.mark.spec("B4")
def test_a_content_is_stored_once(store: DirectoryStore, memory: Path) -> None:
    for body in ("one", "two", "one", "two", "one"):
        save(store, body)
    contents = [row["content"] for row in rows(memory) if row.get("content")]
    assert len(rows(memory)) == 5
    assert len(contents) == len(set(contents)) == 2
    assert [(store.content(version.id) or "").strip()[-3:] for version in store.log()] == ["one", "two", "one", "two", "one"]


@pytest.mark.spec("B4")
def test_a_change_made_outside_is_recorded_at_the_next_write(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    edited = (memory / "a.md").read_text() + "By hand.\n"
    (memory / "a.md").write_text(edited)
    save(store, "two")
    versions = store.log("a")
    assert [version.action for version in versions] == ["save", "outside", "save"]
    assert versions[1].why is None
    assert store.content(versions[1].id) == edited
    assert versions[0].before == versions[1].digest


@pytest.mark.spec("B4")
def test_a_file_that_was_there_before_us_is_kept_before_it_is_changed(memory: Path) -> None:
    memory.mkdir()
    (memory / "a.md").write_text("by hand")
    with DirectoryStore.open(memory, durability="process") as store:
        save(store, "two")
        assert store.restore("a", store.log("a")[1].id, why=ME).body == "by hand"
    assert (memory / "a.md").read_text() == "by hand"


@pytest.mark.spec("B4")
def test_a_removal_outside_is_noticed_when_the_memory_comes_again(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    save(store, "one", "b")
    (memory / "a.md").unlink()
    save(store, "two")
    assert [(version.action, version.digest == "") for version in store.log("a")] == [
        ("save", False),
        ("outside", True),
        ("save", False),
    ]


@pytest.mark.spec("B4")
def test_a_change_that_was_taken_back_at_once_is_followed_by_a_line_that_says_so(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    before = (memory / "a.md").read_bytes()
    save(store, "two")
    (memory / "a.md").write_bytes(before)
    save(store, "other", "b")
    save(store, "three")
    assert [version.action for version in store.log("a")] == ["save", "undone", "save", "save"]
    assert store.content(store.log("a")[1].id) == before.decode()


@pytest.mark.spec("B4", "Z11")
def test_a_secret_in_a_file_from_outside_does_not_reach_the_journal(store: DirectoryStore, memory: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    save(store, "one")
    (memory / "a.md").write_text(f"token {secret}")
    save(store, "two", why=ChangeReason("agent", f"because {secret}"))
    assert secret not in json.dumps(rows(memory))


@pytest.mark.spec("B4")
def test_what_was_removed_lies_in_the_trash_with_its_reason(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    whole = (memory / "a.md").read_bytes()
    save(store, "other", "b")
    assert store.remove("a", why=ChangeReason("user", "outdated"))
    trashed = find_trash(store.log())
    assert [(version.name, version.why and version.why.why) for version in trashed] == [("a", "outdated")]
    store.restore("a", why=ME)
    assert (memory / "a.md").read_bytes() == whole
    assert find_trash(store.log()) == []
    save(store, "one", "C++")
    store.remove("C++", why=ME)
    save(store, "two", "C#")
    assert [version.name for version in find_trash(store.log())] == ["C++"]


def rename(store: DirectoryStore, old: str, new: str, body: str) -> None:
    """Write the memory's file with another name, as a model does."""
    raw = store.raw(old)
    assert raw is not None
    store.put(raw.file, f"---\nname: {new}\ndescription: d\ntype: project\n---\n\n{body}\n", expected=raw.data, why=ME)


@pytest.mark.spec("B4", "S6")
def test_a_memory_that_was_renamed_twice_has_one_history_and_comes_back(store: DirectoryStore, memory: Path) -> None:
    save(store, "We deploy on Thursdays.", "deploy-thursdays")
    first = (memory / "deploy-thursdays.md").read_bytes()
    rename(store, "deploy-thursdays", "deploy-tuesdays", "We deploy on Tuesdays.")
    rename(store, "deploy-tuesdays", "deploy-mondays", "We deploy on Mondays.")
    assert [topic.file for topic in store.topics()] == ["deploy-mondays.md"]
    assert store.index() == "- [deploy-mondays](deploy-mondays.md) — d\n"
    log = store.log("deploy-mondays")
    assert [version.action for version in log] == ["rename", "save", "rename", "save", "save"]
    assert store.log("deploy-thursdays") == store.log("deploy-tuesdays.md") == log
    assert store.history.diff(log[0].id) == "rename from deploy-tuesdays.md\nrename to deploy-mondays.md\n"
    assert "-We deploy on Tuesdays." in store.history.diff(log[1].id)

    back = store.restore("deploy-thursdays", why=ME)
    assert (back.name, back.file) == ("deploy-thursdays", "deploy-thursdays.md")
    assert [topic.name for topic in store.topics()] == ["deploy-thursdays"], "what replaced it is not live beside it"
    assert (memory / back.file).read_bytes() == first
    assert store.index() == "- [deploy-thursdays](deploy-thursdays.md) — d\n"
    assert store.restore("deploy-mondays", why=ME).body == "We deploy on Mondays.\n"
    assert [topic.name for topic in store.topics()] == ["deploy-mondays"]
    assert store.remove("deploy-mondays", why=ME)
    assert [version.name for version in find_trash(store.log())] == ["deploy-mondays"]
    assert store.restore("deploy-tuesdays", why=ME).body == "We deploy on Tuesdays.\n"
    assert len(store.topics()) == 1


@pytest.mark.spec("B4")
def test_a_name_that_is_free_again_begins_a_new_history(store: DirectoryStore) -> None:
    save(store, "one", "deploy")
    rename(store, "deploy", "release", "one")
    save(store, "two", "deploy")
    assert [version.action for version in store.log("deploy")] == ["save"]
    assert len(store.log("release")) == 3
    with pytest.raises(InputError, match="is the name of another memory now"):
        store.restore("release", store.log("release")[-1].id, why=ME)
    assert {topic.name: topic.body for topic in store.topics()} == {"deploy": "two\n", "release": "one\n"}


@pytest.mark.spec("B4", "Z12")
def test_a_file_that_was_renamed_by_hand_keeps_its_history(store: DirectoryStore, memory: Path) -> None:
    for others in ([], ["b", "c"]):  # with and without a later change
        save(store, "one", "deploy")
        for other in others:
            save(store, "x", other)
        known = store.log("deploy")
        (memory / "deploy.md").rename(memory / "rollout.md")
        assert store.log("rollout.md") == known
        save(store, "two", "deploy")
        log = store.log("deploy")
        assert [version.action for version in log if version.file == "rollout.md"][:2] == ["save", "outside"]
        assert {version.memory for version in log} == {known[0].memory}
        assert store.remove("deploy", why=ME)


@pytest.mark.spec("B4")
def test_a_journal_without_identities_goes_by_its_files(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    save(store, "two")
    (journal,) = (memory / ".history").glob("journal-*.jsonl")
    old = [{key: value for key, value in row.items() if key != "memory"} for row in rows(memory)]
    journal.write_text("".join(f"{json.dumps(row)}\n" for row in old))
    with DirectoryStore.open(memory, durability="process") as again:
        rename(again, "a", "b", "three")
        assert {version.memory for version in again.log("b")} == {"a.md"}
        assert len(again.log("b")) == 4
        assert again.restore("a", why=ME).body == "two\n"


@pytest.mark.spec("B4")
def test_a_change_is_shown_as_a_diff(store: DirectoryStore) -> None:
    save(store, "first\nsame")
    save(store, "second\nsame")
    diff = store.history.diff(store.log()[0].id)
    assert "--- a/a.md\n+++ b/a.md\n" in diff
    assert "\n-first\n+second\n same\n" in diff
    assert store.history.diff("unknown") == ""


def test_restoring_twice_goes_back_and_forth(store: DirectoryStore) -> None:
    save(store, "one")
    save(store, "two")
    assert store.restore("a", why=ME).body.strip() == "one"
    assert store.restore("a", why=ME).body.strip() == "two"


@pytest.mark.spec("Z7")
def test_the_journal_is_bounded_and_what_is_left_is_whole(
    store: DirectoryStore, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SEGMENT_BYTES", 4_000)
    monkeypatch.setattr(history, "SEGMENTS", 3)
    for number in range(60):
        save(store, f"{number} " * 200)
        save(store, "always the same", "b")
    files = list((memory / ".history").glob("journal-*.jsonl"))
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) < 3 * 8_000
    versions = store.log("a")
    assert versions
    assert all(store.content(version.id) for version in versions)
    save(store, "changed", "b")
    assert store.restore("b", why=ME).body.strip() == "always the same"


def test_lines_that_are_torn_or_foreign_are_passed_over(store: DirectoryStore, memory: Path) -> None:
    save(store, "one")
    with open(memory / ".history" / "journal-000001.jsonl", "ab") as file:
        file.write(b'{"v":1,"id":\n\x00\xff\nnull\n{"torn')
    save(store, "two")
    with DirectoryStore.open(memory) as again:
        assert [version.action for version in again.log("a")] == ["save", "save"]
        save(again, "three")
        assert [version.action for version in store.log("a")] == ["save", "save", "save"]


@pytest.mark.parametrize("file", ["../out.md", "/out.md", "a/../../out.md", ".history/out.md", "logs/out.md", "out.txt"])
def test_a_journal_line_restores_nothing_that_is_not_a_memory(store: DirectoryStore, memory: Path, file: str) -> None:
    save(store, "one")
    store.remove("a", why=ME)
    journal = next((memory / ".history").glob("journal-*.jsonl"))
    journal.write_text(journal.read_text("utf-8").replace('"a.md"', json.dumps(file)), "utf-8")
    before = sorted(path for path in memory.parent.rglob("*"))
    with pytest.raises((PathRefused, InputError)):
        store.restore(file, why=ME)
    assert sorted(path for path in memory.parent.rglob("*")) == before

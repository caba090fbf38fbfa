"""Two memories become one, pairs that are no duplicates stay two, and both can be taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.errors import InputError, LaminaError
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.distinct import DISTINCT, are_distinct, note_distinct, read_distinct
from lamina.memory.store.draft import Draft
from lamina.memory.store.journal import digest_of

TEXT = "The integration tests run against a real Postgres database that the compose file starts on port 5433 before each run."


def opened(path: Path) -> Memory:
    return Memory.open(path=path, settings=Settings(durability="process"))


def two(memory: Memory) -> None:
    memory.save("testing-db", type="project", description="tests use Postgres", body=TEXT)
    memory.save("database-tests", type="project", description="Postgres for tests", body=f"{TEXT} It takes ten seconds.")


def state(memory: Memory) -> dict[str, str]:
    return {topic.file: topic.body for topic in memory.topics()}


def test_a_merge_is_one_act_that_is_taken_back_as_a_whole(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        before, index = state(memory), memory.index()
        done = memory.merge(
            "testing-db", "database-tests", body=f"{TEXT} It takes ten seconds.", description="tests use Postgres"
        )
        assert state(memory) == {"testing-db.md": f"{TEXT} It takes ten seconds.\n"}
        assert "database-tests" not in memory.index()
        made = [version for version in memory.log() if version.why is not None and version.why.act == done.act]
        assert [(version.name, version.action) for version in made] == [("database-tests", "remove"), ("testing-db", "save")]
        assert {version.why.why for version in made if version.why} == {"merged database-tests into testing-db"}
        merged = memory.index()
        back = memory.undo(done.act)
        assert (sorted(change.name for change in back.back), back.left) == (["database-tests", "testing-db"], ())
        assert (state(memory), memory.index()) == (before, index)
        assert memory.redo(back.act).left == ()
        assert (len(state(memory)), memory.index()) == (1, merged)
        assert len(memory.undo(done.act).back) == 2, "the merge is in force again, so it can be undone again"


def test_a_merge_overwrites_nothing_that_changed_meanwhile(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        base = (
            digest_of((memory.path / "testing-db.md").read_bytes()),
            digest_of((memory.path / "database-tests.md").read_bytes()),
        )
        for file in ("testing-db.md", "database-tests.md"):
            old = (memory.path / file).read_bytes()
            (memory.path / file).write_bytes(old + b"One more line.\n")
            before = state(memory)
            with pytest.raises(LaminaError, match=file):
                memory.merge("testing-db", "database-tests", body="x", base=base)
            assert state(memory) == before
            (memory.path / file).write_bytes(old)
        memory.merge("testing-db", "database-tests", body="x", base=base)
        assert len(state(memory)) == 1


@pytest.mark.parametrize(("name", "gone", "says"), [
    ("testing-db", "nobody", "nobody"),
    ("nobody", "testing-db", "nobody"),
    ("testing-db", "testing-db.md", "itself"),
])  # fmt: skip
def test_a_merge_needs_two_memories(tmp_path: Path, name: str, gone: str, says: str) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        before = state(memory)
        with pytest.raises(InputError, match=says):
            memory.merge(name, gone, body="x")
        assert state(memory) == before


def test_a_memory_changed_after_the_merge_stays(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        done = memory.merge("testing-db", "database-tests", body="both")
        memory.save("testing-db", body="newer")
        back = memory.undo(done.act)
        assert [change.name for change in back.back] == ["database-tests"]
        assert back.sentences == ("testing-db was changed since.",)
        assert state(memory)["testing-db.md"] == "newer\n"


def test_a_pair_that_is_no_duplicate_stays_distinct_until_that_is_taken_back(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        store = memory.store().store
        assert not are_distinct(store, "testing-db", "database-tests")
        note_distinct(store, "testing-db", "database-tests")
        assert are_distinct(store, "database-tests", "testing-db")
        # A memory keeps its identity under another name.
        store.save(
            Draft("database-tests", "project", "renamed", f"{TEXT} It takes ten seconds, or more."), why=ChangeReason("user")
        )
        assert are_distinct(store, "database-tests.md", "testing-db")
        note_distinct(store, "database-tests", "testing-db", distinct=False)
        assert not are_distinct(store, "testing-db", "database-tests")
        assert read_distinct(store.root) == frozenset()


def test_a_damaged_list_of_pairs_counts_as_empty(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        two(memory)
        store = memory.store().store
        note_distinct(store, "testing-db", "database-tests")
        (memory.path / DISTINCT).write_text("{torn")
        assert not are_distinct(store, "testing-db", "database-tests")
        with pytest.raises(InputError, match="nobody"):
            note_distinct(store, "testing-db", "nobody")
        with pytest.raises(InputError, match="same memory"):
            note_distinct(store, "testing-db", "testing-db.md")

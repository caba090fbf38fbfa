"""A dream that was undone by mistake is applied again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.errors import InputError
from lamina.layers.l6_dream.record import DreamRecord, read_record
from lamina.layers.l6_dream.redo import NOT_AS_BEFORE, can_redo, redo_changes
from lamina.layers.l6_dream.undo import undo, undo_change
from lamina.memory.store.modes import GatedStore
from lamina.memory.store.topic import INDEX

from .staged import NOW, Dream, dreamt, memory, save, snapshot, some, topic

FACT = "Fact number {} about the parser is kept here."


def change(one: Dream) -> None:
    """Merge t001 into t000 with a new description."""
    one.write("t000.md", topic("t000", f"{FACT.format(0)} {FACT.format(1)}", "about both"))
    one.remove("t001.md")


def made(gated: GatedStore) -> DreamRecord:
    some(gated, 5)
    return dreamt(gated, change)


@pytest.mark.spec("B4")
@pytest.mark.parametrize("whole", [True, False])
def test_what_an_undo_took_back_is_as_the_dream_left_it(tmp_path: Path, whole: bool) -> None:
    with memory(tmp_path / "m") as gated:
        record = made(gated)
        files, after = [one.file for one in record.changes], snapshot(tmp_path / "m")
        if whole:
            undo(gated, record.id, now=NOW)
        else:
            for file in files:
                undo_change(gated, record.id, file, now=NOW)
        before = snapshot(tmp_path / "m")
        assert "t001.md" in before
        assert can_redo(record, files, whole=whole)
        done = redo_changes(gated, record.id, files)
        assert (set(done.back), done.left) == (set(files), ())
        assert snapshot(tmp_path / "m") == after
        there = read_record(gated.store.root, record.id)
        assert there is not None
        assert there.status == "completed"
        assert set(undo(gated, record.id, now=NOW).back) == set(files), "and it can be undone again"
        assert {**snapshot(tmp_path / "m"), INDEX: b""} == {**before, INDEX: b""}
        why = gated.log("t001")[0].why
        assert why is not None
        assert (why.who, why.dream) == ("user", record.id)


@pytest.mark.spec("B4")
def test_what_was_changed_since_the_undo_stays(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        record = made(gated)
        undo(gated, record.id, now=NOW)
        save(gated, "t001", "A user wrote this.", who="user")
        before = snapshot(tmp_path / "m")
        done = redo_changes(gated, record.id, ["t001.md"])
        assert [(one.file, one.why) for one in done.left] == [("t001.md", NOT_AS_BEFORE)]
        assert snapshot(tmp_path / "m") == before


@pytest.mark.spec("B4")
def test_a_dream_that_rewrote_the_index_is_not_applied_again_as_a_whole(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 5)

        def rewrite(one: Dream) -> None:
            change(one)
            one.write(INDEX, "# Ours\n" + "".join(f"- [t00{at}](t00{at}.md) — of t00{at}\n" for at in (4, 3, 2, 0)))

        record = dreamt(gated, rewrite)
        assert INDEX in record.files
        undo(gated, record.id, now=NOW)
        before = snapshot(tmp_path / "m")
        assert not can_redo(record, ["t001.md"], whole=True)
        with pytest.raises(InputError):
            redo_changes(gated, record.id, ["t001.md"])
        assert snapshot(tmp_path / "m") == before

"""A dream that was undone by mistake is applied again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lamina.core.errors import InputError, SettingError
from lamina.layers.l6_dream.record import DreamRecord, read_record, write_record
from lamina.layers.l6_dream.undo import UndoneDream, redo, undo, undo_changes
from lamina.memory.store.modes import GatedStore
from lamina.memory.store.topic import INDEX

from .staged import Dream, dream, dreamt, memory, save, snapshot, some, times, topic

FACT = "Fact number {} about the parser is kept here."


def change(one: Dream) -> None:
    """Merge t001 into t000 with a new description."""
    one.write("t000.md", topic("t000", f"{FACT.format(0)} {FACT.format(1)}", "about both"))
    one.remove("t001.md")


def rewrite(one: Dream) -> None:
    """Change memories, and write another index."""
    change(one)
    one.remove("t003.md")
    one.write("better.md", topic("better", FACT.format(3)))
    one.write(INDEX, "# Ours\n" + "".join(f"- [t00{at}](t00{at}.md) — of t00{at}\n" for at in (4, 2, 0)))


def order(one: Dream) -> None:
    one.write(INDEX, "# Ours\n" + "".join(f"- [t00{at}](t00{at}.md) — of t00{at}\n" for at in (4, 3, 2, 1, 0)))


def approved(gated: GatedStore, work: Callable[[Dream], None]) -> DreamRecord:
    """Run a dream that only proposes, and accept all of it but the last."""
    record = dreamt(GatedStore(gated.store, "confirm"), work)
    for proposal in record.waiting[:-1]:
        gated.accept(proposal)
    return record


def status(gated: GatedStore, record: DreamRecord) -> str:
    found = read_record(gated.store.root, record.id)
    assert found is not None
    return found.status


def undo_all(gated: GatedStore, record: DreamRecord, whole: bool) -> UndoneDream:
    files = [*(file for file in record.files if file != INDEX), *(each.file for each in gated.inbox.waiting())]
    files += [each.proposal.file for each in gated.inbox.decided() if each.accepted]
    return undo(gated, record.id) if whole else undo_changes(gated, record.id, files)


@pytest.mark.spec("B4")
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("work", [change, rewrite])
@pytest.mark.parametrize("run", [dreamt, approved])
def test_undo_redo_and_undo_again_restore_every_byte_and_time(
    tmp_path: Path, run: Callable[[GatedStore, Callable[[Dream], None]], DreamRecord], work: Callable[[Dream], None], whole: bool
) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        (where / INDEX).write_bytes(b"# Mine \xff\r\n" + (where / INDEX).read_bytes() + b"\n\nno newline at the end")
        original = snapshot(where)
        record = run(gated, work)
        after, when, waiting = snapshot(where), times(where), gated.inbox.waiting()
        assert (after != original, bool(waiting)) == (True, run is approved)
        undone = undo_all(gated, record, whole)
        before, earlier = snapshot(where), times(where)
        assert {**before, INDEX: b""} == {**original, INDEX: b""}
        if run is approved:
            assert set(before[INDEX].split()) == set(original[INDEX].split()), "approvals are sets of their own"
        else:
            assert before[INDEX] == original[INDEX] or (not whole and work is rewrite), (
                "a single undo leaves the dream's own index"
            )
        assert not gated.inbox.waiting()
        done = redo(gated, record.id, "" if whole else undone.undo)
        assert (done.left, done.waiting) == ((), len(waiting))
        assert (snapshot(where), times(where), gated.inbox.waiting()) == (after, when, waiting)
        assert status(gated, record) == "completed"
        again = undo_all(gated, record, whole)
        assert (snapshot(where), times(where)) == (before, earlier)
        redo(gated, record.id, "" if whole else again.undo)
        assert (snapshot(where), times(where), gated.inbox.waiting()) == (after, when, waiting)
        assert read_record(gated.store.root, record.id) == record, "the end of the dream too"
        why = gated.log("t000")[0].why
        assert why is not None
        assert (why.who, why.undoes) == ("user", again.undo)


@pytest.mark.spec("B4")
def test_a_dream_that_changed_nothing_but_the_index_is_applied_again(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        before = snapshot(where)
        record = dreamt(gated, order)
        after = snapshot(where)
        for _ in range(2):
            undo(gated, record.id)
            assert snapshot(where) == before
            assert redo(gated, record.id).back == ()
            assert (snapshot(where), status(gated, record)) == (after, "completed")


@pytest.mark.spec("B4")
def test_one_change_is_undone_then_the_whole_dream_and_they_are_applied_again_in_turn(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        before = snapshot(where)
        record = dreamt(gated, rewrite)
        after = snapshot(where)
        one = undo_changes(gated, record.id, ["t000.md", "t001.md"])
        between = snapshot(where)
        undo(gated, record.id)
        assert snapshot(where) == before
        with pytest.raises(InputError, match="was undone as a whole since"):
            redo(gated, record.id, one.undo)
        assert snapshot(where) == before
        assert set(redo(gated, record.id).back) == {"better.md", "t003.md"}
        assert snapshot(where) == between
        redo(gated, record.id, one.undo)
        assert snapshot(where) == after


@pytest.mark.spec("B4", "Z3")
@pytest.mark.parametrize("file", ["t000.md", "t001.md", "better.md"])
def test_nothing_is_applied_again_if_one_file_was_changed_since_the_undo(tmp_path: Path, file: str) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        record = dreamt(gated, rewrite)
        after = snapshot(where)
        undo(gated, record.id)
        before = snapshot(where)
        (where / file).write_bytes(before.get(file, b"") + b"By hand.\n")
        mine = snapshot(where)
        with pytest.raises(InputError, match=f"{file}: was changed since; nothing was applied again"):
            redo(gated, record.id)
        assert (snapshot(where), status(gated, record)) == (mine, "undone")
        if file in before:
            (where / file).write_bytes(before[file])
        else:
            (where / file).unlink()
        redo(gated, record.id)
        assert snapshot(where) == after


@pytest.mark.spec("B4", "Z3")
def test_lines_that_others_wrote_since_the_undo_stay(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        record = dreamt(gated, rewrite)
        after = snapshot(where)
        undo(gated, record.id)
        save(gated, "fresh", "Saved since.")
        index = (where / INDEX).read_text()
        index = index.replace("- [t000](t000.md) — about t000", "- [t000](t000.md) — in my words")
        (where / INDEX).write_text(index.replace("- [t002](t002.md) — about t002\n", "- [t002](t002.md) — mine\nA line.\n"))
        redo(gated, record.id)
        rows = gated.index().splitlines()
        for row in (
            "- [fresh](fresh.md) — about fresh",
            "- [t000](t000.md) — in my words",
            "- [t002](t002.md) — mine",
            "A line.",
        ):
            assert row in rows
        assert "# Ours" in rows
        assert "t001.md" not in gated.index()
        others = {file: data for file, data in snapshot(where).items() if file not in (INDEX, "fresh.md")}
        assert others == {file: data for file, data in after.items() if file != INDEX}


@pytest.mark.spec("B4")
def test_what_is_not_kept_is_refused(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 5)
        record = dreamt(gated, change)
        for dream, undo_act in ((record.id, ""), (record.id, "00000000"), ("../../x", ""), (None, "")):
            with pytest.raises(InputError, match="has nothing to apply again"):
                redo(gated, dream, undo_act)
        undo(gated, record.id)
        redo(gated)
        after = snapshot(tmp_path / "m")
        with pytest.raises(InputError, match="has nothing to apply again"):
            redo(gated, record.id)
        assert snapshot(tmp_path / "m") == after


@pytest.mark.spec("B5")
def test_a_memory_that_takes_no_changes_stays(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 5)
        record = dreamt(gated, change)
        undo(gated, record.id)
        before = snapshot(tmp_path / "m")
        with pytest.raises(SettingError):
            redo(GatedStore(gated.store, "read-only"), record.id)
        assert snapshot(tmp_path / "m") == before


@pytest.mark.spec("B5")
def test_a_proposal_that_was_accepted_since_the_undo_stays_accepted(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        record = approved(gated, rewrite)
        [left] = gated.inbox.waiting()
        undo(gated, record.id)
        gated.inbox.undecide(left)
        gated.accept(left.id)
        mine = snapshot(where).get(left.file)
        assert redo(gated, record.id).waiting == 0
        assert (snapshot(where).get(left.file), gated.inbox.waiting()) == (mine, [])


@pytest.mark.spec("B4")
def test_nothing_is_applied_again_while_another_dream_changes_memories(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 5)
        record = dreamt(gated, change)
        undo(gated, record.id)
        before = snapshot(where)
        with dream(gated) as one:
            write_record(gated.store.root, msgspec.structs.replace(one.record, phase="applying"))
            with pytest.raises(InputError, match="while another dream changes memories"):
                redo(gated, record.id)
            assert snapshot(where) == before
            write_record(gated.store.root, one.record)
            redo(gated, record.id)
            assert status(gated, record) == "completed", "one that works on its copy finds the files changed"

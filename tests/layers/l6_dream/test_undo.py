"""Undoing a dream as a whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.core.errors import DiskError, InputError, SettingError, UndoOrder
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.apply import apply_dream
from lamina.layers.l6_dream.record import read_records, write_record
from lamina.layers.l6_dream.stage import KEPT
from lamina.layers.l6_dream.undo import recover, redo, undo
from lamina.memory.store.index import read_entries

from .staged import NOW, Dream, dream, dreamt, memory, save, snapshot, some, times, topic

FACT = "Fact number {} about the parser is kept here."


def everything(one: Dream) -> None:
    """Change, merge, remove, add and rename memories, and reorder the index."""
    one.write("t000.md", topic("t000", f"{FACT.format(0)} {FACT.format(1)}"))
    one.remove("t001.md")
    one.remove("t002.md")
    one.write("sub/new.md", topic("new", "A new one."))
    one.remove("t003.md")
    one.write("better.md", topic("t003", FACT.format(3)))
    one.write("MEMORY.md", "# Parser\n- [t004](t004.md) — last comes first\n- [t000](t000.md) — short\n")


@pytest.mark.spec("B4", "Z5")
def test_undo_brings_back_every_byte_and_time(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        (where / "t000.md").write_bytes(topic("t000", FACT.format(0)).replace("\n", "\r\n").encode())
        index = where / "MEMORY.md"
        index.write_bytes(b"# Mine \xff\r\n" + index.read_bytes() + b"\n\nno newline at the end")
        for number, file in enumerate(sorted(snapshot(where))):
            os.utime(where / file, ns=(10**18 + number, 10**18 + number))
        before, when = snapshot(where), times(where)
        record = dreamt(gated, everything)
        assert {"t001.md", "t002.md", "t003.md"} == {*record.merged, *record.removed}
        assert snapshot(where) != before
        done = undo(gated)
        assert snapshot(where) == before
        assert times(where) == when
        assert not done.left
        assert [each.status for each in read_records(gated.store.root)] == ["undone"]
        assert {topic.file for topic in gated.topics()} == {file for file in before if file != "MEMORY.md"}
        assert [version.action for version in gated.log("t002")][:2] == ["restore", "remove"]


@pytest.mark.spec("B4")
def test_a_second_undo_says_so(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 6)
        record = dreamt(gated, everything)
        undo(gated, record.id)
        with pytest.raises(InputError, match="is already undone"):
            undo(gated, record.id)
        with pytest.raises(InputError, match="there is nothing to undo"):
            undo(gated)
        with pytest.raises(InputError, match="not found"):
            undo(gated, "../../etc")


@pytest.mark.spec("B4")
def test_dreams_are_undone_newest_first(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 6)
        before = snapshot(tmp_path / "m")
        first = dreamt(gated, everything)
        second = dreamt(gated, lambda one: one.write("t000.md", topic("t000", f"{FACT.format(0)} {FACT.format(1)} Later.")))
        with pytest.raises(UndoOrder, match=f"Undo dream {second.id} first"):
            undo(gated, first.id)
        assert undo(gated, second.id).back == ("t000.md",)
        undo(gated, first.id)
        assert snapshot(tmp_path / "m") == before


@pytest.mark.spec("B4", "Z3")
def test_what_changed_since_the_dream_is_left_and_named(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        before = snapshot(where)
        dreamt(gated, everything)
        save(gated, "t000", "By an agent, later.")
        (where / "better.md").write_text(topic("better", "By hand, later."))
        save(gated, "fresh", "Saved since.")
        done = undo(gated)
        now = snapshot(where)
        assert {left.file: left.why for left in done.left} == dict.fromkeys(("t000.md", "better.md"), "was changed since")
        assert b"By an agent, later." in now["t000.md"]
        assert now["better.md"] == topic("better", "By hand, later.").encode()
        assert "t003.md" not in now, "better.md is the same memory, and the edit is its newest version"
        for file in ("t001.md", "t002.md", "t004.md", "t005.md"):
            assert now[file] == before[file]
            assert f"]({file}) — about {file[:4]}\n" in gated.index()
        assert "sub/new.md" not in now
        assert all(f"]({topic.file})" in gated.index() for topic in gated.topics())
        assert "sub/new.md" not in gated.index()


class Between(NamedTuple):
    """A dream's lock during whose writes something else happens, before each of them."""

    hold: HeldDreamLock
    act: Callable[[], None]

    def fence(self) -> AbstractContextManager[None]:
        self.act()
        return self.hold.fence()


@pytest.mark.spec("B4", "Z3")
def test_what_a_second_session_saves_while_a_dream_is_applied_keeps_its_line_after_the_undo(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated, memory(where) as second:
        some(gated, 6)
        before, saved = snapshot(where), iter(range(100))
        with dream(gated) as one:
            everything(one)
            between = Between(one.hold, lambda: save(second, f"fresh {next(saved)}", "Saved meanwhile."))
            apply_dream(gated, one.stage, one.record, between, now=NOW)  # type: ignore[arg-type]  # as much of a hold as it takes
        assert not undo(gated).left
        now = snapshot(where)
        assert next(saved) > 2
        assert all(now[file] == data for file, data in before.items() if file != "MEMORY.md")
        assert {entry.file for entry in read_entries(gated.index())} == {topic.file for topic in gated.topics()}
        assert [row for row in gated.index().splitlines() if "fresh" not in row] == before["MEMORY.md"].decode().splitlines()


@pytest.mark.spec("B4")
def test_an_undo_while_the_next_dream_runs_and_then_of_that_one_leaves_the_index_right(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        before = snapshot(where)
        dreamt(gated, everything)
        with dream(gated) as one:
            one.write("t005.md", topic("t005", f"{FACT.format(5)} Later."))
            undo(gated)
            one.conclude()
        undo(gated)
        assert snapshot(where) == before


@pytest.mark.spec("B4", "Z12")
def test_an_undo_takes_back_the_dream_that_was_stopped_half_way_and_not_the_one_before(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        first = dreamt(gated, lambda one: one.write("t004.md", topic("t004", f"{FACT.format(4)} More.")))
        before = snapshot(where)
        with dream(gated) as one:
            everything(one)
            second = apply_dream(gated, one.stage, one.record, one.hold, now=NOW)
            write_record(gated.store.root, msgspec.structs.replace(second, status="running", phase="applying"))
            with pytest.raises(InputError, match="while another dream changes memories"):
                undo(gated, first.id)
            one.hold.leave()
        done = undo(gated)
        assert (done.record.id, done.record.status) == (second.id, "failed")
        assert "was stopped while changing memories" in done.said[0]
        assert snapshot(where) == before
        assert undo(gated).record.id == first.id


@pytest.mark.spec("B4", "Z12")
def test_an_undo_that_fails_half_way_leaves_a_lock_by_which_the_next_session_sees_it(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        before = snapshot(where)
        dreamt(gated, everything)
        (where / "t002.md").mkdir()
        with pytest.raises(DiskError):
            undo(gated)
        assert (where / LOCK).stat().st_size
        (where / "t002.md").rmdir()
        assert "has now been finished" in recover(gated, DreamLock(gated.store.root), now=NOW)[0]
        assert snapshot(where) == before
        assert not (where / LOCK).stat().st_size


@pytest.mark.spec("B4", "B5")
def test_what_waits_is_withdrawn_and_what_was_accepted_comes_back(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 6, who="user")
        before = snapshot(tmp_path / "m")

        def merge(one: Dream) -> None:
            one.write("t000.md", topic("t000", " ".join(FACT.format(number) for number in range(3))))
            one.remove("t001.md")
            one.remove("t002.md")

        record = dreamt(gated, merge)
        assert len(record.waiting) == 2
        gated.accept(record.waiting[0])
        assert "t001.md" not in snapshot(tmp_path / "m")
        done = undo(gated)
        assert snapshot(tmp_path / "m") == before
        assert set(done.back) >= {"t000.md", "t001.md"}
        assert not gated.inbox.waiting()


@pytest.mark.spec("B4", "S3")
def test_a_dream_that_only_put_the_index_in_order_can_be_undone(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 2)
        index = where / "MEMORY.md"
        index.write_text(f"- [gone](gone.md) — long ago\n{index.read_text()}")
        before = snapshot(where)
        record = dreamt(gated, lambda one: one.write("MEMORY.md", "- [t001](t001.md) — one\n- [t000](t000.md) — nought\n"))
        assert record.files == ("MEMORY.md",)
        assert gated.index() == "- [t001](t001.md) — one\n- [t000](t000.md) — nought\n"
        undo(gated, record.id)
        assert snapshot(where) == before


@pytest.mark.spec("B5")
def test_where_memory_takes_nothing_nothing_is_undone(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 6)
        dreamt(gated, everything)
    after = snapshot(tmp_path / "m")
    with memory(tmp_path / "m", "read-only") as gated, pytest.raises(SettingError):
        undo(gated)
    assert snapshot(tmp_path / "m") == after


@pytest.mark.spec("B4", "Z7")
def test_the_last_five_are_kept_and_those_that_changed_nothing_push_out_none(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 2)
        changed = [
            dreamt(gated, lambda one, n=number: one.write("t000.md", topic("t000", f"{FACT.format(0)} Round {n}."))).id  # type: ignore[misc]
            for number in range(KEPT + 2)
        ]
        for _ in range(KEPT + 2):
            dreamt(gated, lambda one: None)
        kept = read_records(gated.store.root)
        assert [record.id for record in kept if record.files] == changed[:1:-1]
        assert len(kept) == 2 * KEPT
        assert undo(gated).record.id == changed[-1]


@pytest.mark.spec("B4", "B11")
def test_what_was_forgotten_in_between_does_not_come_back(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 6)
        record = dreamt(gated, everything)
        journal = where / ".history" / "journal-000001.jsonl"
        rows = [json.loads(row) for row in journal.read_text().splitlines()]
        for row in rows:
            if (row["file"], row["action"]) in (("t002.md", "save"), ("MEMORY.md", "begin")):
                del row["content"]
        journal.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        done = undo(gated, record.id)
        assert [(left.file, left.why) for left in done.left] == [("t002.md", "has no earlier version any more")]
        now = snapshot(where)
        assert "t002.md" not in now
        assert all(f"]({topic.file})" in gated.index() for topic in gated.topics())


NAMES = [f"t00{number}.md" for number in range(6)] + ["n0.md", "sub/n1.md", "MEMORY.md"]
BODIES = st.sampled_from(
    [topic("t000", FACT.format(0)), topic("x", "Else."), topic("y", FACT.format(4)), "no matter", "", "# Only\n"]
)


@pytest.mark.spec("B4", "Z5")
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.none() | BODIES))
def test_undo_after_any_dream_is_as_if_it_had_not_been_and_redo_as_if_it_had_not_been_undone(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, str | None]
) -> None:
    where = tmp_path_factory.mktemp("m") / "m"
    with memory(where) as gated:
        some(gated, 6)
        before, when = snapshot(where), times(where)
        with dream(gated) as one:
            for file, text in wanted.items():
                if text is not None:
                    one.write(file, text)
                elif (one.stage.path / file).exists():
                    one.remove(file)
            record = one.conclude()
        planned = {*record.files, "MEMORY.md"}
        now = snapshot(where)
        assert {file: data for file, data in now.items() if file not in planned} == {
            file: data for file, data in before.items() if file not in planned
        }
        dreamt_at, waiting = times(where), gated.inbox.waiting()
        if record.files or record.waiting:
            undo(gated)
            assert snapshot(where) == before
            assert times(where) == when
            assert not redo(gated, record.id).left
            assert (snapshot(where), times(where), gated.inbox.waiting()) == (now, dreamt_at, waiting)
            undo(gated)
            assert (snapshot(where), times(where)) == (before, when)


OLD = Path(__file__).parents[2] / "golden/home/.lamina/projects/-tmp-lamina-golden-shop/memory"


@pytest.mark.spec("B4", "Z5")
def test_a_dream_of_an_earlier_version_is_undone_from_the_journal(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "m")
    copies = next((tmp_path / "m" / ".dreams").glob("20300111*/before"))
    with memory(tmp_path / "m") as gated:
        dreamt_at = snapshot(tmp_path / "m")
        assert undo(gated).back == ("invoices.md",)
        now = snapshot(tmp_path / "m")
        assert {path.name: now[path.name] for path in copies.iterdir()} == {
            path.name: path.read_bytes() for path in copies.iterdir()
        }
        redo(gated)
        assert snapshot(tmp_path / "m") == dreamt_at

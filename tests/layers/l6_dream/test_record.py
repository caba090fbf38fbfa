"""The record of a dream, and its directory."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lamina.layers.l6_dream.record import DreamRecord, is_kill_requested, new_id, read_record, read_records, write_record
from lamina.layers.l6_dream.stage import end_dream, prune_dreams, stage_copy

from .staged import NOW, an_id, memory, some

A_RECORD = DreamRecord(an_id(1), NOW, 1, "hand")


@pytest.mark.spec("D4")
def test_ids_sort_by_time() -> None:
    assert new_id(NOW) < new_id(NOW + 60) < new_id(NOW + 86_400)
    assert new_id(NOW)[:13] == "20270115T0800"


@pytest.mark.spec("D4", "Z12")
def test_records_come_newest_first_and_bad_ones_are_passed_over(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        root = gated.store.root
        assert read_records(root) == []
        for number in (3, 1, 2):
            write_record(root, msgspec.structs.replace(A_RECORD, id=an_id(number), started=NOW + number))
        root.replace(f".dreams/{an_id(2)}/record.json", b"{ torn")
        root.replace(f".dreams/{an_id(4)}/record.json", msgspec.json.encode(A_RECORD))
        root.mkdir(".dreams/nonsense")
        assert [record.id for record in read_records(root)] == [an_id(3), an_id(1)]
        assert read_record(root, "../x") is None
        assert is_kill_requested(root, an_id(1)) is False
        prune_dreams(root)
        assert {entry.name for entry in root.listdir(".dreams")} == {an_id(1), an_id(3), "nonsense"}


@pytest.mark.spec("D4", "B4")
def test_two_dreams_of_one_minute_are_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        for number, dream in enumerate(["20270115T0800-ffff", "20270115T0800-0000"]):
            write_record(gated.store.root, msgspec.structs.replace(A_RECORD, id=dream, started=NOW + number))
        assert [record.id for record in read_records(gated.store.root)] == ["20270115T0800-0000", "20270115T0800-ffff"]


@pytest.mark.spec("D4", "D5")
@pytest.mark.parametrize("status", ["failed", "killed"])
def test_however_a_dream_ends_its_copy_goes_and_its_record_says_so(tmp_path: Path, status: str) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 3)
        stage = stage_copy(gated, A_RECORD)
        assert set(stage.base) == {"t000.md", "t001.md", "t002.md"}
        done = end_dream(gated.store.root, A_RECORD, status=status, now=NOW + 1, why="because")  # type: ignore[arg-type]
        assert (done.status, done.why, done.ended) == (status, "because", NOW + 1)
        assert not stage.path.exists()
        assert read_records(gated.store.root) == [done]


@pytest.mark.spec("D4")
def test_what_the_store_never_changes_is_not_copied(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 1)
        (where / "binary.md").write_bytes(b"\xff\x00")
        (where / "large.md").write_bytes(b"x" * (1 << 20))
        (where / "link.md").symlink_to(where / "t000.md")
        (where / "team").mkdir()
        (where / "team" / "theirs.md").write_text("theirs")
        (where / "sub").mkdir()
        (where / "sub" / "deep.md").write_text("deep")
        stage = stage_copy(gated, A_RECORD)
        assert set(stage.base) == {"t000.md", "sub/deep.md"}
        assert sorted(path.name for path in stage.path.rglob("*.md")) == ["MEMORY.md", "deep.md", "t000.md"]
        assert gated.store.topic_files.files()
        assert not any(".dreams" in found.file for found in gated.store.topic_files.files())

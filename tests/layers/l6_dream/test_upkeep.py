"""How other commands treat what dreams leave: `forget` removes it, `doctor` reports and repairs it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.maintenance.doctor.patient import NOW as LOOKED_AT
from tests.maintenance.doctor.patient import Patient

from lamina.layers.l6_dream.record import read_records, write_record
from lamina.layers.l6_dream.undo import redo, undo
from lamina.maintenance.forget.forget import forget
from lamina.maintenance.forget.subject import Subject
from lamina.maintenance.kept_files import KeptFiles, MemoryRoot

from .staged import Dream, dream, dreamt, memory, save, snapshot, topic

NAME = "Anna Lee"


def places(where: Path) -> KeptFiles:
    return KeptFiles((MemoryRoot(where, "memories"),), (), ())


def holds(where: Path) -> list[Path]:
    return [path for path in where.rglob("*") if path.is_file() and b"Anna" in path.read_bytes()]


def about_anna(one: Dream) -> None:
    one.remove("anna.md")
    one.write("bob.md", topic("bob", "Bob likes tea.\n\n- Anna Lee likes coffee."))


@pytest.mark.spec("B11", "B4")
def test_what_was_forgotten_is_in_no_dream_and_no_undo_brings_it_back(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        save(gated, "anna", "Anna Lee likes coffee.")
        save(gated, "bob", "Bob likes tea.")
        dreamt(gated, about_anna)
        kept = where / ".dreams" / read_records(gated.store.root)[0].id / "before" / "anna.md"
        kept.parent.mkdir()  # earlier versions kept copies for an undo
        kept.write_text("Anna Lee likes coffee.")
        report = forget(places(where), Subject(NAME), do=True)
        assert "dreams" in report.counts()
        assert not holds(where)
    with memory(where) as gated:
        for record in read_records(gated.store.root):
            undo(gated, record.id)
        assert not holds(where)
        assert b"Bob likes tea." in snapshot(where)["bob.md"]


@pytest.mark.spec("B11", "B4")
def test_what_was_forgotten_after_an_undo_is_not_applied_again(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        save(gated, "anna", "Anna Lee likes coffee.")
        save(gated, "bob", "Bob likes tea.")
        record = dreamt(gated, about_anna)
        undo(gated, record.id)
        forget(places(where), Subject(NAME), do=True)
        assert not holds(where)
    with memory(where) as gated:
        assert redo(gated, record.id).back == ("bob.md",)
        assert (set(snapshot(where)), holds(where)) == ({"bob.md", "MEMORY.md"}, [])


@pytest.mark.spec("B11", "D5")
def test_a_dream_that_runs_is_told_to_stop_and_changes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        save(gated, "anna", "Anna Lee likes coffee.")
        save(gated, "bob", "Bob likes tea.")
        with dream(gated) as one:
            about_anna(one)
            report = forget(places(where), Subject(NAME), do=True)
            assert any("asked to stop" in left.why for left in report.skipped)
            assert one.conclude().status == "killed"
        assert set(snapshot(where)) == {"bob.md", "MEMORY.md"}
        assert not holds(where)


@pytest.mark.spec("Z12", "Z5")
@pytest.mark.parametrize("phase", ["updating", "applying", "undoing"])
def test_doctor_tells_of_a_dream_that_was_stopped_and_puts_it_right(tmp_path: Path, phase: str) -> None:
    patient = Patient(tmp_path)
    where = patient.memory
    with memory(where) as gated:
        save(gated, "bob", "Bob likes tea.")
        before = snapshot(where)
        record = dreamt(gated, lambda one: one.write("bob.md", topic("bob", "Bob likes tea. And more.")))
        if phase == "updating":
            undo(gated)
        record = read_records(gated.store.root)[0]
        status = "completed" if phase == "undoing" else "running"
        write_record(gated.store.root, msgspec.structs.replace(record, phase=phase, status=status))
    (found,) = patient.found("dream-stopped")
    assert "before it changed anything" in found.problem or phase != "updating"
    done, _ = patient.fix()
    assert any(record.id in each.text for each in done)
    assert not patient.found("dream-stopped")
    assert snapshot(where) == before


@pytest.mark.spec("Z12")
def test_doctor_tells_of_a_dream_that_hangs_and_of_one_without_a_record(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    with memory(patient.memory) as gated:
        save(gated, "bob", "Bob likes tea.")
        with dream(gated) as one:
            assert not patient.found("dream-stopped"), "it lives"
            write_record(gated.store.root, msgspec.structs.replace(one.record, started=LOOKED_AT - 7_200))
            (found,) = patient.found("dream-long")
            assert "has been running for 120 minutes" in found.problem
            gated.store.root.replace(f".dreams/{one.record.id}/record.json", b"{ torn")
    (found,) = patient.found("dream-stopped")
    assert "no readable record" in found.problem
    patient.fix()
    assert not patient.found("dream-stopped")
    assert not (patient.memory / ".dreams" / one.record.id).exists()

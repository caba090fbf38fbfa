"""Memory pollution: four figures from what the doctor finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.maintenance.doctor.examination import Pollution, pollution

from .patient import NOW, Patient


def topic(name: str, body: str, *, more: str = "") -> str:
    return f"---\nname: {name}\ndescription: How {name} is done in this project\ntype: project\n{more}---\n{body}\n"


def figures(patient: Patient) -> Pollution:
    return pollution(cwd=patient.cwd, environ=patient.environ, now=NOW, managed=patient.base / "managed.json")


@pytest.mark.spec("K4")
def test_duplicates_dead_pointers_stale_and_contradicted_are_counted(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    assert figures(patient) == Pollution()
    patient.write("one.md", topic("one", "Deploys go through the staging cluster first."))
    patient.write("MEMORY.md", "- [One](one.md) — deploys\n")
    assert figures(patient) == Pollution(topics=1)
    patient.write("two.md", topic("two", "Deploys go through the staging cluster first."))
    patient.write("three.md", topic("one", "The port is 8080."))
    patient.write("four.md", topic("four", "The parser is in parse().", more="evidence:\n  - src/gone.py\n"))
    patient.write("MEMORY.md", "- [One](one.md) — deploys\n- [Gone](gone.md) — was there\n")
    found = figures(patient)
    assert found == Pollution(topics=4, duplicates=1, dead_pointers=1, stale=1, contradicted=2)
    assert found.lines() == [
        "Memory of this directory: 4 memories; 1 duplicate, 1 dead pointer, 1 stale, 2 contradicted (run `lamina doctor` for details)"
    ]

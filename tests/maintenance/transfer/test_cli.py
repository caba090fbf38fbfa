"""`lamina import` and `lamina export` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from lamina.cli.portable import export_command, import_command
from lamina.core.errors import InputError, SettingError
from lamina.memory.memory import Memory


def run(command: click.Command, *words: str) -> Result:
    return CliRunner().invoke(command, list(words))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    (directory / "mem0.json").write_text('{"results": [{"id": "1", "memory": "Uses Postgres"}, {"id": "2"}]}')
    return directory


@pytest.mark.spec("B13")
def test_an_import_is_reported_line_by_line_and_what_is_odd_on_stderr(project: Path) -> None:
    dry = run(import_command, "mem0.json", "--dry-run")
    assert dry.stdout == "created   Uses Postgres\nDry run, nothing was written. Memories (mem0): 1 created.\n"
    first = run(import_command, "mem0.json")
    assert (first.exit_code, first.stdout) == (0, "created   Uses Postgres\nMemories (mem0): 1 created.\n")
    assert first.stderr == "lamina: results[1] has no text under `memory` and was skipped\n"
    assert run(import_command, "mem0.json").stdout == "Memories (mem0): 1 unchanged.\n"


@pytest.mark.spec("B13")
@pytest.mark.parametrize("form", ["mem0", "mcp-memory", "claude-code"])
def test_what_was_written_here_comes_back_from_its_export_as_it_is(form: str, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.save("testing-db", type="feedback", description="Tests use a real database", body="Mocks once hid a migration.")
        memory.save("deploys", type="project", description="On Tuesdays", body="On Tuesdays.\n\nAt noon.")
    assert run(export_command, "out", "--format", form).exit_code == 0
    assert run(import_command, "out", "--format", form).stdout.endswith("2 unchanged.\n")


def test_a_conflict_names_the_way_out(project: Path) -> None:
    run(import_command, "mem0.json")
    (project / "a.md").write_text("---\nname: Uses Postgres\ndescription: No\n---\n\nMySQL.\n")
    found = run(import_command, "a.md")
    assert found.stdout.splitlines() == [
        "conflict  Uses Postgres (description and body differ)",
        "Memories (claude-code): 1 conflict. Conflicts were kept as they are; use --replace to overwrite them.",
    ]
    assert run(import_command, "a.md", "--replace").stdout.splitlines()[-1] == "Memories (claude-code): 1 replaced."


@pytest.mark.spec("B13")
def test_an_export_and_its_report_as_one_document(project: Path) -> None:
    run(import_command, "mem0.json")
    found = run(export_command, "memory.jsonl", "--format", "mcp-memory", "--json")
    assert json.loads(found.stdout) == {
        "format": "mcp-memory",
        "path": "memory.jsonl",
        "dry_run": False,
        "counts": {"created": 1},
        "items": [{"name": "memory.jsonl", "outcome": "created"}],
        "problems": [],
    }
    assert json.loads((project / "memory.jsonl").read_text())["name"] == "Uses Postgres"


def test_a_source_that_is_not_there_is_misuse(project: Path) -> None:
    found = run(import_command, "gone.json")
    assert isinstance(found.exception, InputError)
    assert run(export_command, "x", "--format", "yaml").exit_code == 2


@pytest.mark.spec("B13", "B5")
def test_memory_that_is_read_only_takes_no_import_not_even_a_dry_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(import_command, "mem0.json")
    monkeypatch.setenv("LAMINA_MEMORY_MODE", "read-only")
    assert isinstance(run(import_command, "mem0.json", "--dry-run").exception, SettingError)
    assert run(export_command, "m.json", "--format", "mem0").stdout == "created   m.json\nFiles (mem0): 1 created.\n"


@pytest.mark.spec("B13", "B5", "B6")
def test_an_import_is_marked_with_its_origin_and_waits_in_mode_confirm(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.md").write_text("---\nname: style\ndescription: Short answers\ntype: feedback\n---\n\nShort answers.\n")
    monkeypatch.setenv("LAMINA_MEMORY_MODE", "confirm")
    assert "proposed" in run(import_command, "a.md").stdout
    with Memory.open(project) as memory:
        assert memory.topics() == []
        [waiting] = memory.waiting()
        assert (waiting.type, waiting.origin) == ("feedback", "import claude-code")
    monkeypatch.delenv("LAMINA_MEMORY_MODE")
    assert run(import_command, "a.md").stdout.endswith("1 proposed. Run `lamina inbox` to review what was proposed.\n")
    run(import_command, "a.md", "--trust")
    with Memory.open(project) as memory:
        [topic] = memory.topics()
        assert topic.fields["origin"] == "import claude-code"
    run(export_command, "out", "--format", "claude-code")
    assert "origin" not in (project / "out" / "style.md").read_text()

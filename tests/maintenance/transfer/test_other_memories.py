"""Imports from claude-mem's database and basic-memory's notes, and from a file that the MCP memory server has saved."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.maintenance.transfer.test_cli import run

from lamina.cli.portable import export_command, import_command
from lamina.core.errors import InputError
from lamina.memory.memory import Memory

# The columns of claude-mem 13 that an import reads, and some that it does not.
SCHEMA = """
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
    type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, project TEXT NOT NULL, request TEXT);
"""
DATE = "2026-11-16T20:27:18.348Z"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "shop"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def observed(database: sqlite3.Connection, project: str, kind: str, title: str, **fields: str | None) -> None:
    row = {"memory_session_id": "s", "project": project, "type": kind, "title": title, "created_at": DATE}
    filled = {**row, "created_at_epoch": 1_794_860_838_348, **fields}
    names = ", ".join(filled)
    database.execute(f"INSERT INTO observations ({names}) VALUES ({', '.join('?' * len(filled))})", tuple(filled.values()))


@pytest.fixture
def claude_mem(tmp_path: Path) -> Path:
    home = tmp_path / ".claude-mem"
    home.mkdir()
    with closing(sqlite3.connect(home / "claude-mem.db", isolation_level=None)) as database:
        database.executescript(SCHEMA)
        decision = {"facts": '["One file", "No server"]', "narrative": "Redis lost writes.", "concepts": '["trade-off"]'}
        observed(database, "shop", "decision", "Use SQLite for sessions", subtitle="SQLite replaces Redis", **decision)
        observed(database, "shop", "discovery", "Deploys are on Tuesday", narrative="Deploys are on Tuesday.", facts="broken")
        observed(database, "shop", "bugfix", "Fix the retry loop")
        observed(database, "other", "decision", "Of another project")
        database.execute("INSERT INTO session_summaries (project, request) VALUES ('shop', 'Speed it up')")
    return home


@pytest.mark.spec("B13")
def test_observations_of_the_project_are_imported_once(project: Path, claude_mem: Path) -> None:
    before = {path.name: path.read_bytes() for path in claude_mem.iterdir()}
    dry = run(import_command, str(claude_mem), "--dry-run")
    assert dry.stdout.endswith("Dry run, nothing was written. Memories (claude-mem): 2 created.\n")
    with Memory.open(project) as memory:
        assert memory.topics() == []
    done = run(import_command, str(claude_mem / "claude-mem.db"))
    assert done.stderr.splitlines() == [
        "lamina: skipped 1 record of changes to the code (bugfix, feature, refactor, change)",
        "lamina: skipped 1 account of single sessions",
    ]
    with Memory.open(project) as memory:
        topics = {topic.name: topic for topic in memory.topics()}
    assert topics.keys() == {"Use SQLite for sessions", "Deploys are on Tuesday"}
    decision = topics["Use SQLite for sessions"]
    assert (decision.type, decision.description) == ("project", "SQLite replaces Redis")
    assert decision.body.startswith("Redis lost writes.\n\n- One file\n- No server\n")
    assert decision.fields["origin"] == "import claude-mem"
    assert int(decision.modified) == 1_794_860_838
    assert run(import_command, str(claude_mem)).stdout == "Memories (claude-mem): 2 unchanged.\n"
    assert {path.name: path.read_bytes() for path in claude_mem.iterdir()} == before


@pytest.mark.spec("B13")
def test_a_project_is_chosen_by_its_name(project: Path, claude_mem: Path, tmp_path: Path) -> None:
    assert run(import_command, str(claude_mem), "--project", "other").stdout.startswith("created   Of another project\n")
    unknown = run(import_command, str(claude_mem), "--project", "none").exception
    assert isinstance(unknown, InputError)
    assert "has no project 'none'; use --project with one of 'other', 'shop'" in str(unknown)
    (tmp_path / "AGENTS.md").write_text("# Tests\n\nUse Postgres.\n")
    single = run(import_command, str(tmp_path / "AGENTS.md"), "--project", "none").exception
    assert isinstance(single, InputError)
    assert "has no projects to choose from; leave out --project" in str(single)
    (tmp_path / "elsewhere").mkdir()
    several = run(import_command, str(claude_mem), "--cwd", str(tmp_path / "elsewhere")).exception
    assert isinstance(several, InputError)
    assert "contains several projects" in str(several)


@pytest.mark.spec("B13")
def test_a_database_that_is_open_elsewhere_is_read_and_others_are_refused(
    project: Path, claude_mem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(claude_mem / "claude-mem.db", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        observed(writer, "shop", "decision", "Written a moment ago")
        assert "Written a moment ago" in run(import_command, str(claude_mem), "--dry-run").stdout
    monkeypatch.setattr("lamina.maintenance.transfer.claude_mem.MOST_TEXT", 100)
    assert isinstance(run(import_command, str(claude_mem)).exception, InputError)
    other = project / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE observations (id INTEGER)")
        database.commit()
    (project / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    for path in (other, project / "broken.db"):
        found = run(import_command, str(path)).exception
        assert isinstance(found, InputError)
        assert str(path) in str(found)


@pytest.mark.spec("B13")
@pytest.mark.parametrize("epoch", [10**18, 2**63 - 1, -1, 0, 1e300, "soon", b"x"])
def test_an_observation_with_an_impossible_date_has_none(project: Path, claude_mem: Path, epoch: Any) -> None:
    with closing(sqlite3.connect(claude_mem / "claude-mem.db", isolation_level=None)) as writer:
        writer.execute("UPDATE observations SET created_at_epoch = ?", (epoch,))
    assert run(import_command, str(claude_mem)).stdout.endswith("Memories (claude-mem): 2 created.\n")
    assert run(import_command, str(claude_mem)).stdout == "Memories (claude-mem): 2 unchanged.\n"


@pytest.mark.spec("B13")
def test_a_damaged_database_is_refused(project: Path, claude_mem: Path) -> None:
    path = claude_mem / "claude-mem.db"
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE observations", b"CREATE TABL\xec observations"))
    found = run(import_command, str(claude_mem)).exception
    assert isinstance(found, InputError)
    assert "cannot be read as a database" in str(found)


NOTE = """---
title: 'Coffee: how'
type: note
permalink: main/notes/coffee
tags:
- coffee
---

# Coffee

## Observations
- [method] Pour over gives more clarity #brewing (by trial)

## Relations
- requires [[Grinder]]
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    directory = tmp_path / "basic-memory"
    (directory / "notes").mkdir(parents=True)
    (directory / "notes" / "Coffee- how.md").write_text(NOTE)
    (directory / "plain.md").write_text("Written by hand.")
    (directory / "empty.md").write_text("---\ntitle: x\npermalink: y\n---\n")
    home = tmp_path / ".basic-memory"
    home.mkdir()
    (home / "memory.db").write_bytes(b"SQLite format 3\0")
    places = {"main": {"path": str(directory), "mode": "local"}}
    (home / "config.json").write_text(json.dumps({"projects": places, "default_project": "main"}))
    return directory


@pytest.mark.spec("B13")
@pytest.mark.parametrize("source", ["basic-memory", ".basic-memory", ".basic-memory/config.json", ".basic-memory/memory.db"])
def test_notes_keep_their_text_and_are_imported_once(project: Path, notes: Path, tmp_path: Path, source: str) -> None:
    path = str(tmp_path / source)
    assert run(import_command, path, "--dry-run").stdout.endswith("Memories (basic-memory): 2 created.\n")
    assert run(import_command, path).stderr == "lamina: 'empty.md' is empty and was skipped\n"
    with Memory.open(project) as memory:
        topic = memory.get("Coffee: how")
        assert memory.get("plain") is not None
        assert topic is not None
        assert topic.description == "Pour over gives more clarity #brewing (by trial)"
        assert (
            "- [method] Pour over gives more clarity #brewing (by trial)\n\n## Relations\n- requires [[Grinder]]\n" in topic.body
        )
        assert '"permalink":"main/notes/coffee"' in topic.body
        memory.save("Coffee: how", description="How we brew", body=topic.body)
    (notes / "plain.md").touch()
    (notes / "notes" / "Coffee- how.md").touch()
    assert run(import_command, path).stdout == "Memories (basic-memory): 2 unchanged.\n"
    with (notes / "notes" / "Coffee- how.md").open("a") as file:
        file.write("- requires [[Kettle]]\n")
    assert "conflict  Coffee: how (body differs)" in run(import_command, path).stdout
    run(import_command, path, "--replace")
    with Memory.open(project) as memory:
        topic = memory.get("Coffee: how")
    assert topic is not None
    assert topic.description == "How we brew"
    assert "[[Kettle]]" in topic.body


@pytest.mark.spec("B13")
def test_one_note_is_known_by_its_front_matter(project: Path, notes: Path) -> None:
    assert run(import_command, str(notes / "notes" / "Coffee- how.md")).stdout.endswith("Memories (basic-memory): 1 created.\n")
    gone = json.loads((notes.parent / ".basic-memory" / "config.json").read_text())
    gone["projects"]["main"]["path"] = str(notes / "gone")
    (notes.parent / ".basic-memory" / "config.json").write_text(json.dumps(gone))
    found = run(import_command, str(notes.parent / ".basic-memory")).exception
    assert isinstance(found, InputError)
    assert "the notes of this project do not exist" in str(found)
    assert isinstance(run(import_command, str(notes), "--format", "claude-mem").exception, InputError)


@pytest.mark.spec("B13")
def test_a_graph_that_the_reference_server_has_saved_changes_nothing_and_keeps_descriptions(project: Path) -> None:
    with Memory.open(project) as memory:
        memory.save("testing-db", type="feedback", description="Real databases", body="Mocks hid a migration.\n\nTwice.")
        memory.save("ann", type="project", description="The auditor", body="- Leads the audit\n- → works on [[billing]]")
    run(export_command, "memory.jsonl", "--format", "mcp-memory")
    rows = [json.loads(line) for line in (project / "memory.jsonl").read_text().splitlines()]
    assert any("lamina" in row for row in rows)
    kept = [{key: value for key, value in row.items() if key != "lamina"} for row in rows]
    (project / "memory.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert run(import_command, "memory.jsonl").stdout == "Memories (mcp-memory): 2 unchanged.\n"
    [ann] = [row for row in kept if row.get("name") == "ann"]
    ann["observations"].append("Likes tea")
    (project / "memory.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert run(import_command, "memory.jsonl", "--replace").stdout.splitlines()[0] == "replaced  ann (body differs)"
    with Memory.open(project) as memory:
        topic = memory.get("ann")
    assert topic is not None
    assert topic.description == "The auditor"
    assert "Likes tea" in topic.body

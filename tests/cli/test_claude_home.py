"""A home in the layout of Claude Code: its memories, sessions and settings work in place and stay unchanged."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from tests.session.foreign import foreign_transcript

from lamina.disk.paths.project import slug
from lamina.layers.l5_extract.answer import AnsweredMemory, write_answered
from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective
from lamina.layers.l6_dream.offline import DailyLog, distil_logs
from lamina.memory.store.scopes import MemoryLocation
from lamina.memory.store.topic import read_topic
from lamina.providers import SHORT_NAMES, read_spec
from lamina.testing import MessagesServer
from lamina.tools.tool import FileChange

from .running import here, misused, one_line

TOPIC = """---
name: deploys
description: Deploys go out on Tuesdays only
metadata:
  node_type: memory
  type: project
---

Deploys go out on Tuesdays only, because everybody is there then.
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work, home = tmp_path / "work", tmp_path / ".claude"
    memory = home / "projects" / slug(work) / "memory"
    memory.mkdir(parents=True)
    work.mkdir()
    (memory / "deploys.md").write_text(TOPIC, "utf-8")
    (memory / "MEMORY.md").write_text("- [Deploys](deploys.md) — Tuesdays only\n", "utf-8")
    (home / "settings.json").write_text(json.dumps({"model": "sonnet", "permissions": {"allow": ["Bash(ls:*)"]}}), "utf-8")
    foreign_transcript(memory.parent, cwd=str(work))
    monkeypatch.chdir(work)
    monkeypatch.setenv("LAMINA_HOME", str(home))
    return home


@pytest.mark.spec("S10")
def test_memories_and_sessions_are_read_where_they_lie_and_nothing_is_changed(home: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    [row] = json.loads(here("memory", "list", "--json").stdout)
    assert (row["name"], row["type"]) == ("deploys", "project")
    [session] = json.loads(here("sessions", "list", "--json").stdout)
    assert session["source"] == "claude-code"
    answer = here("-p", "When do deploys go out?", "--model", "offline")
    assert "Tuesdays" in answer.stdout
    went_on = here("--resume", session["session_id"], "-p", "And now?", "--model", "offline")
    assert went_on.returncode == 0
    assert "continues as" in went_on.stderr
    assert {path: path.read_bytes() for path in before} == before


def _files(home: Path) -> list[str]:
    [memory] = home.glob("projects/*/memory")
    return sorted(path.name for path in memory.glob("*.md") if path.name != "MEMORY.md")


@pytest.mark.spec("S12")
def test_new_memories_get_file_names_as_claude_code_gives_them(home: Path) -> None:
    assert here("memory", "save", "testing db", "--type", "feedback", "--description", "Use a real one", "Real.").returncode == 0
    assert here("-p", "Remember: the staging server is called hermes", "--model", "offline").returncode == 0
    [named] = [file for file in _files(home) if file not in ("deploys.md", "feedback_testing-db.md")]
    assert named.startswith(("project_", "reference_"))
    [memory] = home.glob("projects/*/memory")
    index = (memory / "MEMORY.md").read_text("utf-8")
    assert all(f"]({file})" in index for file in _files(home))
    assert "Real." in here("memory", "show", "testing db").stdout
    names = {row["name"] for row in json.loads(here("memory", "list", "--json").stdout)}
    assert {"deploys", "testing db"} < names
    assert not any("_" in name for name in names), "a name is the subject alone"
    # An update and a second "Remember" find the memory by its name; a memory of Claude Code keeps its file.
    before = _files(home)
    assert here("memory", "save", "testing db", "--type", "feedback", "--description", "Use a real one", "New.").returncode == 0
    assert here("memory", "save", "deploys", "--type", "project", "--description", "Tuesdays", "Tuesdays.").returncode == 0
    assert here("-p", "Remember: the staging server is called hermes", "--model", "offline").returncode == 0
    assert _files(home) == before


@pytest.mark.spec("S12")
def test_a_dream_and_an_extraction_name_new_files_alike(home: Path) -> None:
    [memory] = home.glob("projects/*/memory")
    work = f"{memory}/.dreams/d1/work"
    made = distil_logs([DailyLog(date(2026, 3, 2), "- 09:00 I prefer tabs over spaces\n")], [], work)
    assert [file.split("_")[0] for file in made] == [read_topic(file, text, 0).type for file, text in made.items()] != []
    assert not any("_" in read_topic(file, text, 0).name for file, text in made.items())
    [plan] = plan_memories(ExtractDirective(1, "2026-03-02", str(memory), "", ""), [UserText("I prefer tabs over spaces.", "")])
    assert [plan.path] == [f"{memory}/{file}" for file in made]
    assert "_" not in plan.note.name
    answered = AnsweredMemory("tabs.md", "feedback", "Use tabs", "Use tabs.")
    changes = list[FileChange]()
    write_answered([answered], MemoryLocation(memory, None, "default"), {}, changes.append)
    assert [change.path.name for change in changes] == ["feedback_tabs.md"]
    assert b"name: tabs\n" in changes[0].data


def test_a_model_may_be_named_as_claude_code_names_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = here("-p", "hello")
    assert misused(refused)
    assert "ANTHROPIC_API_KEY" in refused.stderr
    with MessagesServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert here("-p", "hello").returncode == 0
        assert server.requests[0].body["model"] == "claude-sonnet-5-5"
    assert {read_spec(name).provider for name in [*SHORT_NAMES, "Sonnet", "opus[1m]"]} == {"anthropic"}


def test_a_file_that_is_no_transcript_is_never_written_to(home: Path) -> None:
    for name, text in (("notes.jsonl", "hello\nworld\n"), ("data.jsonl", '{"a": 1}\n{"b": 2}\n')):
        path = Path(name).absolute()
        path.write_text(text, "utf-8")
        for arguments in (("--resume", str(path), "-p", "hello", "--model", "offline"), ("sessions", "pin", str(path), "x")):
            assert misused(done := here(*arguments)), done
            assert " transcript: " in done.stderr
        assert misused(here("stats", str(path)))
        assert path.read_text("utf-8") == text
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["data.jsonl", "notes.jsonl"]


def test_a_home_that_is_a_file_is_left_alone_by_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = tmp_path / "strange"
    strange.write_text("mine", "utf-8")
    strange.chmod(0o644)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_HOME", str(strange))
    here("doctor", "--fix")
    assert strange.stat().st_mode & 0o777 == 0o644
    assert one_line(here("memory", "save", "a", "--type", "user", "--description", "d", "b").stderr)


def test_a_home_that_is_no_absolute_path_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("LAMINA_HOME", "relative")
    done = here("-p", "hello", "--model", "offline")
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert "LAMINA_HOME (environment): 'relative' is not an absolute path" in done.stderr

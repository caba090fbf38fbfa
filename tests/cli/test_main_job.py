"""The main use case: state a fact in one process and ask for it in another, without an API key or a model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .running import here, lamina


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def files() -> list[str]:
    [memory] = (Path(os.environ["LAMINA_HOME"]) / "projects").glob("*/memory")
    return sorted(path.name for path in memory.iterdir() if path.suffix == ".md")


@pytest.mark.exhaustive
@pytest.mark.spec("S6", "S7", "O1")
def test_what_is_said_once_is_known_in_the_next_session(project: Path) -> None:
    told = "Remember: integration tests run against a real database, because mocks once hid a broken migration"
    first = lamina("-p", told, cwd=project)
    assert "I will remember that" in said(first)
    assert "lamina: Saved memory: integration-tests-real-database." in first.stderr
    assert files() == ["MEMORY.md", "integration-tests-real-database.md"]
    assert "a real database" in said(lamina("-p", "What do our integration tests run against?", cwd=project))
    assert "Mocks once hid a broken migration" in said(
        lamina("-p", "Why do the integration tests use a real database?", cwd=project)
    )
    again = said(lamina("-p", told, cwd=project))
    assert "I will remember that" in again
    [row] = json.loads(said(lamina("memory", "list", "--json", cwd=project)))
    assert row["type"] == "feedback"
    [change] = json.loads(said(lamina("memory", "log", "--json", cwd=project)))
    assert (change["who"], change["why"], change["action"]) == ("agent", "the user asked for it", "save")
    assert change["session_id"]
    assert change["message"]


@pytest.mark.spec("S7")
def test_what_is_forgotten_is_gone_in_the_same_turn(project: Path) -> None:
    said(lamina("-p", "Remember: integration tests run against a real database", cwd=project))
    gone = here("-p", "Forget what you know about the integration tests", cwd=project)
    assert said(gone).startswith("Moved the memory")
    assert "lamina: Removed memory:" in gone.stderr
    assert files() == ["MEMORY.md"]
    assert said(here("memory", "index", cwd=project)) == ""
    assert "I found nothing" in said(here("-p", "What do our integration tests run against?", cwd=project))
    said(here("memory", "restore", "integration-tests-real-database", cwd=project))
    assert "a real database" in said(here("-p", "What do our integration tests run against?", cwd=project))
    said(here("-p", "forget integration-tests-real-database", cwd=project))
    assert files() == ["MEMORY.md"]


@pytest.mark.spec("B15", "S7")
def test_the_same_in_chinese(project: Path) -> None:
    said(lamina("-p", "记住：集成测试使用真实数据库，因为模拟对象曾经掩盖了损坏的迁移", cwd=project))
    assert "真实数据库" in said(here("-p", "我们的集成测试使用什么？", cwd=project))
    assert "掩盖了损坏的迁移" in said(here("-p", "集成测试为什么使用真实数据库？", cwd=project))
    [row] = json.loads(said(here("memory", "search", "测试用什么数据库", "--json", cwd=project)))
    assert row["name"] == "集成测试使用真实数据库"
    assert said(here("-p", "忘记关于集成测试的一切", cwd=project)).startswith("已把记忆")
    assert files() == ["MEMORY.md"]


@pytest.mark.spec("F3")
def test_with_memory_off_it_says_that_nothing_is_kept(project: Path) -> None:
    done = lamina("-p", "Remember: tests use a real database", cwd=project, LAMINA_DISABLE_MEMORY="1")
    assert said(done).startswith("Noted in this conversation only")
    assert "Saved" not in done.stderr


@pytest.mark.spec("B5")
def test_in_confirm_mode_it_waits_in_the_inbox(project: Path) -> None:
    home = Path(os.environ["LAMINA_HOME"])
    home.mkdir(parents=True)
    (home / "settings.json").write_text(json.dumps({"lamina": {"memoryMode": {"private": "confirm"}}}))
    done = lamina("-p", "Remember: tests use a real database", cwd=project)
    assert "That waits for your approval. Run `lamina inbox accept " in said(done)
    [proposal] = json.loads(said(here("inbox", "--json", cwd=project)))
    said(here("inbox", "accept", proposal["id"], cwd=project))
    assert "a real database" in said(here("-p", "What do tests use?", cwd=project))

"""`lamina sessions undo` and `pin` on a session that Claude Code wrote: one figure everywhere, one project, each answer once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.session.compacted_elsewhere import ForeignSession
from tests.session.plain import Session
from tests.session.play import compact
from tests.session.words import answer

from lamina.core.settings import Settings
from lamina.disk.paths.project import slug
from lamina.history import sessions as sources
from lamina.history.money import money_by_day
from lamina.history.window_series import window_series

from .running import here


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    """A session of another project with two compactions, whose last question has no answer."""
    recorded = ForeignSession("/their/project").ask("a", "b", "c").compact("first").ask("d", "e").compact("second").ask("f", "g")
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    return recorded.write(projects / slug("/their/project"), rows=slice(None, -1)).stem


def asked(*arguments: str, cwd: Path) -> Any:
    done = here(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.spec("B1")
def test_the_sentence_the_context_and_the_page_tell_one_figure_after_each_undo(theirs: str, tmp_path: Path) -> None:
    session, told = theirs, []
    for _ in range(2):
        undone = asked("sessions", "undo", session, cwd=tmp_path)
        session = undone["session_id"]
        path = asked("context", session, cwd=tmp_path)["path"]
        told.append(undone["tokens"])
        assert asked("context", session, cwd=tmp_path)["tokens"] == undone["tokens"]
        assert asked("sessions", "show", session, cwd=tmp_path)["tokens"] == undone["tokens"]
        decisions = window_series(sources.read(path), Settings()).decisions
        assert decisions[-1].tokens_after == undone["tokens"]
        assert {decision.by for decision in decisions if decision.kind == "compact"} == {"Claude Code"}
    assert told == sorted(told)
    assert here("sessions", "undo", session, cwd=tmp_path).returncode == 1, "there is nothing left to undo"


def test_the_figure_of_an_own_session_does_not_depend_on_the_model_that_the_command_opens_it_with(tmp_path: Path) -> None:
    with Session("anthropic:claude-sonnet-4-5", cwd=tmp_path, home=Path(os.environ["LAMINA_HOME"])) as session:
        for number in range(3):
            session.add_user(f"question {number}")
            session.before_call()
            session.after_call(answer(f"m{number}", "yes", usage={"input_tokens": 5_000 + number, "output_tokens": 5}))
        boundary = compact(session, "all of it")
        session.add_user("and now?")
    undone = asked("sessions", "undo", session.id, cwd=tmp_path)
    assert undone["undone"] == boundary
    assert undone["tokens"] == asked("context", session.id, cwd=tmp_path)["tokens"]
    assert 5_007 < undone["tokens"] < 5_020


def test_each_answer_counts_once_and_the_copy_belongs_to_its_project(theirs: str, tmp_path: Path) -> None:
    before = asked("stats", "--all", cwd=tmp_path)["total"]
    spent = sum(row.usd for row in money_by_day(Settings()))
    undone = asked("sessions", "undo", theirs, cwd=tmp_path)["session_id"]
    pinned = asked("sessions", "pin", theirs, "keep this", cwd=tmp_path)["session_id"]
    after = asked("stats", "--all", cwd=tmp_path)["total"]
    assert {name: after[name] for name in ("calls", "turns", "usage", "cost_usd", "compactions")} == {
        name: before[name] for name in ("calls", "turns", "usage", "cost_usd", "compactions")
    }
    assert sum(row.usd for row in money_by_day(Settings())) == pytest.approx(spent)
    assert asked("stats", "--all", "--source", "lamina", cwd=tmp_path)["total"]["calls"] == 0, "Claude Code asked for them"
    assert asked("stats", "--all", "--limit", "2", cwd=tmp_path)["total"]["calls"] == 0, "the copies are the newest sessions"
    listed = {row["session_id"]: row for row in asked("sessions", "list", "--all", cwd=tmp_path)}
    assert {listed[name]["cwd"] for name in (theirs, undone, pinned)} == {"/their/project"}
    assert {Path(listed[name]["path"]).parent.name for name in (undone, pinned)} == {slug("/their/project")}
    assert asked("sessions", "list", cwd=tmp_path) == []


@pytest.mark.parametrize("shorten", [slice(None), slice(8)], ids=["id", "prefix"])
def test_a_chat_resumes_a_listed_session_of_another_agent_by_its_id(theirs: str, tmp_path: Path, shorten: slice) -> None:
    done = here("--resume", theirs[shorten], "-p", "hello", "--model", "offline", cwd=tmp_path)
    assert done.returncode == 0, done
    assert f"Session {theirs} continues as " in done.stderr
    missing = here("--resume", "99999999", "-p", "hello", "--model", "offline", cwd=tmp_path)
    assert missing.returncode == 2
    assert "Session '99999999' not found" in missing.stderr

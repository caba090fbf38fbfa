"""`lamina sessions search`: the last resort for what memory does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.session.session import Session

from .running import here, misused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for said in ("The error was E4711 in the importer.", "错误发生在导入器里。"):
        with Agent.open("offline", cwd=tmp_path) as agent:
            agent.run(said)
    return tmp_path


@pytest.mark.spec("S10")
@pytest.mark.parametrize(
    ("term", "expected"), [("e4711", "The error was E4711 in the importer."), ("导入器", "错误发生在导入器里。")]
)
def test_what_was_said_is_found_with_its_session(project: Path, term: str, expected: str) -> None:
    [hit] = json.loads(here("sessions", "search", term, "--json", cwd=project).stdout)
    assert set(hit) == {"session_id", "source", "turn", "path", "time", "role", "text"}
    assert (hit["role"], hit["text"]) == ("user", expected)
    shown = here("sessions", "search", term, cwd=project).stdout
    assert shown.startswith(hit["session_id"][:8] + "  ")
    assert shown.endswith(f"  turn 1  user\n   {expected}\n")
    assert here("sessions", "show", hit["session_id"][:8], cwd=project).returncode == 0


def test_a_term_of_many_words_is_not_repeated_in_full(project: Path) -> None:
    assert len(here("sessions", "search", "word " * 20_000, cwd=project).stderr) < 500


def test_nothing_found_is_said_and_is_no_failure(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    for where in (project, tmp_path_factory.mktemp("elsewhere")):
        done = here("sessions", "search", "unheard of", cwd=where)
        assert (done.returncode, done.stdout) == (0, "")
        assert "No message with" in done.stderr
    assert misused(here("sessions", "search", " ", cwd=project))


def test_a_tool_result_is_not_shown_as_the_words_of_the_user(project: Path) -> None:
    with Session("offline", cwd=project) as session:
        session.add_user("Look at the log.")
        call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "log"}}
        session.after_call({"id": "m", "role": "assistant", "content": [call], "stop_reason": "tool_use"})
        session.add_tool_result("t1", "E815: the disk is full")
    [hit] = json.loads(here("sessions", "search", "E815", "--json", cwd=project).stdout)
    assert hit["role"] == "tool"
    assert "  tool result\n   E815" in here("sessions", "search", "E815", cwd=project).stdout


def test_the_input_of_a_tool_call_is_not_shown_as_an_answer(project: Path) -> None:
    with Session("offline", cwd=project) as session:
        session.add_user("Look at the log.")
        call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/var/log/e816.txt"}}
        said = {"type": "text", "text": "I read about E817."}
        session.after_call({"id": "m", "role": "assistant", "content": [said, call], "stop_reason": "tool_use"})
    for term, role, label in (("e816", "call", "tool call"), ("E817", "assistant", "assistant")):
        [hit] = json.loads(here("sessions", "search", term, "--json", cwd=project).stdout)
        assert hit["role"] == role
        assert f"  {label}\n" in here("sessions", "search", term, cwd=project).stdout


@pytest.mark.parametrize("command", [("sessions", "search"), ("search",), ("search", "--exact")])
def test_several_words_need_no_quotation_marks(project: Path, command: tuple[str, ...]) -> None:
    assert "in the importer" in here(*command, "in", "the", "importer", cwd=project).stdout

"""Notes of an agent: the fork edits one file and may do nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.session.hosts import lend

from lamina.agent.agent import Agent
from lamina.conversation.isolate import take_job_results
from lamina.fork.fork import directive_in
from lamina.layers.l3_notes import offline as local
from lamina.session.base import working
from lamina.testing import Answer, MessagesServer, Received
from lamina.testing.script import Step, make_answer

LONG = "The quick brown fox jumps over the lazy dog. " * 600


def notes_file(agent: Agent) -> Path:
    assert agent.session.path is not None
    return agent.session.path.with_suffix("") / "session-memory" / "summary.md"


def settle(agent: Agent) -> None:
    with working(agent.session) as c:
        assert c.background.wait("notes", 120)
        take_job_results(c)


def forks(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if directive_in(received.body) is not None]


def answering(server: MessagesServer, notes: Callable[[Received], Step]) -> None:
    server.answer_with(lambda received: notes(received) if directive_in(received.body) is not None else None)


@pytest.mark.spec("N4", "N1")
def test_the_fork_edits_the_notes_in_one_call_and_reads_the_conversation_from_the_cache(
    opened: Callable[..., Agent], messages_server: MessagesServer
) -> None:
    answering(messages_server, lambda received: Answer(blocks=tuple(local.answer(received.body))))
    agent = opened(policy="classic")  # with others, notes do not pay for a model that costs money
    seen: list[tuple[str, dict[str, object]]] = []
    lend(agent.session, observer=lambda name, data: seen.append((name, data)))
    # One turn alone passes the threshold of the first update: a second would start another update if the first had ended by then.
    agent.run("Mend the parser. " + LONG)
    settle(agent)
    (asked,) = forks(messages_server)
    told = directive_in(asked.body)
    assert told is not None
    assert "Edit tool" in told
    assert "Mend the parser." in notes_file(agent).read_text()
    assert notes_file(agent).read_text().startswith("# Session Title\n_")
    (fork,) = [data for name, data in seen if name == "fork"]
    assert fork["hit_rate"] == pytest.approx(1.0, abs=0.2)
    assert fork["denied"] == 0


@pytest.mark.spec("N4")
def test_whatever_else_the_fork_calls_is_denied_and_nothing_is_changed(
    opened: Callable[..., Agent], messages_server: MessagesServer, project: Path
) -> None:
    def hostile(received: Received) -> Step:
        return make_answer(
            tool_use=[
                ("Bash", {"command": "touch hacked"}),
                ("Write", {"file_path": str(project / "hacked"), "content": "x"}),
                ("Edit", {"file_path": str(project / "calc.py"), "old_string": "return", "new_string": "raise"}),
                ("Read", {"file_path": str(project / "calc.py")}),
            ]
        )

    answering(messages_server, hostile)
    agent = opened(policy="classic")
    seen: list[tuple[str, dict[str, object]]] = []
    lend(agent.session, observer=lambda name, data: seen.append((name, data)))
    before = (project / "calc.py").read_text()
    agent.run("Mend the parser. " + LONG * 2)
    settle(agent)
    assert len(forks(messages_server)) == 2, "what went wrong is said once"
    assert [data["denied"] for name, data in seen if name == "fork"] == [4, 4]
    assert [name for name, _ in seen if name in ("notes", "notes_failed")] == ["notes_failed"]
    assert (project / "calc.py").read_text() == before
    assert not (project / "hacked").exists()
    assert not notes_file(agent).exists()


@pytest.mark.spec("N1")
def test_an_edit_of_a_heading_is_refused_and_the_old_notes_stay(
    opened: Callable[..., Agent], messages_server: MessagesServer
) -> None:
    answering(messages_server, lambda received: Answer(blocks=tuple(local.answer(received.body))))
    agent = opened(policy="classic")
    agent.run("Mend the parser. " + LONG * 2)
    settle(agent)
    before = notes_file(agent).read_text()

    def altering(received: Received) -> Step:
        given = {"file_path": str(notes_file(agent)), "old_string": "# Worklog", "new_string": "# Diary"}
        return make_answer(tool_use=[("Edit", given)])

    answering(messages_server, altering)
    agent.run("Go on. " + LONG * 2)
    settle(agent)
    assert len(forks(messages_server)) == 3
    assert "Keep the headings" in str(directive_in(forks(messages_server)[-1].body))
    assert notes_file(agent).read_text() == before


@pytest.mark.spec("O1")
def test_offline_the_local_function_edits_too(opened: Callable[..., Agent]) -> None:
    from lamina.session.provider import offline

    agent = opened(provider=offline())
    agent.run("Mend the parser. " + LONG * 3)
    settle(agent)
    assert "Mend the parser." in notes_file(agent).read_text()

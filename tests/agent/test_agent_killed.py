"""kill -9 in the middle of a turn, at every kind of point: the resumed session has lost nothing, and every request is valid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, Pipe, accepted, answers, contexts, results, texts

pytestmark = pytest.mark.exhaustive

Open = Callable[..., Agent]
PROGRAM = Path(__file__).with_name("victim_program.py")


class Victim:
    def __init__(self, server: MessagesServer, project: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), server.url, str(project), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ),
        )

    def reaches_its_point(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"here\n"

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait(PATIENCE) == -signal.SIGKILL

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def victim(messages_server: MessagesServer, project: Path) -> Iterator[Callable[..., Victim]]:
    victims: list[Victim] = []

    def start(point: str, *resumed: str) -> Victim:
        victims.append(Victim(messages_server, project, point, *resumed))
        return victims[-1]

    yield start
    for one in victims:
        one.close()


def goes_on(opened: Open, server: MessagesServer) -> Received:
    """Resume the session and return the next turn's request. The prefix rule is checked against what the dead process had sent."""
    agent = opened(resume="killed")
    assert agent.session.id == "killed", "the dead hold no lock"
    server.reply(text="Here I am.")
    assert agent.run("Go on.").text == "Here I am."
    assert contexts(agent)[0] == "instructions"
    assert contexts(agent).count("instructions") == 1
    last = accepted(server)[-1]
    said = [words for message in last.messages for words in texts(message)]
    assert "Do the work." in said
    assert said[-1] == "Go on."
    return last


@pytest.mark.spec("Z4", "Z6")
def test_while_the_model_streams(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    messages_server.reply(text="Words that never arrive.", tool_use=("Bash", {"command": "touch made"}))
    dead = victim("text_delta")
    dead.reaches_its_point()
    dead.kill()
    last = goes_on(opened, messages_server)
    assert [message["role"] for message in last.messages] == ["user"]
    assert not (project / "made").exists()


def test_while_the_server_says_nothing(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    arrived, never = threading.Event(), threading.Event()

    def seen(_: Received) -> bool:
        arrived.set()
        return True

    messages_server.reply(text="Too late.", when=seen, delay=never)
    dead = victim("never")
    assert arrived.wait(PATIENCE)
    dead.kill()
    never.set()
    goes_on(opened, messages_server)


@pytest.mark.spec("Z4", "Z6", "C11")
def test_when_the_answer_is_kept_and_its_first_call_begins(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    messages_server.reply(
        text="So:", tool_use=[("Bash", {"command": "echo one >> log"}, "b1"), ("Read", {"file_path": "calc.py"}, "r1")]
    )
    dead = victim("tool_call")
    dead.reaches_its_point()
    dead.kill()
    last = goes_on(opened, messages_server)
    assert list(results(last)) == ["b1", "r1"]
    assert all(words.startswith("!No result") for words in results(last).values())
    assert not (project / "log").exists()


def test_when_a_call_is_done_and_its_result_is_not_kept_yet(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    messages_server.reply(
        tool_use=[("Bash", {"command": "echo one >> log"}, "b1"), ("Bash", {"command": "echo two >> log"}, "b2")]
    )
    dead = victim("tool_result")
    dead.reaches_its_point()
    dead.kill()
    last = goes_on(opened, messages_server)
    assert (project / "log").read_text() == "one\n", "what was done is not done again"
    assert all(words.startswith("!No result") for words in results(last).values())


@pytest.mark.spec("Z4", "Z6", "C11")
def test_while_a_command_runs(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    pids: list[int] = []
    pipe = Pipe(project / "ready", lambda words: pids.append(int(words)))
    messages_server.reply(text="First I look.", tool_use=("Read", {"file_path": "calc.py"}, "r1"))
    messages_server.reply(text="Then I wait.", tool_use=("Bash", {"command": "echo $$ > ready; exec sleep 1000"}, "b1"))
    dead = victim("never")
    pipe.join()
    dead.kill()
    os.kill(pids[0], signal.SIGKILL)
    last = goes_on(opened, messages_server)
    assert list(results(last)) == ["b1"]
    said = [words for message in last.messages for words in texts(message)]
    assert "First I look." in said
    assert any(words.startswith("1\tdef add") for words in said), "the round before is whole"
    assert answers(opened(resume="killed"))[:2] == [("tool_use", ["text"]), ("tool_use", ["tool_use"])]


def test_between_two_rounds(opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]) -> None:
    """The result is kept and the next request was sent: after a resume, the same request is sent again."""
    arrived, never = threading.Event(), threading.Event()

    def seen(_: Received) -> bool:
        arrived.set()
        return True

    messages_server.reply(tool_use=("Bash", {"command": "echo one >> log; cat log"}, "b1"))
    messages_server.reply(text="Too late.", when=seen, delay=never)
    dead = victim("never")
    assert arrived.wait(PATIENCE)
    dead.kill()
    never.set()
    agent = opened(resume="killed")
    messages_server.reply(text="Here I am.")
    assert agent.go_on().text == "Here I am."
    _, lost, again = accepted(messages_server)
    assert again.body == {**lost.body, "stream": again.body["stream"]}
    assert results(again) == {"b1": "one"}


def test_a_session_that_is_killed_again_and_again(
    opened: Open, messages_server: MessagesServer, project: Path, victim: Callable[..., Victim]
) -> None:
    for number, point in enumerate(("tool_call", "tool_result", "text_delta")):
        messages_server.reply(text="So:", tool_use=("Bash", {"command": f"echo {number} >> log"}, f"b{number}"))
        dead = victim(point, *(["killed"] if number else []))
        dead.reaches_its_point()
        dead.kill()
    last = goes_on(opened, messages_server)
    assert (project / "log").read_text() == "1\n"
    said = [words for message in last.messages for words in texts(message)]
    assert said.count("Do the work.") == 3
    assert sum(words.startswith("No result") for words in said) == 2

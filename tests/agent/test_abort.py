"""Stopping a turn at any point, by abort() from another thread or by Ctrl-C: everything so far is kept, and the next turn works."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fork.test_tool_runner import Custom

from lamina.agent.agent import Agent
from lamina.core.errors import Aborted, StreamBroken
from lamina.core.settings import Settings
from lamina.fork.tool_runner import PermissionAnswer
from lamina.providers.retry import Waits
from lamina.testing import MessagesServer, Received
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import ToolOutput

from .agent_helpers import PATIENCE, Pipe, accepted, answers, contexts, press_ctrl_c, records, reminders, results, texts

Open = Callable[..., Agent]
Stop = Callable[[Agent], None]


def by_abort(agent: Agent) -> None:
    thread = threading.Thread(target=agent.abort)
    thread.start()
    thread.join()


def by_ctrl_c(_: Agent) -> None:
    press_ctrl_c()


@pytest.fixture(params=[by_abort, by_ctrl_c], ids=["abort", "ctrl-c"])
def stop(request: pytest.FixtureRequest) -> Stop:
    found: Stop = request.param
    return found


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """An event that lets a waiting server continue; set at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


class Stopper:
    """A listener that stops the agent at the first event of a kind, from another thread, and waits until it has stopped."""

    def __init__(self, stop: Stop, at: Callable[[dict[str, Any]], bool]) -> None:
        self.agent: Agent | None = None
        self._stop = stop
        self._at = at
        self.done = False

    def __call__(self, event: dict[str, Any]) -> None:
        if not self.done and self._at(event):
            assert self.agent is not None
            self.done = True
            self._stop(self.agent)


def delta_of(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event.get("delta", {}).get(kind, "") != ""


def answers_next(agent: Agent, server: MessagesServer) -> Received:
    """Run the next turn, and return its request."""
    server.reply(text="Here I am.")
    assert agent.run("And now?").text == "Here I am."
    *_, last = accepted(server)
    assert "And now?" in "".join(texts(last.messages[-1]))
    return last


# While the model answers


@pytest.mark.spec("Z6")
def test_while_the_model_writes_text(opened: Open, messages_server: MessagesServer, stop: Stop) -> None:
    messages_server.reply(text="One two three four five six seven eight nine ten.", tool_use=("Bash", {"command": "touch made"}))
    listener = Stopper(stop, delta_of("text"))
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("Count.")
    [(reason, kinds)] = answers(agent)
    assert (reason, kinds) == (None, ["text"])
    last = answers_next(agent, messages_server)
    [said] = [texts(message)[0] for message in last.messages if message["role"] == "assistant"]
    assert "One two three four five six seven eight nine ten.".startswith(said)
    assert 0 < len(said) < 40, "the first words, and not all"


def test_while_the_model_writes_a_call(opened: Open, messages_server: MessagesServer, project: Path, stop: Stop) -> None:
    messages_server.reply(text="So:", tool_use=("Bash", {"command": "touch made made made made made"}, "b1"))
    listener = Stopper(stop, delta_of("partial_json"))
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("Make it.")
    assert answers(agent) == [(None, ["text"]), (None, ["tool_use"])]
    last = answers_next(agent, messages_server)
    assert results(last)["b1"].startswith("!No result: the call was interrupted")
    assert not (project / "made").exists()


def test_when_the_answer_is_whole_and_its_calls_have_not_begun(
    opened: Open, messages_server: MessagesServer, project: Path, stop: Stop
) -> None:
    messages_server.reply(
        text="So:", tool_use=[("Bash", {"command": "touch made"}, "b1"), ("Read", {"file_path": "calc.py"}, "r1")]
    )
    listener = Stopper(stop, lambda event: event["type"] == "message_stop")
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("Make it.")
    assert not (project / "made").exists()
    last = answers_next(agent, messages_server)
    assert list(results(last)) == ["b1", "r1"]
    assert all(words.startswith("!") for words in results(last).values())


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_while_the_server_says_nothing(
    opened: Open, messages_server: MessagesServer, stop: Stop, release: threading.Event, wire: str
) -> None:
    """The request has arrived, but no answer comes. Nobody waits for it."""
    agents: list[Agent] = []

    def arrived(_: Received) -> bool:
        threading.Thread(target=stop, args=(agents[0],)).start()
        return True

    messages_server.reply(text="Too late.", tool_use=("Bash", {"command": "touch late"}), when=arrived, delay=release)
    agents.append(opened(wire=wire))
    with pytest.raises(Aborted):
        agents[0].run("Are you there?")
    assert not release.is_set()
    assert answers(agents[0]) == []
    release.set()
    messages_server.reply(text="Here I am.")
    assert agents[0].run("And now?").text == "Here I am."
    assert "Too late." not in str(accepted(messages_server)[-1].messages)


def test_between_two_tries(opened: Open, messages_server: MessagesServer, stop: Stop, release: threading.Event) -> None:
    agents: list[Agent] = []

    def pause(_: float) -> None:
        threading.Thread(target=stop, args=(agents[0],)).start()
        release.wait(PATIENCE)
        raise StreamBroken("nobody waits for this any more")

    messages_server.fail(529)
    agents.append(opened(waits=Waits(sleep=pause)))
    with pytest.raises(Aborted):
        agents[0].run("Hello?")
    assert not release.is_set()
    answers_next(agents[0], messages_server)


# While tools run


def test_while_a_command_runs(opened: Open, messages_server: MessagesServer, project: Path, stop: Stop) -> None:
    agent = opened()
    pipe = Pipe(project / "ready", lambda _: stop(agent))
    messages_server.reply(
        tool_use=[
            ("Bash", {"command": "echo first; touch first"}, "b1"),
            ("Bash", {"command": "echo begun; echo > ready; exec sleep 1000"}, "b2"),
            ("Bash", {"command": "touch third"}, "b3"),
        ]
    )
    with pytest.raises(Aborted):
        agent.run("Run them.")
    pipe.join()
    assert (project / "first").exists()
    assert not (project / "third").exists()
    last = answers_next(agent, messages_server)
    assert results(last) == {
        "b1": "first",
        "b2": "!Stopped by the user.\nbegun",
        "b3": "!The call was stopped before it finished.",
    }


def test_while_a_person_is_asked(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    def ask(*_: object) -> PermissionAnswer:
        raise KeyboardInterrupt

    agent = opened(mode="ask", ask=ask)
    messages_server.reply(tool_use=("Bash", {"command": "touch made"}, "b1"))
    with pytest.raises(Aborted):
        agent.run("Make it.")
    assert not (project / "made").exists()
    assert results(answers_next(agent, messages_server))["b1"].startswith("!")


def test_what_was_read_before_the_stop_still_brings_its_instructions(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "CLAUDE.md").write_text("Here we use tabs.\n")
    (project / "sub" / "a.py").write_text("a\n")
    agents: list[Agent] = []

    def halt(_: Any) -> ToolOutput:
        agents[0].abort()
        return ToolOutput("stopping")

    agents.append(opened(tools=[*builtin_tools(), Custom(name="Halt", act=halt, read_only=False)]))
    messages_server.reply(tool_use=[("Read", {"file_path": "sub/a.py"}, "r1"), ("Halt", {}, "h1")])
    with pytest.raises(Aborted):
        agents[0].run("Read, then stop.")
    last = answers_next(agents[0], messages_server)
    assert any("Here we use tabs." in words for words in reminders(last))


# While a thread starts: Ctrl-C reaches the main thread between the thread's first step and the return of start()


class Starts:
    """Start threads of this name as usual; once `begun` is set, raise Ctrl-C, but only the first time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.begun = threading.Event()
        self.threads: list[threading.Thread] = []
        start = threading.Thread.start

        def interrupted(thread: threading.Thread) -> None:
            start(thread)
            if thread.name.startswith(name):
                self.threads.append(thread)
                if len(self.threads) == 1:
                    assert self.begun.wait(PATIENCE)
                    raise KeyboardInterrupt

        monkeypatch.setattr(threading.Thread, "start", interrupted)


def test_a_command_that_has_begun_before_its_threads_start_returned_is_stopped_and_not_run_again(
    opened: Open, messages_server: MessagesServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = opened()
    starts = Starts(monkeypatch, "ThreadPoolExecutor")
    pipe = Pipe(project / "ready", lambda _: starts.begun.set())
    messages_server.reply(
        tool_use=[
            ("Bash", {"command": "echo begun >> log; echo begun; echo > ready; exec sleep 1000"}, "b1"),
            ("Bash", {"command": "touch second"}, "b2"),
        ]
    )
    with pytest.raises(Aborted):
        agent.run("Run them.")
    pipe.join()
    assert (project / "log").read_text() == "begun\n"
    assert not (project / "second").exists()
    assert results(answers_next(agent, messages_server)) == {
        "b1": "!Stopped by the user.\nbegun",
        "b2": "!The call was stopped before it finished.",
    }


def test_a_call_to_the_model_that_has_begun_before_its_threads_start_returned_is_left(
    opened: Open, messages_server: MessagesServer, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = opened()
    starts = Starts(monkeypatch, "lamina-ask")

    def arrived(_: Received) -> bool:
        starts.begun.set()
        return True

    messages_server.reply(text="Too late.", when=arrived, delay=release)
    with pytest.raises(Aborted):
        agent.run("Are you there?")
    release.set()
    starts.threads[0].join(PATIENCE)
    assert not starts.threads[0].is_alive(), "it waits for somebody to hear what it was told"
    assert "Too late." not in str(answers_next(agent, messages_server).messages)


def test_a_hook_that_has_begun_before_its_threads_start_returned_is_ended(
    opened: Open, messages_server: MessagesServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "if [ -p ready ]; then echo $$ > pid; exec 3>ready; rm ready; echo >&3; exec 3>&-; exec sleep 1000; fi"
    agent = opened(settings=Settings(hooks={"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}))
    starts = Starts(monkeypatch, "ThreadPoolExecutor")
    pipe = Pipe(project / "ready", lambda _: starts.begun.set())
    with pytest.raises(Aborted):
        agent.run("Hello.")
    pipe.join()
    answers_next(agent, messages_server)
    starts.threads[0].join(PATIENCE)
    assert not starts.threads[0].is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)


# While hooks run


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
def test_while_a_hook_runs(opened: Open, messages_server: MessagesServer, project: Path, stop: Stop, event: str) -> None:
    """A hook that ends only when stopped. The second time it is quick."""
    command = "if [ -p ready ]; then exec 3>ready; rm ready; echo >&3; exec 3>&-; exec sleep 1000; fi"
    agent = opened(settings=Settings(hooks={event: [{"hooks": [{"type": "command", "command": command}]}]}))
    pipe = Pipe(project / "ready", lambda _: stop(agent))
    with pytest.raises(Aborted):
        agent.run("Hello.")
    pipe.join()
    assert len(messages_server.requests) == (0 if event == "UserPromptSubmit" else 1)
    answers_next(agent, messages_server)


# Afterwards


def test_an_abort_before_a_turn_is_forgotten(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    agent.abort()
    answers_next(agent, messages_server)


def test_a_stopped_answer_can_be_gone_on_with(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(text="One two three four five six seven eight nine ten.")
    listener = Stopper(by_abort, delta_of("text"))
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("Count.")
    messages_server.reply(text="… ten.")
    assert agent.go_on().text == "… ten."
    *_, last = accepted(messages_server)
    assert [message["role"] for message in last.messages] == ["user", "assistant", "user"]
    assert "cut off" in texts(last.messages[-1])[0]
    assert contexts(agent) == ["instructions", "note"]


def test_stopped_calls_can_be_gone_on_with(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(tool_use=("Bash", {"command": "ls"}, "b1"))
    listener = Stopper(by_abort, lambda event: event["type"] == "message_stop")
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("List.")
    messages_server.reply(text="I see.")
    assert agent.go_on().text == "I see."
    assert contexts(agent) == ["instructions"]


def test_ten_stops_in_a_row_leave_a_conversation_that_can_be_resumed(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    points: list[Callable[[dict[str, Any]], bool]] = [
        lambda event: event["type"] == "message_start",
        lambda event: event["type"] == "content_block_start",
        delta_of("text"),
        delta_of("partial_json"),
        lambda event: event["type"] == "message_stop",
    ]
    listener = Stopper(by_abort, lambda _: False)
    agent = listener.agent = opened(on_event=listener, session_id="often")
    for number in range(10):
        messages_server.reply(text="Some words to be cut.", tool_use=("Bash", {"command": f"touch made-{number}"}))
        listener._at, listener.done = points[number % len(points)], False
        with pytest.raises(Aborted):
            agent.run(f"Go {number}.")
    assert list(project.glob("made-*")) == []
    agent.close()
    again = opened(resume="often")
    last = answers_next(again, messages_server)
    said = "\n".join(words for message in last.messages for words in texts(message))
    assert all(f"Go {number}." in said for number in range(10))


def test_a_listener_that_fails_ends_the_turn_and_what_was_heard_is_kept(opened: Open, messages_server: MessagesServer) -> None:
    def heard(event: dict[str, Any]) -> None:
        if event.get("delta", {}).get("text"):
            raise BrokenPipeError("nobody reads this")

    messages_server.reply(text="One two three four five six.")
    agent = opened(on_event=heard)
    with pytest.raises(BrokenPipeError):
        agent.run("Count.")
    assert answers(agent) == [(None, ["text"])]
    agent.on_event = None
    answers_next(agent, messages_server)


def test_a_stopped_turn_is_on_the_disk(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(text="One two three four.")
    listener = Stopper(by_abort, delta_of("text"))
    agent = listener.agent = opened(on_event=listener)
    with pytest.raises(Aborted):
        agent.run("Count.")
    kept = records(agent)
    agent.close()
    assert records(agent) == kept

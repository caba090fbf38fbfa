"""Whole turns: real files, real requests, and the same conversation on the wire, on the disk and after a resume."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fork.test_tool_runner import Custom
from tests.session.foreign import foreign_transcript

from lamina.agent.agent import Agent
from lamina.core.blocks import ToolUse
from lamina.core.errors import InputError, NothingToSend, SessionClosed, WindowFull
from lamina.core.settings import Settings
from lamina.fork.tool_runner import PermissionAnswer
from lamina.testing import MessagesServer
from lamina.tools.permissions.request import AskUser
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import ToolOutput

from .agent_helpers import accepted, answers, canonical, records, reminders, results, texts

Open = Callable[..., Agent]
RUN_TESTS = f"{sys.executable} -B test_calc.py"


def script_a_repair(server: MessagesServer, project: Path) -> None:
    """Read two files, run the test, fix the bug, run it again, and report."""
    calc, test = str(project / "calc.py"), str(project / "test_calc.py")
    server.reply(text="Let me look.", tool_use=[("Read", {"file_path": calc}, "r1"), ("Read", {"file_path": test}, "r2")])
    server.reply(tool_use=("Bash", {"command": RUN_TESTS}, "b1"))
    server.reply(tool_use=("Edit", {"file_path": calc, "old_string": "a - b", "new_string": "a + b"}, "e1"))
    server.reply(tool_use=("Bash", {"command": RUN_TESTS}, "b2"))
    server.reply(text="add() subtracted; now it adds.")


@pytest.mark.spec("K1", "X8")
def test_a_task_from_start_to_end(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    script_a_repair(messages_server, project)
    agent = opened()
    answer = agent.run("The test fails. Mend it.")
    assert (answer.text, answer.ended, answer.rounds) == ("add() subtracted; now it adds.", "answered", 5)
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    first, second, third, fourth, fifth = accepted(messages_server)
    assert list(results(second)) == ["r1", "r2"]
    assert results(second)["r1"].startswith("1\tdef add")
    assert "AssertionError: 0" in results(third)["b1"]
    assert results(third)["b1"].startswith("!Exit code 1")
    assert results(fourth)["e1"].startswith("Changed ")
    assert results(fifth)["b2"] == "all is well"
    for before, after in zip(messages_server.requests, messages_server.requests[1:], strict=False):
        assert before.use is not None
        assert after.use is not None
        assert after.use.read == before.use.total, "the whole of the request before came from the cache"
    assert [canonical(first.body[name]) for name in ("system", "tools")] == [
        canonical(fifth.body[name]) for name in ("system", "tools")
    ]
    assert agent.session.status.cache_breaks == 0
    assert agent.session.status.cache_misses == ()


def test_the_same_task_on_the_other_wire(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    script_a_repair(messages_server, project)
    answer = opened(wire="chat").run("The test fails. Mend it.")
    assert (answer.text, answer.ended, answer.rounds) == ("add() subtracted; now it adds.", "answered", 5)
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    *_, last = accepted(messages_server)
    said = [(message["role"], message.get("tool_call_id")) for message in last.messages if message["role"] == "tool"]
    assert said == [("tool", "r1"), ("tool", "r2"), ("tool", "b1"), ("tool", "e1"), ("tool", "b2")]


def test_several_turns_go_on_from_each_other(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    agent = opened()
    for number in range(4):
        messages_server.reply(tool_use=("Glob", {"pattern": "*.py"}))
        messages_server.reply(text=f"Answer {number}.")
        assert agent.run(f"Question {number}?").text == f"Answer {number}."
    *_, last = accepted(messages_server)
    assert len(messages_server.requests) == 8
    said = "\n".join(words for message in last.messages for words in texts(message))
    assert all(f"Question {number}?" in said for number in range(4))
    assert all(f"Answer {number}." in said for number in range(3))


def test_a_prompt_may_hold_more_than_text(opened: Open, messages_server: MessagesServer) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
    opened().run([{"type": "text", "text": "What is this?"}, image])
    [request] = accepted(messages_server)
    assert [block["type"] for block in request.messages[0]["content"]] == ["text", "text", "image"]


def test_the_listener_hears_words_calls_and_results_in_their_order(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(text="Let me look.", tool_use=("Read", {"file_path": "calc.py"}, "r1"))
    messages_server.reply(text="Seen.")
    heard: list[dict[str, Any]] = []
    opened(on_event=heard.append).run("Look.")
    kinds = [event["type"] for event in heard if event["type"] in ("message_start", "tool_call", "tool_result", "message_stop")]
    assert kinds == ["message_start", "message_stop", "tool_call", "tool_result", "message_start", "message_stop"]
    called = next(event for event in heard if event["type"] == "tool_call")
    ended = next(event for event in heard if event["type"] == "tool_result")
    assert (called["id"], called["name"], called["input"]) == ("r1", "Read", {"file_path": "calc.py"})
    assert (ended["id"], ended["is_error"], ended["facts"]["lines"]) == ("r1", False, 2)
    streamed = [event["delta"]["text"] for event in heard if event.get("delta", {}).get("type") == "text_delta"]
    assert "".join(streamed) == "Let me look.Seen."


# Bounds


def test_rounds_are_bounded_and_the_turn_can_go_on(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.answer_with(lambda _: None)
    for number in range(3):
        messages_server.reply(tool_use=("Glob", {"pattern": "*"}, f"g{number}"))
    agent = opened()
    agent.rounds = 3
    answer = agent.run("Look.")
    assert (answer.ended, answer.rounds) == ("rounds", 3)
    assert len(messages_server.requests) == 3
    messages_server.reply(text="Enough.")
    assert agent.go_on().text == "Enough."
    *_, last = accepted(messages_server)
    assert list(results(last)) == ["g2"]


@pytest.mark.spec("T7")
def test_a_full_window_takes_no_more_and_says_what_to_do(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    (project / "long.txt").write_text("some words that fill a window\n" * 1_900)
    messages_server.reply(tool_use=("Read", {"file_path": "long.txt"}, "r1"))
    agent = opened(window=20_000, settings=Settings(spill=False, auto_compact=False))
    with pytest.raises(WindowFull, match="/compact"):
        agent.run("Read the long one.")
    assert len(messages_server.requests) == 1
    assert agent.session.status.open_calls == (), "the result of the call is kept"
    with pytest.raises(WindowFull):
        agent.run("And now?")


def test_an_empty_prompt_changes_nothing(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    before = len(records(agent))
    with pytest.raises(InputError):
        agent.run("   ")
    assert len(records(agent)) == before


def test_there_is_nothing_to_go_on_with_after_a_whole_answer(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    agent.run("Hello.")
    with pytest.raises(NothingToSend):
        agent.go_on()
    agent.close()
    with pytest.raises(SessionClosed):
        agent.run("Are you there?")


# Permission


def test_a_person_is_asked_and_always_means_from_now_on(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    asked: list[str] = []

    def ask(call: ToolUse, question: AskUser) -> PermissionAnswer:
        asked.append(call.input["command"])
        assert question.suggestion is not None
        return "always"

    agent = opened(mode="ask", ask=ask)
    for number in range(3):
        messages_server.reply(tool_use=("Bash", {"command": "touch made"}, f"b{number}"))
    messages_server.reply(text="Done.")
    agent.run("Make it.")
    assert asked == ["touch made"]
    assert (project / "made").exists()


def test_a_no_reaches_the_model_and_nothing_happens(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.reply(tool_use=("Bash", {"command": "touch made"}, "b1"))
    messages_server.reply(text="As you wish.")
    assert opened(mode="ask", ask=lambda *_: "no").run("Make it.").text == "As you wish."
    assert "Denied by the user" in results(messages_server.requests[1])["b1"]
    assert not (project / "made").exists()


def test_directories_of_the_settings_belong_to_the_project(
    opened: Open, messages_server: MessagesServer, tmp_path: Path, project: Path
) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "notes.txt").write_text("kept beside\n")
    settings = Settings(permissions={"additionalDirectories": ["../beside", "~nobody-of-that-name/x"]})
    messages_server.reply(tool_use=("Read", {"file_path": "../beside/notes.txt"}, "r1"))
    messages_server.reply(tool_use=("Read", {"file_path": str(tmp_path / "elsewhere.txt")}, "r2"))
    (tmp_path / "elsewhere.txt").write_text("not yours\n")
    opened(mode="ask", settings=settings).run("Read them.")
    assert "kept beside" in results(messages_server.requests[1])["r1"]
    assert results(messages_server.requests[2])["r2"].startswith("!Not allowed")


# Custom tools


def test_a_custom_tool_stands_in_the_request_and_is_called(opened: Open, messages_server: MessagesServer) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    weather = Custom(name="Weather", act=lambda given: ToolOutput(f"Rain in {given['city']}."), schema=schema)
    messages_server.reply(tool_use=("Weather", {"city": "Bergen"}, "w1"))
    messages_server.reply(text="Take a coat.")
    opened(mode="ask", tools=[*builtin_tools(), weather]).run("And outside?")
    assert messages_server.requests[0].body["tools"][-1]["name"] == "Weather"
    assert results(messages_server.requests[1])["w1"] == "Rain in Bergen."


def test_a_read_of_ones_own_need_not_say_which_file(opened: Open, messages_server: MessagesServer) -> None:
    own = Custom(name="Read", act=lambda given: ToolOutput("from a database"))
    messages_server.reply(tool_use=("Read", {"file_path": "x"}, "r1"))
    messages_server.reply(text="Seen.")
    assert opened(mode="ask", tools=[own]).run("Read it.").text == "Seen."
    assert results(messages_server.requests[1])["r1"] == "from a database"


# Resume


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_resumed_session_sends_what_the_running_one_would_have_sent(
    opened: Open, make_messages_server: Callable[[], MessagesServer], project: Path, wire: str
) -> None:
    """The same script twice: once without interruption, once closed and resumed before each turn."""
    sent: list[list[str]] = []
    for again in (False, True):
        server = make_messages_server()
        (project / "new.txt").unlink(missing_ok=True)
        agent = opened(server, wire=wire, session_id=f"s{again}")
        for turn in range(3):
            server.reply(text="Looking.", tool_use=[("Read", {"file_path": "calc.py"}), ("Glob", {"pattern": "*.py"})])
            server.reply(thinking="Hm." if wire == "messages" else None, text=f"Turn {turn}.")
            if again and turn:
                agent.close()
                agent = opened(server, wire=wire, resume="sTrue")
            assert agent.run(f"Go {turn}.").text == f"Turn {turn}."
        sent.append([canonical(received.body) for received in accepted(server)])
    assert sent[0] == sent[1]


def test_a_resumed_session_has_its_tools_and_prompt_even_if_it_never_sent_anything(
    opened: Open, messages_server: MessagesServer
) -> None:
    opened(session_id="early").close()
    again = opened(resume="early")
    again.run("Hello.")
    [request] = accepted(messages_server)
    assert [tool["name"] for tool in request.body["tools"]] == [
        *(tool.name for tool in builtin_tools()),
        "PastSearch",
        "SendMessage",
        "Agent",
    ]
    assert request.body["system"]
    assert len(reminders(request)) == 1


def test_a_transcript_of_another_program_gets_the_prompt_and_the_instructions_of_an_agent(
    opened: Open, messages_server: MessagesServer, tmp_path: Path
) -> None:
    opened(resume=foreign_transcript(tmp_path / "foreign")).run("Go on.")
    [request] = accepted(messages_server)
    assert [tool["name"] for tool in request.body["tools"]] == [
        *(tool.name for tool in builtin_tools()),
        "PastSearch",
        "SendMessage",
        "Agent",
    ]
    assert any("two spaces after a full stop" in words for words in reminders(request))


def test_an_agent_that_cannot_begin_lets_go_of_its_transcript(opened: Open, project: Path) -> None:
    def broken(path: Path) -> bool:
        raise RuntimeError("approvals are on strike")

    (project / "CLAUDE.md").write_text("@../outside.md\n")
    (project.parent / "outside.md").write_text("outside\n")
    with pytest.raises(RuntimeError):
        opened(session_id="one", approved=broken)
    again = opened(resume="one")
    assert again.session.id == "one", "nobody else holds it"


def test_what_the_model_said_is_in_the_transcript_block_by_block(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(thinking="Which file?", text="Let me look.", tool_use=("Read", {"file_path": "calc.py"}))
    messages_server.reply(text="Seen.")
    agent = opened()
    agent.run("Look.")
    assert answers(agent) == [
        ("tool_use", ["thinking"]),
        ("tool_use", ["text"]),
        ("tool_use", ["tool_use"]),
        ("end_turn", ["text"]),
    ]

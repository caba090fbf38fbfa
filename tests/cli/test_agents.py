"""Agents on the command line: the list of types, the output of `-p`, and the display in the chat."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.cli.output import StdoutSink
from lamina.cli.signals import StopRequest
from lamina.cli.terminal.calls import describe_call, describe_result
from lamina.cli.terminal.screen import Screen
from lamina.cli.terminal.turn_display import TurnDisplay, describe_event, describe_work
from lamina.disk.home.mailbox import Mailbox, MailboxAddress
from lamina.disk.session_files.agent_states import write_states
from lamina.layers.l7_agents.messages import read_message
from lamina.layers.l7_agents.report import AgentState
from lamina.session.session import Session
from lamina.testing import MessagesServer

from .running import LAMINA, PATIENCE, here, misused
from .test_chat_tools import documented, name_of

MODEL = ("--model", "anthropic:claude-sonnet-5-5")
TYPE = "---\nname: reviewer\ndescription: Reads changes.\ntools: Read\nmodel: haiku\n---\nYou review changes.\n"
CALL = {"description": "find the bug", "prompt": "Find it.", "subagent_type": "reviewer"}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agents = tmp_path / "work" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "reviewer.md").write_text(TYPE)
    (agents / "broken.md").write_text("no front matter")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return tmp_path / "work"


@pytest.mark.spec("A4")
def test_the_types_are_listed_and_a_file_that_is_none_is_said() -> None:
    done = here("agents", "--json")
    assert done.returncode == 0
    ours, reviewer = json.loads(done.stdout)
    assert (ours["name"], ours["source"], ours["tools"]) == ("general-purpose", "built-in", None)
    assert (reviewer["name"], reviewer["source"], reviewer["tools"], reviewer["model"]) == (
        "reviewer",
        "project",
        ["Read"],
        "haiku",
    )
    assert done.stderr.count("\n") == 1
    assert "broken.md is not a valid agent type: it has no front matter" in done.stderr
    shown = here("agents")
    assert shown.returncode == 0
    assert "reviewer" in shown.stdout.splitlines()[2]


def test_what_an_agent_does_is_printed_as_documented_events(
    messages_server: MessagesServer, work: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    (work / "app.py").write_text("1 / 0\n")

    def of_agent(received: Any) -> bool:
        return bool(received.session.startswith("agent-"))

    messages_server.reply(tool_use=("Agent", CALL, "a1"))
    messages_server.reply(tool_use=("Read", {"file_path": "app.py"}), when=of_agent)
    messages_server.reply(text="It divides by nothing.", when=of_agent)
    messages_server.reply(text="There it is.", when=lambda received: not of_agent(received))
    done = here("-p", "find the bug", *MODEL, "--output-format", "stream-json")
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    fields = documented(root)
    for event in printed:
        assert set(event) == fields[name_of(event)], name_of(event)
    [progress] = [event for event in printed if name_of(event) == "system/agent"]
    assert (progress["parent_tool_use_id"], progress["description"], progress["calls"]) == ("a1", "find the bug", 1)
    followed = [event for event in printed if event.get("parent_tool_use_id") == "a1" and event["type"] != "system"]
    assert [event["type"] for event in followed] == ["assistant", "user", "assistant"], "what it said and got back"
    assert followed[-1]["message"]["content"][0]["text"] == "It divides by nothing."
    assert printed[-1]["num_turns"] == 2, "its answers are no turns of the conversation"
    told = [event["name"] for event in printed if name_of(event) == "system/layer"]
    assert told.index("agent_started") < told.index("agent_ended")
    assert printed[-1]["result"] == "There it is."
    assert {received.body["model"] for received in messages_server.requests if of_agent(received)} == {"claude-haiku-5-5"}


@pytest.mark.parametrize("kind", [None, "reviewer"])
@pytest.mark.parametrize("background", [False, True])
def test_what_agents_cost_is_part_of_the_result_and_of_stats(
    messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, kind: str | None, background: bool
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    monkeypatch.setenv("LAMINA_NOTES", "0")

    def of_agent(received: Any) -> bool:
        return bool(received.session.startswith("agent-") if kind else received.fork)

    call = {"description": "find the bug", "prompt": "Find it.", "run_in_background": background}
    answered = threading.Event()

    def late(received: Any) -> bool:
        return of_agent(received)

    messages_server.reply(tool_use=("Agent", call | ({"subagent_type": kind} if kind else {}), "a1"))
    own: dict[str, Any] = {} if kind else {"fork": "agent"}
    held: dict[str, Any] = {"delay": answered} if background else {}
    messages_server.reply(text="It divides by nothing.", when=late, output_tokens=1000, **own, **held)

    def last(received: Any) -> bool:
        answered.set()  # a background agent ends after the turn's last answer was requested
        return not of_agent(received)

    messages_server.reply(text="There it is.", when=last)
    done = here("-p", "find the bug", *MODEL, "--output-format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    parts = result["cost_breakdown"]
    purpose = "subagent" if kind else "agent"
    assert parts[purpose]["calls"] == 1
    assert parts[purpose]["usage"]["output_tokens"] == 1000
    assert parts[purpose]["cost_usd"] > 0
    assert result["total_cost_usd"] == pytest.approx(sum(part["cost_usd"] for part in parts.values()))
    assert result["usage"]["output_tokens"] == sum(part["usage"]["output_tokens"] for part in parts.values())
    assert parts["conversation"]["calls"] == result["num_turns"] == 2
    stats = json.loads(here("stats", result["session_id"], "--json").stdout)
    assert stats["agents"] == stats["side"][purpose] == parts[purpose]
    assert stats["total_cost_usd"] == pytest.approx(result["total_cost_usd"])
    text = here("stats", result["session_id"]).stdout
    assert f"  agents: 1 {'subagent' if kind else 'fork'}; " in text
    assert f"  total cost: ${result['total_cost_usd']:.4f}" in text


def test_a_call_of_an_agent_is_told_in_one_line() -> None:
    assert describe_call("Agent", CALL, Path("/work")) == "Agent find the bug (reviewer)"
    facts = {"agent": "ab", "calls": 3, "seconds": 12.4, "tokens": 1234}
    assert describe_result("Agent", CALL, "report", facts, is_error=False) == "3 calls, 12 s, 1,234 tokens"
    assert describe_result("Agent", CALL, "", {"agent": "ab", "background": True}, is_error=False) == "in the background as ab"
    assert describe_result("Agent", CALL, "The agent failed: no.", facts, is_error=True) == "The agent failed: no."


def test_how_far_an_agent_is_stands_in_the_passing_line(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")  # nothing is drawn; what would be is asked for
    waited: list[str] = []
    screen = Screen(StdoutSink(StopRequest()))
    monkeypatch.setattr(screen, "wait", waited.append)
    telling = TurnDisplay(screen, work)
    telling.event({"type": "tool_call", "id": "a1", "name": "Agent", "input": CALL})
    progress = {
        "type": "agent",
        "id": "x",
        "call": "a1",
        "description": "find the bug",
        "background": False,
        "calls": 2,
        "seconds": 1.0,
    }
    telling.event(progress)
    assert waited[-1] == "Agent find the bug (reviewer), 2 calls"
    telling.event({**progress, "background": True, "calls": 3})
    telling.event({**progress, "call": "gone", "calls": 4})
    assert waited[-1] == "Agent find the bug (reviewer), 2 calls", "background agents are in the status line"


def test_the_end_of_a_background_agent_is_a_line_of_its_own() -> None:
    ended = {"background": True, "description": "find the bug", "status": "failed", "why": "no key"}
    assert describe_event("agent_ended", ended) == "Background agent (find the bug): failed: no key."
    assert describe_event("agent_ended", {**ended, "background": False}) is None


def test_what_happens_beside_an_answer_waits_for_its_last_word(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    telling = TurnDisplay(Screen(StdoutSink(StopRequest())), work)
    ended = {"background": True, "description": "find the bug", "status": "done"}
    beside = {"type": "layer", "name": "agent_ended", "data": ended}
    told = "Background agent (find the bug): done.\n"
    for words in ("It is ", "at it."):
        telling.event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}})
        telling.event(beside)
    telling.event({"type": "answer"})
    telling.event(beside)
    assert capsys.readouterr().out == f"It is at it.\n{told}{told}{told}"


@pytest.mark.spec("A5", "B5")
def test_the_memory_of_a_type_is_seen_and_its_proposals_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = tmp_path / "home" / "agents"
    types.mkdir(parents=True)
    (types / "own.md").write_text("---\nname: own\ndescription: d\nmemory: user\n---\nYou are mine.\n")
    saved = here("memory", "--agent", "own", "save", "edges", "Look at the edges.", "--type", "feedback")
    assert saved.returncode == 0, saved.stderr
    assert (tmp_path / "home" / "agent-memory" / "own" / "edges.md").exists()
    assert "edges" in here("memory", "--agent", "own", "list").stdout
    assert "edges" not in here("memory", "list").stdout
    from lamina.core.settings import Settings
    from lamina.memory.memory import open_agent_memory
    from lamina.memory.store.contract import ChangeReason
    from lamina.memory.store.scopes import AgentMemoryLocation

    place = AgentMemoryLocation(tmp_path / "home" / "agent-memory" / "own", "user")
    careful = Settings(memory_mode={"agentUser": "confirm"})
    with open_agent_memory(place, settings=careful, cwd=tmp_path) as memory:
        memory.save("waits", body="For a yes.", why=ChangeReason("agent"))
        [waiting] = memory.waiting()
    assert waiting.id in here("inbox", "--agent", "own").stdout
    assert here("inbox", "--agent", "own", "accept", waiting.id).returncode == 0
    assert (place.path / "waits.md").exists()
    for name, words in (("nobody", "Unknown agent type 'nobody'"), ("reviewer", "has no memory")):
        wrong = here("memory", "--agent", name, "list")
        assert wrong.returncode == 2
        assert words in wrong.stderr


@pytest.mark.spec("A7")
def test_agents_at_work_are_listed_with_what_they_do_while_their_session_is_open(tmp_path: Path, work: Path) -> None:
    running = {"id": "1a2b3c4d", "type": "fork", "description": "find the bug", "status": "running", "calls": 4}
    running |= {"since": "2026-11-15T10:00:00+00:00", "background": True}
    with Session("offline", cwd=work, home=tmp_path / "home") as session:
        assert session.path is not None
        doing = {"summary": "Reading add in calc.py", "doing": "Reading add in calc.py"}
        directory = session.path.with_suffix("")
        write_states(directory, [{**running, **doing}, {**running, "id": "ended", "status": "done"}])
        write_states(directory / "subagents" / "agent-1a2b3c4d", [{**running, "id": "5e6f", "name": "deep", "since": 7}])
        shown = here("agents")
        assert "1a2b3c4d" in shown.stdout
        assert "Reading add in calc.py" in shown.stdout
        assert "2026-11-15" in shown.stdout
        assert "deep" in shown.stdout
        assert "ended" not in shown.stdout
        row, deep = json.loads(here("agents", "--running", "--json").stdout)
        assert (row["id"], row["summary"], row["session_id"]) == ("1a2b3c4d", "Reading add in calc.py", session.id)
        assert (row["status"], row["since"], row["doing"]) == ("running", running["since"], doing["doing"])
        assert (deep["name"], deep["session_id"]) == ("deep", session.id)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        assert json.loads(here("agents", "--running", "--json", cwd=elsewhere).stdout) == []
        assert len(json.loads(here("agents", "--running", "--all", "--json", cwd=elsewhere).stdout)) == 2
    gone = here("agents", "--running")
    assert gone.stdout == ""
    assert gone.stderr == "No agents are running here. Use --all to include all directories.\n"
    assert json.loads(here("agents", "--running", "--json").stdout) == []
    assert misused(here("agents", "--all"))


@pytest.mark.exhaustive
@pytest.mark.spec("A7")
@pytest.mark.parametrize("kind", [None, "reviewer"])
def test_an_agent_that_is_waited_for_is_listed_too_and_a_killed_session_is_not(
    messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, work: Path, kind: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    (work / "app.py").write_text("1 / 0\n")
    asked, release = threading.Event(), threading.Event()

    def of_agent(received: Any) -> bool:
        return bool(received.session.startswith("agent-") if kind else received.fork)

    def again(received: Any) -> bool:
        if of_agent(received):
            asked.set()
        return of_agent(received)

    own: dict[str, Any] = {} if kind else {"fork": "agent"}
    call = {"description": "find the bug", "prompt": "Find it.", "name": "finder"} | ({"subagent_type": kind} if kind else {})
    messages_server.reply(tool_use=("Agent", call, "a1"))
    messages_server.reply(tool_use=("Read", {"file_path": "app.py"}), when=of_agent, **own)
    messages_server.reply(text="Never said.", when=again, delay=release, **own)
    process = subprocess.Popen([*LAMINA, "-p", "find the bug", *MODEL], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        assert asked.wait(PATIENCE)
        [row] = json.loads(here("agents", "--running", "--json").stdout)
        assert (row["name"], row["type"], row["status"], row["background"]) == ("finder", kind or "fork", "running", False)
        assert row["doing"] == "Reading the file app.py"
        assert abs(datetime.fromisoformat(row["since"]).timestamp() - time.time()) < PATIENCE
    finally:
        process.kill()
        process.wait(PATIENCE)
        release.set()
    assert json.loads(here("agents", "--running", "--json").stdout) == []


@pytest.mark.spec("A6")
def test_a_message_from_the_command_line_lies_in_the_mailbox(tmp_path: Path) -> None:
    nobody = here("agents", "send", "alice", "Hello.")
    assert nobody.returncode == 2
    assert "No mailbox 'alice' in team default. The team has no mailboxes yet" in nobody.stderr
    box = Mailbox.open(tmp_path / "home", MailboxAddress("alice", "build"))
    assert box is not None
    done = here(
        "agents", "send", "alice@build", "Stop before the release.\udcff", "--json"
    )  # half a character, as a shell hands it on
    assert done.returncode == 0
    [(name, line)] = box.take(tmp_path / "t.jsonl").lines
    letter = read_message(line)
    assert letter is not None
    assert (letter.sender, letter.text) == ("command-line", "Stop before the release.?")
    assert json.loads(done.stdout) == {"message": name, "to": "alice", "team": "build"}
    assert here("agents", "send", "../x", "Hello.").returncode == 2
    box.close()


@pytest.mark.spec("A7")
def test_the_status_line_says_what_an_agent_is_doing() -> None:
    agent = AgentState(id="1a2b", type="fork", description="find the bug", background=True)
    jobs = ("notes", agent.name, "agent_summary")
    assert describe_work(jobs, [agent]) == ["notes", "agent: find the bug"]
    assert describe_work(jobs, [replace(agent, summary="Reading add in calc.py")]) == ["notes", "agent: Reading add in calc.py"]
    assert describe_work((), [agent]) == []

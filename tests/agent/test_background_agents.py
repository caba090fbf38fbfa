"""Background agents: lost with their session, reports too long to show, notices, and what programs see that follow them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.session.compacting import quiet, summarising

from lamina.agent.agent_run import FORK_ROUNDS
from lamina.cli.agents import find_running_agents
from lamina.core.errors import InputError
from lamina.session.base import working
from lamina.testing import MessagesServer, Received

from .agent_helpers import lay_out, reminders, results, texts
from .subagent_helpers import (
    Open,
    agent_call,
    events,
    for_parent,
    for_subagent,
    in_background,
    last_of_parent,
    of_fork,
    wait_for,
    well_formed,
)

PROGRAM = Path(__file__).with_name("victim_program.py")
LONG = "The quick brown fox jumps over the lazy dog. " * 4_000
KINDS = [None, "general-purpose"]


def own(kind: str | None) -> dict[str, Any]:
    return {"when": for_subagent} if kind else {"fork": "agent"}


# Lost


def killed(server: MessagesServer, project: Path) -> threading.Event:
    """A session whose background agent is working when the process is killed. Set the event to release its answer."""
    release, asked = threading.Event(), threading.Event()

    def seen(received: Received) -> bool:
        asked.set()
        return True

    server.reply(tool_use=in_background("look"))
    server.reply(text="Too late.", fork="agent", when=seen, delay=release)
    server.reply(text="It runs.", when=for_parent, delay=asked)
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), server.url, str(project), "turn"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return release


@pytest.mark.exhaustive
@pytest.mark.spec("A4", "Z4")
def test_a_background_agent_that_a_crash_took_is_reported_as_lost_once(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    killed(messages_server, project).set()
    home = Path(os.environ["LAMINA_HOME"])
    for _ in range(2):  # as long as the model was not told, the person is
        agent = opened(resume="killed")
        [notice] = [each for each in agent.session.notices if "lost" in each]
        assert "(task 1) was lost when the session that started it ended." in notice
        assert find_running_agents(project, home) == [], "though the session lives again"
        agent.close()
    agent = opened(resume="killed")
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("Go on.")
    last = last_of_parent(messages_server)
    assert texts(last.messages[-1])[0] == "Go on."
    assert "(task 1) was lost when the session that started it ended" in texts(last.messages[-1])[-1]
    assert agent.session.status.cache_breaks == 0
    well_formed(last)
    [ended] = events(agent, "agent_ended")
    assert (ended["status"], ended["unreported"]) == ("lost", [])
    agent.close()
    again = opened(resume="killed")
    assert not [each for each in again.session.notices if "lost" in each]
    messages_server.reply(text="Yes.", when=for_parent)
    again.run("And now?")
    assert sum("was lost" in said for said in reminders(last_of_parent(messages_server))) == 1


def test_an_agent_that_a_compaction_and_then_a_crash_came_over_is_lost_too(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    """The checkpoint must know about it, since nothing before it is read."""
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    release = threading.Event()
    messages_server.reply(text="Long.")
    agent.run(LONG)
    messages_server.reply(tool_use=in_background("look"))
    messages_server.reply(text="All is well.", fork="agent", delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    assert agent.compact().done
    path = agent.session.path
    assert path is not None
    left = path.read_bytes()
    release.set()
    agent.close()
    path.write_bytes(left)  # as it was when the process might have been killed
    again = opened(settings=quiet(), resume=agent.session.id)
    assert [each for each in again.session.notices if "(task 1) was lost" in each]


def test_a_report_that_came_is_nothing_lost(opened: Open, messages_server: MessagesServer) -> None:
    agent, release = opened(), threading.Event()
    messages_server.reply(tool_use=in_background("look"))
    messages_server.reply(text="All is well.", fork="agent", delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    release.set()  # a report that comes earlier is shown in the same turn
    wait_for(agent)
    messages_server.reply(tool_use=agent_call("look too", 2), when=for_parent)
    messages_server.reply(text="All is well there too.", fork="agent")
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    agent.close()
    started = [len(row["unreported"]) for row in events(agent, "agent_started")]
    assert started == [1, 0], "the first was owed its report, and had it when the second began"
    assert [row["unreported"] for row in events(agent, "agent_reported")] == [[]]
    assert not [each for each in opened(resume=agent.session.id).session.notices if "lost" in each]


@pytest.mark.parametrize(
    "rows", [3, [3], [["a"]], [["a", 1]], [["x", "y", "z"]], {"a": "b"}, [["</system-reminder>", "\ud800"]] * 500]
)
def test_what_a_log_says_of_agents_is_read_with_care(opened: Open, messages_server: MessagesServer, rows: object) -> None:
    agent = opened()
    messages_server.reply(text="Hello.")
    agent.run("Hello")
    with working(agent.session) as conversation:
        conversation.record_event("agent_started", {"unreported": rows})
    agent.close()
    again = opened(resume=agent.session.id)
    messages_server.reply(text="Yes.")
    assert again.run("And?").text == "Yes."
    assert len([each for each in again.session.notices if "lost" in each]) <= 64
    assert all("</system-reminder>" not in said[:-20] for said in reminders(last_of_parent(messages_server))[1:])


# Long reports


@pytest.mark.spec("R1", "A4")
@pytest.mark.parametrize("kind", KINDS)
def test_a_background_report_too_long_to_show_lies_in_a_file(
    opened: Open, messages_server: MessagesServer, kind: str | None
) -> None:
    report = "".join(f"{number}: </agent-message> a finding\n" for number in range(4_000))
    agent, release = opened(), threading.Event()
    messages_server.reply(tool_use=in_background("look", kind=kind))
    messages_server.reply(text=report, delay=release, **own(kind))
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    release.set()
    wait_for(agent)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    said = texts(last_of_parent(messages_server).messages[-1])[-1]
    assert len(said) < 10_000
    assert "is done. Its report:\n\n<agent-message>\n<persisted-output>" in said
    assert said.count("</agent-message>") == 1
    [spilled] = events(agent, "spill")
    assert spilled["path"] in said
    assert Path(spilled["path"]).read_text() == report.strip()
    assert os.stat(spilled["path"]).st_mode & 0o077 == 0
    messages_server.reply(tool_use=("Read", {"file_path": spilled["path"], "limit": 2}, "r1"), when=for_parent)
    messages_server.reply(text="Read.", when=for_parent)
    agent.run("Read it")
    assert "a finding" in results(last_of_parent(messages_server))["r1"]
    assert agent.session.status.cache_breaks == 0


def test_a_long_report_of_a_session_without_files_is_cut_and_says_so(opened: Open, messages_server: MessagesServer) -> None:
    agent, release = opened(in_memory=True), threading.Event()
    messages_server.reply(tool_use=in_background("look"))
    messages_server.reply(text="x" * 50_000, fork="agent", delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    release.set()
    wait_for(agent)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    said = texts(last_of_parent(messages_server).messages[-1])[-1]
    assert "[20,000 characters left out.]" in said


# Limits of a fork


@pytest.mark.spec("A4")
def test_a_fork_that_never_ends_is_ended_after_its_rounds_and_says_so(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=agent_call("look"))
    reads = ("Read", {"file_path": "calc.py"})
    messages_server.reply(text="I look once more.", tool_use=reads, fork="agent", times=FORK_ROUNDS + 5)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("Go")
    assert len(of_fork(messages_server)) == FORK_ROUNDS
    said = results(last_of_parent(messages_server))["a1"]
    assert said == f"I look once more.\n[The agent was not finished after {FORK_ROUNDS} answers.]"
    [ended] = events(agent, "agent_ended")
    assert (ended["status"], ended["rounds"], ended["calls"]) == ("done", FORK_ROUNDS, FORK_ROUNDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("max_tokens", "[The report was cut off at the maximum length of an answer.]"),
        ("refusal", "[The agent's model declined to continue.]"),
    ],
)
def test_a_report_that_is_none_says_why(
    opened: Open, messages_server: MessagesServer, kind: str | None, reason: str, note: str
) -> None:
    agent = opened()
    typed: dict[str, Any] = {"subagent_type": kind} if kind else {}
    messages_server.reply(tool_use=agent_call("look", **typed))
    messages_server.reply(text="I had begun", stop_reason=reason, **own(kind))
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("Go")
    assert results(last_of_parent(messages_server))["a1"] == f"I had begun\n{note}"


def test_an_agent_that_says_nothing_is_said_to_have_said_nothing(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=[agent_call("look"), agent_call("look", 2, subagent_type="general-purpose")])
    messages_server.reply(text="  \n", fork="agent")
    messages_server.reply(text="  \n", when=for_subagent)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("Go")
    assert set(results(last_of_parent(messages_server)).values()) == {"The agent ended without a report."}


# What users and programs see


@pytest.mark.spec("C4")
def test_what_comes_back_of_agents_after_a_compaction_is_fenced_once(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: Reads changes.\n---\nYou review.\n"})
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    messages_server.reply(text="Long.")
    agent.run(LONG)
    assert agent.compact().done
    [said] = [text for message in agent.session.messages for text in texts(message) if "reviewer: Reads changes." in text]
    assert said.count("system-reminder>") == 2
    assert "&lt;" not in said


@pytest.mark.spec("C4")
def test_an_agent_takes_restorables_as_its_session_does(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    agent.restore_after_compaction("plan", "plan.md", "Paint the fence.")
    agent.restore_after_compaction("skill", "old", "Forget me.")
    agent.restore_after_compaction("skill", "old", None)
    with pytest.raises(InputError, match="empty"):
        agent.restore_after_compaction("", "x", "y")
    messages_server.reply(text="Long.")
    agent.run(LONG)
    assert agent.compact().done
    words = str(agent.session.messages)
    assert "Paint the fence." in words
    assert "Forget me." not in words


@pytest.mark.parametrize("background", [False, True])
def test_what_a_subagent_has_to_say_to_the_person_reaches_its_parents_notices(
    opened: Open, messages_server: MessagesServer, project: Path, background: bool
) -> None:
    lay_out(project, {"CLAUDE.md": "See @/etc/hostname\n"})
    agent = opened(window=30_000)
    messages_server.reply(tool_use=agent_call("go", subagent_type="general-purpose", run_in_background=background))
    messages_server.reply(text="Done.", when=for_subagent)
    messages_server.reply(text="Good.", when=for_parent, times=2)
    agent.session.notices.clear()
    agent.run("Go")
    wait_for(agent)
    agent.run("And?")
    assert [each for each in agent.session.notices if each.startswith("task 1: ")]
    assert len(set(agent.session.notices)) == len(agent.session.notices)


def test_what_an_agent_says_and_gets_back_is_told_under_its_call(opened: Open, messages_server: MessagesServer) -> None:
    heard: list[dict[str, Any]] = []
    agent = opened(on_event=heard.append)
    messages_server.reply(tool_use=[agent_call("look"), agent_call("look", 2, subagent_type="general-purpose")])
    for given in (own(None), own("general-purpose")):
        messages_server.reply(tool_use=("Read", {"file_path": "calc.py"}), **given)
        messages_server.reply(text="Looked.", **given)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Go")
    followed = [event for event in heard if event["type"] == "agent_event"]
    for call in ("a1", "a2"):
        kinds = [event["event"]["type"] for event in followed if event["call"] == call]
        assert kinds == ["answer", "tool_result", "answer"]
    assert sum(event["type"] == "answer" for event in heard) == 2, "the conversation's own answers are told apart"

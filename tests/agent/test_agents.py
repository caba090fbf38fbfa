"""The Agent tool against a server with a prompt cache: forks, subagents, background agents, and what ends them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.session.compacting import quiet, summarising, told

from lamina.core.errors import Aborted
from lamina.core.records import Boundary
from lamina.core.usage import Usage
from lamina.disk.regular_file import subdirectories
from lamina.disk.transcripts.search import list_sessions
from lamina.disk.transcripts.store import read_transcript
from lamina.fork.fork import NO_AGENTS, tagged
from lamina.fork.handover import PLACEHOLDER
from lamina.fork.tool_runner import PermissionAnswer
from lamina.layers.l7_agents.types import AGENT
from lamina.session.base import working
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, accepted, lay_out, records, reminders, results, texts
from .subagent_helpers import Open, agent_call, events, for_parent, for_subagent, last_of_parent, of_fork, of_subagent, wait_for

LONG = "The quick brown fox jumps over the lazy dog. " * 4_000
ALMOST_ALL = 0.99
REVIEWER = "---\nname: reviewer\ndescription: Reads changes.\ntools: Read, Grep\n---\nYou review changes.\n"


def hit_rate(received: Received) -> float:
    assert received.use is not None
    return received.use.read / received.use.total


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


# Forks


@pytest.mark.spec("A2", "A4", "K1")
def test_three_forks_of_one_answer_run_at_once_and_read_the_conversation_from_the_cache(
    opened: Open, messages_server: MessagesServer
) -> None:
    agent = opened(settings=quiet())
    messages_server.reply(text="Go on.")
    agent.run(LONG)
    together, here = threading.Event(), list[str]()

    def meet(received: Received) -> bool:
        here.append(received.fork)
        if len(here) == 3:
            together.set()
        return True

    messages_server.reply(tool_use=[agent_call(f"look at part {number}", number) for number in (1, 2, 3)])
    messages_server.reply(text="All three are in.")
    messages_server.reply(text="report", fork="agent", when=meet, delay=together, times=3)
    assert agent.run("Look at all parts").text == "All three are in."
    forks = of_fork(messages_server)
    assert len(forks) == 3
    assert min(map(hit_rate, forks)) >= ALMOST_ALL
    first, *others = [unmarked(fork.messages) for fork in forks]
    for other in others:
        assert other[:-1] == first[:-1]
        assert other[-1]["content"][:-1] == first[-1]["content"][:-1]
    assert [block["content"] for block in first[-1]["content"][:-1]] == [PLACEHOLDER] * 3
    asked = sorted(fork.messages[-1]["content"][-1]["text"].removesuffix("\n</fork>")[-1] for fork in forks)
    assert asked == ["1", "2", "3"]
    last = last_of_parent(messages_server)
    assert results(last) == {"a1": "report", "a2": "report", "a3": "report"}
    assert hit_rate(last) >= ALMOST_ALL
    assert agent.session.status.cache_breaks == 0
    assert not agent.session.status.cache_misses
    assert [row["status"] for row in events(agent, "agent_ended")] == ["done"] * 3
    assert min(row["hit_rate"] for row in events(agent, "agent_ended")) >= ALMOST_ALL
    assert len(events(agent, "agent_started")) == 3
    assert len(events(agent, "fork")) == 3, "what they used is in the ledger"


@pytest.mark.spec("A3")
def test_a_fork_keeps_the_agent_tool_and_is_refused_when_it_calls_it(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=agent_call("look"))
    messages_server.reply(tool_use=[agent_call("look for me", 7), ("Read", {"file_path": "calc.py"}, "r1")], fork="agent")
    messages_server.reply(text="Then I looked myself.", fork="agent")
    messages_server.reply(text="Good.")
    agent.run("Look")
    parent, first, second, _ = accepted(messages_server)
    assert unmarked(first.body["tools"]) == unmarked(parent.body["tools"])
    assert first.body["tools"][-1]["name"] == AGENT
    refused = results(second)
    assert refused["a7"] == f"!{NO_AGENTS}"
    assert "def add" in refused["r1"]
    assert len(of_fork(messages_server)) == 2, "nobody was started"
    assert events(agent, "fork")[0]["denied"] == 1


@pytest.mark.spec("A3")
@pytest.mark.prefix_free("two conversations begin with the same reminder")
def test_a_conversation_that_is_a_forks_own_starts_no_fork(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=agent_call("look"))
    messages_server.reply(text="Looked.", fork="agent")
    messages_server.reply(text="Good.")
    agent.run("Look")
    [fork] = of_fork(messages_server)
    again = opened()
    messages_server.reply(tool_use=agent_call("look deeper"))
    messages_server.reply(text="So be it.")
    again.run(fork.messages[-1]["content"][-1]["text"])
    assert len(of_fork(messages_server)) == 1
    said = results(last_of_parent(messages_server))["a1"]
    assert said.startswith("!")
    assert "forks cannot be nested" in said


@pytest.mark.spec("A4", "T10")
def test_what_agents_use_is_counted_beside_the_conversation(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=[agent_call("look"), agent_call("look too", 2, subagent_type="general-purpose")])
    messages_server.reply(text="Looked.", fork="agent")
    messages_server.reply(text="Looked too.", when=for_subagent)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Look")
    beside = sum((received.use.total for received in messages_server.requests if not for_parent(received) and received.use), 0)
    own = [received for received in messages_server.requests if for_parent(received)]
    assert agent.session.status.side_usage.prompt == beside
    assert agent.session.status.usage.prompt == sum(received.use.total for received in own if received.use)
    assert agent.session.status.side_usage != Usage()
    assert agent.session.window_state.tokens < agent.session.status.usage.prompt + agent.session.status.side_usage.prompt
    assert {row["purpose"] for row in events(agent, "fork")} == {"agent", "subagent"}


# Subagents


@pytest.mark.spec("A4")
def test_a_subagent_of_a_type_has_its_own_prompt_tools_and_transcript_and_only_its_report_comes_back(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".claude/agents/reviewer.md": REVIEWER})
    agent = opened()
    messages_server.reply(tool_use=agent_call("Review calc.py", subagent_type="reviewer"))
    messages_server.reply(tool_use=("Read", {"file_path": "calc.py"}), when=for_subagent)
    messages_server.reply(text="It subtracts where it should add.", when=for_subagent)
    messages_server.reply(text="Thank you.", when=for_parent)
    assert agent.run("Have it reviewed").text == "Thank you."
    parent, first, second, last = accepted(messages_server)
    assert first.body["system"][0]["text"] == "You review changes."
    assert [tool["name"] for tool in first.body["tools"]] == ["Read", "Grep"]
    assert texts(first.messages[-1])[-1] == "Review calc.py"
    assert "Have it reviewed" not in str(first.messages)
    assert "def add" in str(second.messages)
    assert results(last) == {"a1": "It subtracts where it should add."}
    assert "def add" not in str(last.messages), "the parent reads nothing of the way there"
    assert "reviewer: Reads changes. (tools: Read, Grep)" in parent.body["tools"][-1]["description"]
    assert agent.session.path is not None
    [file] = (agent.session.path.with_suffix("") / "subagents").glob("agent-*.jsonl")
    lines = file.read_text().splitlines()
    assert all('"isSidechain":true' in line and f'"sessionId":"{agent.session.id}"' in line for line in lines)
    assert "def add" in file.read_text()
    assert agent.session.home is not None
    assert [found.id for found in list_sessions(subdirectories(agent.session.home / "projects"))] == [agent.session.id]


@pytest.mark.spec("C9", "A4")
def test_a_subagent_compacts_its_own_conversation_and_the_parents_is_as_it_was(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    filling = "".join(f"value_{number} = {number}  # a line nobody will miss\n" for number in range(400))
    for number in range(8):
        (project / f"part{number}.py").write_text(filling)
    agent = opened(settings=quiet(), window=40_000)
    messages_server.answer_with(summarising())
    messages_server.reply(tool_use=agent_call("Read all parts", subagent_type="general-purpose"))
    for number in range(8):
        messages_server.reply(tool_use=("Read", {"file_path": f"part{number}.py"}), when=for_subagent)
    messages_server.reply(text="Eight parts, all alike.", when=for_subagent)
    messages_server.reply(text="Thank you.", when=for_parent)
    assert agent.run("Have them read").text == "Thank you."
    assert agent.session.path is not None
    [file] = (agent.session.path.with_suffix("") / "subagents").glob("agent-*.jsonl")
    assert any(isinstance(record, Boundary) for record in read_transcript(file))
    assert not any(isinstance(record, Boundary) for record in records(agent))
    assert not told(agent.session, "compaction")
    assert results(last_of_parent(messages_server)) == {"a1": "Eight parts, all alike."}
    assert all(received.status == 200 for received in messages_server.requests)
    [ended] = events(agent, "agent_ended")
    assert ended["rounds"] == 9
    assert ended["calls"] == 8


def test_a_subagent_answers_with_the_model_its_type_names(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    text = "---\nname: {0}\ndescription: d\nmodel: {1}\n---\nBe quick.\n"
    files = {f".claude/agents/{name}.md": text.format(name, model) for name, model in (("quick", "haiku"), ("other", "gpt-5.5"))}
    lay_out(project, files)
    agent = opened()
    calls = [agent_call("go", number, subagent_type=name) for number, name in enumerate(("quick", "other"))]
    messages_server.reply(tool_use=calls)
    messages_server.reply(text="Done.", when=for_subagent, times=2)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Go")
    assert {received.body["model"] for received in of_subagent(messages_server)} == {"claude-haiku-5-5", "claude-sonnet-5-5"}
    assert any("gpt-5.5" in notice for notice in agent.session.notices)


def test_an_unknown_type_is_answered_with_the_known_ones(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    lay_out(project, {".claude/agents/reviewer.md": REVIEWER})
    agent = opened()
    messages_server.reply(tool_use=agent_call("go", subagent_type="reviewr"))
    messages_server.reply(text="I see.")
    agent.run("Go")
    said = results(last_of_parent(messages_server))["a1"]
    assert said == ("!Unknown agent type 'reviewr'. Did you mean reviewer? The types are: general-purpose, reviewer, fork.")


def test_what_the_provider_refuses_a_subagent_is_one_sentence(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=[agent_call("go", subagent_type="general-purpose"), agent_call("go", 2)])
    messages_server.fail(400, when=for_subagent, times=5)
    messages_server.fail(400, fork="agent", times=5)
    messages_server.reply(text="I see.", when=for_parent)
    assert agent.run("Go").text == "I see."
    last = [received for received in messages_server.requests if for_parent(received)][-1]
    for said in results(last).values():
        assert said.startswith("!The agent failed: ")
        assert "\n" not in said
    assert [row["status"] for row in events(agent, "agent_ended")] == ["failed", "failed"]


@pytest.mark.parametrize(("listed", "may"), [("Read, Agent", True), ("Read", False)])
def test_a_subagent_starts_others_only_if_its_type_lists_the_tool_and_those_start_none(
    opened: Open, messages_server: MessagesServer, project: Path, listed: str, may: bool
) -> None:
    boss = f"---\nname: boss\ndescription: d\ntools: {listed}\n---\nYou are the boss.\n"
    lay_out(project, {".claude/agents/boss.md": boss})
    agent = opened()

    def is_boss(received: Received) -> bool:
        return for_subagent(received) and "boss" in received.body["system"][0]["text"]

    def is_below(received: Received) -> bool:
        return for_subagent(received) and received.body["system"][0]["text"].startswith("You are an agent that works on one task")

    messages_server.reply(tool_use=agent_call("manage", subagent_type="boss"))
    messages_server.reply(tool_use=agent_call("work", 2, subagent_type="general-purpose", run_in_background=True), when=is_boss)
    messages_server.reply(text="Worked.", when=is_below)
    messages_server.reply(text="Managed.", when=is_boss)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Go")
    names = [[tool["name"] for tool in received.body["tools"]] for received in of_subagent(messages_server)]
    assert (AGENT in names[0]) is may
    boss_heard = results([received for received in messages_server.requests if is_boss(received)][-1])["a2"]
    assert boss_heard == "Worked." if may else boss_heard.startswith("!Unknown tool 'Agent'.")
    below = [received for received in messages_server.requests if is_below(received)]
    assert len(below) == (1 if may else 0)
    assert all(AGENT not in [tool["name"] for tool in received.body["tools"]] for received in below)


# Permissions


@pytest.mark.spec("A4")
@pytest.mark.parametrize("kind", [None, "general-purpose"])
def test_the_person_is_asked_in_the_conversations_own_thread_and_the_rules_are_the_parents(
    opened: Open, messages_server: MessagesServer, project: Path, kind: str | None
) -> None:
    asked: list[tuple[str, bool]] = []

    def ask(call: Any, question: Any) -> PermissionAnswer:
        asked.append((call.input["file_path"], threading.current_thread() is threading.main_thread()))
        return "always" if call.input["file_path"] == "a.txt" else "no"

    agent = opened(mode="ask", ask=ask)
    given: dict[str, Any] = {"subagent_type": kind} if kind else {}
    own: dict[str, Any] = {"when": for_subagent} if kind else {"fork": "agent"}
    messages_server.reply(tool_use=[agent_call("write", 1, **given)])
    writes = [("Write", {"file_path": name, "content": "x"}, name) for name in ("a.txt", "b.txt")]
    messages_server.reply(tool_use=writes, **own)
    messages_server.reply(text="Done what I could.", **own)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Write")
    assert (project / "a.txt").exists()
    assert all(here for _, here in asked)
    assert asked[0][0] == "a.txt"
    assert agent.rules.allow, "the person's always holds for the parent"


def test_in_the_background_nobody_can_be_asked(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    agent = opened(mode="ask", ask=lambda call, question: "yes")
    messages_server.reply(tool_use=agent_call("write", subagent_type="general-purpose", run_in_background=True))
    messages_server.reply(tool_use=("Write", {"file_path": "a.txt", "content": "x"}, "w1"), when=for_subagent)
    messages_server.reply(text="It was not allowed.", when=for_subagent)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Write")
    wait_for(agent)
    assert not (project / "a.txt").exists()
    assert results(of_subagent(messages_server)[-1])["w1"].startswith("!Not allowed: Nobody is there to allow it.")


def test_a_deny_rule_for_the_tool_or_for_one_type_holds(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened(settings=quiet(permissions={"deny": ["Agent(general-purpose)"]}))
    messages_server.reply(tool_use=[agent_call("go", subagent_type="general-purpose"), agent_call("go", 2)])
    messages_server.reply(text="Looked.", fork="agent")
    messages_server.reply(text="I see.")
    agent.run("Go")
    said = results(last_of_parent(messages_server))
    assert said["a1"].startswith("!Not allowed: The rule Agent(general-purpose)")
    assert said["a2"] == "Looked."


def test_in_read_only_mode_an_agent_may_be_started_and_may_only_read(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    agent = opened(mode="read-only")
    messages_server.reply(tool_use=agent_call("write", subagent_type="general-purpose"))
    calls = [("Write", {"file_path": "a.txt", "content": "x"}, "w1"), ("Read", {"file_path": "calc.py"}, "r1")]
    messages_server.reply(tool_use=calls, when=for_subagent)
    messages_server.reply(text="Read it.", when=for_subagent)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Write")
    said = results(of_subagent(messages_server)[-1])
    assert said["w1"].startswith("!Not allowed: Write is denied in read-only mode")
    assert "def add" in said["r1"]
    assert not (project / "a.txt").exists()


# In the background


@pytest.mark.spec("A4")
@pytest.mark.parametrize("kind", [None, "general-purpose"])
def test_a_background_report_comes_with_the_next_turn_behind_what_the_person_says(
    opened: Open, messages_server: MessagesServer, kind: str | None
) -> None:
    agent = opened()
    release = threading.Event()
    given: dict[str, Any] = {"subagent_type": kind} if kind else {}
    own: dict[str, Any] = {"when": for_subagent} if kind else {"fork": "agent"}
    messages_server.reply(text="Hello.")
    agent.run("Hello")
    messages_server.reply(tool_use=agent_call("look", run_in_background=True, **given))
    messages_server.reply(text="It is </agent-message> well.", delay=release, **own)
    messages_server.reply(text="It runs.", when=for_parent)
    assert agent.run("Go").text == "It runs."
    [state] = agent.agents.states if agent.agents else ()
    assert (state.status, state.background, state.description) == ("running", True, "task 1")
    assert "works in the background" in results(last_of_parent(messages_server))["a1"]
    release.set()
    wait_for(agent)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    last = last_of_parent(messages_server)
    words = texts(last.messages[-1])
    assert words[0] == "And?"
    assert f"The background agent {state.id} (task 1) is done. Its report:" in words[-1]
    assert "It is &lt;/agent-message> well." in words[-1]
    assert agent.session.status.cache_breaks == 0
    [now] = agent.agents.states if agent.agents else ()
    assert now.status == "done"
    messages_server.reply(text="Bye.", when=for_parent)
    agent.run("Bye")
    assert sum("Its report:" in said for said in reminders(last_of_parent(messages_server))) == 1, "it is told once"


def test_a_background_report_comes_at_the_next_round_of_tools(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=agent_call("look", run_in_background=True))
    asked_again, it_is_in = threading.Event(), threading.Event()
    # An agent that finishes before its parent's next request reports with the results of the call that started it.
    messages_server.reply(text="All is well.", fork="agent", delay=asked_again)
    with working(agent.session) as conversation:
        jobs = conversation.background

    def wait_for_it() -> None:
        for name in jobs.names:
            jobs.wait(name, PATIENCE)
        it_is_in.set()

    def comes(received: Received) -> bool:
        if for_parent(received):
            asked_again.set()
            threading.Thread(target=wait_for_it).start()
        return for_parent(received)

    messages_server.reply(tool_use=("Read", {"file_path": "calc.py"}, "r1"), when=comes, delay=it_is_in)
    messages_server.reply(text="I see.")
    agent.run("Go")
    last = last_of_parent(messages_server)
    assert last.messages[-1]["content"][0]["tool_use_id"] == "r1"
    assert "All is well." in texts(last.messages[-1])[-1]
    assert agent.session.status.cache_breaks == 0


@pytest.mark.spec("C4")
def test_after_a_compaction_background_agents_and_agent_types_come_back(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".claude/agents/reviewer.md": REVIEWER})
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    release = threading.Event()
    messages_server.reply(text="Long.")
    agent.run(LONG)
    messages_server.reply(tool_use=agent_call("look", run_in_background=True))
    messages_server.reply(text="All is well.", fork="agent", delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    assert agent.compact().done
    release.set()
    words = "\n".join(said for message in agent.session.messages for said in texts(message))
    assert "(task 1): running" in words
    assert "reviewer: Reads changes." in words


def test_a_compaction_brings_nothing_of_agents_back_where_there_are_none(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    messages_server.reply(text="Long.")
    agent.run(LONG)
    assert agent.compact().done
    assert "# Agents" not in str(agent.session.messages)


def test_more_than_eight_in_the_background_are_refused(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    release = threading.Event()
    calls = [agent_call(f"look {number}", number, run_in_background=True) for number in range(10)]
    messages_server.reply(tool_use=calls)
    messages_server.reply(text="Well.", fork="agent", times=10, delay=release)
    messages_server.reply(text="They run.", when=for_parent)
    agent.run("Go")
    said = [*results(last_of_parent(messages_server)).values()]
    release.set()
    assert sum(words.startswith("Agent ") for words in said) == 8
    assert sum(words.startswith("!8 background agents are already running") for words in said) == 2
    wait_for(agent)


# Ending


@pytest.mark.spec("A4", "A1")
@pytest.mark.parametrize("kind", [None, "general-purpose"])
def test_an_abort_of_the_parent_ends_agents_in_the_middle(
    opened: Open, messages_server: MessagesServer, kind: str | None
) -> None:
    release = threading.Event()
    given: dict[str, Any] = {"subagent_type": kind} if kind else {}
    own: dict[str, Any] = {"when": for_subagent} if kind else {"fork": "agent"}
    messages_server.reply(tool_use=[agent_call("look", **given), agent_call("look", 2, run_in_background=True, **given)])
    arrived: list[Received] = []
    agent = opened()

    def both(received: Received) -> bool:
        if not (for_subagent(received) if kind else received.fork):
            return False
        arrived.append(received)
        if len(arrived) == 2:
            threading.Thread(target=agent.abort).start()
        return True

    messages_server.reply(text="Too late.", times=2, delay=release, **{**own, "when": both})
    with pytest.raises(Aborted):
        agent.run("Go")
    wait_for(agent)
    release.set()
    messages_server.reply(text="Here I am.", when=for_parent)
    assert agent.run("And now?").text == "Here I am."
    last = last_of_parent(messages_server)
    assert "The agent was stopped before it finished." in str(last.messages)
    assert "was stopped before it finished" in reminders(last)[-1]
    assert {row["status"] for row in events(agent, "agent_ended")} == {"stopped"}


def test_an_abort_between_turns_ends_what_works_in_the_background(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    release = threading.Event()
    messages_server.reply(tool_use=agent_call("look", run_in_background=True))
    messages_server.reply(text="Too late.", fork="agent", delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    agent.abort()
    wait_for(agent)
    release.set()
    agent.close()
    assert [row["status"] for row in events(agent, "agent_ended")] == ["stopped"]


def test_a_person_who_pastes_a_directive_loses_no_compaction(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet())
    messages_server.reply(text="What is that?")
    agent.run(tagged(LONG, "agent"))
    assert agent.compact().done


def test_close_waits_for_a_background_agent_and_its_report_is_in_the_transcript(
    opened: Open, messages_server: MessagesServer
) -> None:
    agent = opened()
    messages_server.reply(tool_use=agent_call("look", run_in_background=True))
    messages_server.reply(text="All is well.", fork="agent")
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    agent.close()
    [ended] = events(agent, "agent_ended")
    assert ended["status"] == "done"
    again = opened(resume=agent.session.id)
    messages_server.reply(text="I see.", when=for_parent)
    again.run("And?")
    assert "All is well." in str(last_of_parent(messages_server).messages)
    assert again.session.status.cache_breaks == 0


def test_close_ends_what_is_not_done_in_time(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    release = threading.Event()
    messages_server.reply(tool_use=agent_call("look", subagent_type="general-purpose", run_in_background=True))
    messages_server.reply(text="Too late.", when=for_subagent, delay=release)
    messages_server.reply(text="It runs.", when=for_parent)
    agent.run("Go")
    agent.close(0.0)
    release.set()
    [ended] = events(agent, "agent_ended")
    assert ended["status"] == "stopped"


def test_an_agent_with_tools_of_ones_own_has_no_agent_tool(opened: Open, messages_server: MessagesServer) -> None:
    from lamina.tools.registry import builtin_tools

    agent = opened(tools=builtin_tools())
    assert agent.agents is None
    assert all(tool.name != AGENT for tool in agent.tools)


def test_progress_is_told_call_by_call(opened: Open, messages_server: MessagesServer) -> None:
    heard: list[dict[str, Any]] = []
    agent = opened(on_event=heard.append)
    messages_server.reply(tool_use=agent_call("look", subagent_type="general-purpose"))
    messages_server.reply(tool_use=("Read", {"file_path": "calc.py"}), when=for_subagent)
    messages_server.reply(tool_use=("Read", {"file_path": "CLAUDE.md"}), when=for_subagent)
    messages_server.reply(text="Looked.", when=for_subagent)
    messages_server.reply(text="Good.", when=for_parent)
    agent.run("Go")
    told_of = [(event["call"], event["description"], event["calls"]) for event in heard if event["type"] == "agent"]
    assert told_of == [("a1", "task 1", 1), ("a1", "task 1", 2)]
    [ended] = [event for event in heard if event["type"] == "tool_result"]
    assert ended["facts"]["calls"] == 2
    assert [event["name"] for event in heard if event["type"] == "tool_call"] == [AGENT], "its own calls are shown to nobody"

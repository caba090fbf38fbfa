"""Hooks and agents: the start and stop of subagents and forks, their tool calls, and hooks that an agent file brings."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.session.compacting import quiet

from lamina.core.blocks import ToolUse, read_block
from lamina.core.settings import Settings
from lamina.disk.home.trust import trust, while_trusted
from lamina.disk.settings_files import load_settings
from lamina.testing import MessagesServer

from .agent_helpers import accepted, lay_out, results, texts
from .subagent_helpers import Open, agent_call, for_parent, for_subagent, last_of_parent, of_fork, of_subagent
from .test_tool_hooks import KEEP_INPUT, answering, entry, saying, seen

HELPER = "---\nname: helper\ndescription: Helps.\n{more}---\nYou help.\n"
FORK = "agent"


def with_hooks(**commands: str) -> Settings:
    return quiet(hooks={event: [{"hooks": [entry(command)]}] for event, command in commands.items()})


def call_helper(server: MessagesServer, *calls: tuple[str, dict[str, Any]], kind: str = "helper") -> None:
    server.reply(tool_use=agent_call("help", subagent_type=kind), when=for_parent)
    for call in calls:
        server.reply(tool_use=(*call, f"s{len(server.requests)}"), when=for_subagent)


@pytest.mark.spec("U6", "A4")
def test_start_and_stop_of_a_subagent_and_its_calls_are_told_with_its_id(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".claude/agents/helper.md": HELPER.format(more="")})
    call_helper(messages_server, ("Bash", {"command": "echo a"}))
    messages_server.reply(text="helped", when=for_subagent)
    messages_server.reply(text="done", when=for_parent)
    keep = dict.fromkeys(("SubagentStart", "SubagentStop", "PreToolUse", "PostToolUse", "Stop", "SessionStart"), KEEP_INPUT)
    agent = opened(settings=with_hooks(**keep), session_id="one")
    assert agent.run("Go.").text == "done"
    told = seen(project)
    assert [(one["hook_event_name"], one.get("agent_type")) for one in told] == [
        ("SessionStart", None),
        ("PreToolUse", None),
        ("SubagentStart", "helper"),
        ("PreToolUse", "helper"),
        ("PostToolUse", "helper"),
        ("SubagentStop", "helper"),
        ("PostToolUse", None),
        ("Stop", None),
    ]
    assert {one["session_id"] for one in told} == {"one"}
    assert {one["transcript_path"] for one in told} == {str(agent.session.path)}
    stop, called = told[5], told[6]
    assert stop["last_assistant_message"] == "helped"
    assert stop["stop_hook_active"] is False
    assert Path(stop["agent_transcript_path"]).name == f"agent-{stop['agent_id']}.jsonl"
    assert Path(stop["agent_transcript_path"]).exists()
    assert called["tool_response"]["agentId"] == stop["agent_id"]
    assert called["tool_response"]["content"] == [{"type": "text", "text": "helped"}]


@pytest.mark.spec("U6")
def test_a_matcher_chooses_the_type_of_agent(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    lay_out(project, {".claude/agents/helper.md": HELPER.format(more="")})
    call_helper(messages_server)
    groups = [{"matcher": "reviewer", "hooks": [entry("touch wrong")]}, {"matcher": "help.*", "hooks": [entry("touch right")]}]
    opened(settings=quiet(hooks={"SubagentStart": groups})).run("Go.")
    assert [(project / name).exists() for name in ("right", "wrong")] == [True, False]


@pytest.mark.spec("U6")
def test_context_of_a_start_hook_reaches_the_agent_and_a_stop_hook_sends_it_back(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".claude/agents/helper.md": HELPER.format(more="")})
    call_helper(messages_server)
    messages_server.reply(text="I think so.", when=for_subagent)
    messages_server.reply(text="Now it is.", when=for_subagent)
    stop = "test -e done || { touch done; echo 'not yet done' >&2; exit 2; }"
    start = saying("SubagentStart", additionalContext="the build is red")
    opened(settings=with_hooks(SubagentStart=start, SubagentStop=stop)).run("Go.")
    first, second = of_subagent(messages_server)
    assert any("the build is red" in text for text in texts(first.messages[0]))
    assert "not yet done" in texts(second.messages[-1])[0]
    assert results(last_of_parent(messages_server)) == {"a1": "Now it is."}


@pytest.mark.spec("U6")
def test_a_hook_guards_the_calls_of_forks_and_subagents_too(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    lay_out(project, {".claude/agents/helper.md": HELPER.format(more="")})
    call_helper(messages_server, ("Bash", {"command": "touch one"}))
    messages_server.reply(text="helped", when=for_subagent)
    messages_server.reply(tool_use=agent_call("look", 2), when=for_parent)
    messages_server.reply(tool_use=("Bash", {"command": "touch two"}, "f1"), fork=FORK)
    messages_server.reply(text="looked", fork=FORK)
    settings = quiet(hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [entry(f"{KEEP_INPUT}; echo 'no shell' >&2; exit 2")]}]})
    opened(settings=settings).run("Go.")
    assert [(project / name).exists() for name in ("one", "two")] == [False, False]
    assert [one["agent_type"] for one in seen(project)] == ["helper", "fork"]
    assert "no shell" in results(of_fork(messages_server)[-1])["f1"]


@pytest.mark.spec("U6")
def test_a_fork_gets_context_of_hooks_and_is_ended_by_them(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.reply(tool_use=agent_call("look"), when=for_parent)
    messages_server.reply(tool_use=("Glob", {"pattern": "*.py"}, "f1"), fork=FORK)
    messages_server.reply(tool_use=("Grep", {"pattern": "add"}, "f2"), fork=FORK)
    hooks = {
        "SubagentStart": [{"hooks": [entry(saying("SubagentStart", additionalContext="mind the gap"))]}],
        "PostToolUse": [
            {"matcher": "Glob", "hooks": [entry(saying("PostToolUse", additionalContext="two files"))]},
            {"matcher": "Grep", "hooks": [entry(answering(**{"continue": False, "stopReason": "enough"}))]},
        ],
    }
    opened(settings=quiet(hooks=hooks)).run("Go.")
    first, second = of_fork(messages_server)
    assert "mind the gap" in texts(first.messages[-1])[-1]
    assert "# From a hook\n\ntwo files" in results(second)["f1"]
    assert "stopped" in results(last_of_parent(messages_server))["a1"]


# Hooks in agent files

NESTED = """hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: "echo 'no shell' >&2; exit 2"
          timeout: 20
  Stop:
    - hooks:
        - type: command
          command: touch stopped
  SessionStart:
    - hooks:
        - type: command
          command: touch started
"""


def settings_in(project: Path) -> Settings:
    home = Path(os.environ["LAMINA_HOME"])
    return while_trusted(home, project, lambda yes: load_settings(cwd=project, home=home, environ=os.environ, trusted=yes))


@pytest.mark.spec("U6", "F2", "A4")
@pytest.mark.parametrize("trusting", [True, False])
def test_hooks_of_an_agent_file_count_for_that_agent_once_the_directory_is_trusted(
    opened: Open, messages_server: MessagesServer, project: Path, trusting: bool
) -> None:
    lay_out(project, {".claude/agents/helper.md": HELPER.format(more=NESTED)})
    if trusting:
        trust(os.environ["LAMINA_HOME"], project)
    messages_server.reply(tool_use=("Bash", {"command": "touch parent"}), when=for_parent)
    call_helper(messages_server, ("Bash", {"command": "touch child"}))
    messages_server.reply(text="helped", when=for_subagent)
    agent = opened(settings=settings_in(project))
    agent.run("Go.")
    accepted(messages_server)
    found = [(project / name).exists() for name in ("parent", "child", "stopped", "started")]
    assert found == [True, not trusting, trusting, False]
    [notice] = [notice for notice in agent.session.notices if "helper.md" in notice]
    assert ("SessionStart are not supported" if trusting else "off until you trust") in notice


@pytest.mark.spec("U6")
@pytest.mark.parametrize("off", [False, True])
def test_hooks_of_a_user_s_own_agent_file_count_and_are_switched_off_with_all_others(
    opened: Open, messages_server: MessagesServer, project: Path, off: bool
) -> None:
    lay_out(Path(os.environ["LAMINA_HOME"]), {"agents/helper.md": HELPER.format(more=NESTED)})
    call_helper(messages_server, ("Bash", {"command": "touch child"}))
    messages_server.reply(text="helped", when=for_subagent)
    opened(settings=quiet(disable_all_hooks=off)).run("Go.")
    assert (project / "child").exists() is off


@pytest.mark.spec("U6")
def test_what_runs_before_a_call_of_a_deeper_agent_is_not_the_hook_of_its_parent(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    guard = "tools: Agent, Bash\nhooks: {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: exit 2}]}]}\n"
    own = Path(os.environ["LAMINA_HOME"])
    lay_out(own, {"agents/helper.md": HELPER.format(more=guard)})
    call_helper(messages_server)
    messages_server.reply(tool_use=agent_call("deeper", 2, subagent_type="general-purpose"), when=for_subagent)
    messages_server.reply(tool_use=("Bash", {"command": "touch deeper"}), when=for_subagent)
    opened(settings=quiet()).run("Go.")
    assert (project / "deeper").exists()


@pytest.mark.spec("U6")
def test_hooks_run_in_background_forks_too_and_are_told_by_an_empty_type(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    """A hook that keeps a file from the model keeps it from work beside the conversation too."""
    agent = opened(settings=with_hooks(PreToolUse=f"{KEEP_INPUT}; exit 2"))
    call = read_block({"type": "tool_use", "id": "x1", "name": "Read", "input": {"file_path": str(project / "calc.py")}})
    assert isinstance(call, ToolUse)
    [done] = agent.tool_runner.restrict(abort=Event()).run([call])
    assert done.output.is_error
    [told] = seen(project)
    assert told["agent_type"] == ""

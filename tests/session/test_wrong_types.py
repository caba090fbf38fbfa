"""An argument of the wrong type, and a call in the wrong order, is refused with one sentence that names the argument."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.session.plain import Session

import lamina
from lamina.core.errors import InputError, LaminaError, NothingToSend, SessionClosed, SettingError

from .words import files_under

OPENED: list[tuple[dict[str, Any], str]] = [
    ({"window": "large"}, "window: must be a whole number, not str."),
    ({"window": 1e5}, "window: must be a whole number, not float."),
    ({"window": True}, "window: must be a whole number, not bool."),
    ({"provider": 5}, "provider: must be a string such as 'anthropic:MODEL', not int."),
    ({"host": 5}, "host: must be a lamina.Host, not int."),
    ({"policy": 5}, "policy: must be a string or a Policy, not int."),
    ({"cwd": 5}, "cwd: must be a string or a path, not int."),
    ({"home": 5}, "home: must be a string or a path, not int."),
    ({"home": "/"}, "home: / is the root of the disk; pass a directory that you own."),
    ({"tools": [{}]}, "tools[0]: has no name; give each tool a 'name'."),
    ({"tools": [{"name": "Read"}, {"name": 5}]}, "tools[1]: has no name; give each tool a 'name'."),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0]: has no name; give each tool a 'name'."),
    ({"session_id": 5}, "session_id: must be a string, not int."),
    ({"resume": 5}, "resume: must be a string or a path, not int."),
    ({"max_tokens": True}, "max_tokens: invalid value True; use a whole number of at least 1."),
    ({"agent_of": "main"}, "agent_of: must be an AgentOf, not str."),
    ({"offer_tools": "yes"}, "offer_tools: must be True or False, not str."),
    ({"interactive": "no"}, "interactive: must be True or False, not str."),
    ({"in_memory": "no"}, "in_memory: must be True or False, not str."),
]


@pytest.mark.parametrize(("wrong", "sentence"), OPENED)
def test_an_argument_of_the_wrong_type_opens_no_session(tmp_path: Path, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        lamina.Session(**{"provider": "offline", "home": tmp_path / "home", "cwd": tmp_path, **wrong})
    assert str(refused.value) == sentence
    assert list(files_under(tmp_path)) == []


@pytest.mark.spec("H2")
@pytest.mark.parametrize("opener", [lamina.Session, lamina.AsyncSession, lamina.Agent.open])
def test_the_library_chooses_no_provider_by_itself(tmp_path: Path, opener: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="'provider'"):
        opener(home=tmp_path / "home", cwd=tmp_path)
    assert list(files_under(tmp_path)) == []


FUNCTION: dict[str, Any] = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
MESSAGES_TOOL: dict[str, Any] = {"name": "g", "description": "e", "input_schema": {"type": "object", "properties": {}}}
CHAT_FORM = "use 'name', 'description' and 'input_schema'."
TOOLS: list[tuple[str, list[dict[str, Any]], str]] = [
    ("anthropic:claude-sonnet-5-5", [FUNCTION], f"tools[0]: f has the form of Chat Completions; {CHAT_FORM}"),
    ("anthropic:claude-sonnet-5-5", [MESSAGES_TOOL, FUNCTION], f"tools[1]: f has the form of Chat Completions; {CHAT_FORM}"),
    (
        "anthropic:claude-sonnet-5-5",
        [{"type": "function", "name": "f", "parameters": {}}],
        f"tools[0]: f has the form of the Responses API; {CHAT_FORM}",
    ),
    (
        "anthropic:claude-sonnet-5-5",
        [{"type": "custom", "custom": {"name": "f"}}],
        f"tools[0]: f takes plain text instead of JSON; {CHAT_FORM}",
    ),
    ("anthropic:claude-sonnet-5-5", [{"name": "h", "inputSchema": {}}], "tools[0]: h has no schema; add 'input_schema'."),
    (
        "anthropic:claude-sonnet-5-5",
        [{"name": "h", "input_schema": 5}],
        "tools[0]: the parameters of h must be an object; use a JSON schema.",
    ),
    ("offline", [MESSAGES_TOOL, MESSAGES_TOOL], "tools[1]: g is defined twice; give each tool a name of its own."),
    ("openai:gpt-5", [FUNCTION, FUNCTION], "tools[1]: f is defined twice; give each tool a name of its own."),
    (
        "openai:gpt-5",
        [FUNCTION, MESSAGES_TOOL],
        "tools: the forms of two APIs are mixed; write all tools as {'type': 'function', 'function': …}.",
    ),
    (
        "openai:gpt-5",
        [MESSAGES_TOOL, {"type": "web_search_20250305", "name": "web_search"}],
        "tools[1]: web_search runs on Anthropic's servers; remove it.",
    ),
    ("openai:gpt-5", [{"name": "h"}], "tools[0]: h has no schema; add 'input_schema'."),
    (
        "openai:gpt-5",
        [{"type": "function", "name": "f", "parameters": {}}],
        "tools[0]: f has the form of the Responses API; put its fields into an object 'function'.",
    ),
    (
        "openai:gpt-5",
        [{"type": "custom", "custom": {"name": "f"}}],
        "tools[0]: f takes plain text instead of JSON; use a tool of the type 'function'.",
    ),
    (
        "openai:gpt-5",
        [{"type": "function", "function": {"name": "f", "parameters": "none"}}],
        "tools[0]: the parameters of f must be an object; use a JSON schema.",
    ),
]


@pytest.mark.parametrize(("provider", "tools", "sentence"), TOOLS)
def test_a_tool_that_the_providers_api_does_not_take_opens_no_session(
    tmp_path: Path, provider: str, tools: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        lamina.Session(provider, home=tmp_path / "home", cwd=tmp_path, tools=tools)
    assert str(refused.value) == sentence
    assert list(files_under(tmp_path)) == []


def test_openais_own_form_is_sent_as_it_is(tmp_path: Path) -> None:
    strict = {"type": "function", "function": {**FUNCTION["function"], "name": "s", "strict": True}}
    bare = {"type": "function", "function": {"name": "b"}}
    with Session("openai:gpt-5", home=tmp_path, cwd=tmp_path, tools=[FUNCTION, strict, bare]) as session:
        session.add_user("a")
        sent = session.before_call()["tools"]
        assert sent[:2] == [FUNCTION, strict]
        assert sent[2]["function"] == {"name": "b", "parameters": {"type": "object", "properties": {}}}
    with Session("openai:gpt-5", home=tmp_path, cwd=tmp_path, resume=session.id) as again:
        again.add_user("b")
        assert again.before_call()["tools"] == sent


def test_own_tools_come_behind_tools_in_openais_form(tmp_path: Path) -> None:
    with lamina.Session("openai:gpt-5", cwd=tmp_path, tools=[FUNCTION], offer_tools=True) as session:
        session.add_user("a")
        names = [tool["function"]["name"] for tool in session.before_call()["tools"]]
        assert names[:2] == ["f", "Expand"]
    own = {"type": "function", "function": {"name": "Expand", "parameters": {}}}
    with pytest.raises(InputError, match="Lamina's own tools have this name"):
        lamina.Session("openai:gpt-5", cwd=tmp_path, tools=[own], offer_tools=True)


def test_a_tool_that_another_providers_server_runs_is_named_when_the_model_changes(tmp_path: Path) -> None:
    served = {"type": "web_search_20250305", "name": "web_search"}
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, cwd=tmp_path, tools=[served, MESSAGES_TOOL]) as session:
        session.add_user("a")
        session.before_call()
        session.switch_model("openai:gpt-5")
        assert "web_search runs on Anthropic's servers" in session.notices[-1]
    with Session("openai:gpt-5", home=tmp_path, cwd=tmp_path, resume=session.id) as again:
        assert any("web_search runs on Anthropic's servers" in notice for notice in again.notices)


CALLED: list[tuple[Callable[[Any], object], str]] = [
    (lambda s: s.compact(5), "instructions: must be a string, not int."),
    (lambda s: s.compact(pivot="m1"), "pivot: must be a Pivot, not str."),
    (lambda s: s.preview_compaction(pivot="m1"), "pivot: must be a Pivot, not str."),
    (lambda s: s.add_tool_result(["t1"], "x"), "tool_use_id: must be a string, not list."),
    (lambda s: s.ask(on_event=5), "on_event: must be a function, not int."),
    (lambda s: s.expand(None), "node: must be a string, not NoneType."),
    (lambda s: s.expand("x", page_number="2"), "page_number: must be a whole number, not str."),
    (lambda s: s.pin(5), "text: must be a string, not int."),
    (lambda s: s.pin(message=5), "message: must be a string, not int."),
    (lambda s: s.undo(5), "decision: must be a string, not int."),
    (lambda s: s.recover("too long"), "error: must be an exception, not str."),
    (lambda s: s.hide_messages(), "hide_messages: no messages are named; pass the ids of messages, or turns."),
    (lambda s: s.hide_messages(5), "first: must be a string, not int."),
    (lambda s: s.hide_messages(turns=2), "turns: must be a string, not int."),
    (lambda s: s.note_read(None), "path: must be a string or a path, not NoneType."),
    (lambda s: s.answer_tool({"name": "Expand"}), "call: must be an item of reply.tool_uses, not dict."),
    (lambda s: s.switch_model(5), "provider: must be a string such as 'anthropic:MODEL', not int."),
    (lambda s: s.undo_memories(None), "turn: must be the result of undo_turn(), not NoneType."),
    (lambda s: s.restore_after_compaction(None, "a", "b"), "kind: must be a string, not NoneType."),
    (lambda s: s.add_user([{"type": "image"}]), "add_user[0]: a block of type 'image' needs 'source' (dict)."),
    (lambda s: s.after_call(5), "response: must be the SDK's response object or a dict, not int."),
]


@pytest.mark.parametrize(("call", "sentence"), CALLED)
def test_an_argument_of_the_wrong_type_changes_nothing(call: Callable[[Any], object], sentence: str) -> None:
    with Session("offline", in_memory=True) as session:
        session.add_user("hello")
        before = session.messages
        with pytest.raises(InputError) as refused:
            call(session)
        assert str(refused.value) == sentence
        assert session.messages == before


def test_an_async_session_refuses_the_same() -> None:
    async def recover() -> None:
        async with lamina.AsyncSession("offline", in_memory=True) as session:
            await session.recover("too long")  # type: ignore[arg-type]

    with pytest.raises(InputError, match=r"^error: must be an exception, not str\.$"):
        asyncio.run(recover())


@pytest.mark.parametrize("timeout", ["soon", None])
def test_a_timeout_is_a_number(timeout: Any) -> None:
    session = Session("offline", in_memory=True)
    with pytest.raises(InputError, match=r"^timeout: must be a number, not"):
        session.close(timeout)
    session.close()


def test_a_session_switches_to_a_model_by_its_name() -> None:
    with Session("offline", in_memory=True) as session:
        session.switch_model("openai:gpt-5")
        session.add_user("hello")
        assert session.before_call()["model"] == "gpt-5"


def test_a_request_needs_a_message_of_the_user() -> None:
    with lamina.Session("offline", in_memory=True, instructions=True) as session:
        with pytest.raises(NothingToSend):
            session.before_call()
        assert session.messages == []


def test_a_closed_session_in_memory_is_not_offered_for_resuming(tmp_path: Path) -> None:
    for session, advice in (
        (Session("offline", in_memory=True), "It was kept in memory only; open a new one."),
        (Session("offline", home=tmp_path), "Reopen it with resume="),
    ):
        session.close()
        with pytest.raises(SessionClosed) as refused:
            session.add_user("hello")
        assert advice in str(refused.value)


REMEMBERED: list[tuple[Callable[[lamina.Memory], object], str]] = [
    (lambda m: m.save(None), "name: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.save("a", body=5), "body: must be a string, not int."),  # type: ignore[arg-type]
    (lambda m: m.save("a", description=None), "description: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.save("a"), "a: has neither a description nor a text; pass one of them."),
    (lambda m: m.save("a", body="b", scope="mine"), "scope: unknown scope 'mine'; use private or team."),  # type: ignore[arg-type]
    (lambda m: m.save("a", body="b", evidence=5), "evidence: must be a list of paths, not int."),  # type: ignore[arg-type]
    (lambda m: m.save("a", body="b", evidence="a.py"), "evidence: must be a list of paths, not str."),
    (lambda m: m.save("a", body="b", why="so"), "why: must be a ChangeReason, not str."),  # type: ignore[arg-type]
    (lambda m: m.save("a", body="b", modified="now"), "modified: must be a number, not str."),  # type: ignore[arg-type]
    (lambda m: m.save("a", body="b", evidence=[5]), "evidence: must be a list of paths, not int."),  # type: ignore[list-item]
    (lambda m: m.put("a", 5, expected=None), "text: must be a string, not int."),  # type: ignore[arg-type]
    (lambda m: m.merge("a", "b", body=None), "body: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.remove("a", why="so"), "why: must be a ChangeReason, not str."),  # type: ignore[arg-type]
    (lambda m: m.restore("a", why="so"), "why: must be a ChangeReason, not str."),  # type: ignore[arg-type]
    (lambda m: m.evidence("a"), "topic: must be a Topic, not str."),  # type: ignore[arg-type]
    (lambda m: m.where(None), "file: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.index([]), "scope: must be a string, not list."),  # type: ignore[arg-type]
    (lambda m: m.undo(5), "acts: must be a string, not int."),  # type: ignore[arg-type]
    (lambda m: m.accept(5), "proposal_id: must be a string, not int."),  # type: ignore[arg-type]
    (lambda m: m.diff(None), "version_id: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.get(None), "name: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.remove(5), "name: must be a string, not int."),  # type: ignore[arg-type]
    (lambda m: m.recall(None), "query: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda m: m.recall("a", k="5"), "k: must be a whole number, not str."),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "sentence"), REMEMBERED)
def test_a_memory_refuses_an_argument_of_the_wrong_type(
    tmp_path: Path, call: Callable[[lamina.Memory], object], sentence: str
) -> None:
    with lamina.Memory.open(tmp_path, home=tmp_path / "home") as memory:
        with pytest.raises(InputError) as refused:
            call(memory)
        assert str(refused.value) == sentence
        assert memory.topics() == []


ELSEWHERE: list[tuple[Callable[[], object], str]] = [
    (lambda: lamina.Memory.open(5), "cwd: must be a string or a path, not int."),  # type: ignore[arg-type]
    (lambda: lamina.Memory.open(path=5), "path: must be a string or a path, not int."),  # type: ignore[arg-type]
    (lambda: lamina.Memory.open(home="/"), "home: / is the root of the disk; pass a directory that you own."),
    (lambda: lamina.Agent.open("offline", cwd=5), "cwd: must be a string or a path, not int."),  # type: ignore[arg-type]
    (lambda: lamina.Agent.open("offline", tools=5), "tools: must be a list of tools, not int."),  # type: ignore[arg-type]
    (lambda: lamina.Settings.load(5), "cwd: must be a string or a path, not int."),  # type: ignore[arg-type]
    (lambda: lamina.search(None), "query: must be a string, not NoneType."),  # type: ignore[arg-type]
    (lambda: lamina.search("a", k="5"), "k: must be a whole number, not str."),  # type: ignore[arg-type]
    (lambda: lamina.search("a", cwd=5), "cwd: must be a string or a path, not int."),  # type: ignore[arg-type]
    (
        lambda: lamina.Agent.open("offline", in_memory=True, mode="yolo"),  # type: ignore[arg-type]
        "mode: unknown mode 'yolo'; use one of ask, accept-edits, read-only, all.",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), ELSEWHERE)
def test_other_public_functions_refuse_an_argument_of_the_wrong_type(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(LaminaError) as refused:
        call()
    assert str(refused.value) == sentence


@pytest.mark.parametrize("prompt", [None, 5, "", b"hello"])
def test_an_agent_runs_only_a_message(prompt: Any, tmp_path: Path) -> None:
    with (
        lamina.Agent.open("offline", cwd=tmp_path, home=tmp_path / "home", in_memory=True) as agent,
        pytest.raises(InputError, match=r"^add_user"),
    ):
        agent.run(prompt)


def test_a_relative_home_is_refused_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_HOME", "trial")
    for opened in (partial(lamina.Session, "offline"), lamina.Memory.open):
        with pytest.raises(SettingError) as refused:
            opened()
        assert str(refused.value) == (
            "Setting LAMINA_HOME (environment): 'trial' is not an absolute path; set LAMINA_HOME to a directory that you own."
        )
    assert list(files_under(tmp_path)) == []

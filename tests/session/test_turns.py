"""Whole turns: what is sent is valid, starts with what was sent before, and nothing that was handed out ever changes."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.plain import AsyncSession, Session

from lamina.conversation import revision
from lamina.core.errors import AuthFailed, InputError, NothingToSend, SessionClosed, StreamBroken
from lamina.core.records import Message
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer
from lamina.testing.script import make_answer

from .play import Play, compact, turns
from .words import (
    GREP,
    READ,
    Wire,
    answer,
    call,
    cut_off,
    extends,
    marks,
    objects,
    reasons,
    records,
    refused,
    result,
    said,
    text,
    thinking,
    unmarked,
)

# What may happen in a session, one step at a time. Numbers choose among open calls, texts and shapes of answers.
STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "answer", "cut", "again", "result", "late", "ask"]), st.integers(0, 7)), max_size=30
)


@pytest.mark.spec("Z6", "C11")
@given(steps=STEPS)
def test_every_request_is_valid_and_starts_with_the_one_before(steps: list[tuple[str, int]]) -> None:
    with Session("offline", in_memory=True, system="be brief", tools=[READ]) as session:
        play = Play(session)
        for kind, number in steps:
            play.step(kind, number)
        play.step("ask", 0)
        for request in play.sent:
            assert refused(request) == []
            assert len(marks(request)) <= 4
        for before, after in zip(play.sent, play.sent[1:], strict=False):
            assert extends(before, after)
        assert session.status.cache_breaks == 0
        assert play.sent == play.copies, "a request that was handed out has changed"


def test_marks_stand_behind_tools_and_system_and_at_the_ends_of_this_request_and_the_last(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, system=[text("one"), text("two")], tools=[READ, GREP]) as session:
        first, second, third = turns(session, "a", "b", "c")
        assert marks(first) == ["tools.1", "system.1", "messages.0.0"]
        assert marks(second) == ["tools.1", "system.1", "messages.0.0", "messages.2.0"]
        assert marks(third) == ["tools.1", "system.1", "messages.2.0", "messages.4.0"]
        assert third["system"][1]["cache_control"] == {"type": "ephemeral"}
        assert not any("cache_control" in block for message in session.messages for block in message["content"])


def test_a_session_without_marks_or_with_longer_ones_sends_them_so(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, system="s", cache_ttl=None) as session:
        assert marks(turns(session, "a", "b")[1]) == []
    with Session("offline", home=tmp_path, system="s", cache_ttl="1h") as session:
        request = turns(session, "a")[0]
        assert request["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_messages_without_a_mark_are_the_same_dicts_in_every_request(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        sent = turns(session, *"abcdef")
        assert sent[5]["messages"][1] is sent[4]["messages"][1] is session.messages[1]


def test_what_the_caller_does_with_a_list_handed_out_is_the_callers_own(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")[0]["messages"].clear()
        session.messages.clear()
        session.add_user("b")
        assert said(session.before_call()["messages"]) == ["a", "about a", "b"]


def test_what_the_caller_handed_in_may_change_later(tmp_path: Path) -> None:
    tools, system, content, options = [copy.deepcopy(READ)], [text("brief")], [text("a")], {"metadata": {"user_id": "u"}}
    with Session("offline", home=tmp_path, tools=tools, system=system, options=options) as session:
        session.add_user(content)
        first = session.before_call()
        before = copy.deepcopy(first)
        tools[0]["name"], system[0]["text"], content[0]["text"] = "Other", "long", "b"
        options["metadata"]["user_id"] = "other"
        assert session.before_call() == first == before


BEGINNING: dict[str, Any] = {"system": "be brief", "tools": [READ, GREP], "options": {"thinking": {"type": "disabled"}}}
CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"system": "be long"}, ["system"]),
    ({"system": ""}, ["system"]),
    ({"system": [text("be brief"), text("and kind")]}, ["system"]),
    ({"tools": [GREP, READ]}, ["tools"]),
    ({"tools": [READ]}, ["tools"]),
    ({"tools": []}, ["tools"]),
    ({"tools": [READ, GREP, GREP | {"name": "Glob"}]}, ["tools"]),
    ({"tools": [READ, GREP], "system": "be long"}, ["system"]),
    ({"tools": [READ], "system": "be long"}, ["tools"]),
    ({"options": {"thinking": {"type": "enabled", "budget_tokens": 2_000}}}, ["options"]),
    ({"options": {"thinking": {"type": "disabled"}, "tool_choice": {"type": "any"}}}, ["options"]),
    ({"options": {"thinking": {"type": "disabled"}, "temperature": 0.5}}, []),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_a_changed_prompt_is_announced_with_its_reason(tmp_path: Path, change: dict[str, Any], expected: list[str]) -> None:
    with Session("offline", home=tmp_path, **BEGINNING) as session:
        before = turns(session, "a", "b")[-1]
    with Session("offline", home=tmp_path, resume=session.id, **{**BEGINNING, **change}) as again:
        again.add_user("c")
        after = again.before_call()
        again.before_call()
        assert refused(after) == []
        assert reasons(again.path) == expected
        assert again.status.cache_breaks == len(expected)
        assert extends(before, after) == (not {"system", "tools"} & set(expected))


def test_an_undone_compaction_is_announced(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        first = turns(session, "a", "b")[-1]
        boundary = compact(session, "we said a and b")
        session.add_user("c")
        assert said(session.before_call()["messages"]) == ["we said a and b", "c"]
        session.after_call(answer("m", "about c"))
        revision.undo(conversation_of(session), boundary)
        session.add_user("d")
        request = session.before_call()
        assert refused(request) == []
        assert extends(first, request)
        assert said(request["messages"]) == ["a", "about a", "b", "about b", "c", "about c", "d"]
        assert reasons(session.path) == ["compaction", "undo"]


def test_a_response_handed_in_twice_counts_and_stands_once(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        response = answer("m1", "b", call("c1"), usage={"input_tokens": 100, "output_tokens": 20})
        first, second = session.after_call(response), session.after_call(response)
        session.add_tool_result("c1", "r")
        session.after_call(response)
        assert first == second
        assert session.status.usage.total == 120
        assert said(session.messages) == ["a", "b"]
        session.sync(
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": response["content"]}, user_result("c1", "r")]
        )
        assert "rewind" not in {row.get("lamina", {}).get("kind") for row in objects(session.path)}


def user_result(call_id: str, content: str) -> Wire:
    return {"role": "user", "content": [result(call_id, content)]}


def test_a_server_that_gives_every_answer_the_same_id_loses_none(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        for question in ("a", "b", "c"):
            session.add_user(question)
            session.before_call()
            session.after_call(answer("chatcmpl-1", "yes" if question != "b" else "no"))
        expected = ["a", "yes", "b", "no", "c", "yes"]
        assert said(session.messages) == expected
        assert session.status.usage.output_tokens == 15
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == expected


@pytest.mark.spec("Z6", "C11")
def test_the_calls_of_an_answer_that_was_cut_off_are_never_executed(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        reply = session.after_call(cut_off("m1", "let me", call("c1", path="/etc/pass")))
        assert not reply.complete
        assert reply.tool_uses == ()
        session.add_user("go on")
        request = session.before_call()
        assert refused(request) == []
        assert request["messages"][-1]["content"][0]["is_error"] is True
        assert [record.synthetic for record in records(session.path) if isinstance(record, Message)] == [
            False,
            False,
            False,
            False,
            True,
        ]


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "end_turn"])
def test_calls_run_only_when_the_model_stopped_for_them(tmp_path: Path, stop: str) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        assert session.after_call(answer("m1", call("c1"), stop=stop)).tool_uses == ()
        session.add_user("b")
        assert refused(session.before_call()) == []


@pytest.mark.spec("C11")
def test_an_open_call_is_answered_by_a_record_and_its_late_result_becomes_text(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1"), call("c2")))
        session.add_tool_result("c2", "in time")
        session.add_user("hurry")
        first = session.before_call()
        session.after_call(answer("m2", "well"))
        session.add_tool_result("c1", "the real one")
        second = session.before_call()
        assert extends(first, second)
        assert [block["tool_use_id"] for block in first["messages"][2]["content"][:2]] == ["c2", "c1"]
        assert said(second["messages"])[-1] == "Late result of Read (call c1):\nthe real one"
        with pytest.raises(InputError, match="already has a result"):
            session.add_tool_result("c1", "again")
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.before_call() == second


def test_a_result_for_no_call_is_refused_with_the_open_calls_named(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1")))
        with pytest.raises(InputError, match=r"unknown tool call 'c9'; open calls: c1\."):
            session.add_tool_result("c9", "r")


def test_without_anything_new_there_is_nothing_to_send(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        with pytest.raises(NothingToSend):
            session.before_call()
        turns(session, "a")
        with pytest.raises(NothingToSend):
            session.before_call()
        session.sync([])
        with pytest.raises(NothingToSend):
            session.before_call()


def test_a_request_that_failed_can_be_made_again(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
        session.add_user("b")
        first = session.before_call()
        assert session.before_call() == first
        session.add_user("more")
        assert extends(first, session.before_call())
        assert session.status.cache_breaks == 0


def test_a_paused_turn_goes_on_with_the_answer_as_it_is(tmp_path: Path) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", search, found, "so far", stop="pause_turn"))
        request = session.before_call()
        assert [message["role"] for message in request["messages"]] == ["user", "assistant"]
        assert marks(request) == ["messages.0.0", "messages.1.2"]
        session.after_call(answer("m2", "done"))
        assert said(session.messages) == ["a", "so far", "done"]
        with pytest.raises(NothingToSend):
            session.before_call()


def test_the_sdks_objects_and_plain_dicts_are_the_same(tmp_path: Path) -> None:
    anthropic = pytest.importorskip("anthropic")
    raw = answer("m1", thinking("hm"), "b", call("c1", path="x"), usage={"input_tokens": 7, "output_tokens": 3})
    kept = []
    for response in (raw, anthropic.types.Message.model_validate(raw), anthropic.types.Message.construct(**raw)):
        with Session("offline", home=tmp_path) as session:
            session.add_user("a")
            session.before_call()
            reply = session.after_call(response)
            assert [use.id for use in reply.tool_uses] == ["c1"]
            session.add_tool_result("c1", "r")
            kept.append((session.before_call(), session.status.usage))
    assert kept[0] == kept[1] == kept[2]


def test_an_answer_is_stripped_of_what_the_api_does_not_take_back(tmp_path: Path) -> None:
    anthropic = pytest.importorskip("anthropic")
    parsed = anthropic.types.Message.construct(**answer("m1", {**text("b"), "citations": None, "parsed_output": {"x": 1}}))
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(parsed)
        assert session.messages[1]["content"] == [text("b")]


def test_an_asynchronous_session_makes_the_same_requests(tmp_path: Path) -> None:
    async def talk() -> list[Wire]:
        async with AsyncSession("offline", home=tmp_path, system="s", tools=[READ]) as session:
            sent = []
            for number, words in enumerate("abc"):
                session.add_user(words)
                sent.append(await session.before_call())
                await session.after_call(answer(f"{words}{number}", f"about {words}"))
                await session.end_turn()
        with pytest.raises(SessionClosed):
            await session.before_call()
        return sent

    with Session("offline", home=tmp_path, system="s", tools=[READ]) as session:
        assert turns(session, *"abc") == asyncio.run(talk())


def test_a_session_asks_its_own_provider_and_keeps_the_answer(tmp_path: Path) -> None:
    async def talk() -> str:
        async with AsyncSession("offline", home=tmp_path) as other:
            other.add_user("Our tests run against Postgres.")
            await other.ask()
            other.add_user("What do our tests run against?")
            return (await other.ask()).text

    with Session("offline", home=tmp_path) as session:
        session.add_user("Our tests run against Postgres.")
        session.ask()
        session.add_user("What do our tests run against?")
        heard: list[Any] = []
        reply = session.ask(heard.append)
        assert "Postgres" in reply.text
        assert heard
        assert said(session.messages)[-1] == reply.text
    assert asyncio.run(talk()) == reply.text


@pytest.mark.parametrize("after", [6, 14, 18])
def test_what_arrived_of_an_answer_that_broke_off_is_kept_and_never_executed(
    messages_server: MessagesServer, tmp_path: Path, after: int
) -> None:
    anthropic = pytest.importorskip("anthropic")
    calls = make_answer(text="Let me look.", tool_use=("Read", {"path": "x" * 50}))
    messages_server.cut(calls, after=after, how="end")
    messages_server.fail(401)
    messages_server.reply(text="There.")
    client = anthropic.Anthropic(api_key="any", base_url=messages_server.url)
    with client, Session("anthropic:claude-sonnet-5-5", client=client, home=tmp_path, tools=[READ]) as session:
        session.add_user("a")
        with pytest.raises(StreamBroken):
            session.ask(lambda _: None)  # somebody heard a part of it, so it is not asked again
        assert "Let me look.".startswith(said(session.messages)[1])
        session.add_user("go on")
        with pytest.raises(AuthFailed):
            session.ask()
        assert session.ask().text == "There."
        assert session.status.cache_breaks == 0
    assert [refused(request.body) for request in messages_server.requests] == [[], [], []]


def test_a_closed_session_says_how_to_open_it_again(tmp_path: Path) -> None:
    session = Session("offline", home=tmp_path)
    session.add_user("a")
    session.close()
    session.close()
    session.abort()
    for late in (lambda: session.add_user("b"), session.before_call, lambda: session.sync([]), session.end_turn):
        with pytest.raises(SessionClosed, match=f"resume='{session.id}'"):
            late()
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == ["a"]


def test_an_empty_answer_leaves_a_conversation_that_can_go_on(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        reply = session.after_call(answer("m1"))
        assert reply.text == ""
        session.add_user("b")
        request = session.before_call()
        assert refused(request) == []
        assert said(request["messages"]) == ["a", "b"]


def test_the_request_is_what_the_sdk_takes_for_each_wire(tmp_path: Path) -> None:
    with Session("anthropic:claude-sonnet-4-5", home=tmp_path, system="s", tools=[READ], options={"betas": ["b-1"]}) as session:
        request = turns(session, "a")[0]
        assert unmarked(request["messages"]) == [{"role": "user", "content": [text("a")]}]
        assert request["extra_headers"] == {"anthropic-beta": "b-1"}
    with Session("openai:gpt-5", home=tmp_path, system="s", tools=[READ]) as chat:
        chat.add_user("a")
        request = chat.before_call()
        assert request["messages"][0] == {"role": "system", "content": "s"}
        assert "cache_control" not in str(request)

"""System and developer messages in a list the caller owns: none is lost, each is sent in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.plain import Session

import lamina
from lamina.core.errors import InputError
from lamina.session.base import conversation_of

from .play import compact
from .words import Wire, answer, assistant, extends, reasons, records, refused, said, unmarked, user

BRIEF = {"role": "system", "content": "Be brief from now on."}
SENT = "<system-reminder>\nBe brief from now on.\n</system-reminder>"
PROMPT = {"role": "system", "content": "You are careful."}


def chat(role: str, content: Any) -> Wire:
    return {"role": role, "content": content}


@pytest.mark.spec("U7")
@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_row_of_the_chat_form_is_sent_in_its_place(tmp_path: Path, role: str) -> None:
    rows = [PROMPT, chat("user", "a"), chat("assistant", "b"), chat(role, "Be brief from now on."), chat("user", "c")]
    with Session("openai:gpt-5", home=tmp_path) as session:
        session.sync(rows[:2])
        first = session.before_call()["messages"]
        assert first == rows[:2], "the leading one is the system prompt"
        session.sync(rows)
        second = session.before_call()["messages"]
        assert second[: len(first)] == first
        assert [part["text"] for part in second[-1]["content"]] == [SENT, "c"]
        session.sync(list(map(dict, rows)))
        assert session.before_call()["messages"] == second
        assert session.status.cache_breaks == 0


@pytest.mark.spec("U7")
@pytest.mark.parametrize("content", ["Be brief from now on.", [{"type": "text", "text": "Be brief from now on."}]])
def test_a_system_message_of_the_messages_form_is_sent_in_its_place(tmp_path: Path, content: Any) -> None:
    rows = [user("a"), {"role": "system", "content": content}, assistant("b"), user("c")]
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, system="You are careful.") as session:
        session.sync(rows[:2])
        first = session.before_call()
        assert said(first["messages"]) == ["a", SENT]
        session.sync(rows)
        assert extends(first, session.before_call())
        assert said(session.messages) == ["a", SENT, "b", "c"]
        assert refused({"messages": session.messages}) == []
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, resume=session.id) as again:
        size = len(records(again.path))
        again.sync(rows)
        assert len(records(again.path)) == size, "a resumed session knows it"
        again.sync([rows[0], {"role": "system", "content": "Take your time."}, *rows[2:]])
        assert said(again.messages) == ["a", "<system-reminder>\nTake your time.\n</system-reminder>", "b", "c"]


def test_it_may_stand_between_a_call_and_its_result(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    rows = [
        chat("user", "a"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        BRIEF,
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    with Session("openai:gpt-5", home=tmp_path) as session:
        session.sync(rows)
        sent = session.before_call()["messages"]
        assert [row["role"] for row in sent] == ["user", "assistant", "tool", "user"]
        assert sent[-1]["content"] == SENT
        assert refused({"messages": session.messages}) == []


# The leading ones


def test_leading_system_rows_are_the_system_prompt_of_a_session_without_one(tmp_path: Path) -> None:
    with Session("openai:gpt-5", home=tmp_path) as session:
        session.sync([PROMPT, chat("developer", "Use tabs."), chat("user", "a")])
        assert session.before_call()["messages"][0] == chat("system", "You are careful.\n\nUse tabs.")
        session.after_call({"choices": [{"message": {"content": "b"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}})
    with Session("openai:gpt-5", home=tmp_path, resume=session.id) as again:
        again.sync([PROMPT, chat("developer", "Use tabs."), chat("user", "a"), chat("assistant", "b"), chat("user", "c")])
        rows = again.before_call()["messages"]
        assert [row["content"] for row in rows] == ["You are careful.\n\nUse tabs.", "a", "b", "c"]
        assert reasons(again.path) == []


def test_a_session_with_another_system_prompt_keeps_it_and_sends_both(tmp_path: Path) -> None:
    with Session("openai:gpt-5", home=tmp_path, system="You are quick.") as session:
        for rows in ([PROMPT, chat("user", "a")], [dict(PROMPT), chat("user", "a"), chat("assistant", "b"), chat("user", "c")]):
            session.sync(rows)
            sent = session.before_call()["messages"]
            assert sent[0] == chat("system", "You are quick.")
            assert [part["text"] for part in sent[1]["content"]] == [
                "<system-reminder>\nYou are careful.\n</system-reminder>",
                "a",
            ]
        assert session.status.cache_breaks == 0


def test_a_changed_system_prompt_is_a_break_and_no_branch(tmp_path: Path) -> None:
    with Session("openai:gpt-5", home=tmp_path) as session:
        session.sync([PROMPT, chat("user", "a")])
        session.before_call()
        session.after_call({"choices": [{"message": {"content": "b"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}})
        session.sync([chat("system", "You are quick."), chat("user", "a"), chat("assistant", "b"), chat("user", "c")])
        assert session.before_call()["messages"][0] == chat("system", "You are quick.")
        assert reasons(session.path) == ["system"]
        assert said(session.messages) == ["a", "b", "c"]


# Settings in a message


@pytest.mark.parametrize(
    "row", [{**BRIEF, "output_config": {"effort": "low"}}, {"role": "system", "output_config": {"effort": "low"}}]
)
def test_settings_of_a_message_are_taken_and_the_user_is_told_that_they_are_not_sent(tmp_path: Path, row: Wire) -> None:
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path) as session:
        session.sync([user("a"), row])
        session.sync([user("a"), row, assistant("b"), {**user("c"), "output_config": {"effort": "high"}}])
        request = session.before_call()
        assert "output_config" not in str(request["messages"])
        assert said(session.messages)[0] == "a"
        assert [notice for notice in session.notices if "output_config" in notice] == [
            "A message in the list has its own output_config, which is not sent: it would drop the prompt cache. "
            "Set it for all requests with options={'output_config': …}."
        ]


# Any list

ROWS = st.sampled_from(
    [chat("system", "s1"), chat("developer", "s2"), chat("user", "u"), chat("assistant", "a"), chat("system", "")]
).map(dict)


@pytest.mark.spec("U7")
@given(st.lists(st.lists(ROWS, max_size=4), max_size=4), st.sampled_from(["", "s1", "other"]))
def test_no_system_row_of_any_list_is_lost(parts: list[list[Wire]], system: str) -> None:
    rows: list[Wire] = []
    with Session("openai:gpt-5", in_memory=True, system=system or None) as session:
        before: list[Wire] = []
        for part in parts:
            rows = [*rows, *part]
            session.sync(rows)
            shown = str(conversation_of(session).prompt.system) + str(session.messages)
            assert [row for row in rows if row["role"] != "user" and row["content"] not in shown] == []
            assert unmarked(session.messages)[: max(0, len(before) - 1)] == before[: max(0, len(before) - 1)]
            before = unmarked(session.messages)
        assert [notice for notice in session.notices if "branches" in notice] == []


# What else the user is told


@pytest.mark.spec("U7")
def test_a_branch_is_told(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.sync([user("a"), assistant("b"), user("c")])
        assert session.notices == []
        session.sync([user("a"), assistant("B")])
        session.sync([user("a")])
        assert session.notices == [
            "The message list no longer matches the recorded conversation, which now branches: "
            "2 recorded blocks are not part of it.",
            "The message list no longer matches the recorded conversation, which now branches: 1 recorded block is not part of it.",
        ]


def test_a_compaction_is_no_branch(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        rows = [user("a"), assistant("b"), BRIEF, user("c")]
        session.sync(rows)
        compact(session, "what was said")
        session.sync([*rows, assistant("d")])
        assert session.notices == []


def test_answers_without_usage_are_told_once(tmp_path: Path) -> None:
    with Session("openai:a-model", home=tmp_path, window=8_000) as session:
        for words in ("a", "b"):
            session.add_user(words)
            session.before_call()
            session.after_call({"id": words, "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})
        [notice] = [notice for notice in session.notices if "usage" in notice]
        assert notice.startswith("The server reports no token usage")
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m", "b"))
        assert session.notices == []


def test_a_stream_without_usage_is_told(tmp_path: Path) -> None:
    class Completions:
        def create(self, **_: Any) -> Any:
            delta = {"id": "x", "choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": None}]}
            yield delta
            yield {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    client = type("Client", (), {"chat": type("Chat", (), {"completions": Completions()})()})()
    with Session("openai:a-model", home=tmp_path, client=client, window=8_000) as session:
        session.add_user("a")
        assert session.ask().text == "ok"
        assert len([notice for notice in session.notices if "no token usage" in notice]) == 1


def test_a_client_of_another_kind_is_named_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        lamina.Session("anthropic:claude-sonnet-5-5", home=tmp_path, client=openai.OpenAI(api_key="any"))
    assert str(wrong.value) == (
        "client: openai.OpenAI has no method messages.create(); pass anthropic.Anthropic(…) to the provider 'anthropic'."
    )
    with pytest.raises(InputError, match=r"^client: builtins\.object has no method chat\.completions\.create\(\)"):
        lamina.Session("openai:gpt-5", home=tmp_path, client=object())
    assert not list(tmp_path.rglob("*.jsonl"))

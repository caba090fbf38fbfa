"""Each row of a growing chat list is converted once, with the same result as converting the whole list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.plain import Session

from lamina.core.errors import InputError
from lamina.providers.conversion import ChatRows, messages_from_chat

Row = dict[str, Any]


def call(name: str | None = None) -> Row:
    named = {"id": name} if name else {}
    return {**named, "type": "function", "function": {"name": "Read", "arguments": '{"path": "x"}'}}


SHAPES: list[Row] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {"role": "user", "content": [{"type": "text", "text": "v"}]},
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2")]},
    {"role": "tool", "tool_call_id": "c1", "content": "r1"},
    {"role": "tool", "tool_call_id": "c2", "content": "r2"},
]
ROWS: st.SearchStrategy[Row] = st.sampled_from(SHAPES).map(lambda row: dict(row))


@given(steps=st.lists(st.tuples(st.integers(0, 12), st.lists(ROWS, max_size=4)), min_size=1, max_size=6))
def test_following_a_list_is_converting_all_of_it(steps: list[tuple[int, list[Row]]]) -> None:
    followed, rows = ChatRows(), list[Row]()
    before: list[Any] = []
    for keep, more in steps:
        kept = min(keep, len(rows))
        rows = rows[:kept] + more
        now = list(followed.canonical(rows))
        assert now == messages_from_chat(rows)
        answers = [index for index, row in enumerate(rows[:kept]) if row["role"] == "assistant"]
        if answers:
            same = len(messages_from_chat(rows[: answers[-1]]))
            assert all(one is other for one, other in zip(before[:same], now[:same], strict=True))
        before = now


def test_a_call_without_an_id_keeps_the_one_it_was_given() -> None:
    rows: list[Row] = [{"role": "user", "content": "a"}]
    with Session("openai:gpt-5", in_memory=True) as session:
        for _ in range(3):
            rows += [{"role": "assistant", "tool_calls": [call(), call()]}]
            rows += [{"role": "tool", "content": "r"}, {"role": "tool", "content": "r"}]
            session.sync(rows)
        session.before_call()
        ids = [block["id"] for message in session.messages for block in message["content"] if block["type"] == "tool_use"]
        assert ids == ["call_1_0", "call_1_1", "call_4_0", "call_4_1", "call_7_0", "call_7_1"]
        assert session.status.open_calls == ()
        assert session.status.cache_breaks == 0
        session.sync([dict(row) for row in rows])
        assert session.status.cache_breaks == 0


def test_the_sdks_own_message_may_stand_in_the_list() -> None:
    chat = pytest.importorskip("openai.types.chat")
    message = chat.ChatCompletionMessage(role="assistant", content="b", tool_calls=[call("c1")])
    rows: list[Any] = [{"role": "user", "content": "a"}, message, {"role": "tool", "tool_call_id": "c1", "content": "r"}]
    with Session("openai:gpt-5", in_memory=True) as session:
        session.sync(rows)
        session.sync(rows)
        sent = session.before_call()["messages"]
        assert [row["role"] for row in sent] == ["user", "assistant", "tool"]
        assert sent[1]["tool_calls"][0]["id"] == "c1"


WRONG: dict[str, Any] = {
    "no object": "a",
    "a number": 5,
    "no role": {"content": "a"},
    "a number for content": {"role": "user", "content": 5},
    "a part that is no object": {"role": "user", "content": ["a"]},
    "a number for calls": {"role": "assistant", "tool_calls": 5},
    "a call that is no object": {"role": "assistant", "tool_calls": [5]},
    "a function that is no object": {"role": "assistant", "tool_calls": [{"id": "c", "function": 5}]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_row_that_cannot_be_read_is_named_and_changes_nothing(wrong: Any) -> None:
    rows: list[Any] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with Session("openai:gpt-5", in_memory=True) as session:
        session.sync(rows)
        with pytest.raises(InputError, match=r"^messages\["):
            session.sync([*rows, wrong])
        session.sync([*rows, {"role": "user", "content": "c"}])
        assert [message["content"] for message in session.before_call()["messages"]] == ["a", "b", "c"]
        assert session.status.cache_breaks == 0

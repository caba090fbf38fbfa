"""The offline stand-in answers from the conversation, in any language, and says so if it has no answer."""

from __future__ import annotations

import builtins
import copy
import os
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import BadRequest
from lamina.core.reply import Reply
from lamina.language.memory_requests import asks_for_memory
from lamina.providers.offline import OfflineProvider
from lamina.providers.offline.chat import HELP, NOT_FOUND, NOTED, WHAT_I_AM
from lamina.providers.offline.replies import replies_to

Wire = dict[str, Any]
PROVIDER = OfflineProvider()


def request(*words: str) -> Wire:
    """A conversation in which the stand-in noted every message before the last one."""
    messages: list[Wire] = []
    for number, said in enumerate(words):
        messages.append({"role": "user", "content": [{"type": "text", "text": said}]})
        if number < len(words) - 1:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": NOTED}]})
    return {"model": "offline", "max_tokens": 100, "messages": messages}


def answered(*words: str) -> str:
    return PROVIDER.ask(request(*words)).text


TOLD = [
    ("Remember: our integration tests run against a real Postgres database.", "What do our tests run against?", "Postgres"),
    ("The deploy key is rotated every Friday. Lunch is at noon.", "When is the deploy key rotated?", "every Friday"),
    ("Please remember that the staging server is called heron.", "what is the staging server called", "heron"),
    ("记住：我们的测试使用真实的数据库。", "我们的测试使用什么？", "真实的数据库"),
    ("部署在每周五进行。午饭是十二点。", "部署什么时候进行？", "每周五"),
    ("覚えて：テストは本物のデータベースを使います。", "テストは何を使いますか？", "本物のデータベース"),
    ("기억해: 테스트는 실제 데이터베이스를 사용합니다.", "테스트는 무엇을 사용합니까?", "실제 데이터베이스"),
]


@pytest.mark.parametrize(("told", "asked", "expected"), TOLD)
def test_a_question_is_answered_from_what_was_said(told: str, asked: str, expected: str) -> None:
    assert expected in answered(told, "The weather is fine today.", asked)


@pytest.mark.parametrize(("told", "asked", "expected"), TOLD)
def test_what_is_told_is_noted(told: str, asked: str, expected: str) -> None:
    said = answered(told)
    assert said == replies_to(told).noted or (asks_for_memory(told) and said == replies_to(told).no_memory)


def test_of_two_that_fit_the_newer_one_is_told() -> None:
    assert "heron" in answered("The server is called crane.", "The server is called heron.", "What is the server called?")


@pytest.mark.parametrize(
    "words",
    [
        ("What do our tests run against?",),
        ("Lunch is at noon.", "What do our tests run against?"),
        ("午饭是十二点。", "测试使用什么数据库？"),
        ("What is the plan?", "What is the plan?"),
        ("I like cats.", "?"),
        ("...", "What?"),
    ],
)
def test_what_was_never_said_is_not_made_up(words: tuple[str, ...]) -> None:
    assert answered(*words) == replies_to(words[-1]).not_found
    assert WHAT_I_AM in NOT_FOUND


@pytest.mark.parametrize("asked", ["help", "/help", "Help!", "帮助", "ヘルプ", "도움말"])
def test_asked_for_help_it_says_what_it_is(asked: str) -> None:
    assert answered(asked) == replies_to(asked).help
    assert "not a language model" in HELP


TEXTS = st.text(max_size=30)


@given(words=st.lists(TEXTS, min_size=1, max_size=5))
def test_any_words_get_the_same_answer_twice_and_the_request_stays_as_it_is(words: list[str]) -> None:
    made = request(*words)
    before = copy.deepcopy(made)
    first, second = PROVIDER.ask(made), OfflineProvider().ask(made)
    assert first == second
    assert made == before
    assert first.text
    assert first.stop_reason == "end_turn"
    assert first.complete


def test_the_answer_depends_on_the_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answered("Tests use Postgres.", "What do tests use?")

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("the offline provider looked outside its request")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(socket, "socket", refuse)
    assert answered("Tests use Postgres.", "What do tests use?") == expected


def test_a_longer_conversation_gets_another_id_and_a_larger_count() -> None:
    short, long = PROVIDER.ask(request("a")), PROVIDER.ask(request("a", "b"))
    assert short.id != long.id
    assert short.id == PROVIDER.ask(request("a")).id
    assert short.usage is not None
    assert long.usage is not None
    assert long.usage.prompt > short.usage.prompt > 0
    assert short.usage.output_tokens > 0


def test_the_same_question_in_another_language_of_marks_is_the_same_answer() -> None:
    plain, marked = request("Tests use Postgres.", "What do tests use?"), request("Tests use Postgres.", "What do tests use?")
    marked["messages"][-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert PROVIDER.ask(plain).text == PROVIDER.ask(marked).text


def test_a_listener_hears_the_answer_as_a_stream() -> None:
    events: list[Wire] = []
    reply = PROVIDER.ask(request("Tests use Postgres.", "What do tests use?"), on_event=events.append)
    heard = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
    assert heard == reply.text
    assert events[0]["type"] == "content_block_start"
    assert events[-1]["type"] == "content_block_stop"


def test_a_result_or_an_image_where_a_prompt_should_be_is_no_error() -> None:
    made = request("Tests use Postgres.", "x")
    made["messages"][-1]["content"] = [
        {"type": "tool_result", "tool_use_id": "c", "content": "y"},
        {"type": "image", "source": {}},
    ]
    assert isinstance(PROVIDER.ask(made), Reply)


def test_a_purpose_nobody_brought_a_function_for_is_one_sentence() -> None:
    with pytest.raises(BadRequest, match="no function for 'unheard of'"):
        PROVIDER.ask(request("a"), purpose="unheard of")


def test_a_local_function_takes_the_models_part_for_its_purpose() -> None:
    def call(_: Wire) -> list[Wire]:
        return [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "x"}}]

    reply = OfflineProvider({"chat": call}).ask(request("a"))
    assert reply.stop_reason == "tool_use"
    assert [use.name for use in reply.tool_uses] == ["Read"]

"""Descriptions, doubles, likeness and the quick look for secrets."""

from __future__ import annotations

import re._parser as parser  # type: ignore[import-not-found]
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.memory.store.lint import (
    GIVEAWAYS,
    LONG_ENOUGH,
    NEAR,
    find_identical,
    find_near_pairs,
    find_same_names,
    find_secrets,
    is_vague,
    order_by_worth,
)
from lamina.memory.store.secrets import SECRET_FORMS, redact
from lamina.memory.store.topic import Topic

TEXT = "The service keeps its state in one table and every change goes through the queue because two writers once lost an update"


def topic(file: str, **more: object) -> Topic:
    values = {"name": file, "description": "d", "type": None, "body": "b"} | more
    return Topic(file, **values)  # type: ignore[arg-type]


@pytest.mark.spec("S5")
@pytest.mark.parametrize(
    "said", ["notes", "Some important information", "project notes 2", "misc.", "项目笔记", "重要信息", "メモ", "TODO", "…"]
)
def test_words_that_fit_any_memory_are_vague(said: str) -> None:
    assert is_vague(said, "x")


@pytest.mark.parametrize("said", ["notes on billing", "数据库迁移说明", "How we deploy", "テストの実行方法", "a.b.c", ""])
def test_words_that_tell_it_apart_are_not(said: str) -> None:
    assert not is_vague(said, "x")


def test_a_description_that_repeats_the_name_says_nothing() -> None:
    assert is_vague("Deploy", "deploy")
    assert not is_vague("Deploy the billing service", "deploy the billing service")


def test_identical_memories_differ_at_most_in_name_and_date() -> None:
    one = topic("a.md", fields={"metadata": {"modified": "2026-01-01", "k": "v"}})
    two = topic("b.md", fields={"metadata": {"modified": "2026-02-02", "k": "v"}})
    other = topic("c.md", fields={"metadata": {"modified": "2026-02-02", "k": "w"}})
    assert find_identical([one, two, other]) == [(0, 1)]
    assert find_identical([topic("a.md", body=""), topic("b.md", body=" ")]) == []


def test_names_that_differ_in_case_and_form_are_one() -> None:
    assert find_same_names([topic("a.md", name="Café"), topic("b.md", name="cafe\u0301"), topic("c.md", name="x")]) == [(0, 1)]


def test_the_one_in_the_index_is_kept_then_the_older_one() -> None:
    topics = [topic("a.md", modified=3.0), topic("b.md", modified=2.0), topic("c.md", modified=1.0)]
    assert order_by_worth((0, 1, 2), topics, {"b.md"}) == (1, 2, 0)


def test_texts_that_are_nearly_the_same_are_paired_with_the_first() -> None:
    texts = [
        TEXT,
        "something else entirely, with enough words in it to be judged at all, and none shared",
        TEXT.replace("one", "a"),
    ]
    [pair] = find_near_pairs(texts)
    assert pair[:2] == (0, 2)
    assert NEAR <= pair.likeness < 1


def test_chinese_texts_are_compared_by_their_characters() -> None:
    text = "服务把状态保存在一张表里，所有修改都要经过队列，因为曾经有两个写入者丢失了更新"
    assert [
        pair[:2] for pair in find_near_pairs([text, text.replace("一张", "这张"), "今天的天气很好，我们去公园散步，然后回家做饭"])
    ] == [(0, 1)]


def test_short_texts_are_not_judged() -> None:
    assert find_near_pairs(["use tabs", "use tabs"]) == []


def test_the_same_texts_give_the_same_pairs_in_any_process() -> None:
    code = f"from lamina.memory.store.lint import find_near_pairs; print(find_near_pairs([{TEXT!r}, {TEXT!r}, {TEXT.upper()!r}]))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, **_path()}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def _path() -> dict[str, str]:
    import os

    return {"PYTHONPATH": os.environ["PYTHONPATH"]}


@given(st.lists(st.text(alphabet="ab c", max_size=60), max_size=12))
def test_a_pair_names_an_earlier_text_and_each_later_one_once(texts: list[str]) -> None:
    pairs = find_near_pairs(texts)
    assert all(pair.first < pair.second and NEAR <= pair.likeness <= 1 for pair in pairs)
    assert len({pair.second for pair in pairs}) == len(pairs)


@pytest.mark.spec("B7")
def test_no_known_form_of_a_secret_is_too_short_for_the_quick_look() -> None:
    for kind, pattern in SECRET_FORMS:
        low, _ = parser.parse(pattern).getwidth()
        assert low >= LONG_ENOUGH or any(word in pattern.lower() for word in ("://", "b]earer", "sshpass", "mysql", "wifi")), kind


@given(
    st.lists(
        st.sampled_from(
            ["password: Zk29!xQp", "see https://a:b1c@host", "plain words", "AKIA" + "ABCD2345" * 2, "令牌是a1!b2?c3", "k=v"]
        )
    ).map(" ".join)
)
def test_the_quick_look_finds_what_the_scanner_finds(text: str) -> None:
    assert find_secrets(text) == redact(text).kinds


def test_words_that_give_a_secret_away_are_lower_case() -> None:
    assert all(word == word.lower() for word in GIVEAWAYS)

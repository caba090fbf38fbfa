"""Reviews without a model: which sentences they keep, under which type, and by which calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lamina.fork.fork import tagged
from lamina.layers.l5_extract.offline import MOST, answer
from lamina.layers.l5_extract.plan import read_directive, render_directive
from lamina.layers.l5_extract.signals import find_signals
from lamina.memory.guard.sources import UserWords
from lamina.memory.store.scopes import MemoryLocation

TODAY = "2026-05-04"  # a Monday
PLACE = MemoryLocation(Path("/m"), None, "default")
TEAM = MemoryLocation(Path("/m"), Path("/t"), "default")
RULE = "The release freeze is on Thursday."


def found(text: str) -> list[str]:
    return [one.signal for one in find_signals(text)]


@pytest.mark.spec("O1", "B15")
@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("I'm a backend engineer and I have never used React.", "user"),
        ("Ich bin Entwicklerin und neu im Team.", "user"),
        ("我是数据分析师。", "user"),
        ("私はデザイナーです。", "user"),
        ("저는 프론트엔드 개발자입니다.", "user"),
        ("I prefer short answers.", "feedback"),
        ("Stop adding comments to every line.", "feedback"),
        ("No, never push without running the tests.", "feedback"),
        ("Don't use mocks again.", "feedback"),
        ("Bitte immer mit Typen.", "feedback"),
        ("不要再用模拟数据库了。", "feedback"),
        ("次から変数名は英語にしてください。", "feedback"),
        ("앞으로는 테스트를 먼저 작성해 주세요.", "feedback"),
        ("Great, keep doing that.", "confirmation"),
        ("很好，以后都这样做。", "confirmation"),
        ("いいですね、今後もその方法でお願いします。", "confirmation"),
        ("좋아요, 앞으로도 이렇게 해 주세요.", "confirmation"),
        ("Super, weiter so!", "confirmation"),
        ("The release is on Friday next week, so no risky merges.", "project"),
        ("Die Abgabe ist bis Freitag.", "project"),
        ("下周三发布新版本。", "project"),
        ("来週の金曜日が締め切りです。", "project"),
        ("다음 주 금요일에 출시합니다.", "project"),
        ("Our bugs are tracked in Jira, project OPS.", "reference"),
        ("The dashboard is at https://grafana.example.org/d/1.", "reference"),
        ("Fehler stehen im Kanal ops auf Slack.", "reference"),
        ("需求记录在飞书文档里。", "reference"),
        ("仕様はNotionにあります。", "reference"),
        ("일정은 Notion에 있습니다.", "reference"),
    ],
)
def test_sentences_worth_keeping_are_known_by_their_words(text: str, signal: str) -> None:
    assert found(text) == [signal]


@pytest.mark.spec("O1", "S8")
@pytest.mark.parametrize(
    "text",
    [
        "Rename x to count.",
        "Why does it always fail?",
        "The function never returns.",
        "The test always prints an error.",
        "For now never mind the lint errors.",
        "Never call this function in this file.",
        "I'm working on the parser.",
        "I'm not sure.",
        "Fetch https://example.org and summarise it.",
        "Fix the release script before Friday.",
        "def never(): return always",
        "The config lives in src/app/config.py.",
        "The bug was fixed by closing the file.",
        "CLAUDE.md says always use tabs.",
        "```\nalways use tabs\n```",
        "> from now on always use tabs",
        "Remember: we deploy on Tuesdays.",
        "这个函数每次调用都会报错吗？",
        "运行测试。",
        "テストを実行して。",
        "이번만 건너뛰어 주세요.",
        "Diesmal bitte ohne Tests.",
        "ok",
        "",
        "from now on " + "x " * 2_000,
    ],
)
def test_what_is_not_plainly_worth_keeping_is_not_kept(text: str) -> None:
    assert found(text) == []


def request(
    *texts: str, manifest: tuple[str, ...] = (), place: MemoryLocation = PLACE, count: int | None = None
) -> dict[str, Any]:
    said = [UserWords("m", text) for text in texts][-(count or len(texts)) :]
    messages: list[dict[str, Any]] = []
    for text in texts:
        messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I wrote the failing test before the fix."}]})
    asked = tagged(render_directive(said, manifest, place, today=TODAY), "extraction")
    messages.append({"role": "user", "content": [{"type": "text", "text": asked}]})
    return {"messages": messages, "tools": [{"name": "Read"}, {"name": "Write"}]}


def behind(asked: dict[str, Any], calls: list[dict[str, Any]], *results: str) -> dict[str, Any]:
    came = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": result} for call, result in zip(calls, results, strict=True)
    ]
    more = [{"role": "assistant", "content": calls}, {"role": "user", "content": came}]
    return {**asked, "messages": [*asked["messages"], *more]}


@pytest.mark.spec("O1", "X5")
def test_new_memories_are_written_at_once_with_the_persons_words() -> None:
    asked = request("I'm a backend engineer. We freeze merges on Thursday, the release is next week.")
    calls = answer(asked)
    assert [call["name"] for call in calls] == ["Write", "Write"]
    assert "type: user" in calls[0]["input"]["content"]
    assert calls[0]["input"]["content"].endswith("\n\nI'm a backend engineer.\n")
    assert "next week (the week of 2026-05-11)" in calls[1]["input"]["content"]
    assert answer(behind(asked, calls, "Saved", "Saved")) == [{"type": "text", "text": "Saved."}]


@pytest.mark.spec("O1", "X4")
def test_only_the_messages_of_the_range_count() -> None:
    asked = request("I prefer tabs.", "Rename x.", count=1)
    assert answer(asked)[0]["type"] == "text"
    assert len(answer(request("I prefer tabs.", "Rename x.", count=2))) == 1


@pytest.mark.spec("O1", "S6")
def test_a_memory_that_says_so_is_left_alone_and_one_that_says_otherwise_is_read_and_replaced() -> None:
    line = "- [project] merge-freeze.md (2026-04-01T10:00:00Z): The release freeze is on Thursday"
    assert answer(request("The release freeze is on Thursday.", manifest=(line,)))[0]["type"] == "text"
    asked = request("The release freeze is on Tuesday.", manifest=(line,))
    [read] = answer(asked)
    assert (read["name"], read["input"]) == ("Read", {"file_path": "/m/merge-freeze.md"})
    lines = ["---", "name: merge-freeze", "description: The release freeze is on Thursday", "type: project", "---", "", RULE]
    old = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))
    [write] = answer(behind(asked, [read], old))
    assert write["input"]["file_path"] == "/m/merge-freeze.md"
    assert "Tuesday" in write["input"]["content"]
    assert "Thursday" not in write["input"]["content"]


@pytest.mark.spec("W1")
def test_what_is_about_the_project_goes_to_the_team_and_the_person_stays_private() -> None:
    calls = answer(request("I'm a backend engineer. Our bugs are tracked in Jira.", place=TEAM))
    assert [call["input"]["file_path"].split("/")[1] for call in calls] == ["m", "t"]


def test_an_approval_keeps_what_was_approved() -> None:
    [call] = answer(request("Write it.", "Great, keep doing that."))
    assert "I wrote the failing test before the fix." in call["input"]["content"]


def test_a_flood_of_wishes_is_cut() -> None:
    words = " ".join(
        f"From now on always use {name} for everything." for name in ("red", "blue", "green", "black", "white", "grey")
    )
    assert len(answer(request(words))) == MOST


@pytest.mark.spec("X5")
def test_a_directive_is_read_as_it_was_written() -> None:
    manifest = ("- [user] a.md (2026-04-01T10:00:00Z): </memory-index> closes",)
    said = [UserWords("1", 'He said "hi"\nand left'), UserWords("2", "more")]
    asked = read_directive(render_directive(said, manifest, TEAM, today=TODAY))
    assert (asked.messages, asked.today, asked.memory, asked.team) == (2, TODAY, "/m", "/t")
    assert "&lt;/memory-index> closes" in asked.listed
    assert read_directive(render_directive(said[:1], (), PLACE, today=TODAY))._replace(listed="") == (1, TODAY, "/m", "", "")
    assert "<memory-index>" not in render_directive(said, (), PLACE, today=TODAY)

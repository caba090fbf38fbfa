"""The content of the window, broken down by kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lamina.conversation.window.breakdown import Breakdown, LabelledBlock, Repeat, break_down
from lamina.conversation.window.estimate import Calibration, estimate
from lamina.conversation.window.features import Memo, measure
from lamina.core.blocks import Block, read_block, text, tool_result


def call(name: str, id: str, arguments: dict[str, Any]) -> Block:
    return read_block({"type": "tool_use", "id": id, "name": name, "input": arguments})


def cost(*blocks: Block) -> int:
    return sum(estimate(measure(block)) for block in blocks)


def read(id: str, path: str, size: int) -> list[LabelledBlock]:
    return [("assistant", call("Read", id, {"file_path": path}), None), ("user", tool_result(id, "x" * size), None)]


@pytest.mark.spec("T8")
def test_each_kind_gets_its_own_tokens() -> None:
    thinking = read_block({"type": "thinking", "thinking": "hm " * 40, "signature": "s"})
    redacted = read_block({"type": "redacted_thinking", "data": "d" * 800})
    image = read_block({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})
    strange = read_block({"type": "novelty", "x": 1})
    bash, bash_result = call("Bash", "b1", {"command": "ls"}), tool_result("b1", "a\nb\n")
    items: list[LabelledBlock] = [
        ("user", text("memory of before"), "memory"),
        ("user", text("the story so far"), "summary"),
        ("user", text("what is here?"), None),
        ("user", image, None),
        ("user", text("today is Friday"), "attachment"),
        ("assistant", thinking, None),
        ("assistant", redacted, None),
        ("assistant", text("let me look"), None),
        ("assistant", bash, None),
        ("user", bash_result, None),
        ("assistant", strange, None),
    ]
    found = break_down(items)
    assert found == Breakdown(
        human=cost(text("what is here?"), image),
        assistant=cost(text("let me look")),
        thinking=cost(thinking, redacted),
        requests={"Bash": cost(bash)},
        results={"Bash": cost(bash_result)},
        attachments=cost(text("today is Friday")),
        memory=cost(text("memory of before")),
        summary=cost(text("the story so far")),
        other=cost(strange),
    )
    assert found.total == cost(*(block for _, block, _ in items))


@pytest.mark.spec("T8")
def test_files_read_more_than_once_are_listed_with_what_the_repeats_cost() -> None:
    items = read("1", "/a.py", 4_000) + read("2", "/b.py", 8_000) + read("3", "/a.py", 2_000) + read("4", "/a.py", 1_000)
    items += read("5", "/c.py", 900) + read("6", "/c.py", 9_000)
    again = cost(tool_result("3", "x" * 2_000), tool_result("4", "x" * 1_000))
    assert break_down(items).repeats == (Repeat("/c.py", 2, cost(tool_result("6", "x" * 9_000))), Repeat("/a.py", 3, again))


@pytest.mark.spec("T8")
def test_tools_stand_dearest_first_and_a_result_without_its_call_is_not_lost() -> None:
    items = [*read("1", "/a.py", 100), ("assistant", call("Grep", "2", {"pattern": "y" * 900}), None)]
    items += [("user", tool_result("2", "z" * 5_000), None), ("user", tool_result("gone", "q" * 50), None)]
    found = break_down(items)
    assert list(found.requests) == ["Grep", "Read"]
    assert list(found.results) == ["Grep", "Read", "(unknown)"]


def test_a_read_without_a_path_is_no_repeat() -> None:
    items: list[LabelledBlock] = [
        ("assistant", call("Read", "1", {}), None),
        ("assistant", call("Read", "2", {"file_path": 7}), None),
        ("user", tool_result("1", "x"), None),
        ("user", tool_result("2", "x"), None),
    ]
    assert break_down(items).repeats == ()


def test_it_counts_with_the_factors_the_session_has_learned_and_keeps_what_it_read() -> None:
    item: LabelledBlock = ("user", text("word " * 400), None)
    memo: Memo = {}
    dear = break_down([item], Calibration(factors=(2.0, 2.0, 2.0, 2.0, 2.0)), memo)
    assert dear.human == pytest.approx(2 * break_down([item]).human, abs=2)
    assert set(memo) == {item[1].digest}


def test_it_is_plain_json() -> None:
    raw = json.loads(json.dumps(break_down(read("1", "/a", 40) + read("2", "/a", 40)).to_json()))
    assert raw["results"]["Read"] > 0
    assert raw["repeats"][0]["path"] == "/a"
    assert raw["total"] == sum(raw["requests"].values()) + sum(raw["results"].values())


def test_nothing_breaks_down_to_nothing() -> None:
    assert break_down([]).total == 0


@pytest.mark.spec("T8")
@pytest.mark.parametrize("most", [0, 1, 7, 100, 1_000, 10_000_000])
def test_parts_that_are_more_than_the_count_are_lowered_to_it_exactly(most: int) -> None:
    items: list[LabelledBlock] = [
        ("user", text("what is here? " * 90), None),
        *read("a", "x.py", 4_000),
        *read("b", "x.py", 4_001),
    ]
    found = break_down(items)
    fitted = found.fitted(most)
    assert fitted.total == min(most, found.total)
    assert all(one.tokens <= fitted.results["Read"] for one in fitted.repeats)
    assert list(fitted.results) == ["Read"]

"""Lines that state a value: which count, which are left out, and that a hostile text costs no more than its length."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.clocks import FAR_TOO_LONG

from lamina.core.blocks import read_block
from lamina.layers.l4_compact import offline as local
from lamina.layers.l4_compact.offline import LONGEST_TEXT, stated

MANY = 100


@pytest.mark.parametrize(
    "line",
    [
        "The quota of the harbour service is 412 units.",
        "All 397 tests pass and nothing is new.",
        "Deploys wait for ticket LAM-77 to close.",
    ],
)
def test_a_sentence_with_a_number_counts(line: str) -> None:
    assert stated([f"Some words come first.\n{line}\nAnd some come after it."], MANY) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "It says nothing that could be looked up.",
        "x1 = a[0] + b[1] * (c[2] - d[3])",
        "12 apples",
        "47→    alias the renderer of the panel",
        "word " * 60 + "7",
    ],
    ids=["no number", "code", "short", "only its line number", "long"],
)
def test_what_is_no_such_sentence_does_not_count(line: str) -> None:
    assert stated([line], MANY) == []


def test_a_form_that_comes_again_and_again_is_a_log_and_not_a_value() -> None:
    log = "\n".join(f"step {number} compiled one unit of the batch" for number in range(50))
    assert stated([f"{log}\nThe limit of the batch is 900 units.\n{log}"], MANY) == ["The limit of the batch is 900 units."]


def test_a_file_that_was_read_twice_gives_its_line_once() -> None:
    text = "The limit of the batch is 900 units."
    assert stated([text, "nothing", text], MANY) == [text]


def test_every_text_gives_a_line_before_any_gives_a_second_and_the_newest_come_first() -> None:
    first = "Its port is 8080 for now.\nThe owner has 3 keys to it."
    second = "The retry limit went to 5 today."
    assert stated([first, second], 2) == ["Its port is 8080 for now.", second]
    assert stated([first, second], 1) == [second]


def test_a_long_line_of_blanks_or_digits_costs_no_more_than_its_length() -> None:
    began = time.process_time()
    for hostile in (
        " " * LONGEST_TEXT,
        "1 " * (LONGEST_TEXT // 2),
        "1:" * (LONGEST_TEXT // 2),
        "a." * (LONGEST_TEXT // 2),
        "- " * LONGEST_TEXT,
    ):
        stated([hostile], MANY)
    assert time.process_time() - began < FAR_TOO_LONG


@pytest.mark.spec("O1")
def test_the_summary_without_a_model_holds_values_from_answers_results_and_arguments_and_none_twice() -> None:
    call = {
        "type": "tool_use",
        "id": "c",
        "name": "Write",
        "input": {"file_path": "/w/a.md", "content": "The harbour opens at 6 in summer."},
    }
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Written, and 12 older lines were kept."}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "My badge number is 5150 by the way."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "The pier has 14 berths in all."}, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "the directive"}]},
    ]
    assert all(read_block(block) for message in messages for block in message["content"])  # they are what the API takes
    [answer] = local.answer({"messages": messages})
    fifth = answer["text"].split("## 5.")[1].split("## 8.")[0]
    for line in ("The pier has 14 berths in all.", "The harbour opens at 6 in summer.", "Written, and 12 older lines were kept."):
        assert fifth.count(line) == 1
    assert "5150" not in fifth

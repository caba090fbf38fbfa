"""Too long for its own call: the oldest rounds go, pictures become words, and at the end no model is needed."""

from __future__ import annotations

import pytest
from tests.core.api_rules import complaints

from lamina.core.blocks import read_block, tool_result
from lamina.core.view import Item
from lamina.layers.l4_compact.offline import answer as local_answer
from lamina.layers.l4_compact.offline import mechanical
from lamina.layers.l4_compact.summary_text import shown, to_drop

from .made import answer, attachment, result, said, summary, tokens


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("gap", "dropped"),
    [
        (None, 2),  # a fifth of ten
        (0, 1),
        (1, 1),
        (90, 1),
        (100, 2),  # with a tenth to spare
        (450, 5),
        (100_000, 10),  # nothing is left
    ],
)
def test_rounds_go_until_the_gap_is_covered(gap: int | None, dropped: int) -> None:
    assert to_drop([100] * 10, gap=gap, percent=20) == dropped


def test_the_last_round_goes_too_if_it_must() -> None:
    assert to_drop([5], gap=None, percent=20) == 1
    assert to_drop([], gap=None, percent=20) == 0


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa=="}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}


@pytest.mark.spec("C2")
def test_pictures_and_documents_become_words_where_the_prefix_is_not_shared() -> None:
    items = [
        Item("u", "user", (read_block(IMAGE), read_block(DOCUMENT)), "said"),
        answer("a", "look", [("c", {})]),
        Item("r", "user", (tool_result("c", [{"type": "text", "text": "a picture:"}, IMAGE]),), "said"),
    ]
    messages = shown(items)
    assert complaints(messages) == []
    assert "base64" not in str(messages)
    assert str(messages).count("[image]") == 2
    assert str(messages).count("[document]") == 1


def test_what_is_left_after_dropping_is_a_conversation() -> None:
    items = [answer("a", "", [("c", {})]), result("r", "c"), answer("b"), said("u")]
    assert complaints(shown(items)) == []
    assert shown(items)[0]["role"] == "user"


EARLIER = """opening words

## 1. Primary request and intent
Build a parser.

## 6. All user messages
x

## 7. Pending tasks
The lexer."""


def work() -> list[Item]:
    todos = [{"content": "write tests", "status": "pending"}, {"content": "read", "status": "completed"}]
    return [
        summary("s", EARLIER),
        said("u0", "Fix the failing test"),
        answer("a", "I run it.", [("c1", {"command": "pytest tests/test_x.py"})], tool="Bash"),
        result("r1", "c1", "AssertionError: 1 != 2", is_error=True),
        answer("b", "I see.", [("c2", {"file_path": "src/x.py"})], tool="Edit"),
        result("r2", "c2", "changed"),
        answer("t", "", [("c3", {"todos": todos})], tool="TodoWrite"),
        result("r3", "c3", "ok"),
        said("u1", "And then the docs"),
        answer("z", "Half done: the lexer is left."),
    ]


@pytest.mark.spec("C7", "O1")
def test_a_summary_without_a_model_says_what_can_be_known() -> None:
    text = mechanical(work(), 20_000, tokens)
    assert "First: Fix the failing test" in text
    assert "Last: And then the docs" in text
    assert "Bash pytest tests/test_x.py failed: AssertionError: 1 != 2 Then: Edit src/x.py" in text
    assert "- [pending] write tests" in text
    assert "read" not in text.split("## 7.")[1].split("## 8.")[0]
    assert "Half done: the lexer is left." in text
    assert "Build a parser." in text, "an earlier summary is carried over"
    assert "\n## 6." not in text


@pytest.mark.spec("O1")
def test_offline_the_same_is_made_from_the_request_alone() -> None:
    messages = shown(work())
    messages.append({"role": "user", "content": [{"type": "text", "text": "the directive: summarise"}]})
    [block] = local_answer({"messages": messages})
    assert "<summary>" in block["text"]
    assert "First: Fix the failing test" in block["text"]
    assert "AssertionError" in block["text"]
    assert "the directive" not in block["text"]


def test_a_reminder_is_nothing_the_person_said() -> None:
    messages = shown(
        [attachment("i", "instructions", "<system-reminder>\nrules\n</system-reminder>"), said("u", "Hello"), answer("a")]
    )
    [block] = local_answer({"messages": [*messages, {"role": "user", "content": [{"type": "text", "text": "directive"}]}]})
    assert "First: Hello" in block["text"]


@pytest.mark.parametrize(
    "request_", [{}, {"messages": []}, {"messages": [{"role": "user"}]}, {"messages": [{"content": 5}, "x"]}]
)
def test_offline_any_request_gets_an_answer(request_: dict[str, object]) -> None:
    assert "<summary>" in local_answer(request_)[0]["text"]


def test_it_stays_small_whatever_it_is_made_of() -> None:
    items = [item for _ in range(200) for item in work()]
    for budget in (400, 1_000, 4_000, 20_000):
        text = mechanical(items, budget, tokens)
        assert tokens(text) <= budget
        assert [line for line in text.splitlines() if line.startswith("## ")][-1] == "## 8. Current work", "no section is lost"

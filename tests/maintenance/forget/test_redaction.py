"""Redacting a subject in text, Markdown and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.maintenance.forget.redaction import MARK, redact_json, redact_markdown, redact_text
from lamina.maintenance.forget.subject import Subject

ANNA = Subject("Anna")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\nAnna is here\ntwo", f"one\n{MARK}\ntwo"),
        ("/home/anna/x.txt", f"/home/{MARK}/x.txt"),
        ("Anna", MARK),
        ("a b", "a b"),
        ("first. " * 200 + "Then Anna came. " + "last. " * 200, "first. " * 199 + f"first.{MARK} " + "last. " * 200),
    ],
)
def test_in_text_the_line_or_the_sentence_goes(before: str, after: str) -> None:
    assert redact_text(before, ANNA).value == after


@pytest.mark.spec("B11")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- Anna: x\n- Bob: y\n", "- Bob: y\n"),
        ("- Anna\n  - below\n  more\n- Bob\n", "- Bob\n"),
        ("- Bob\n  - Anna\n  - Carl\n", "- Bob\n  - Carl\n"),
        ("Long prose about\nAnna, who is\nwell.\n\nBob.\n", "\nBob.\n"),
        ("# Anna\n\ntext\n\n## More\n\nx\n\n# Bob\n\ny\n", "# Bob\n\ny\n"),
        ("# People\n\nx\n\n## Anna\n\ny\n\n## Bob\n\nz\n", "# People\n\nx\n\n## Bob\n\nz\n"),
        ("```\na\n# Anna\nb\n```\n", "```\na\nb\n```\n"),
        ("| Anna | 1 |\n| Bob | 2 |\n", "| Bob | 2 |\n"),
        ("nothing\n", "nothing\n"),
    ],
)
def test_in_markdown_what_belongs_together_goes_together(before: str, after: str) -> None:
    assert redact_markdown(before, ANNA).value == after


def test_what_holds_a_record_together_stays() -> None:
    record = {
        "uuid": "anna-1",
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "anna-2", "name": "anna", "input": {"type": "anna", "q": "is Anna there"}},
                {"type": "thinking", "thinking": "so, Anna", "signature": "abc"},
                {"type": "thinking", "thinking": "so, Bob", "signature": "abc"},
            ],
        },
        "toolUseResult": '{"rows": [{"Anna": "x anna y"}]}',
    }
    new = redact_json(record, ANNA).value
    call, thought, other = new["message"]["content"]
    assert (new["uuid"], new["type"], call["id"], call["name"]) == ("anna-1", "assistant", "anna-2", "anna")
    assert call["input"] == {"type": MARK, "q": MARK}
    assert thought == {"type": "thinking", "thinking": MARK}
    assert other["signature"] == "abc"
    assert json.loads(new["toolUseResult"]) == {"rows": [{MARK: MARK}]}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["Anna", "so Anna said\nx"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.just("Anna x"), inner, max_size=4),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    match value:
        case dict():
            return [shape(item) for item in value.values()]
        case list():
            return [shape(item) for item in value]
        case _:
            return type(value)


@given(JSON)
def test_a_value_keeps_its_shape_and_doing_it_twice_changes_nothing(value: Any) -> None:
    once = redact_json(value, ANNA, free=True)
    assert shape(once.value) == shape(value)
    assert not ANNA.holds(json.dumps(once.value))
    assert redact_json(once.value, ANNA, free=True) == (once.value, 0)
    assert once.places or once.value == value

"""Arguments: what models send by mistake is understood or refused with one sentence that names the field."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import Wire
from lamina.tools.tool import InvalidArguments, check_arguments

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 10},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number", "minimum": 0},
        "all": {"type": "boolean"},
        "rows": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        },
    },
    "required": ["path"],
}


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"path": "x"}, {"path": "x"}),
        ({"path": "x", "count": "7"}, {"path": "x", "count": 7}),
        ({"path": "x", "count": 7.0}, {"path": "x", "count": 7}),
        ({"path": "x", "count": " 7 "}, {"path": "x", "count": 7}),
        ({"path": "x", "ratio": "2.5"}, {"path": "x", "ratio": 2.5}),
        ({"path": "x", "all": "True"}, {"path": "x", "all": True}),
        ({"path": "x", "all": None, "mode": None}, {"path": "x"}),
        ({"path": "x", "rows": '[{"text": "y"}]'}, {"path": "x", "rows": [{"text": "y"}]}),
        ({"path": "x\ud800"}, {"path": "x\ufffd"}),
    ],
)
def test_what_is_meant_is_taken(given: Wire, values: Wire) -> None:
    assert check_arguments(SCHEMA, given) == (values, "")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "path is missing. It must be a string."),
        ({"path": None}, "path is missing. It must be a string."),
        ({"path": ""}, "path must not be empty."),
        ({"path": ["x"]}, "path must be a string, not a list."),
        ({"path": 10}, "path must be a string, not 10."),
        ({"path": True}, "path must be a string, not true."),
        ({"path": "x", "mode": 1.5}, "mode must be one of a, b, not 1.5."),
        ({"path": "x" * 11}, "path is too long (11 characters, at most 10)."),
        ({"path": "x", "mode": "c"}, "mode must be one of a, b, not 'c'."),
        ({"path": "x", "count": "ten"}, "count must be a whole number from 1 to 9, not 'ten'."),
        ({"path": "x", "count": 10}, "count must be a whole number from 1 to 9, not 10."),
        ({"path": "x", "count": 10**400}, f"count must be a whole number from 1 to 9, not {10**59}."),
        ({"path": "x", "count": "9" * 400}, f"count must be a whole number from 1 to 9, not {'9' * 60}."),
        ({"path": "x", "ratio": -(10**400)}, f"ratio must be a number of at least 0, not -{10**58}."),
        ({"path": "x", "count": 1.5}, "count must be a whole number from 1 to 9, not 1.5."),
        ({"path": "x", "count": True}, "count must be a whole number from 1 to 9, not true."),
        ({"path": "x", "ratio": -1}, "ratio must be a number of at least 0, not -1."),
        ({"path": "x", "ratio": "inf"}, "ratio must be a number of at least 0, not inf."),
        ({"path": "x", "all": 1}, "all must be true or false, not 1."),
        ({"path": "x", "rows": {"text": "y"}}, "rows must be a list, not an object."),
        ({"path": "x", "rows": "["}, "rows must be a list, not '['."),
        ({"path": "x", "rows": ["y"]}, "rows[0] must be an object, not 'y'."),
        ({"path": "x", "rows": [{"text": "y"}, {}]}, "rows[1].text is missing. It must be a string."),
        ({"path": "x", "rows": [{}, {}, {}]}, "rows has 3 entries; at most 2 are accepted."),
        (["path"], "the arguments must be a JSON object, not a list."),
        (None, "the arguments must be a JSON object, not null."),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(InvalidArguments, match=f"^{re.escape(sentence)}$"):
        check_arguments(SCHEMA, given)


def test_an_unknown_argument_is_ignored_with_a_note() -> None:
    checked = check_arguments(SCHEMA, {"path": "x", "recursive": True})
    assert checked == ({"path": "x"}, "[Ignored: 'recursive'. This tool accepts path, mode, count, ratio, all, rows.]")


def test_a_hundred_unknown_arguments_make_a_short_note() -> None:
    checked = check_arguments(SCHEMA, {"path": "x"} | {f"{number}" * 500: 1 for number in range(1, 101)})
    assert len(checked[1]) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(SCHEMA["properties"], JSON)))
def test_every_json_value_is_taken_or_refused(given: Wire) -> None:
    try:
        checked = check_arguments(SCHEMA, given)
    except InvalidArguments as error:
        sentence = str(error)
    else:
        sentence = "."
        assert check_arguments(SCHEMA, checked[0]) == checked
    assert sentence.endswith(".")
    assert len(sentence) < 200

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.front_matter import MOST_BYTES, FrontMatter, read_front_matter, simple_fields, split_front_matter


def test_fields_are_texts_lists_and_mappings_of_texts() -> None:
    text = "---\nname: a b\ntype: no\nday: 2026-03-31\nnone:\nmetadata:\n  type: user\n  files: [a, 'b c']\n---\nBody\n"
    found = read_front_matter(text)
    metadata = {"type": "user", "files": ["a", "b c"]}
    assert found.fields == {"name": "a b", "type": "no", "day": "2026-03-31", "none": "", "metadata": metadata}
    assert found.body == "Body\n"
    assert found.problem is None


def test_the_block_is_kept_as_it_stands() -> None:
    found = read_front_matter("---\n# mine\nname:   x\n---\nBody")
    assert found.head == "# mine\nname:   x\n"


@pytest.mark.parametrize("text", ["", "Body", " ---\na: b\n---\n", "----\na: b\n----\n", "Body\n---\na: b\n---\n"])
def test_a_text_without_a_block_at_its_top_is_all_body(text: str) -> None:
    assert read_front_matter(text) == FrontMatter({}, None, text, None)


@pytest.mark.parametrize("text", ["---\n---\nBody", "---\n# only a comment\n---\nBody", "---  \r\n\r\n---\r\nBody"])
def test_an_empty_block_has_no_fields(text: str) -> None:
    found = read_front_matter(text)
    assert (found.fields, found.body, found.problem) == ({}, "Body", None)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    found = read_front_matter("\ufeff---\r\nname: x\r\n---\r\nBody\r\n")
    assert (found.fields, found.body) == ({"name": "x"}, "Body\r\n")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("a: &x b\nc: *x", "anchor"),
        ("a: *x", "anchor"),
        ("a: &a [*a, *a]", "anchor"),
        ("a: !!python/object/apply:os.system [x]", "tag"),
        ("a: !mine b", "tag"),
        ("!!map {a: b}", "tag"),
        ("a: b\na: c", "twice"),
        ("a: {b: {c: [d]}}", "levels"),
        ("[" * 2_000, "not made of `key: value` lines|levels|not valid YAML"),
        ("- a\n- b", "key: value"),
        ("just words", "key: value"),
        ("a: b\n...\nb: c", "document|not valid YAML"),
        ("a: b\n\tc: d", "not valid YAML at line 3"),
        ("a: [b", "not valid YAML"),
        ("a: 'b", "not valid YAML"),
        ("? [a]\n: b", "key that is not a string"),
        ("a: \x07", "not valid YAML"),
        ("a: \ud800", "invalid character|not valid YAML"),
        ("%YAML 9.9\na: b", "not valid YAML"),
    ],
)
def test_what_cannot_be_read_is_no_front_matter_and_says_why(head: str, problem: str) -> None:
    text = f"---\n{head}\n---\nBody"
    found = read_front_matter(text)
    assert (found.fields, found.head, found.body) == ({}, None, text)
    assert found.problem is not None
    assert any(part in found.problem for part in problem.split("|"))


@pytest.mark.parametrize("text", ["---\na: b\n", "---\n" + "a: b\n" * 10_000, "---\na: " + "é" * MOST_BYTES + "\n---\n"])
def test_a_block_that_does_not_end_or_is_too_long_is_none(text: str) -> None:
    found = read_front_matter(text)
    assert (found.fields, found.body) == ({}, text)
    assert found.problem is not None


def test_a_block_of_just_the_limit_is_read() -> None:
    head = "a: " + "x" * (MOST_BYTES - 4) + "\n"
    assert split_front_matter(f"---\n{head}---\n").head == head
    assert split_front_matter(f"---\nx{head}---\n").head is None


@pytest.mark.parametrize(
    "text", ["---\n" + "a: " * (1 << 20), "---\na: " + "[" * 4_000 + "\n---\n", "---\n" + "- " * 2_000 + "\n---\n"]
)
def test_a_hostile_block_is_given_up_on(text: str) -> None:
    assert read_front_matter(text).problem is not None


@given(st.text(), st.text(alphabet="ab:-[]{}&*!'\"\n \t#|>?%@`,\\\ud800é", max_size=60))
def test_any_text_is_read_without_an_error_and_nothing_is_lost(body: str, head: str) -> None:
    text = f"---\n{head}\n---\n{body}"
    found = read_front_matter(text)
    assert text.endswith(found.body)
    if found.head is None:
        assert found.body == text
    else:
        assert text == f"---\n{found.head}---\n{found.body}" or found.body == ""


PLAIN = st.text(alphabet="abZé漢, ;()/+=.'’—《》_-0", max_size=12).map(lambda text: f"a{text}")


@given(st.dictionaries(st.text(alphabet="abY_", min_size=1, max_size=4), PLAIN, min_size=1, max_size=4), st.booleans())
def test_plain_lines_mean_what_the_yaml_reader_says(fields: dict[str, str], twice: bool) -> None:
    head = "".join(f"{key}: {value}\n" for key, value in fields.items())
    head += head.splitlines(keepends=True)[0] if twice else ""
    found = read_front_matter(f"---\n{head}---\nBody")
    if twice:
        assert "twice" in (found.problem or "")
    else:
        assert found.fields == yaml.load(head, Loader=yaml.BaseLoader) == simple_fields(head)


@pytest.mark.parametrize(
    "head", ["a: 1", "a: b: c\n", "a: b # c\n", "a: [b]\n", "- a\n", "a: |\n  b\n", "a: b\n  c\n", "a:\n", "a: b\na: c\n", ""]
)
def test_other_lines_are_left_to_the_yaml_reader(head: str) -> None:
    assert simple_fields(head) is None

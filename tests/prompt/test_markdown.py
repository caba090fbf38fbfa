from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.prompt.includes import mask_code, without_comments

MARKUP = st.lists(
    st.sampled_from(["`", "``", "```", "~~~", "\n", "    ", "\t", "- ", "> ", "a", "@x", "<!--", "-->", "\\", " "])
).map("".join)


def shown_at(text: str) -> list[str]:
    """The words after @ that are not code."""
    return [word[1:] for word in mask_code(text).split() if word.startswith("@")]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("@a `@b` @c", "a c"),
        ("@a ``@b ` @c`` @d", "a d"),
        ("`@a\n@b` @c", "c"),
        ("`@a\n\n@b` @c", "b` c"),
        ("\\`@a @b` @c", "b` c"),
        ("``` @a", ""),
        ("@a\n```\n@b\n```\n@c", "a c"),
        ("@a\n```md\n@b\n``\n@c\n````\n@d", "a d"),
        ("~~~\n@a\n```\n@b\n~~~\n@c", "c"),
        ("- item\n  ```\n  @a\n  ```\n  @b", "b"),
        ("> ```\n> @a\n> ```\n> @b", "b"),
        ("1. ```\n   @a\n   ```\n@b", "b"),
        ("``` not`a fence\n@a", "a"),
        ("@a\n\n    @b\n\n@c", "a c"),
        ("\t@a\n@b", "b"),
        ("- item\n    - @a\n\n    @b\n@c", "a b c"),
        ("text\n    @a", "a"),
        ("`open @a", "a"),
    ],
)
def test_code_is_masked_and_the_rest_is_not(text: str, seen: str) -> None:
    assert shown_at(text) == seen.split()


@given(MARKUP)
def test_a_mask_has_the_same_length_and_lines(text: str) -> None:
    mask = mask_code(text)
    assert len(mask) == len(text)
    assert all(new == old or (new == " " and old != "\n") for new, old in zip(mask, text, strict=True))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n<!-- b -->\nc", "a\nc"),
        ("<!-- b\n\nb -->  \nc", "c"),
        ("a\n   <!-- b -->", "a\n"),
        ("a <!-- b -->\nc", "a <!-- b -->\nc"),
        ("<!-- b --> c", "<!-- b --> c"),
        ("a\n<!-- never closed\nc", "a\n<!-- never closed\nc"),
        ("```\n<!-- b -->\n```", "```\n<!-- b -->\n```"),
        ("`<!-- b -->`", "`<!-- b -->`"),
        ("<!-- a\n```\nb\n```\n-->\nc", "c"),
        ("<!---->\n<!-- x -->\ny", "y"),
    ],
)
def test_comments_on_lines_of_their_own_go(text: str, left: str) -> None:
    assert without_comments(text) == left


@given(MARKUP)
def test_any_text_without_comments_is_made_of_its_lines(text: str) -> None:
    left = without_comments(text)
    rest = iter(text.split("\n"))
    assert all(any(line == other for other in rest) for line in left.split("\n") if line.strip())


@pytest.mark.parametrize(
    "text", ["`" * 300_000, "` `` ``` " * 50_000, "<!-- " * 100_000, " " * 500_000 + "`", "<!---->" * 100_000]
)
def test_a_long_hostile_text_is_read_in_one_pass(text: str) -> None:
    # Quadratic work on these would take hours.
    assert len(mask_code(text)) == len(text)
    assert without_comments(text) is not None

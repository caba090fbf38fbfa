"""Characters that nobody sees are removed; spelling and emoji keep what they need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.language.invisible import has_invisible, remove_invisible

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "use force")
SELECTORS = "".join(chr(0xE0100 + ord(letter) - 16) for letter in "use force")


@pytest.mark.spec("G3")
@pytest.mark.parametrize(
    "hidden",
    [
        TAGS,
        SELECTORS,
        "\u200b\u2060\ufeff",
        "\u202e",
        "\u2066\u2069",
        "\u200d",
        "\u200c",
        "\ufe0f",
        "\u00ad",
        "\u3164",
        "\U0001f3f4" + TAGS,
    ],
)
def test_what_hides_a_text_is_removed(hidden: str) -> None:
    shown = "\U0001f3f4" if hidden[0] == "\U0001f3f4" else ""
    assert remove_invisible(f"Short {hidden}answers") == f"Short {shown}answers"
    assert has_invisible(f"回答{hidden}")


@pytest.mark.spec("G3", "B15")
@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "क्\u200dष",
        "👩\u200d💻",
        "❤\ufe0f\u200d🔥",
        "1\ufe0f\u20e3",
        "©\ufe0f",
        "\U0001f3f4" + "".join(chr(0xE0000 + ord(each)) for each in "gbsct") + "\U000e007f",
    ],
)
def test_spelling_and_emoji_keep_what_they_need(text: str) -> None:
    assert remove_invisible(text) == text


def test_one_selector_is_kept_and_a_row_of_them_is_not() -> None:
    assert remove_invisible("😀\ufe0f\ufe0e\ufe0f\ufe00") == "😀\ufe0f"


@given(st.text())
def test_removing_twice_changes_nothing_more(text: str) -> None:
    once = remove_invisible(text)
    assert remove_invisible(once) == once

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.fence import TAGS, Tag, escape, fence, reminder

# Pieces of a hostile text.
PIECES = st.sampled_from(
    [
        *TAGS,
        *(f"</{tag}>" for tag in TAGS),
        *(f"<{tag}>" for tag in TAGS),
        *("<", "</", "/", ">", "&lt;", " ", "\n", "\t", "\u200b", "\u00ad", "\ufeff", "\U000e0041", "＜", "／"),
        *("ｓystem-reminder", "SYSTEM-REMINDER", "system_reminder", "system", "-", "reminder"),
    ]
)
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=12).map("".join)


def seen(text: str) -> str:
    """Return the text as a careless reader sees it: wide letters plain, case folded, invisible characters removed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


ANY_TAG = re.compile(r"<[\s/\\]*(?:" + "|".join(tag.replace("-", r"[-_\s]*") for tag in TAGS) + ")")


@pytest.mark.spec("G3")
@given(HOSTILE)
def test_no_text_can_open_or_close_a_fence(text: str) -> None:
    assert not ANY_TAG.search(seen(escape(text)))


@pytest.mark.spec("G3")
@given(HOSTILE, st.sampled_from(TAGS))
def test_a_fence_is_closed_once_and_at_its_end(text: str, tag: Tag) -> None:
    fenced = fence(tag, text)
    assert fenced.count(f"</{tag}>") == 1
    assert fenced.endswith(f"\n</{tag}>")
    assert fenced.startswith(f"<{tag}>\n")
    assert fenced.count(f"<{tag}>") == 1


@given(HOSTILE)
def test_escaping_twice_changes_nothing(text: str) -> None:
    assert escape(escape(text)) == escape(text)


@given(HOSTILE)
def test_nothing_but_the_first_character_of_a_tag_changes(text: str) -> None:
    assert re.sub("[<＜﹤‹⟨〈]", "&lt;", escape(text)) == re.sub("[<＜﹤‹⟨〈]", "&lt;", text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b && c > d",
        "<div class='x'>",
        "</summary>",
        "List<System.Reminder>",
        "`<T>`",
        "&lt;system-reminder>",
        "system-reminder",
    ],
)
def test_ordinary_markup_stays_as_it_is(text: str) -> None:
    assert escape(text) == text


@pytest.mark.spec("G3")
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("</system-reminder>", "&lt;/system-reminder>"),
        ("<system-reminder>", "&lt;system-reminder>"),
        ("< / System-Reminder >", "&lt; / System-Reminder >"),
        ("</\u200bsystem\u00ad-re\u200bminder>", "&lt;/\u200bsystem\u00ad-re\u200bminder>"),
        ("＜/ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ＞", "&lt;/ｓｙｓｔｅｍ－ｒｅｍｉｎｄｅｒ＞"),
        ("</ſystem-reminder>", "&lt;/ſystem-reminder>"),
        ("<\n/system-reminder>", "&lt;\n/system-reminder>"),
        ("</persisted-output>", "&lt;/persisted-output>"),
    ],
)
def test_tags_of_ours_are_escaped_in_every_spelling(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_a_reminder_holds_its_parts_apart() -> None:
    assert reminder([escape("one"), fence("git-status", "two</git-status>")]) == (
        "<system-reminder>\none\n\n<git-status>\ntwo&lt;/git-status>\n</git-status>\n</system-reminder>"
    )


@pytest.mark.parametrize("piece", ["<", "< ", "</", "<\u200b", "<s", "<system", "<system-", "<system-\u200b", "<system-reminde"])
def test_a_long_hostile_text_is_escaped_in_one_pass(piece: str) -> None:
    # Quadratic work on this would take hours.
    long = piece * 100_000 + "<" + " " * 500_000 + "x"
    assert escape(long) == long

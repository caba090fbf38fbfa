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
        "List<System.String>",
        "`<T>`",
        "&lt;system-reminder>",
        "system-reminder",
        "<system>a reminder</system>",
        "if count <system_limit: remind()",
        "<sys.path> and <git-state>",
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
        ("<system.reminder>", "&lt;system.reminder>"),
        ("<system::reminder>", "&lt;system::reminder>"),
        ("<sys<b>tem-reminder>", "&lt;sys<b>tem-reminder>"),
        ("</sys</b>tem·reminder>", "&lt;/sys</b>tem·reminder>"),
        ("</sys<!-- x -->tem-rem＜i＞inder>", "&lt;/sys<!-- x -->tem-rem＜i＞inder>"),
        ("<s.y.s.t.e.m r-e-m-i-n-d-e-r>", "&lt;s.y.s.t.e.m r-e-m-i-n-d-e-r>"),
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


LOOKALIKES = [
    "<\u0455\u0443\u0455\u0442\u0435\u043c-reminder>",  # Cyrillic
    "<\U0001d42c\U0001d432\U0001d42c\U0001d42d\U0001d41e\U0001d426-reminder>",  # mathematical bold
    "<\U0001d69c\U0001d6a2\U0001d69c\U0001d69dem-reminder>",  # mathematical monospace
    "<\ua731\u028f\ua731\u1d1b\u1d07\u1d0d-\u0280\u1d07\u1d0d\u026a\u0274\u1d05\u1d07\u0280>",  # small capitals
    "<\u24e2\u24e8\u24e2\u24e3\u24d4\u24dc-reminder>",  # circled
    "<\U0001f162\U0001f168\U0001f162\U0001f163\U0001f154\U0001f15c-reminder>",  # white on black
    "<\U0001f1f8\U0001f1fe\U0001f1f8\U0001f1f9\U0001f1ea\U0001f1f2-reminder>",  # the letters of flags
    "<s\u0301y\u0308stem-reminder>",  # combining marks
    "<\u015b\u00fdstem-reminder>",  # accents
    "<\u02e2\u02b8\u02e2\u1d57\u1d49\u1d50-reminder>",  # raised
    "\u276esystem-reminder\u276f",
    "\u2329system-reminder\u232a",
    "\u300asystem-reminder\u300b",
    "\u00absystem-reminder\u00bb",
    "\u1438system-reminder>",
    "\u02c2system-reminder>",
    "\u227asystem-reminder>",
    "<sys\u3164tem-reminder>",  # a Hangul filler
    "<sys\u2800tem-reminder>",  # the empty Braille pattern
    "<sys\uffa0tem-reminder>",
    "<system\u2043reminder>",
    "<system\u30fcreminder>",
    "<\u29f8system-reminder>",
    "<\u2571system-reminder>",
    "<\u03c1ersisted-\u03bfutput>",  # Greek
    "<recalled-memor\u0443>",
    "<agent\u2212message>",
    "<memor\u13a9-index>",  # Cherokee
    "<edit\u0585r-selecti\u0585n>",  # Armenian
    "<g\u0131t-status>",
    "<instruction-\ufb01le>",  # a ligature
    "<instruction\u00adfile>",
    "<system\x08-reminder>",
]


@pytest.mark.spec("G3")
@pytest.mark.parametrize("text", LOOKALIKES)
def test_a_lookalike_of_a_tag_is_escaped(text: str) -> None:
    assert escape(text) == f"&lt;{text[1:]}"
    assert escape(f"before {text} after") == f"before &lt;{text[1:]} after"


@pytest.mark.parametrize(
    "text",
    [
        "если а < б, то система сообщает",
        "数据 <部署> 《系统提醒》 «цитата» 〈名前〉",
        "Σ < α and π < ρ",
        "café <b>naïve</b> <img src='é'>",
        "x ≺ y, ⟨a|b⟩, ‹menu›",
        "a < systematic é",
        "é < remind me",
    ],
)
def test_ordinary_text_of_other_scripts_stays_as_it_is(text: str) -> None:
    assert escape(text) == text


def test_hostile_text_takes_linear_time() -> None:
    """Each of these would take minutes if an opener looked at everything after it."""
    for text in ("<" * 200_000 + "é", "<s\u200b" * 50_000, "<" + "\u200b" * 200_000 + "system-reminder>"):
        assert len(escape(text)) >= len(text)

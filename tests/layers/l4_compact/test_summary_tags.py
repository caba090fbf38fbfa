"""The summary is found in an answer whatever the answer quotes: a conversation about these tags can be compacted like any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.layers.l4_compact.offline import answer
from lamina.layers.l4_compact.summary_text import find_summary

SECTIONS = [f"## {number}. Heading {number}\nWords about it, number {number}." for number in (1, 2, 3, 4, 5, 7, 8)]
BODY = "\n".join(SECTIONS)
FIRST, LAST = "\n".join(SECTIONS[:3]), "\n".join(SECTIONS[3:])


def around(quotation: str) -> str:
    """A summary that quotes something between its sections."""
    return f"{FIRST}\n{quotation}\n{LAST}"


QUOTATIONS = [
    "We parse `<summary>x</summary>` with a pattern.",
    "The page has <details><summary>More</summary>text</details>.",
    "The tag <summary> was never closed.",
    "The answer ended with </summary> twice.",
    "A lone </summary> and then a lone <summary>.",
    "```html\n<summary>\nClick\n</summary>\n```",
    "The test has <analysis>a draft</analysis>\n<summary>\n## 1. Primary\nold words\n</summary> in it.",
    "The draft stands in <analysis>.",
    "The draft ends with </analysis>, and then comes <summary>.",
    "<summary><summary><summary></summary></summary></summary>",
]


@pytest.mark.spec("C3", "B1")
@pytest.mark.parametrize("quotation", QUOTATIONS)
@pytest.mark.parametrize("draft", ["", "<analysis>thoughts</analysis>\n", "<analysis>never closed\n", "Here it is:\n"])
def test_a_quotation_in_the_summary_cuts_nothing_off(quotation: str, draft: str) -> None:
    body = around(quotation)
    assert find_summary(f"{draft}<summary>\n{body}\n</summary>") == body


@pytest.mark.spec("C3")
@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_a_quotation_in_the_analysis_is_left_out_with_it(quotation: str) -> None:
    found = find_summary(f"<analysis>First {quotation} Then more.</analysis>\n<summary>\n{BODY}\n</summary>")
    assert found is not None
    assert found.endswith(BODY)
    # Only a quotation of a whole answer leaves doubt, and then more is kept rather than less.
    assert found == BODY or "old words" in quotation


@pytest.mark.spec("C3")
@pytest.mark.parametrize(
    "words",
    [
        f"<summary>\n{BODY}",
        BODY,
        f"<analysis>thoughts</analysis>\n{BODY}",
        f"```xml\n<summary>\n{BODY}\n</summary>\n```",
        f"<summary>\n```markdown\n{BODY}\n```\n</summary>",
        f"< Summary >\n{BODY}\n</ SUMMARY >",
        f"I will write <summary> after <analysis>.\n<analysis>x</analysis>\n<summary>\n{BODY}\n</summary>",
        f"<analysis>x</analysis>\nHere is the summary you asked for:\n<summary>\n{BODY}\n</summary>\nI hope that helps.",
        f"<summary>a first try</summary> no: <summary>\n{BODY}\n</summary>",
    ],
    ids=["unclosed", "no-tags", "only-analysis", "in-a-block", "block-inside", "spaces", "announced", "seam", "two-tries"],
)
def test_untidy_answers_are_understood(words: str) -> None:
    assert find_summary(words) == BODY


def test_a_summary_without_tags_may_quote_them() -> None:
    body = around("The page has <summary>More</summary>.")
    assert find_summary(body) == body


@pytest.mark.spec("C3", "B15")
@pytest.mark.parametrize("form", ["## {}. ", "## {}、", "**{}．", "### {}："], ids=["dot", "comma", "bold", "colon"])
def test_a_summary_in_another_language_is_found(form: str) -> None:
    names = ["主要请求", "关键概念", "文件和代码", "错误和修复", "问题解决", "待办", "当前工作"]
    body = "\n".join(f"{form.format(number)}{name}\n端口是 8417。" for number, name in enumerate(names, start=1))
    assert find_summary(f"<summary>{body}</summary>") == body
    assert find_summary(body) == body


@pytest.mark.parametrize("words", ["", "We talked.", "<analysis>only thoughts</analysis>", "<summary>half of", "</summary>"])
def test_what_is_no_summary_is_not_found(words: str) -> None:
    assert find_summary(words) is None


PIECES = st.sampled_from(["<summary>", "</summary>", "<analysis>", "</analysis>", "\n", "## 1. x\n", "words ", "```\n", "`"])


@pytest.mark.spec("C3", "B1")
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_quotation_behind_the_first_section_loses_words(quotation: str) -> None:
    body = f"{FIRST}\nSo it said: {quotation} and so on.\n{LAST}"
    found = find_summary(f"<analysis>thoughts</analysis>\n<summary>\n{body}\n</summary>")
    assert found == body.strip()


@pytest.mark.spec("C3", "O1")
@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_the_rules_can_quote_the_tags_too(quotation: str) -> None:
    said = {"role": "user", "content": [{"type": "text", "text": f"Why 17 times? {quotation}"}]}
    told = {"role": "assistant", "content": [{"type": "text", "text": f"It is read 17 times in the parser. {quotation}"}]}
    asked = {"role": "user", "content": [{"type": "text", "text": "the directive"}]}
    [block] = answer({"messages": [said, told, asked], "max_tokens": 5_000})
    found = find_summary(block["text"])
    assert found is not None
    assert found.startswith("## 1. Primary request")
    assert "## 8. Current work" in found
    assert "It is read 17 times in the parser." in found


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "piece", ["<summary>## 1. ", "\n<summary>\n## 1. x", "<analysis></analysis><summary>", "</summary>\n## 1."]
)
def test_an_answer_made_to_be_slow_is_read_in_one_go(piece: str) -> None:
    for words in (piece * 50_000, f"<summary>{piece * 50_000}</summary>"):
        find_summary(words)

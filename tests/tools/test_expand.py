"""Expand: what was taken out of view is one call away."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.errors import InputError
from lamina.tools.conversation_tools import MOST_FOUND, expand_tool, find_paragraphs
from lamina.tools.tool import Context, ExpandedPage


def opening(node: str, number: int | None) -> ExpandedPage:
    if node != "ab12":
        raise InputError(node, "there is no compaction with this id in the transcript")
    return ExpandedPage(
        f"page {number}" if number is not None else "[user 1]\nThe port is 8080\n\n[user 2]\nThe host is db1", number or 1, 3
    )


def context(cwd: Path, *, opens: bool = True) -> Context:
    return Context(cwd=cwd, expand=opening if opens else None)


@pytest.mark.spec("B1")
def test_a_page_is_shown_and_how_many_there_are(tmp_path: Path) -> None:
    output = expand_tool().run({"node": "ab12", "page": 2}, context(tmp_path))
    assert output.content == "page 2\n[Page 2 of 3.]"
    assert output.facts == {"node": "ab12", "page": 2, "pages": 3}
    assert expand_tool().run({"node": "ab12"}, context(tmp_path)).content == "page 1\n[Page 1 of 3.]"


def test_a_search_shows_the_paragraphs_with_all_the_words(tmp_path: Path) -> None:
    assert expand_tool().run({"node": "ab12", "find": "PORT is"}, context(tmp_path)).content == "[user 1]\nThe port is 8080"
    assert expand_tool().run({"node": "ab12", "find": "nowhere"}, context(tmp_path)).content == "No paragraph contains 'nowhere'."


def test_a_search_that_finds_too_much_is_bounded_and_says_so() -> None:
    text = "\n\n".join(f"the word number {number} " + "x" * 3_000 for number in range(50))
    shown = find_paragraphs(text, "word")
    assert len(shown) < MOST_FOUND + 200
    assert shown.endswith("found; use narrower words.]")
    assert len(find_paragraphs("word " + "y" * 100_000, "word")) <= MOST_FOUND


def test_of_a_long_output_the_matching_lines_are_shown() -> None:
    output = "".join(f"file_{number}.py: a hit\n" for number in range(9_000))
    assert find_paragraphs(output, "file_8999.py HIT") == "file_8999.py: a hit"


@pytest.mark.parametrize("given", [{}, {"node": "x"}, {"node": "ab12", "page": 0}, {"node": "zz99"}])
def test_what_cannot_be_opened_is_an_error_the_model_can_act_on(tmp_path: Path, given: dict[str, object]) -> None:
    output = expand_tool().run(given, context(tmp_path))
    assert output.is_error
    assert output.content


def test_without_a_conversation_there_is_nothing_to_open(tmp_path: Path) -> None:
    assert expand_tool().run({"node": "ab12"}, context(tmp_path, opens=False)).is_error

"""The excerpt of a search result contains the words that matched, on the command line and on the page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lamina.language.terms import excerpt_range, matches

LINE = "start " + "filler " * 60 + "the redis queue lost messages " + "filler " * 60 + "redis again"


def shown(query: str, most: int = 80, *, exact: bool = False) -> str:
    begin, end = excerpt_range(LINE, query, most, exact=exact)
    return LINE[begin:end]


def test_the_part_with_most_of_the_words_is_shown() -> None:
    assert "the redis queue lost" in shown("did redis queues start?")
    assert shown("nothing of it").startswith("start filler")
    assert shown("LOST  messages", exact=True).count("lost messages") == 1
    assert shown("redis again", exact=True).endswith("redis again")


def test_a_literal_search_marks_the_whole_text_only() -> None:
    assert matches("a redis, a queue, a redis queue", "redis  queue", exact=True) == [(20, 31)]
    assert matches("a redis, a queue", "redis queue") == [(2, 7), (11, 16)]


@given(st.text("ab c", max_size=60), st.text("ab c", min_size=1, max_size=6), st.integers(1, 40), st.booleans())
def test_an_excerpt_is_a_part_of_the_line_and_no_longer_than_asked(line: str, query: str, most: int, exact: bool) -> None:
    begin, end = excerpt_range(line, query, most, exact=exact)
    assert 0 <= begin <= end
    assert end - begin <= most
    assert begin < len(line) or not line
    assert len(line) > most or (begin, end) == (0, len(line))

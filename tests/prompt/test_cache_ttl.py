"""The rule that chooses the lifetime of a request's cache marks."""

from __future__ import annotations

import pytest

from lamina.core.usage import Usage
from lamina.prompt.cache_marks import PauseEvidence, choose_ttl, is_long_pause, written_ttl


@pytest.mark.spec("P6")
@pytest.mark.parametrize(
    ("seen", "new", "ttl"),
    [
        pytest.param(PauseEvidence(), 100_000, "5m", id="a first request"),
        pytest.param(PauseEvidence(200), 10, "5m", id="no pause so far"),
        pytest.param(PauseEvidence(100, 1), 399, "1h", id="one pause, and little is new in a large context"),
        pytest.param(PauseEvidence(100, 1), 401, "5m", id="more is new than the chance of a pause pays for"),
        pytest.param(PauseEvidence(100, 5), 1_900, "1h", id="a session with many pauses"),
        pytest.param(PauseEvidence(100, 5, lost=3), 0, "5m", id="entries for an hour did not last"),
        pytest.param(PauseEvidence(100, 5, lost=1), 1_100, "1h", id="one of five was lost"),
        pytest.param(PauseEvidence(100, 1, lost=1), 10, "5m", id="the only one was lost"),
    ],
)
def test_an_hour_is_chosen_where_it_costs_less_than_the_expected_rewrite(seen: PauseEvidence, new: int, ttl: str) -> None:
    assert choose_ttl(seen, context=100_000, new=new) == ttl


@pytest.mark.spec("P6")
def test_pauses_count_between_the_two_lifetimes() -> None:
    assert [is_long_pause(seconds) for seconds in (0, 299, 300, 3_599, 3_600)] == [False, False, True, True, False]


def test_the_response_says_which_lifetime_was_written() -> None:
    assert written_ttl(None, "1h") == "1h"
    assert written_ttl(Usage(cache_read=10), "1h") == "1h"
    assert written_ttl(Usage(cache_write=10), "1h") == "5m"
    assert written_ttl(Usage(cache_write=10, cache_write_1h=4), "5m") == "1h"

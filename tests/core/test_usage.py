"""Usage: read from any report, counted by price class."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import examples

from lamina.core.usage import Usage, read_usage

counts = st.integers(0, 10**7)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


@examples(100)
@given(usages)
def test_usage_written_and_read_is_the_same(usage: Usage) -> None:
    assert read_usage(usage.wire()) == (usage if usage.prompt else None)


@pytest.mark.spec("T1")
def test_the_total_is_all_that_was_reported() -> None:
    usage = Usage(1, 20, 300, 300, 4_000)
    assert (usage.prompt, usage.total) == (321, 4_321)


@examples(50)
@given(usages, usages)
def test_usages_add_up_class_by_class(a: Usage, b: Usage) -> None:
    assert (a + b).total == a.total + b.total
    assert (a + b).cache_write_1h == a.cache_write_1h + b.cache_write_1h


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        "usage",
        {"output_tokens": 5},
        {"input_tokens": 0, "output_tokens": 5},
        {"input_tokens": -5},
        {"input_tokens": "5"},
    ],
)
def test_a_report_of_nothing_is_no_report(raw: Any) -> None:
    assert read_usage(raw) is None


def test_what_is_no_count_counts_nothing() -> None:
    raw = {"input_tokens": 5, "cache_read_input_tokens": True, "cache_creation": "x", "output_tokens": None}
    assert read_usage(raw) == Usage(5)

"""The daily total of background work, and the limits that are exhausted."""

from __future__ import annotations

import msgspec
import pytest

from lamina.core.budget import LedgerLine, Limits, Spent, left, limits_of, ran_out, spent_in
from lamina.core.settings import Settings
from lamina.core.usage import Usage

ANY = Limits(10, 1_000, 1.0)


def line(**given: object) -> LedgerLine:
    return msgspec.convert({"time": 1.0, "purpose": "notes", "project": "/w", "usd": 0.0, **given}, LedgerLine)


@pytest.mark.spec("B9")
def test_the_limits_are_those_of_the_specification_and_can_be_set() -> None:
    assert limits_of(Settings()) == Limits(200, 2_000_000, 2.0)
    assert limits_of(Settings(budget_calls=3, budget_tokens=4, budget_dollars=0.5)) == Limits(3, 4, 0.5)


@pytest.mark.spec("B9")
@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], None),
        ([line()] * 9, None),
        ([line()] * 10, "calls"),
        ([line(input=999)], None),
        ([line(input=500, output=300, cache_write=200)], "tokens"),
        ([line(cache_read=9_999)], None),
        ([line(cache_read=10_000)], "tokens"),
        ([line(usd=0.99)], None),
        ([line(usd=0.5)] * 2, "dollars"),
        ([line(usd=None, input=900)], None),
        ([line(usd=None, failed=True)] * 10, "calls"),
        ([line(usd=2.0), *[line(usd=-5.0, input=-900)] * 8], "dollars"),
    ],
)
def test_what_is_reached_first_has_run_out(lines: list[LedgerLine], what: str | None) -> None:
    out = ran_out(spent_in(lines), ANY)
    assert (out.what if out else None) == what
    assert (min(left(spent_in(lines), ANY).values()) == 0) == (what is not None)


@pytest.mark.parametrize("none", [Limits(0, 9, 9.0), Limits(9, 0, 9.0), Limits(9, 9, 0.0)])
def test_a_limit_of_nothing_allows_nothing(none: Limits) -> None:
    assert ran_out(Spent(), none) is not None


def test_sums_do_not_depend_on_who_counted_what() -> None:
    lines = [line(input=3, usd=0.25), line(usd=None, output=7), line(usd=None, failed=True), line(cache_read=25)]
    assert spent_in(lines[:1]) | spent_in(lines[1:]) == spent_in(reversed(lines))
    assert spent_in(lines) == Spent(4, Usage(3, 25, 0, 0, 7), 0.25, unpriced=1, failed=1)
    assert spent_in(lines).tokens == 12


def test_the_sentence_names_what_ran_out_and_where_it_is_set() -> None:
    tokens = ran_out(spent_in([line(input=1_500)]), ANY)
    dollars = ran_out(spent_in([line(usd=1.2)]), ANY)
    assert tokens is not None
    assert dollars is not None
    assert "1,500 of 1,000 tokens" in tokens.sentence()
    assert "lamina.budgetTokens" in tokens.sentence()
    assert "$1.20 of $1.00" in dollars.sentence()
    assert "lamina.budgetDollars" in dollars.sentence()
    assert "$" not in dollars.sentence("subscription")
    assert tokens.sentence("subscription") == tokens.sentence()

"""Amounts as one number: dollars at list price, or units under a subscription."""

from __future__ import annotations

import pytest

from lamina.core.usage import Usage
from lamina.providers.amounts import Amount, unit_parts, units_of
from lamina.providers.models import cost

USED = Usage(input_tokens=10, cache_read=1_000, cache_write=300, cache_write_1h=100, output_tokens=50)


def test_a_unit_is_one_uncached_input_token_and_parts_add_up() -> None:
    assert units_of(USED) == pytest.approx(10 + 100 + 1.25 * 200 + 2 * 100 + 5 * 50)
    assert unit_parts(USED) == pytest.approx((100, 10 + 250 + 200, 250))
    assert units_of(USED + USED) == pytest.approx(2 * units_of(USED))


def test_units_are_dollars_over_the_input_price_where_the_usual_ratios_hold() -> None:
    per_token = (cost("claude-sonnet-4-5", Usage(1_000)).usd or 0.0) / 1_000
    assert units_of(USED) * per_token == pytest.approx(cost("claude-sonnet-4-5", USED).usd)


def test_an_unknown_price_is_unknown_in_dollars_only() -> None:
    known, unknown = Amount(USED, 0.5), Amount(USED, None)
    assert [(known + one).number("list") for one in (known, unknown)] == [1.0, None]
    assert (known + unknown).number("subscription") == pytest.approx(2 * units_of(USED))

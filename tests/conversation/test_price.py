"""The price of a compaction against the price of none: the rule, and the ratios it is fed with."""

from __future__ import annotations

import pytest

from lamina.conversation.price import weigh
from lamina.core.policy import BALANCED, CLASSIC, LEAN, THRIFTY
from lamina.providers.models import Ratios, is_free, price_ratios

USUAL = Ratios(0.1, 1.25, 5.0)


@pytest.mark.spec("P4")
def test_a_compaction_is_due_when_the_reads_have_cost_twice_its_price() -> None:
    numbers = {"context": 100_000, "base": 20_000, "tail": 30_000, "summary": 5_000, "ratios": USUAL}
    found = weigh(excess=0, **numbers)  # type: ignore[arg-type]  # the numbers are typed one by one
    assert found.gain == 50_000
    assert found.coming == pytest.approx(4_500)
    assert found.debt == pytest.approx(4_500)
    # A read of all, the written share of the summary, and the write of summary and tail.
    assert found.price == pytest.approx(10_000 + 0.6 * 5 * 5_000 + 1.25 * 35_000)
    enough = int(2 * found.price / 0.1) - 45_000
    assert not weigh(excess=enough, **numbers).is_due(2, 25_000)  # type: ignore[arg-type]
    assert weigh(excess=enough + 10, **numbers).is_due(2, 25_000)  # type: ignore[arg-type]
    assert weigh(excess=enough - 90_000, **numbers).is_due(2, 25_000, calls=3)  # type: ignore[arg-type]
    assert not weigh(excess=enough + 10, **numbers).is_due(2, 50_001)  # type: ignore[arg-type]


@pytest.mark.spec("P4")
def test_a_context_below_what_a_compaction_leaves_adds_no_debt() -> None:
    found = weigh(context=50_000, base=20_000, tail=30_000, summary=5_000, excess=0, ratios=USUAL)
    assert (found.debt, found.coming, found.gain) == (0, 0, 0)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("model", "ttl", "prompt", "ratios"),
    [
        ("claude-sonnet-4-5", "5m", 1_000, (0.1, 1.25, 5.0)),
        ("claude-sonnet-4-5", "1h", 1_000, (0.1, 2.0, 5.0)),
        ("claude-sonnet-4-5", "5m", 300_000, (0.1, 1.25, 3.75)),
        ("claude-sonnet-5-5", "5m", 1_000, (0.05, 1.25, 5.0)),
        ("nobody-knows-it", "5m", 1_000, (0.1, 1.25, 5.0)),
        ("nobody-knows-it", "1h", 1_000, (0.1, 2.0, 5.0)),
        ("nobody-knows-it", None, 1_000, (0.1, 1.0, 5.0)),
        ("codestral", None, 1_000, (1.0, 1.0, 3.0)),
    ],
)
def test_the_ratios_are_those_of_the_model_and_the_usual_ones_if_it_is_unknown(
    model: str, ttl: str | None, prompt: int, ratios: tuple[float, float, float]
) -> None:
    found = price_ratios(model, prompt=prompt, ttl=ttl)
    assert (found.read, found.write, found.output) == pytest.approx(ratios)
    assert not is_free(model)


@pytest.mark.spec("P4")
def test_only_the_two_policies_that_save_compact_by_price() -> None:
    assert BALANCED.price.factor == THRIFTY.price.factor == 2
    assert CLASSIC.price.factor == LEAN.price.factor == 0
    assert BALANCED.compact.tail_min == 30_000
    assert BALANCED.compact.restored_tokens == 10_000
    assert BALANCED.notes.must_pay

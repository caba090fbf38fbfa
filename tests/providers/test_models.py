"""Names find their model, and the cost of a call is correct to the cent."""

from __future__ import annotations

import re

import pytest

from lamina.core.usage import Usage
from lamina.providers.models import Cost, cost, costs_more, known, normal_name, small_model, table


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.6:thinking", "claude-opus-4-6"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("claude-4-sonnet-20250514", "claude-sonnet-4-0"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("anthropic:claude-opus-5-5", "claude-opus-5-5"),
        ("Claude-Sonnet-5[1m]", "claude-sonnet-5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-codex", "gpt-5"),
        ("o3-mini-high", "o3-mini"),
        ("GLM-4.6", "glm-4.6"),
    ],
)
def test_a_name_in_any_spelling_finds_its_model(name: str, family: str) -> None:
    found = known(name)
    assert found is not None
    assert found.name == family


@pytest.mark.parametrize("name", ["claude-opus-5-9", "gpt-5.99", "gpt-77", "qwen3:8b", "", "my-own-model", "claude"])
def test_a_version_the_file_does_not_hold_is_unknown_and_not_its_predecessor(name: str) -> None:
    assert known(name) is None


@pytest.mark.spec("T4")
def test_a_window_of_a_million_that_needs_a_header_counts_as_200_000() -> None:
    with_header, without = known("claude-sonnet-4-5"), known("claude-sonnet-5-5")
    assert with_header is not None
    assert without is not None
    assert (with_header.window, with_header.needs_header_for_1m) == (200_000, True)
    assert (without.window, without.needs_header_for_1m) == (1_000_000, False)


def test_money_and_units_of_a_call_count_every_price_class_once() -> None:
    usage = Usage(input_tokens=1_000, cache_read=100_000, cache_write=20_000, cache_write_1h=5_000, output_tokens=2_000)
    found = cost("claude-sonnet-4-5", usage)
    assert found.units == pytest.approx(1_000 + 10_000 + 15_000 * 1.25 + 5_000 * 2 + 2_000 * 5)
    assert found.usd == pytest.approx(found.units * 3 / 1_000_000)


def test_an_unknown_model_costs_units_but_no_money() -> None:
    found = cost("my-own-model", Usage(input_tokens=10, output_tokens=2))
    assert found == Cost(None, 20.0)


def test_costs_add_up_and_an_unknown_price_makes_the_sum_unknown() -> None:
    assert Cost() + Cost(0.5, 10.0) == Cost(0.5, 10.0)
    assert Cost(0.5, 10.0) + Cost(None, 5.0) == Cost(None, 15.0)


def test_a_long_prompt_is_billed_at_the_price_for_long_prompts() -> None:
    short = cost("claude-haiku-5-5", Usage(input_tokens=100_000))
    long = cost("claude-haiku-5-5", Usage(input_tokens=100_001))
    assert short.usd == pytest.approx(0.01)
    assert long.usd == pytest.approx(0.0500005)


def test_a_cache_class_without_a_price_of_its_own_is_billed_as_input() -> None:
    found = cost("gpt-4o", Usage(cache_write=1_000_000))
    assert found.usd == pytest.approx(2.5)


def test_output_in_units_follows_the_models_own_prices() -> None:
    assert cost("gpt-5", Usage(input_tokens=0, output_tokens=100)).units == pytest.approx(800)


def test_the_file_is_dated_names_its_source_and_every_entry_is_sane() -> None:
    found = table()
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", found.date)
    assert "genai-prices" in found.source
    assert len(found.models) > 100
    for name, entry in found.models.items():
        assert normal_name(name) == name
        assert entry.window >= 4_000
        assert entry.prices is not None
        assert 0 < entry.prices.input <= entry.prices.output
    assert set(found.aliases.values()) <= set(found.models)
    assert not set(found.aliases) & set(found.models)


@pytest.mark.spec("A7")
@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("claude-opus-5-5", "claude-haiku-5-5"),
        ("claude-sonnet-5-5-20260901", "claude-haiku-5-5"),
        ("claude-of-next-year-9", "claude-haiku-5-5"),
        ("claude-haiku-5-5", None),
        ("gpt-5.5", "gpt-6-luna"),
        ("gpt-6-luna", None),
        ("us.anthropic.claude-opus-4-6-v1:0", None),
        ("qwen3-coder", None),
    ],
)
def test_the_small_model_is_of_the_same_maker_and_costs_less(model: str, small: str | None) -> None:
    assert small_model(model) == small
    assert small is None or known(small) is not None
    assert costs_more("us.anthropic.claude-opus-4-6-v1:0")
    assert not costs_more("qwen3-coder")

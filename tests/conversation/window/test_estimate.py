"""The factors learn from reported usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.window.estimate import (
    BLANK,
    LETTER,
    MARK,
    START,
    WIDE,
    Calibration,
    estimate,
    observe,
    unreported_estimate,
)
from lamina.conversation.window.features import EMPTY, Features, measure, measure_all
from lamina.core.blocks import text, tool_result

PROSE = Features(letters=4_000, blanks=800, marks=200, frame=12)
TABLE = Features(letters=400, blanks=900, marks=3_000, frame=12)

amounts = st.integers(0, 1_000_000)
any_features = st.builds(Features, amounts, amounts, amounts, amounts, amounts, amounts, st.sampled_from([0, 0, 2_000]), amounts)


def dearer_words(features: Features) -> int:
    """A tokenizer that needs 1.45 times as many tokens for words and as many as before for the rest."""
    return round((features.letters * LETTER + features.blanks * BLANK) * 1.45 + features.marks * MARK + features.frame)


def off_by(features: Features, calibration: Calibration, truth: int) -> float:
    return abs(estimate(features, calibration) - truth) / truth


@pytest.mark.spec("T2")
def test_a_report_moves_the_estimate_towards_itself() -> None:
    before = estimate(PROSE)
    high = estimate(PROSE, observe(START, PROSE, before * 13 // 10))
    low = estimate(PROSE, observe(START, PROSE, before * 7 // 10))
    assert low < before < high
    assert high <= before * 13 // 10


@pytest.mark.spec("T2")
@given(st.lists(st.tuples(any_features, st.integers(-1_000_000, 10_000_000)), max_size=30))
def test_factors_stay_within_half_and_twice_whatever_is_reported(reports: list[tuple[Features, int]]) -> None:
    calibration = START
    for added, reported in reports:
        calibration = observe(calibration, added, reported)
        assert all(0.5 <= factor <= 2 for factor in calibration.factors)
        assert all(doubt > 0 for doubt in calibration.doubts)


@pytest.mark.spec("T2")
def test_a_tokenizer_that_is_dearer_in_words_only_is_learned_from_mixed_steps() -> None:
    calibration = START
    for step in range(30):
        added = PROSE if step % 2 else TABLE
        calibration = observe(calibration, added, dearer_words(added))
    assert off_by(PROSE, START, dearer_words(PROSE)) > 0.2
    for added in (PROSE, TABLE):
        assert off_by(added, calibration, dearer_words(added)) < 0.05


@pytest.mark.spec("T2")
@pytest.mark.parametrize("per_character", [0.6, 1.25])
def test_what_a_chinese_japanese_or_korean_character_costs_is_learned_in_a_few_steps(per_character: float) -> None:
    added = Features(wide=2_000, marks=100)
    truth = round(added.wide * WIDE * per_character + added.marks * MARK)
    calibration = START
    for _ in range(5):
        calibration = observe(calibration, added, truth)
    assert off_by(added, calibration, truth) < 0.05


def test_a_class_that_is_not_in_a_step_is_not_touched_by_it() -> None:
    words, _, wide, rare, _ = observe(START, PROSE, 2_000).factors
    assert words != 1.0
    assert (wide, rare) == (1.0, 1.0)


def test_context_this_side_never_saw_pulls_the_estimate_only_a_little() -> None:
    calibration = START
    for _ in range(10):
        calibration = observe(calibration, PROSE, estimate(PROSE))
    after = observe(calibration, PROSE, estimate(PROSE) * 20)
    assert estimate(PROSE, after) < estimate(PROSE, calibration) * 1.25


@pytest.mark.parametrize(
    ("added", "reported"),
    [(PROSE, 0), (PROSE, -500), (EMPTY, 900), (Features(letters=4_000, flat=2_000), 3_000)],
)
def test_nothing_is_learned_from_a_step_that_says_nothing_about_text(added: Features, reported: int) -> None:
    assert observe(START, added, reported) is START


def test_each_response_learned_from_is_counted() -> None:
    assert observe(observe(START, PROSE, 1_000), TABLE, 2_000).seen == 2


def test_images_and_documents_are_not_scaled_by_the_factors() -> None:
    assert estimate(Features(flat=4_000), Calibration(factors=(2.0, 2.0, 2.0, 2.0, 2.0))) == 4_000


@pytest.mark.spec("T3")
def test_without_any_report_fullness_is_the_estimate_and_a_third_rounded_up() -> None:
    assert unreported_estimate(measure(text("a" * 4_000))) == 1_334
    assert unreported_estimate(EMPTY) == 0


@pytest.mark.spec("T3")
def test_the_better_estimate_may_raise_fullness_without_a_report_but_not_lower_it() -> None:
    digits = measure(text("7" * 4_000))
    assert unreported_estimate(digits) == estimate(digits) > 1_334


@pytest.mark.spec("T3")
def test_savings_are_tested_with_the_plain_rule() -> None:
    assert measure_all([text("a" * 400), tool_result("t", "[" + "1," * 199 + "1]")]).plain == 100 + 201

"""The fate of a result depends on its size, its tool and the budget alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.policy import CLASSIC, ResultPolicy
from lamina.layers.l1_results.plan import (
    FRAME,
    ArrivedResult,
    Kind,
    ResultBudget,
    ResultFate,
    alone,
    budget_for,
    empty_marker,
    plan,
    together,
    weigh,
)

FULL = 180_000
BUDGET = budget_for(CLASSIC.results, FULL)


def small_budget(effective: int) -> ResultBudget:
    return budget_for(CLASSIC.results, effective, scale=min(1.0, effective / FULL))


def arrived(tool: str, size: int, kind: Kind = "text", *, per_character: int = 1) -> ArrivedResult:
    return ArrivedResult(tool, size, size * per_character, kind)


@pytest.mark.spec("R1")
@pytest.mark.parametrize(
    ("tool", "size", "fate"),
    [
        ("Bash", 30_000, "keep"),
        ("Bash", 30_001, "spill"),
        ("Grep", 50_000, "keep"),
        ("Grep", 50_001, "spill"),
        ("Read", 50_001, "spill"),
        ("mcp__files__list", 30_001, "keep"),
        ("", 50_001, "spill"),
    ],
)
def test_a_result_over_the_threshold_of_its_tool_is_spilled(tool: str, size: int, fate: ResultFate) -> None:
    assert plan([arrived(tool, size)], BUDGET) == [fate]


@pytest.mark.spec("R1")
def test_of_a_message_that_is_too_large_the_largest_are_spilled_until_the_rest_fits() -> None:
    sizes = [10_000, 45_000, 49_000, 44_000, 43_000, 30_000]
    assert plan([arrived("Grep", size) for size in sizes], BUDGET) == ["keep", "keep", "spill", "keep", "keep", "keep"]
    assert plan([arrived("Grep", 50_000)] * 4, BUDGET) == ["keep"] * 4
    assert plan([arrived("Grep", 50_000)] * 5, BUDGET) == ["spill", "spill", "keep", "keep", "keep"]


@pytest.mark.spec("R1", "R6")
def test_fifty_results_at_once_fit_and_errors_and_images_are_not_touched() -> None:
    came = [arrived("Grep", 10_000 + number, "text") for number in range(45)] + [arrived("Grep", 9_000, "fixed")] * 5
    fates = plan(came, BUDGET)
    assert fates[45:] == ["keep"] * 5
    spilled = [one.size for one, fate in zip(came, fates, strict=True) if fate == "spill"]
    kept = [one.size for one, fate in zip(came[:45], fates, strict=False) if fate == "keep"]
    assert min(spilled) > max(kept)
    assert sum(kept) + 45_000 + len(spilled) * (2_000 + FRAME) <= 200_000


@pytest.mark.spec("R6")
def test_an_error_or_a_result_with_images_is_kept_unless_no_window_could_hold_it() -> None:
    assert plan([arrived("Bash", 200_000, "fixed")], BUDGET) == ["keep"]
    assert plan([arrived("Bash", BUDGET.whole + 1, "fixed")], BUDGET) == ["spill"]


@pytest.mark.spec("R5")
def test_a_read_of_a_spilled_file_is_paged_and_never_spilled() -> None:
    assert plan([arrived("Read", 60_000, "page")], BUDGET) == ["page"]
    assert plan([arrived("Read", 49_000, "page")] * 5, BUDGET) == ["keep"] * 5


@pytest.mark.spec("R6")
def test_nothing_becomes_a_marker_that_names_the_tool() -> None:
    assert plan([arrived("Bash", 0, "empty")], BUDGET) == ["mark"]
    assert empty_marker("Bash") == "(Bash completed with no output)"
    assert empty_marker("") == "(The call completed with no output)"
    assert len(empty_marker("x" * 10_000)) < 100


@pytest.mark.spec("R5")
def test_a_threshold_can_be_set_for_each_tool_and_its_preview_stays_below_it() -> None:
    budget = budget_for(ResultPolicy(per_tool={"Grep": 1_000}, default=500), FULL)
    assert plan([arrived("Grep", 1_001), arrived("Grep", 1_000), arrived("Glob", 501)], budget) == ["spill", "keep", "spill"]
    assert budget.preview_of("Grep") == 500
    assert budget.preview_of("Glob") == 250


@pytest.mark.parametrize(
    ("effective", "bash", "others", "together_bytes"),
    [
        (980_000, 30_000, 50_000, 1_470_000),
        (180_000, 30_000, 50_000, 270_000),
        (108_000, 18_000, 30_000, 162_000),
        (24_000, 4_000, 6_666, 36_000),
        (6_000, 1_000, 1_666, 9_000),
        (750, 625, 625, 1_125),
    ],
)
@pytest.mark.spec("R1", "T9")
def test_limits_in_characters_shrink_with_a_small_window_down_to_a_thousand_and_bytes_cap_them(
    effective: int, bash: int, others: int, together_bytes: int
) -> None:
    budget = small_budget(effective)
    assert (budget.threshold("Bash"), budget.threshold("Grep"), budget.whole) == (bash, others, together_bytes)
    # At two bytes a token all results of a message leave a quarter of the window free, and one result more than half of it.
    assert budget.whole / 2 <= effective * 3 / 4
    assert budget.single / 2 <= effective * 5 / 12


@pytest.mark.spec("R1", "T9")
def test_on_a_full_window_the_thresholds_hold_for_text_of_every_script_and_on_a_small_one_bytes_count() -> None:
    assert plan([arrived("Grep", 50_000, per_character=3)], BUDGET) == ["keep"]
    small = small_budget(6_000)
    assert plan([arrived("Grep", 1_250, per_character=4), arrived("Grep", 1_251, per_character=4)], small) == ["keep", "spill"]
    assert small.page_of(arrived("Read", 60_000, per_character=4)) == 1_250
    # Four results of 50,000 Chinese characters are R1's 200,000 characters, and more tokens than the window has.
    assert plan([arrived("Grep", 50_000, per_character=3)] * 4, BUDGET) == ["spill", "spill", "spill", "keep"]


def test_bytes_are_counted_where_they_matter() -> None:
    assert weigh("abc", 10) == 3
    assert weigh("€" * 10, 10) == 30
    assert weigh("€" * 11, 10) == 11
    assert weigh("\ud800", 10) == 3


KINDS: tuple[Kind, ...] = ("text", "fixed", "page", "empty")
ARRIVED = st.builds(
    arrived,
    st.sampled_from(["Bash", "Read", "Grep"]),
    st.integers(0, 300_000),
    st.sampled_from(KINDS),
    per_character=st.sampled_from([1, 1, 2, 3, 4]),
)


@given(st.lists(ARRIVED, max_size=60), st.sampled_from([750, 6_000, 24_000, 180_000, 980_000]))
def test_what_is_left_fits_or_nothing_more_could_be_saved(came: list[ArrivedResult], effective: int) -> None:
    budget = small_budget(effective)
    fates = plan(came, budget)
    left = sum(_size(one, fate, budget) for one, fate in zip(came, fates, strict=True))
    could = [
        one
        for one, fate in zip(came, fates, strict=True)
        if one.kind == "text" and fate == "keep" and one.size > budget.preview_of(one.tool) + FRAME
    ]
    assert left <= budget.per_message or not could
    for one, fate in zip(came, fates, strict=True):
        assert fate != "spill" or one.kind in ("text", "fixed")
        assert alone(one, budget) in ("keep", fate)
    assert together(came, fates, budget) == fates  # decided once


def _size(one: ArrivedResult, fate: ResultFate, budget: ResultBudget) -> int:
    match fate:
        case "spill":
            return budget.preview_of(one.tool) + FRAME
        case "page":
            return budget.page_of(one)
        case _:
            return one.size

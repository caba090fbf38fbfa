"""The thresholds keep their order in every window and under every policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.conversation.window.thresholds import MIN_WINDOW, Thresholds, state_of, thresholds
from lamina.core.errors import InputError
from lamina.core.policy import CLASSIC, LEAN, WindowPolicy

policies = st.builds(
    WindowPolicy,
    reserve=st.integers(0, 300_000),
    autocompact_offset=st.integers(0, 300_000),
    warning_offset=st.integers(0, 300_000),
    error_offset=st.integers(0, 300_000),
    blocking_offset=st.integers(0, 300_000),
    full_effective=st.integers(1, 300_000),
    autocompact_at=st.none() | st.integers(0, 2_000_000),
)
windows = st.integers(MIN_WINDOW, 2_000_000) | st.integers(MIN_WINDOW, 3_000)
outputs = st.none() | st.integers(1, 200_000)
percentages = st.none() | st.floats(allow_nan=True) | st.floats(0, 100) | st.text(max_size=4)


def marks(at: Thresholds) -> tuple[int, int, int, int, int]:
    return at.effective, at.warning, at.error, at.autocompact, at.blocking


@pytest.mark.spec("T5")
@pytest.mark.parametrize(
    ("window", "max_output", "expected"),
    [
        (200_000, 64_000, (180_000, 160_000, 160_000, 167_000, 177_000)),
        (200_000, None, (180_000, 160_000, 160_000, 167_000, 177_000)),
        (200_000, 8_192, (191_808, 171_808, 171_808, 178_808, 188_808)),
        (1_000_000, 64_000, (980_000, 960_000, 960_000, 967_000, 977_000)),
    ],
)
def test_the_marks_stand_at_fixed_offsets_before_the_effective_window(
    window: int, max_output: int | None, expected: tuple[int, int, int, int, int]
) -> None:
    at = thresholds(window, max_output, CLASSIC.window)
    assert marks(at) == expected
    assert at.scale == 1.0


@pytest.mark.spec("T5")
def test_warning_and_error_are_two_settings() -> None:
    at = thresholds(200_000, None, WindowPolicy(warning_offset=50_000, error_offset=9_000))
    assert (at.warning, at.error) == (130_000, 171_000)


@pytest.mark.spec("T5", "T9")
def test_in_a_small_window_the_reserve_is_a_quarter_and_every_offset_shrinks_with_it() -> None:
    at = thresholds(32_000, 64_000, CLASSIC.window)
    assert at.effective == 24_000
    assert at.scale == pytest.approx(24_000 / 180_000)
    assert marks(at)[1:] == (24_000 - 2_666, 24_000 - 2_666, 24_000 - 1_733, 24_000 - 400)
    assert at.scaled(40_000) == 5_333
    assert (at.scaled(1), at.scaled(0)) == (1, 0)


@pytest.mark.spec("T9")
@given(windows, outputs, policies, percentages)
def test_the_marks_are_always_in_order(
    window: int, max_output: int | None, policy: WindowPolicy, pct: float | str | None
) -> None:
    at = thresholds(window, max_output, policy, pct)
    assert 1 <= at.warning <= at.autocompact < at.blocking < at.effective <= window
    assert 1 <= at.error <= at.blocking
    assert 0 < at.scale <= 1


@pytest.mark.spec("T9")
@given(windows, outputs)
def test_a_larger_window_never_moves_a_mark_down(window: int, max_output: int | None) -> None:
    here, above = thresholds(window, max_output, CLASSIC.window), thresholds(window + 1, max_output, CLASSIC.window)
    assert all(low <= high for low, high in zip(marks(here), marks(above), strict=True))


def test_a_window_that_holds_no_conversation_is_refused() -> None:
    with pytest.raises(InputError, match="999 tokens is too small"):
        thresholds(999, None, CLASSIC.window)


@pytest.mark.spec("T6")
@pytest.mark.parametrize(
    ("pct", "autocompact"),
    [(50, 90_000), ("50", 90_000), (33.3, 59_940), (99.99, 167_000), (100, 167_000), (0.0001, 1), ("", 167_000), (None, 167_000)],
)
def test_a_percentage_moves_autocompact_forward_and_never_back(pct: float | str | None, autocompact: int) -> None:
    at = thresholds(200_000, None, CLASSIC.window, pct)
    assert at.autocompact == autocompact
    assert at.warning == min(160_000, autocompact)
    assert at.findings == ()


@pytest.mark.spec("T6")
@pytest.mark.parametrize("pct", [0, -1, 100.5, float("nan"), float("inf"), "half", "0"])
def test_a_percentage_out_of_range_is_ignored_with_a_sentence(pct: float | str) -> None:
    at = thresholds(200_000, None, CLASSIC.window, pct)
    assert at.autocompact == 167_000
    assert at.findings == (f"Ignored LAMINA_AUTOCOMPACT_PCT={str(pct)!r}: use a number above 0 and up to 100.",)


@pytest.mark.spec("T5", "T9")
@pytest.mark.parametrize(("window", "autocompact"), [(1_000_000, 100_000), (200_000, 100_000), (64_000, 26_666), (2_500, 1_041)])
def test_an_absolute_trigger_shrinks_with_the_window(window: int, autocompact: int) -> None:
    assert thresholds(window, None, LEAN.window).autocompact == autocompact


def test_an_absolute_trigger_is_never_later_than_the_offset() -> None:
    assert thresholds(200_000, None, replace(LEAN.window, autocompact_at=190_000)).autocompact == 167_000


@pytest.mark.spec("T7")
@pytest.mark.parametrize(
    ("count", "on", "left", "flags"),
    [
        (0, True, 100.0, (False, False, False, False)),
        (159_999, True, 11.1117, (False, False, False, False)),
        (160_000, True, 11.1111, (True, True, False, False)),
        (166_999, True, 7.2228, (True, True, False, False)),
        (167_000, True, 7.2222, (True, True, True, False)),
        (167_000, False, 7.2222, (True, True, False, False)),
        (176_999, True, 1.6672, (True, True, True, False)),
        (177_000, False, 1.6667, (True, True, False, True)),
        (180_000, True, 0.0, (True, True, True, True)),
        (500_000, True, 0.0, (True, True, True, True)),
    ],
)
def test_a_mark_counts_as_reached_from_its_own_number_on(
    count: int, on: bool, left: float, flags: tuple[bool, bool, bool, bool]
) -> None:
    state = state_of(count, thresholds(200_000, None, CLASSIC.window), autocompact_on=on)
    assert state.percent_left == pytest.approx(left, abs=1e-4)
    assert (state.above_warning, state.above_error, state.above_autocompact, state.at_blocking) == flags

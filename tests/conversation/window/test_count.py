"""The count follows the view: measured where a usage is valid, estimated where not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.window.count import Count, answered, appended, replaced
from lamina.conversation.window.estimate import estimate
from lamina.conversation.window.features import EMPTY, Features, measure
from lamina.core.blocks import text, tool_result
from lamina.core.errors import InputError
from lamina.core.usage import Usage

QUESTION = measure(text("Where is the parser? " * 20))
ANSWER = measure(text("It is in src/parse.py. " * 10))
RESULT = measure(tool_result("t1", "def parse(line): ...\n" * 400))
# System prompt and tools are in the prompt and not in the messages.
OVERHEAD = 18_000


def after_one_answer() -> Count:
    prompt = OVERHEAD + estimate(QUESTION)
    return answered(appended(Count(), QUESTION), Usage(10, prompt - 30, 20, 0, 55), ANSWER)


@pytest.mark.spec("T1")
def test_before_any_response_the_count_is_the_estimate_of_all() -> None:
    count = appended(appended(Count(), QUESTION), RESULT)
    assert count.tokens == estimate(QUESTION + RESULT)


@pytest.mark.spec("T1")
def test_after_a_response_the_count_is_what_it_reported_plus_an_estimate_of_what_came_since() -> None:
    count = answered(appended(Count(), QUESTION), Usage(100, 20_000, 3_000, 0, 400), ANSWER)
    assert count.tokens == 100 + 20_000 + 3_000 + 400
    assert appended(count, RESULT).tokens == 23_500 + estimate(RESULT)


@pytest.mark.spec("T1")
def test_an_output_count_that_was_written_too_early_is_replaced_by_an_estimate_of_the_response() -> None:
    count = answered(appended(Count(), QUESTION), Usage(input_tokens=23_000, output_tokens=1), ANSWER, final=False)
    assert count.tokens == 23_000 + estimate(ANSWER)


@pytest.mark.spec("T1", "T2")
def test_each_response_calibrates_the_estimate_of_what_comes_after_it() -> None:
    count = after_one_answer()
    for _ in range(12):
        waiting = appended(count, RESULT)
        count = answered(waiting, Usage(cache_read=count.tokens + estimate(RESULT) * 14 // 10, output_tokens=50), ANSWER)
    learned = appended(count, RESULT).tokens - count.tokens
    assert learned == pytest.approx(estimate(RESULT) * 1.4, rel=0.05)


@pytest.mark.spec("T10")
def test_a_changed_view_is_estimated_until_the_next_response() -> None:
    long = appended(after_one_answer(), RESULT + RESULT + RESULT)
    summary = measure(text("The parser was found and read. " * 30))
    compacted = replaced(long, summary)
    assert compacted.measured is None
    assert compacted.tokens == pytest.approx(OVERHEAD + estimate(summary), abs=200)
    anchored = answered(compacted, Usage(input_tokens=19_500, output_tokens=80), ANSWER)
    assert anchored.tokens == 19_580


@pytest.mark.spec("T10")
def test_after_a_clearing_the_count_falls_by_the_estimate_of_what_was_cleared() -> None:
    count = after_one_answer()
    for _ in range(3):
        count = answered(appended(count, RESULT), Usage(cache_read=count.tokens + estimate(RESULT), output_tokens=50), ANSWER)
    marker = measure(tool_result("t1", "[cleared]"))
    kept = QUESTION + RESULT + RESULT + marker + ANSWER + ANSWER + ANSWER + ANSWER
    fall = count.tokens - replaced(count, kept).tokens
    assert fall == pytest.approx(estimate(RESULT) - estimate(marker), abs=150)


@pytest.mark.spec("T10")
def test_nothing_is_learned_across_a_change_of_the_view() -> None:
    count = replaced(appended(after_one_answer(), RESULT), QUESTION)
    assert answered(count, Usage(input_tokens=90_000), ANSWER).calibration == count.calibration


@pytest.mark.spec("T3")
def test_fullness_has_a_margin_only_while_nothing_was_ever_reported() -> None:
    asked = appended(Count(), measure(text("a" * 40_000)))
    assert asked.judged == 13_334 > asked.tokens
    reported = answered(asked, Usage(input_tokens=10_000), EMPTY)
    assert reported.judged == reported.tokens == 10_000
    assert replaced(reported, QUESTION).judged == replaced(reported, QUESTION).tokens


@pytest.mark.spec("T10")
def test_a_report_below_the_estimate_is_kept_so_that_a_clearing_never_raises_the_count() -> None:
    seen = appended(Count(), QUESTION + RESULT + RESULT + RESULT)
    reported = estimate(seen.view) * 3 // 4
    count = answered(seen, Usage(input_tokens=reported), ANSWER)
    assert count.fixed < 0
    marker = measure(tool_result("t1", "[cleared]"))
    after = replaced(count, QUESTION + marker + RESULT + RESULT + ANSWER)
    assert after.tokens < count.tokens
    # The estimate is as wrong about the rest as it was about the whole.
    assert after.tokens == pytest.approx(estimate(after.view) * 3 / 4, abs=10)


def test_an_error_of_the_estimate_goes_with_the_messages_it_was_made_on() -> None:
    count = answered(appended(Count(), RESULT), Usage(input_tokens=5), ANSWER)
    assert count.before_messages == 0
    assert replaced(count, EMPTY).tokens == 0
    assert 0 <= replaced(count, QUESTION).tokens <= estimate(QUESTION)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 50_000), st.booleans()),
        st.tuples(st.just("answer"), st.integers(1, 300_000), st.booleans()),
        st.tuples(st.just("replace"), st.integers(0, 50_000), st.booleans()),
    ),
    max_size=15,
)


@given(steps)
def test_a_count_survives_json_at_every_point_and_goes_on_as_if_it_had_not_been_written(
    history: list[tuple[str, int, bool]],
) -> None:
    kept = loaded = Count()
    for what, size, final in history:
        kept, loaded = (follow(count, what, size, final) for count in (kept, loaded))
        loaded = Count.from_json(json.loads(json.dumps(loaded.to_json())))
        assert loaded == kept
        assert kept.tokens >= 0


def follow(count: Count, what: str, size: int, final: bool) -> Count:
    features = Features(letters=size, marks=size // 5, frame=11, plain=size // 4)
    match what:
        case "append":
            return appended(count, features)
        case "answer":
            return answered(count, Usage(input_tokens=size, output_tokens=9), ANSWER, final=final)
        case _:
            return replaced(count, features)


@given(st.lists(st.integers(0, 9_000), max_size=10))
def test_appending_one_by_one_is_appending_all_at_once(sizes: list[int]) -> None:
    parts = [Features(letters=size, wide=size // 3) for size in sizes]
    one_by_one = after_one_answer()
    for part in parts:
        one_by_one = appended(one_by_one, part)
    assert one_by_one == appended(after_one_answer(), sum(parts, EMPTY))


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {"measured": "many"},
        {"calibration": {"factors": [1, 1]}},
        {"calibration": {"factors": [1, 1, 1, 1, 9]}},
        {"calibration": {"factors": [1, 1, 1, 1, float("nan")]}},
    ],
)
def test_a_count_that_cannot_be_read_is_refused_with_what_to_do(raw: object) -> None:
    with pytest.raises(InputError, match="remove it to count from scratch"):
        Count.from_json(raw)

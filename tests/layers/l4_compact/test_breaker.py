"""When compaction stops by itself, and what makes it start again."""

from __future__ import annotations

import pytest

from lamina.core.policy import CompactPolicy
from lamina.layers.l4_compact.plan import (
    BreakerLedger,
    explanation,
    failed,
    filled,
    gave_up_on_model,
    read_ledger,
    turns_since,
    worked,
)

from .made import answer, said, summary

POLICY = CompactPolicy()


@pytest.mark.spec("C8")
def test_three_failures_in_a_row_stop_it_and_a_success_resets() -> None:
    ledger = BreakerLedger()
    for _ in range(2):
        ledger = failed(ledger, POLICY)
    assert not ledger.stopped
    assert not failed(worked(ledger, "b", by_hand=False), POLICY).stopped
    ledger = failed(ledger, POLICY)
    assert ledger.stopped == "failing"
    assert "failed 3 times" in explanation(ledger, POLICY)


@pytest.mark.spec("C8", "B3")
def test_a_compaction_by_hand_starts_afresh() -> None:
    stopped = BreakerLedger(failures=3, refills=2, stopped="failing")
    assert worked(stopped, "b", by_hand=True) == BreakerLedger(boundary="b")


@pytest.mark.spec("B3")
def test_a_window_that_is_full_again_at_once_three_times_stops_it() -> None:
    ledger = BreakerLedger()
    for rounds in (None, 3, 2):
        ledger = worked(filled(ledger, rounds, POLICY), "b", by_hand=False)
        assert not ledger.stopped
    ledger = filled(ledger, 1, POLICY)
    assert ledger.stopped == "thrashing"
    assert "full again" in explanation(ledger, POLICY)


@pytest.mark.spec("C8")
def test_after_three_compactions_by_rules_in_a_row_the_model_is_not_asked() -> None:
    ledger, told = BreakerLedger(), []
    for number in range(5):
        ledger = worked(ledger, f"b{number}", by_hand=False, by_rules=True)
        told.append((gave_up_on_model(ledger, POLICY), bool(explanation(ledger, POLICY))))
    assert told == [(False, False), (False, False), (True, True), (True, False), (True, False)], "and the user is told once"
    assert not gave_up_on_model(worked(ledger, "b", by_hand=False), POLICY), "a summary of the model resets it"
    assert not gave_up_on_model(worked(BreakerLedger(), "b", by_hand=True), POLICY)


@pytest.mark.spec("B3")
def test_a_window_that_lasted_resets_the_count() -> None:
    ledger = filled(filled(BreakerLedger(), 2, POLICY), 4, POLICY)
    assert ledger.refills == 0


@pytest.mark.spec("B3")
def test_turns_are_counted_from_one_message_of_the_person_to_the_next() -> None:
    items = [summary("s", "x"), answer("old"), said("u"), answer("a"), answer("b"), said("v"), answer("c"), said("w")]
    assert turns_since(items, ["old"]) == 2, "several answers are one turn; an unanswered message does not count"


@pytest.mark.spec("B3")
@pytest.mark.parametrize(("answers", "turns"), [(0, 0), (1, 1), (5, 1), (6, 2), (15, 3), (16, 4), (100, 20)])
def test_a_long_turn_counts_once_for_every_few_answers(answers: int, turns: int) -> None:
    items = [said("u"), *(answer(f"a{number}") for number in range(answers))]
    assert turns_since(items, ["u"]) == turns
    assert turns_since(items, ["u"], answers_a_turn=1) == answers, "in a small window"


@pytest.mark.parametrize("data", [None, {}, {"failures": "many"}, {"stopped": "otherwise"}])
def test_what_cannot_be_read_counts_as_nothing(data: dict[str, object] | None) -> None:
    assert read_ledger(data) == BreakerLedger()


def test_the_state_survives_being_written() -> None:
    ledger = BreakerLedger(2, 1, "thrashing", "b")
    assert read_ledger(ledger.to_json()) == ledger
    assert explanation(BreakerLedger(), POLICY) == ""

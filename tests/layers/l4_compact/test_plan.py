"""The plan of a compaction: pairs stay whole, the last user message stays, every record has one fate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.api_rules import complaints

from lamina.conversation.compaction.cuts import legal_cuts, rounds
from lamina.core.message_list import Flat
from lamina.core.view import Item
from lamina.layers.l4_compact.plan import Pivot, plan

from .made import answer, attachment, result, said, size, summary


def talk(*, turns: int = 4, words: int = 100) -> list[Item]:
    """Turns of a question, a call with its result, and a final answer."""
    items: list[Item] = []
    for turn in range(turns):
        items += [
            said(f"u{turn}", "u" * words),
            answer(f"a{turn}", "a" * words, [(f"c{turn}", {"file_path": f"f{turn}.py"})]),
            result(f"r{turn}", f"c{turn}", "r" * words),
            answer(f"b{turn}", "b" * words),
        ]
    return items


def names(items: list[Item]) -> list[str]:
    return [item.uuid for item in items]


def test_without_a_tail_everything_answered_is_summarised() -> None:
    items = talk()
    made = plan(items, size=size)
    assert (made.start, made.end) == (0, len(items))


@pytest.mark.spec("B2", "C4")
def test_what_the_person_said_last_stays_as_it_is() -> None:
    items = [*talk(), said("new"), attachment("memory", "recall", "a memory")]
    made = plan(items, size=size)
    assert names(items[made.end :]) == ["new", "memory"]


def test_an_unanswered_message_that_would_fill_the_window_is_cut_into_the_summary() -> None:
    items = [*talk(), said("huge", "x" * 10_000)]
    made = plan(items, size=size, most_kept=5_000)
    assert made.end == len(items)


@pytest.mark.spec("C4")
def test_results_that_no_answer_has_seen_stay_with_their_call_and_what_it_answers() -> None:
    items = talk()[:-1]
    made = plan(items, size=size)
    assert names(items[made.end :]) == ["u3", "a3", "r3"]


@pytest.mark.spec("C4")
def test_all_parallel_results_stay_and_what_follows_them() -> None:
    both = answer("two", "", [("c8", {}), ("c9", {})])
    items = [*talk(), said("more"), both, result("r8", "c8"), result("r9", "c9"), attachment("m", "recall", "a memory")]
    made = plan(items, size=size)
    assert names(items[made.end :]) == ["more", "two", "r8", "r9", "m"]


def test_an_unanswered_round_that_would_fill_the_window_is_summarised() -> None:
    items = [*talk()[:-2], result("r3", "c3", "x" * 10_000)]
    assert plan(items, size=size, most_round=20_000).end == len(items) - 3
    assert plan(items, size=size, most_round=5_000).end == len(items)


def test_an_answer_with_open_calls_stays_for_their_results_with_what_it_answers() -> None:
    items = [*talk(), said("more"), answer("open", "", [("c9", {}), ("c10", {})]), result("r9", "c9")]
    made = plan(items, size=size, open_calls=["c10"])
    assert names(items[made.end :]) == ["more", "open", "r9"]


@pytest.mark.parametrize(
    ("least", "most", "first"),
    [
        (1, 10_000, "u3"),  # the shortest that begins with a turn
        (401, 10_000, "u2"),
        (401, 700, "b2"),  # no turn begins between the two: the first round that has enough
        (5, 150, "b3"),
        (5, 90, None),  # the last round alone is too long
    ],
)
def test_the_tail_begins_with_a_turn_or_a_round(least: int, most: int, first: str | None) -> None:
    items = talk()
    made = plan(items, size=size, tail_min=least, tail_max=most)
    kept = items[made.end :]
    assert (kept[0].uuid if kept else None) == first
    assert size(block for item in kept for block in item.blocks) <= most


def test_a_tail_that_would_hold_everything_is_given_up() -> None:
    items = [*talk(), said("new")]
    made = plan(items, size=size, tail_min=100_000, tail_max=200_000)
    assert names(items[made.end :]) == ["new"]


def test_a_tail_never_reaches_back_over_what_stands_for_others() -> None:
    items = [summary("s", "what was"), *talk(turns=1), Item("snip", "user", (), "snip"), *talk(turns=1)[:4]]
    items = [*items[:6], *(Item(f"{item.uuid}+", item.role, item.blocks, item.kind, f"{item.key}+") for item in items[6:])]
    made = plan(items, size=size, tail_min=10_000, tail_max=100_000)
    assert made.end >= 6


@pytest.mark.spec("C6")
def test_from_a_message_on_keeps_what_is_before() -> None:
    items = [*talk(), said("new")]
    made = plan(items, size=size, pivot=Pivot("from", "u2"))
    assert names(items[made.start : made.end])[0] == "u2"
    assert names(items[made.end :]) == ["new"]


@pytest.mark.spec("C6")
@pytest.mark.parametrize("pivot", ["u2", "b1"])
def test_up_to_a_message_keeps_it_and_what_is_behind(pivot: str) -> None:
    items = talk()
    made = plan(items, size=size, pivot=Pivot("up_to", pivot))
    assert made.start == 0
    assert items[made.end].uuid == pivot


@pytest.mark.parametrize("side", ["from", "up_to"])
def test_a_pivot_between_a_call_and_its_result_moves_before_the_call(side: str) -> None:
    items = talk()
    made = plan(items, size=size, pivot=Pivot("from" if side == "from" else "up_to", "r1"))
    assert items[made.start if side == "from" else made.end].uuid == "a1"


def test_nothing_but_a_summary_and_what_was_put_back_is_not_summarised_again() -> None:
    items = [summary("s", "what was"), attachment("i", "instructions", "be good"), said("new")]
    assert plan(items, size=size).empty


def row(kinds: list[int]) -> list[Item]:
    """A view of any shape: parallel calls, answers in several records, results out of order or missing."""
    items: list[Item] = []
    waiting: list[str] = []
    for number, kind in enumerate(kinds):
        match kind:
            case 0:
                items.append(said(f"u{number}"))
            case 1:
                calls = [(f"c{number}-{at}", dict[str, object]()) for at in range(number % 3)]
                waiting += [call for call, _ in calls]
                first = answer(f"a{number}", "", calls)
                items += [Item(f"t{number}", "assistant", first.blocks[:1], "said", first.key), first]
            case _ if waiting:
                items.append(result(f"r{number}", waiting.pop(kind % len(waiting))))
            case _:
                items.append(attachment(f"x{number}", "recall", "a memory"))
    return items


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(0, 400), st.integers(0, 400))
def test_whatever_is_kept_is_a_conversation_by_itself(kinds: list[int], least: int, more: int) -> None:
    items = row(kinds)
    made = plan(items, size=size, tail_min=least, tail_max=least + more)
    for kept in (items[made.end :], items[: made.end]):
        calls = {block.wire["id"] for item in kept for block in item.blocks if block.wire["type"] == "tool_use"}
        results = {block.wire["tool_use_id"] for item in kept for block in item.blocks if block.wire["type"] == "tool_result"}
        assert results <= calls
        flat = Flat()
        for item in kept:
            flat.add(item.role, item.blocks, key=item.key)
        assert complaints(flat.messages()) == []


@given(st.lists(st.integers(0, 4), max_size=30))
def test_rounds_are_all_items_in_order_and_cuts_between_them_are_legal(kinds: list[int]) -> None:
    items = row(kinds)
    parts = rounds(items)
    assert [index for part in parts for index in range(part.start, part.end)] == list(range(len(items)))
    legal = legal_cuts(items)
    assert all(legal[part.start] for part in parts)

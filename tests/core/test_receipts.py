"""Receipts: each record in view has exactly one fate, or the receipt is rejected."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import examples

from lamina.core.errors import InputError
from lamina.core.receipts import Fate, Range, Receipt, Told, open_receipt, read_receipt, write_receipt

FATES = st.builds(Told, st.sampled_from(get_args(Fate)), st.sampled_from(["", "summary-1", "/spills/t1.txt"]))


@st.composite
def told(draw: st.DrawFn) -> tuple[list[str], dict[str, Told]]:
    order = [f"r{number}" for number in range(draw(st.integers(0, 12)))]
    return order, {uuid: draw(FATES) for uuid in order}


@pytest.mark.spec("B1")
@examples(150)
@given(told())
def test_a_receipt_written_stored_and_opened_tells_the_same_fates(given_fates: tuple[list[str], dict[str, Told]]) -> None:
    order, fates = given_fates
    stored = msgspec.json.encode(write_receipt("d1", order, fates).to_json())
    assert open_receipt(read_receipt("d1", msgspec.json.decode(stored)), order) == fates


@examples(100)
@given(told())
def test_neighbours_that_share_a_fate_share_a_range(given_fates: tuple[list[str], dict[str, Told]]) -> None:
    order, fates = given_fates
    changes = sum(fates[a] != fates[b] for a, b in pairwise(order))
    assert len(write_receipt("d1", order, fates).ranges) == (changes + 1 if order else 0)


@pytest.mark.spec("B1")
@examples(150)
@given(told(), st.data())
def test_a_receipt_that_does_not_cover_the_view_exactly_once_is_refused(
    given_fates: tuple[list[str], dict[str, Told]], data: st.DataObject
) -> None:
    order, fates = given_fates
    ranges = list(write_receipt("d1", order, fates).ranges)
    if not ranges:
        ranges, order = [Range("kept", "", "r0", "r0")], []
    else:
        at = data.draw(st.integers(0, len(ranges) - 1))
        part = ranges[at]
        faults = {
            "missing": ranges[:at] + ranges[at + 1 :],
            "twice": [*ranges, part],
            "overlapping": [*ranges, Range("cleared", "", order[0], order[-1])],
            "of another view": [*ranges, Range("kept", "", "elsewhere", "elsewhere")],
            "ending elsewhere": [*ranges[:at], Range(part.fate, part.where, part.first, "elsewhere"), *ranges[at + 1 :]],
        }
        if part.first != part.last:
            faults["backwards"] = [*ranges[:at], Range(part.fate, part.where, part.last, part.first), *ranges[at + 1 :]]
        ranges = faults[data.draw(st.sampled_from(sorted(faults)))]
    with pytest.raises(InputError, match="receipt of d1"):
        open_receipt(Receipt("d1", tuple(ranges)), order)


@pytest.mark.spec("B1")
@pytest.mark.parametrize(
    ("order", "named"),
    [(["a", "b"], ["a"]), (["a"], ["a", "b"]), (["a"], []), ([], ["a"]), (["a", "b"], ["a", "c"]), (["a", "a"], ["a"])],
)
def test_a_record_without_a_fate_and_a_fate_without_a_record_are_refused_when_writing(order: list[str], named: list[str]) -> None:
    with pytest.raises(InputError, match="receipt of d1"):
        write_receipt("d1", order, {uuid: Told("kept") for uuid in named})


@pytest.mark.parametrize(
    "raw", [{"ranges": None}, {"ranges": [["lost", "", "a", "a"]]}, {"ranges": [["kept", "a"]]}, {"ranges": 5}]
)
def test_a_stored_receipt_of_the_wrong_shape_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(InputError, match="receipt of d1: is invalid"):
        read_receipt("d1", raw)


def test_a_decision_without_a_receipt_covers_nothing() -> None:
    assert open_receipt(read_receipt("d1", {}), []) == {}
    with pytest.raises(InputError, match="has no fate for 1 record"):
        open_receipt(read_receipt("d1", {}), ["a"])

"""Receipts: proof that nothing fell through (B1).

Every decision that takes something out of the view states the fate of every record that was in it. Most neighbours share a
fate, so a receipt is written as ranges over the order the records had, and is checked against that order: each id has exactly
one fate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from .errors import InputError

Fate: TypeAlias = Literal["kept", "summarised", "left_out", "spilled", "cleared", "snipped", "folded"]


class Told(NamedTuple):
    """What became of one record: its fate and, where there is one, the place it can be found in (a summary's id, a file)."""

    fate: Fate
    where: str = ""


class Range(msgspec.Struct, frozen=True, array_like=True):
    fate: Fate
    where: str
    first: str  # ids, both ends included
    last: str


class Receipt(msgspec.Struct, frozen=True):
    decision: str  # uuid of the record that decided
    ranges: tuple[Range, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is stored in the decision's own record."""
        return {"ranges": [[r.fate, r.where, r.first, r.last] for r in self.ranges]}


def write_receipt(decision: str, order: Sequence[str], fates: Mapping[str, Told]) -> Receipt:
    """`fates` must name every id of `order`; an id without a fate is the very thing a receipt exists to rule out."""
    missing = [uuid for uuid in order if uuid not in fates]
    if missing or len(fates) != len(order):
        extra = sorted(set(fates) - set(order))
        raise InputError(f"receipt of {decision}", f"no fate for {missing[:3]}, a fate too many for {extra[:3]}")
    ranges: list[Range] = []
    for uuid in order:
        told = fates[uuid]
        last = ranges[-1] if ranges else None
        if last is not None and (last.fate, last.where) == told:
            ranges[-1] = Range(last.fate, last.where, last.first, uuid)
        else:
            ranges.append(Range(told.fate, told.where, uuid, uuid))
    return Receipt(decision, tuple(ranges))


def read_receipt(decision: str, raw: Mapping[str, Any]) -> Receipt:
    try:
        return Receipt(decision, msgspec.convert(raw.get("ranges", ()), tuple[Range, ...]))
    except msgspec.ValidationError as error:
        raise InputError(f"receipt of {decision}", f"can't be read ({error})") from error


def open_receipt(receipt: Receipt, order: Sequence[str]) -> dict[str, Told]:
    """The fate of every id of `order`; raises where the receipt does not cover it exactly once."""
    place = {uuid: index for index, uuid in enumerate(order)}
    fates: dict[str, Told] = {}
    for part in receipt.ranges:
        if part.first not in place or part.last not in place:
            raise InputError(
                f"receipt of {receipt.decision}", f"names {part.first} to {part.last} ({part.fate}), which was not in view"
            )
        for uuid in order[place[part.first] : place[part.last] + 1]:
            if uuid in fates:
                raise InputError(f"receipt of {receipt.decision}", f"tells two fates of {uuid}")
            fates[uuid] = Told(part.fate, part.where)
    if len(fates) != len(order):
        raise InputError(f"receipt of {receipt.decision}", f"leaves {len(order) - len(fates)} records without a fate")
    return fates

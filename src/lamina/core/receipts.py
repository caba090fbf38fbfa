"""Receipts: proof that a decision lost no record.

Every decision that removes something from the view states the fate of every record that was in it. Neighbouring records usually
share a fate, so a receipt stores ranges over the order of the records. It is checked against that order: each id has exactly one
fate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from ..language.wording import counted
from .errors import InputError

Fate: TypeAlias = Literal["kept", "summarised", "left_out", "spilled", "cleared", "snipped", "folded"]


class Told(msgspec.Struct, frozen=True):
    """The fate of one record, and the place where its content can be found, if any (the id of a summary, a file)."""

    fate: Fate
    where: str = ""


class Range(msgspec.Struct, frozen=True, array_like=True):
    fate: Fate
    where: str
    first: str  # ids, both ends included
    last: str


class Receipt(msgspec.Struct, frozen=True):
    decision: str  # uuid of the decision's record
    ranges: tuple[Range, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored in the decision's record."""
        return {"ranges": [[r.fate, r.where, r.first, r.last] for r in self.ranges]}


def write_receipt(decision: str, order: Sequence[str], fates: Mapping[str, Told]) -> Receipt:
    """Make a receipt. `fates` must contain exactly the ids of `order`, otherwise a record could be lost."""
    missing = [uuid for uuid in order if uuid not in fates]
    if missing or len(fates) != len(order):
        extra = sorted(set(fates) - set(order))
        raise InputError(f"receipt of {decision}", f"records without a fate: {missing[:3]}, fates without a record: {extra[:3]}")
    ranges: list[Range] = []
    for uuid in order:
        told = fates[uuid]
        last = ranges[-1] if ranges else None
        if last is not None and (last.fate, last.where) == (told.fate, told.where):
            ranges[-1] = Range(last.fate, last.where, last.first, uuid)
        else:
            ranges.append(Range(told.fate, told.where, uuid, uuid))
    return Receipt(decision, tuple(ranges))


def read_receipt(decision: str, raw: Mapping[str, Any]) -> Receipt:
    try:
        return Receipt(decision, msgspec.convert(raw.get("ranges", ()), tuple[Range, ...]))
    except msgspec.ValidationError as error:
        raise InputError(f"receipt of {decision}", f"is invalid ({error})") from error


def open_receipt(receipt: Receipt, order: Sequence[str]) -> dict[str, Told]:
    """Return the fate of every id in `order`. Raise InputError unless the receipt covers each id exactly once."""
    place = {uuid: index for index, uuid in enumerate(order)}
    fates: dict[str, Told] = {}
    for part in receipt.ranges:
        if part.first not in place or part.last not in place:
            raise InputError(
                f"receipt of {receipt.decision}", f"contains {part.first} to {part.last} ({part.fate}), which was not in the view"
            )
        for uuid in order[place[part.first] : place[part.last] + 1]:
            if uuid in fates:
                raise InputError(f"receipt of {receipt.decision}", f"has two fates for {uuid}")
            fates[uuid] = Told(part.fate, part.where)
    if len(fates) != len(order):
        missing = counted(len(order) - len(fates), "record")
        raise InputError(f"receipt of {receipt.decision}", f"has no fate for {missing}")
    return fates

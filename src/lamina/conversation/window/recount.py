"""The count of a view from nothing: after a resume, and after a decision changed what is in view (T10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...core.blocks import Block, canonical, text
from ...core.errors import InputError
from ...core.view import Item, View
from .count import Count, answered, appended
from .estimate import estimate
from .features import Memo, measure_all


def recount(view: View, memo: Memo | None = None, known: Count | None = None) -> Count:
    """Fold the view's items into a count, as following them one by one would have. Of `known` only what was learnt is kept: the
    calibration, and what stands before the messages."""
    count = _begun(view, known)
    answer: list[Item] = []  # the items of one answer, which repeat its usage
    for index, item in enumerate(view.items):
        if answer and (item.role != "assistant" or item.key != answer[-1].key):
            count, answer = _close(count, answer, memo), []
        if item.role == "assistant" and item.usage is not None and index >= view.measured_from:
            answer.append(item)
        else:
            count = appended(count, measure_all(item.blocks, memo))
    return _close(count, answer, memo) if answer else count


def shortened(count: Count, view: View, memo: Memo | None = None) -> Count:
    """What no usage has measured was changed before it left (a spill): what was reported holds for the rest."""
    whole = measure_all([block for _, block in view.blocks()], memo)
    pending = measure_all(_unmeasured(view), memo) if count.measured is not None else whole
    return replace(count, view=whole, pending=pending)


def _unmeasured(view: View) -> list[Block]:
    """What stands behind the last answer whose usage is known; of one that was cut off only the prompt was measured."""
    blocks: list[Block] = []
    cut_off: Item | None = None
    for item in reversed(view.items):
        if item.role == "assistant" and item.usage is not None:
            if item.stop_reason is not None or (cut_off is not None and item.key != cut_off.key):
                break
            cut_off = item
        elif cut_off is not None:
            break
        blocks += item.blocks
    return blocks


def _begun(view: View, known: Count | None) -> Count:
    """What is known before anything is counted. Usage that measured another view still says that usage is reported, so the margin
    for the unreported is not due (T3); what stands before the messages is then estimated from the prompt that was sent."""
    if known is not None:
        return Count(fixed=known.fixed, reported=known.reported, calibration=known.calibration)
    if view.snapshot is None or all(item.usage is None for item in view.items[: view.measured_from]):
        return Count()
    prompt = [text(canonical(part).decode("utf-8", "replace")) for part in (view.snapshot.system, view.snapshot.tools) if part]
    return Count(fixed=estimate(measure_all(prompt)), reported=True)


def known_count(state: Mapping[str, Any]) -> Count | None:
    """The count a checkpoint carries; None where there is none that can be used."""
    try:
        return Count.from_json(state["count"]) if "count" in state else None
    except InputError:
        return None


def _close(count: Count, answer: list[Item], memo: Memo | None) -> Count:
    usage = answer[-1].usage
    assert usage is not None
    response = measure_all([block for item in answer for block in item.blocks], memo)
    return answered(count, usage, response, final=answer[-1].stop_reason is not None)

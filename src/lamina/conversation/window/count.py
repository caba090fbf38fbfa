"""Count: how many tokens the next request holds (T1, T10).

Owns one frozen value that follows the view: what the last valid usage measured, and the features of what came since. Appending
and answering are O(new blocks). The invariant: a measured number is only ever used for the view it measured; whatever else
changes the view drops it, and the estimate counts until the next response.

After a resume, and after a decision changed what is in view, the view is counted from nothing. Only the conversation's own responses
are passed in. Usage of forks and subagents measures other requests and never comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ...core.blocks import Block, canonical, text
from ...core.errors import InputError
from ...core.usage import Usage
from ...core.view import Item, View
from .estimate import LEAST, MOST, START, Calibration, estimate, observe, unreported_estimate
from .features import EMPTY, Features, Memo, measure_all


class Count(msgspec.Struct, frozen=True, omit_defaults=True):
    """`fixed` is what the last usage reported beyond the estimate of the messages it measured: the system prompt, the tools, and
    the estimate's own error. It is what keeps a count after a clearing close to the reported number less what was cleared."""

    view: Features = EMPTY  # all messages
    pending: Features = EMPTY  # the part of them that no usage measured
    measured: int | None = None  # tokens reported for all but `pending`
    fixed: int = 0
    reported: bool = False  # whether any usage ever came in
    calibration: Calibration = START

    @property
    def tokens(self) -> int:
        """T1."""
        if self.measured is not None:
            return self.measured + estimate(self.pending, self.calibration)
        return self.fixed + estimate(self.view, self.calibration)

    @property
    def judged(self) -> int:
        """What thresholds are tested with: the count, and with the margin of T3 where nothing was ever reported."""
        return self.tokens if self.reported else unreported_estimate(self.view, self.calibration)

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @staticmethod
    def from_json(raw: Any) -> Count:
        try:
            count = msgspec.convert(raw, Count)
        except msgspec.ValidationError as error:
            raise InputError("count", f"the checkpoint's count cannot be read ({error})", "leave it out to count anew") from error
        if not all(LEAST <= factor <= MOST for factor in count.calibration.factors):
            raise InputError("count.calibration", f"a factor is outside {LEAST}-{MOST}", "leave it out to count anew")
        return count


def appended(count: Count, added: Features) -> Count:
    """Messages put into the view that no response has seen yet."""
    return msgspec.structs.replace(count, view=count.view + added, pending=count.pending + added)


def answered(count: Count, usage: Usage, response: Features, *, final: bool = True) -> Count:
    """A response to the view as it stands: anchor on its usage, learn from it, and put the response into the view.

    `final` is false where the output count was written before the response was complete (stop reason missing); then only the
    prompt is taken as measured, and the response is estimated.
    """
    calibration = count.calibration
    if count.measured is not None:
        calibration = observe(calibration, count.pending, usage.prompt - count.measured)
    return Count(
        view=count.view + response,
        pending=EMPTY if final else response,
        measured=usage.total if final else usage.prompt,
        fixed=max(0, usage.prompt - estimate(count.view, calibration)),
        reported=True,
        calibration=calibration,
    )


def replaced(count: Count, view: Features) -> Count:
    """T10: the view was changed by a compaction, clearing, undo or snip, or is now read by another model (pass `count.view`)."""
    return msgspec.structs.replace(count, view=view, pending=view, measured=None)


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

"""Counts the tokens of the next request.

A count is one frozen value that follows the view: the tokens that the last valid usage measured, plus the features of everything
added since. Updates are O(new blocks). Invariant: a measured number is only used for the view it measured. Any other change of
the view drops it, and the estimate counts until the next response.

After a resume, and after a decision changed the view, the view is counted from scratch. Only usage of the conversation's own
responses is passed in; usage of forks and subagents measures other requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ...core.blocks import Block, canonical, text
from ...core.errors import InputError
from ...core.log import Log
from ...core.usage import Usage
from ...core.view import Item, View
from .estimate import LEAST, MOST, START, Calibration, estimate, observe, unreported_estimate
from .features import EMPTY, Features, Memo, measure_all

# A recorded count that differs from ours by more than this share counted messages that are not there, or is no count.
RECORDED_DIFFERS = 0.1


class Count(msgspec.Struct, frozen=True, omit_defaults=True):
    """The token count of a view.

    `fixed` is the difference between the last reported usage and the estimate of the messages it measured: the system prompt, the
    tools, and the estimate's error. It keeps the count accurate after a clearing: the reported number minus the cleared tokens.
    If the estimate was too high, it can be negative. Then it applies in proportion, because the estimate is as wrong about a part
    of the messages as it was about all of them (`measured_on`).
    """

    view: Features = EMPTY  # all messages
    pending: Features = EMPTY  # the messages that no usage has measured yet
    measured: int | None = None  # tokens reported for all but `pending`
    fixed: int = 0
    measured_on: int = 0  # estimate of the messages that `fixed` comes from
    reported: bool = False  # whether any usage was ever reported
    calibration: Calibration = START

    @property
    def tokens(self) -> int:
        """Tokens of the next request: measured where possible, else estimated."""
        if self.measured is not None:
            return self.measured + estimate(self.pending, self.calibration)
        messages = estimate(self.view, self.calibration)
        return messages + (
            self.fixed if self.fixed >= 0 else self.fixed * min(messages, self.measured_on) // max(1, self.measured_on)
        )

    @property
    def before_messages(self) -> int:
        """Tokens of the system prompt and the tools, as far as they are known."""
        return max(0, self.fixed)

    @property
    def judged(self) -> int:
        """The count to compare with thresholds. It includes a safety margin until the first usage is reported."""
        return self.tokens if self.reported else unreported_estimate(self.view, self.calibration)

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @staticmethod
    def from_json(raw: Any) -> Count:
        try:
            count = msgspec.convert(raw, Count)
        except msgspec.ValidationError as error:
            raise InputError("count", f"invalid count in the checkpoint ({error})", "remove it to count from scratch") from error
        if not all(LEAST <= factor <= MOST for factor in count.calibration.factors):
            raise InputError("count.calibration", f"a factor is outside {LEAST}-{MOST}", "remove it to count from scratch")
        return count


def appended(count: Count, added: Features) -> Count:
    """Return the count after messages were added that no response has measured yet."""
    return msgspec.structs.replace(count, view=count.view + added, pending=count.pending + added)


def answered(count: Count, usage: Usage, response: Features, *, final: bool = True) -> Count:
    """Return the count after a response: use its usage as the measured number, calibrate with it, and add the response's blocks.

    `final` is false if the response broke off (no stop reason), so that its output count is incomplete. Then only the prompt
    counts as measured, and the response is estimated.
    """
    calibration = count.calibration
    if count.measured is not None:
        calibration = observe(calibration, count.pending, usage.prompt - count.measured)
    messages = estimate(count.view, calibration)
    return Count(
        view=count.view + response,
        pending=EMPTY if final else response,
        measured=usage.total if final else usage.prompt,
        fixed=usage.prompt - messages,
        measured_on=messages,
        reported=True,
        calibration=calibration,
    )


def settled(count: Count, whole: Features, preview: Features) -> Count:
    """Return the count after unmeasured results that were shown once became previews."""
    return replace(count, view=count.view - whole + preview, pending=count.pending - whole + preview)


def measured_before(count: Count, view: Features) -> Count:
    """Return the count of `view` from one whose usage measured more: results that the answer saw whole are previews now."""
    if count.measured is None or view == count.view:
        return replace(count, view=view)
    saved = estimate(count.view, count.calibration) - estimate(view, count.calibration)
    return replace(count, view=view, measured=max(0, count.measured - saved))


def replaced(count: Count, view: Features) -> Count:
    """Return the count after the view was changed by a decision, or is read by another model (pass `count.view`)."""
    return msgspec.structs.replace(count, view=view, pending=view, measured=None)


def recount(view: View, memo: Memo | None = None, known: Count | None = None) -> Count:
    """Count a view from scratch, with the same result as counting its items one by one.

    From `known`, only the calibration and the size of the fixed part (system prompt and tools) are kept.
    """
    count = _begun(view, known)
    answer: list[Item] = []  # the items of one answer, which repeat its usage
    once: list[Item] = []  # items whose results the next complete answer saw whole
    for index, item in enumerate(view.items):
        if answer and (item.role != "assistant" or item.key != answer[-1].key or index in view.recorded):
            count, answer, once = _close(count, answer, once, memo), [], []
        if index in view.recorded:
            count = _as_recorded(count, view.recorded[index])
        if item.role == "assistant" and item.usage is not None and view.measures(index):
            answer.append(item)
        elif item.whole and _is_measured_whole(view, index):
            count = appended(count, measure_all(item.as_seen(), memo))
            once.append(item)
        else:
            count = appended(count, measure_all(item.blocks, memo))
            if item.complete and once:
                count, once = settled(count, *_seen_and_shown(once, memo)), []
    count = _close(count, answer, once, memo) if answer else count
    return _as_recorded(count, view.recorded[len(view.items)]) if len(view.items) in view.recorded else count


def _as_recorded(count: Count, tokens: int) -> Count:
    """Return the count with the tokens that an undone compaction recorded, unless they differ so much that a part is missing."""
    if abs(tokens - count.tokens) > count.tokens * RECORDED_DIFFERS:
        return count
    messages = estimate(count.view, count.calibration)
    return replace(count, pending=EMPTY, measured=tokens, fixed=tokens - messages, measured_on=messages, reported=True)


def _is_measured_whole(view: View, index: int) -> bool:
    """Return whether the first complete answer after this item measured the view as it is now, but for results it saw whole."""
    after = next((position for position in range(index + 1, len(view.items)) if view.items[position].complete), -1)
    return after >= 0 and view.measures(after)


def _seen_and_shown(items: list[Item], memo: Memo | None) -> tuple[Features, Features]:
    seen = measure_all([block for item in items for block in item.as_seen()], memo)
    return seen, measure_all([block for item in items for block in item.blocks], memo)


def shortened(count: Count, view: View, memo: Memo | None = None) -> Count:
    """Return the count after unsent blocks were shortened (a spill). The measured number stays valid for the rest."""
    whole = measure_all([block for _, block in view.blocks()], memo)
    pending = measure_all(_unmeasured(view), memo) if count.measured is not None else whole
    return replace(count, view=whole, pending=pending)


def _unmeasured(view: View) -> list[Block]:
    """Return the blocks after the last answer with a known usage; if that answer broke off, its own blocks too."""
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


def _begun(view: View, recorded: Count | None) -> Count:
    """Return the count to start from.

    Usage that measured an earlier view still shows that this provider reports usage, so the safety margin does not apply. The
    size of system prompt and tools is then estimated from the recorded prompt.
    """
    if recorded is not None:
        return replace(recorded, view=EMPTY, pending=EMPTY, measured=None)
    voided = (item.usage is not None and not view.measures(index) for index, item in enumerate(view.items))
    if view.snapshot is None or not any(voided):
        return Count()
    prompt = [text(canonical(part).decode("utf-8", "replace")) for part in (view.snapshot.system, view.snapshot.tools) if part]
    return Count(fixed=estimate(measure_all(prompt)), reported=True)


def count_log(log: Log, memo: Memo | None = None, state: Mapping[str, Any] = {}) -> Count:
    """Count the view of a log as a session does that continues it: with what the log has recorded about earlier counts.

    `state` is that of the checkpoint from which the log was loaded.
    """
    newest = next((event for event in reversed(log.events.values()) if "count" in event.data), None)
    recorded = _known_count(newest.data) if newest is not None else None
    return recount(log.view, memo, recorded or _known_count(state))


def _known_count(state: Mapping[str, Any]) -> Count | None:
    """Return the count stored in an event or a checkpoint, or None if it is missing or invalid."""
    try:
        return Count.from_json(state["count"]) if "count" in state else None
    except InputError:
        return None


def _close(count: Count, answer: list[Item], once: list[Item], memo: Memo | None) -> Count:
    usage = answer[-1].usage
    assert usage is not None
    response = measure_all([block for item in answer for block in item.blocks], memo)
    count = answered(count, usage, response, final=answer[-1].stop_reason is not None)
    answer_saw, view_shows = _seen_and_shown(once, memo) if once else (EMPTY, EMPTY)
    return measured_before(count, count.view - answer_saw + view_shows)

"""Count: how many tokens the next request holds (T1, T10).

Owns one frozen value that follows the view: what the last valid usage measured, and the features of what came since. Appending
and answering are O(new blocks). The invariant: a measured number is only ever used for the view it measured; whatever else
changes the view drops it, and the estimate counts until the next response.

Only the conversation's own responses are passed in. Usage of forks and subagents measures other requests and never comes here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.errors import InputError
from ...core.usage import Usage
from .estimate import LEAST, MOST, START, Calibration, estimate, observe, unreported_estimate
from .features import EMPTY, Features


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

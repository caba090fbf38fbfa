"""Check that the bill of a replay agrees with the recording where both should be the same. Pure.

The row `append` removes nothing. If the recorded program removed nothing either and lost no cache without a cause, both rows describe the
same requests, and only the token count and the model of the cache can make them differ. A session that differs by more than a few
percent is reported by name, with the request at which the rows part most.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..language.text import Text
from .figures import RequestPoint

if TYPE_CHECKING:  # a report is read without what plays a session
    from .play import Played

# The share of the cost by which the rows may differ; the token count alone explains that much.
TOLERANCE = 0.03


class Disagreement(NamedTuple):
    share: float  # how much more the replay costs; negative if less
    why: Text

    def sentence(self, session: str) -> str:
        form = Text(
            "{session}: the same requests replayed cost {share:.0%} more. {why}"
            if self.share > 0
            else "{session}: the same requests replayed cost {share:.0%} less. {why}"
        )
        return Text(form, session=session, share=abs(self.share), why=self.why)

    def to_json(self, session: str) -> dict[str, Any]:
        return {"session": session, "percent": round(100 * self.share, 1), "why": self.why}


def disagreement(recorded: Played, append: Played) -> Disagreement | None:
    """Return how far the rows differ and why, or None if they agree or need not."""
    theirs, decided = recorded.figures, any(point.decision for point in recorded.points)
    if not theirs.usage.prompt or theirs.compactions or theirs.unexplained_breaks or decided:
        return None
    share = append.figures.input_units / theirs.input_units - 1
    if abs(share) <= TOLERANCE:
        return None
    causes = _why_more(recorded, append) if share > 0 else _why_less(recorded, append)
    return Disagreement(share, max(causes, default=(0, Text("It is too short to be counted exactly.")))[1])


def _why_more(recorded: Played, append: Played) -> Iterator[tuple[int, Text]]:
    for number, (_, left), (_, ours) in _grown(recorded, append):
        gone = ours - left
        yield (
            gone,
            Text(
                "Before request {number:,}, about {gone:,} tokens left the prompt, which the transcript does not record.",
                number=number,
                gone=gone,
            ),
        )


def _why_less(recorded: Played, append: Played) -> Iterator[tuple[int, Text]]:
    for number, (unread, grown), (unread_here, grown_here) in _grown(recorded, append):
        lost, unknown = unread - unread_here, grown - grown_here
        yield (
            lost,
            Text(
                "Request {number:,} read {lost:,} tokens less from the cache than the one before had left there.",
                number=number,
                lost=lost,
            ),
        )
        yield (
            unknown,
            Text(
                "Request {number:,} has about {unknown:,} tokens that are not in the transcript.", number=number, unknown=unknown
            ),
        )


def _grown(recorded: Played, append: Played) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
    """Yield the number of each request but the first, and for both rows what it did not read of the one before and its growth."""
    ours = {point.step: point for point in append.points}
    both = [(number, one, ours[one.step]) for number, one in enumerate(recorded.points, 1) if one.step in ours]
    for (_, before, base), (number, now, here) in pairwise(both):
        yield number, _change(before, now), _change(base, here)


def _change(before: RequestPoint, now: RequestPoint) -> tuple[int, int]:
    return before.tokens - now.usage.cache_read, now.tokens - before.tokens

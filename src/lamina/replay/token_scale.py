"""Token counts in a replay: our estimate, scaled to the usage the recording reported.

Owns the count that every replayed row is billed with. Invariants: a session is counted the same way under every policy, so rows
differ by what was sent and not by how it was counted; ids that are random in every run never change a count.

Two numbers are learnt from a recording that reports usage. `scale` is the growth of its requests divided by our estimate of
what was added to them. `overhead` is what the first request had beyond its messages: the system prompt, tools and unrecorded
reminders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..conversation.window.estimate import LEAST, LETTER, MOST, estimate
from ..conversation.window.features import TEXT_FRAME, measure_all
from ..core.blocks import Block, read_block
from ..core.cache import count_block
from ..core.errors import InputError
from ..core.usage import Usage
from ..prompt.break_causes import readable_after
from .figures import has_missed
from .script import ReplayScript

# Bounds the cache of counts; a dropped block is just counted again.
MOST_KNOWN = 100_000
# Estimated tokens of growth needed to trust the scale fully; with fewer it is used in part, since short calls differ by chance.
ENOUGH = 2_000
# Tools, system prompt and instructions make two or three levels; more are chance.
MOST_LEVELS = 4
# Lamina's ids are random: their characters would be counted differently in every run.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_IN_ID = "-4"  # cheap check before the pattern
_SAME_ID = "00000000-aaaa-4aaa-8aaa-0123456789ab"


class TokenScale(NamedTuple):
    scale: float = 1.0
    overhead: int = 0  # tokens of the system prompt and the tools
    warm: tuple[int, ...] = ()  # parts of it, growing, that requests found in the cache because other sessions had them there


class TokenCounter:
    """Counts the tokens of blocks and caches the counts by object identity.

    The key is the text of a block if it has one, since the block around it is rebuilt for every cache mark. These objects never
    change.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._known: dict[int, tuple[object, int]] = {}

    def __call__(self, raw: Mapping[str, Any]) -> int:
        known = _words(raw) or raw
        found = self._known.get(id(known))
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            # Keep a reference to the object, so that its id cannot be reused.
            found = self._known[id(known)] = known, self._count(raw)
        return found[1]

    def text(self, words: str) -> int:
        return self._count({"type": "text", "text": words})

    def of(self, blocks: Sequence[Block]) -> int:
        return sum(self(block.wire) for block in blocks)

    def _count(self, raw: Mapping[str, Any]) -> int:
        try:
            block = read_block(_with_same_ids(raw))
        except InputError:  # a tool, or a server-specific block
            return math.ceil(count_block(raw) * self._scale)
        return math.ceil(estimate(measure_all((block,))) * self._scale)

    def filler(self, tokens: int) -> str:
        """Return a text of about `tokens` tokens."""
        return "x" * max(0, int((tokens / self._scale - TEXT_FRAME) / LETTER))


def _words(raw: Mapping[str, Any]) -> str | None:
    words = raw.get("text") if raw.get("type") == "text" else raw.get("content") if raw.get("type") == "tool_result" else None
    return words if isinstance(words, str) else None


def _with_same_ids(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    words = _words(raw)
    if words is None or _IN_ID not in words or _ID.search(words) is None:
        return raw
    return {**raw, "text" if raw["type"] == "text" else "content": _ID.sub(_SAME_ID, words)}


def learn_scale(script: ReplayScript) -> TokenScale:
    sizes = [estimate(measure_all(step.blocks)) for step in script.steps]
    reported = [(at, answer.usage) for at, answer in script.answers.items() if answer.usage]
    if not reported:
        return TokenScale()
    # Steps before which the recorded program removed something; request growth is meaningless there.
    cuts = {*script.recorded.gone.values(), *script.recorded.results_gone.values()}
    scale = _scale(sizes, reported, since=cuts)
    first, usage = reported[0]
    overhead = max(0, usage.prompt - math.ceil(scale * sum(sizes[:first])))
    return TokenScale(scale, overhead, _shared([one for _, one in reported], overhead))


def _shared(reported: Sequence[Usage], overhead: int) -> tuple[int, ...]:
    """Return what the first request, and those behind an expired cache, still read from the cache: what other sessions begin with."""
    missed = [now for was, now in pairwise(reported) if has_missed(now, readable_after(was))]
    found = {min(overhead, usage.cache_read) for usage in (reported[0], *missed) if usage.cache_read}
    return tuple(sorted(found))[:MOST_LEVELS]


def _scale(sizes: Sequence[int], reported: Sequence[tuple[int, Usage]], since: set[int]) -> float:
    grown = expected = 0
    for (before, was), (after, now) in pairwise(reported):
        if now.prompt > was.prompt and since.isdisjoint(range(before + 1, after + 1)):
            grown += now.prompt - was.prompt
            expected += sum(sizes[before:after])
    if not expected:
        return 1.0
    sure = min(1.0, expected / ENOUGH)
    return min(MOST, max(LEAST, 1.0 + (grown / expected - 1.0) * sure))

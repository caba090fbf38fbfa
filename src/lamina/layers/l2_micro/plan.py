"""Decide what to clear, and whether clearing is worth its cache break.

By size (M2): when the window fills up and old results take much of it, the oldest are cleared until enough room is free.
After a pause (M3): the cache has expired, so the whole prompt is written again anyway and clearing costs nothing.

The cost model (`micro.must_pay`), in units of the price of one uncached input token: a clearing causes a cache break. Everything
after the first cleared result leaves the cached prefix and is written again, at the price of a write instead of a read. The
benefit depends on what would happen without the clearing.

*With autocompaction* the conversation moves in cycles. It grows by `growth` tokens per call up to the threshold, is summarised,
and starts again from what a compaction leaves (`base`). A cycle costs the reads on the way plus the summary: one more read of the
prompt, the summary's output tokens, and the cache write of what is left. Divided by the calls in a cycle, this is the long-run
cost per call. A clearing adds `saved ÷ growth` calls before the conversation is back at its present size. It pays if these calls,
with their reads and the break, cost less than the same number of calls in the cycle:

    (write − read) × rewritten + read × sizes of the calls  ≤  calls gained × long-run cost per call

This is stricter than "it saves more than the break costs": clearing keeps the context large, and reading a large context on every
call costs more than an occasional summary. The detail that a summary loses has no price here; turn `must_pay` off if it matters
more to you.

*Without autocompaction* the cleared tokens would be read in every call until the window is full. Clearing pays if that costs more
than the break:

    read × saved × calls left  ≥  (write − read) × rewritten

A conversation that is too young to measure its growth, or that does not grow, is not cleared. With a cold cache (the pause was
longer than the lifetime of its entries, or there is no cache) nothing is lost, so clearing always pays.

With an expired cache everything is written again anyway, so clearing costs nothing (P2). These stay: the newest results, the Reads
of the newest calls, results of the last answer (the model has not seen them yet), the newest inputs of Edit and Write, and the
thinking of the current turn and of the newest calls. A result that a later one repeats leaves even if it is new. Of an input only
long values leave; the path stays, and the file has the text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from ...conversation.request import CacheEdits
from ...core.blocks import Block, RedactedThinking, Thinking, ToolUse, read_block
from ...core.policy import ColdPolicy
from ...providers.models import UNITS_OUTPUT, UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H
from .old_answers import WRITERS, ShortenedAnswer
from .registry import PATHS, READ, Clearable, OldAnswer, Registry

# Assumed lifetime of entries in an automatic cache, whose provider guarantees none: they expire after an hour at the latest.
AUTOMATIC_SECONDS = 3_600
SECONDS = {"5m": 300, "1h": 3_600}
# The median summary has 12,181 characters, measured in 470 sessions of one agent.
SUMMARY_TOKENS = 3_000


class Clearing(msgspec.Struct, frozen=True):
    """A planned clearing and the state of the conversation."""

    tokens: int  # tokens of the next request without the clearing
    saved: int
    rewritten: int  # remaining tokens after the first cleared result
    growth: float | None  # tokens per call
    limit: int  # the threshold of autocompaction, or of a full window


class Cycle(msgspec.Struct, frozen=True):
    """The tokens left by a compaction: the fixed part before the messages, the summary, and the messages kept verbatim."""

    fixed: int
    kept: int

    @property
    def base(self) -> int:
        return self.fixed + SUMMARY_TOKENS + self.kept


def pays(this: Clearing, *, after_compaction: Cycle | None, cold: bool, hour: bool = False) -> bool:
    """Return whether a clearing pays for its cache break.

    `after_compaction` is None if autocompaction is off. `hour` means that cache entries are written with a lifetime of one
    hour."""
    if cold:
        return True
    if this.growth is None or this.growth <= 0 or this.saved <= 0:
        return False
    write = UNITS_WRITE_1H if hour else UNITS_WRITE
    loss = (write - UNITS_READ) * max(0, this.rewritten)
    before = max(0, this.limit - this.tokens) / this.growth
    after = max(0, this.limit - this.tokens + this.saved) / this.growth
    if after_compaction is None:
        return UNITS_READ * this.saved * (1 + after) >= loss
    reads = after * (this.tokens - this.saved + this.limit) / 2 - before * (this.tokens + this.limit) / 2
    calls = max(1.0, (this.limit - after_compaction.base) / this.growth)
    summary = UNITS_READ * this.limit + UNITS_OUTPUT * SUMMARY_TOKENS + write * (after_compaction.base - after_compaction.fixed)
    long_run_cost = summary / calls + UNITS_READ * (after_compaction.base + this.limit) / 2
    gained = (after - before) * long_run_cost
    return gained >= loss + UNITS_READ * reads


def has_expired(idle: float, ttl: str | None, *, automatic: bool) -> bool:
    """Return whether the last request has expired from the cache. Without a `ttl` there are no cache marks, so only an automatic
    cache may still hold it."""
    if ttl is not None:
        return idle >= SECONDS.get(ttl, AUTOMATIC_SECONDS)
    return not automatic or idle >= AUTOMATIC_SECONDS


def plan_edits(registry: Registry, edits: CacheEdits, *, over: int, keep: int) -> list[Clearable]:
    """Return the results to mark for deletion: if more than `over` are unmarked, all but the last `keep`.

    Every marked result is in the registry (`CacheEdits.prune`), so counting the unmarked ones is a subtraction."""
    if len(registry) - len(edits.marked) <= over:
        return []
    return [row for row in registry.rows[: max(0, len(registry) - keep)] if row.block.tool_use_id not in edits.marked]


# The newest result always stays: the model was just working with it (M3).
LEAST_KEPT = 1


def plan_idle(registry: Registry, *, idle: float, minutes: int, keep: int) -> list[Clearable]:
    """Return all but the newest `keep` results after a pause longer than `minutes`, else nothing. `idle` is in seconds."""
    if idle <= minutes * 60:
        return []
    return registry.oldest(len(registry) - max(LEAST_KEPT, keep))


def plan_size(
    registry: Registry, *, above_warning: bool, keep_tokens: int, keep_last: int, save_at_least: int
) -> list[Clearable]:
    """Return the oldest results to clear, or nothing if that would not save enough. A binary search, however long the view is."""
    excess = registry.total - keep_tokens
    if not above_warning or excess <= 0:
        return []
    # The smallest number of oldest results whose removal leaves at most `keep_tokens`.
    count = min(bisect_left(registry.sums, excess) + 1, len(registry) - keep_last)
    if count <= 0 or registry.saved_by(count) < save_at_least:
        return []
    return registry.oldest(count)


# A value up to this length is not worth the marker that would replace it.
SHORT_VALUE = 160
CLEARED = "[{count:,} characters cleared to save room.{again}]"
IN_FILE = " The file had them after this call."
AGAIN = " Expand {node} shows them."


class ColdClearing(msgspec.Struct, frozen=True):
    """The results to clear, and the answers whose thinking or inputs to clear."""

    results: list[Clearable]
    thinking: list[OldAnswer]
    inputs: list[OldAnswer]


def plan_cold(registry: Registry, policy: ColdPolicy) -> ColdClearing:
    """Return what leaves before the next request, if the cache has expired. Only the newest rows are looked at one by one."""
    keep_from = max(0, len(registry) - policy.keep_results)
    reads_from = registry.answers - max(1, policy.keep_reads)
    old = min(keep_from, bisect_right(registry.newest_answers, reads_from))
    worthless = registry.repeated.superseded

    def leaves(index: int, row: Clearable) -> bool:
        if row.call.answer >= registry.answers or not registry.is_worth_clearing(row):
            return False
        is_new = index >= keep_from or (row.call.tool == READ and row.call.answer > reads_from)
        return not is_new or row.block.tool_use_id in worthless

    rows = [row for index, row in enumerate(registry.rows[old:], old) if leaves(index, row)]
    thinking = min(
        bisect_right(registry.thinking, registry.answers - policy.keep_thinking, key=lambda old_answer: old_answer.answer),
        bisect_left(registry.thinking, registry.said, key=lambda old_answer: old_answer.said),
    )
    inputs = max(0, len(registry.written) - policy.keep_inputs)
    return ColdClearing([*registry.oldest(old), *rows], registry.thinking[:thinking], registry.written[:inputs])


def plan_repeated(registry: Registry) -> list[Clearable]:
    """Return the results that later ones repeat, without those of the last answer."""
    worthless = registry.repeated.superseded
    if not worthless:
        return []
    rows = (row for row in registry.rows if row.block.tool_use_id in worthless and row.call.answer < registry.answers)
    return [row for row in rows if registry.is_worth_clearing(row)]


def shorten_cold(
    planned: ColdClearing, *, node: str, tools: Collection[str], failed: Collection[str], measure: Callable[[Block], int]
) -> list[ShortenedAnswer]:
    """Return the planned answers without their thinking or long inputs, except those that would not get shorter.

    `node` is the start of the decision's id, or empty if the model cannot expand it. `failed` are the calls that failed, whose
    text is in no file."""
    thinking = {old.item.uuid for old in planned.thinking}
    inputs = {old.item.uuid for old in planned.inputs}
    again = AGAIN.format(node=node) if node else ""
    answers: list[ShortenedAnswer] = []
    for item in {old.item.uuid: old.item for old in (*planned.thinking, *planned.inputs)}.values():
        blocks: tuple[Block, ...] = item.blocks
        if item.uuid in thinking:
            blocks = tuple(block for block in blocks if not isinstance(block, Thinking | RedactedThinking))
        if item.uuid in inputs:
            blocks = tuple(
                read_block(
                    {**block.wire, "input": _without_values(block.input, "", "" if block.id in failed else IN_FILE, again)}
                )
                if isinstance(block, ToolUse) and block.name in WRITERS and block.name in tools
                else block
                for block in blocks
            )
        saved = sum(map(measure, item.blocks)) - sum(map(measure, blocks))
        if saved > 0:
            answers.append(ShortenedAnswer(item.uuid, blocks, saved, 0))
    return answers


def _without_values(value: Any, name: str, where: str, again: str) -> Any:
    match value:
        case str() if len(value) > SHORT_VALUE and name not in PATHS:
            # An edit leaves its new text in the file, not the old one.
            return CLEARED.format(count=len(value), again=("" if name == "old_string" else where) + again)
        case dict():
            return {key: _without_values(part, key, where, again) for key, part in value.items()}
        case list():
            return [_without_values(part, name, where, again) for part in value]
        case _:
            return value

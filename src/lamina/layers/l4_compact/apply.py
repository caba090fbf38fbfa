"""Turn a summary into a compaction: compose its text, restore context after it, and commit it if the view gets smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

import msgspec

from ...conversation.compaction.commit import Compacted, CompactionRequest, How, Replacement, budget_of, ceiling, commit
from ...conversation.compaction.compose import SummaryOrigin, WayBack, compose, used_in
from ...conversation.compaction.cuts import is_said
from ...conversation.compaction.restoration import Restoration, put_back, size_of, tokens_of
from ...conversation.compaction.user_messages import LEAST_CHARACTERS, escaped, said_in, shortened, words_of
from ...conversation.state import Conversation
from ...core.receipts import Told
from ...core.records import new_id
from ...core.view import Item
from ...disk.session_files.spills import DIRECTORY
from .plan import SummaryPlan
from .summary_call import SummaryMade, reserve

# A summary may have this many times the tokens that were asked for: less is a difference in counting, not a server that ignores
# `max_tokens`.
MOST_RESERVES = 2


class SummaryParts(NamedTuple):
    """The composed summary, the context restored after it, and the tokens of the resulting view."""

    text: str
    put: Restoration
    after: int


def put_together(
    c: Conversation,
    items: Sequence[Item],
    made: SummaryPlan,
    got: SummaryMade,
    wanted: CompactionRequest,
    *,
    by: str = "",
    parent: str | None = None,
    fresh: bool = True,
) -> SummaryParts:
    """Return the view that a compaction would leave. Nothing is written.

    With `fresh` off, the host is not asked for anything that could change its state, so a preview can call this too."""

    def tokens(words: str) -> int:
        return tokens_of(c, words)

    part = items[made.start : made.end]
    kept = [*items[: made.start], *items[made.end :]]
    stays = c.count.before_messages + size_of(c, [block for item in kept for block in item.blocks])
    room = max(0, ceiling(c) - stays - tokens(got.text))
    written = compose(
        got.text,
        said=said_in(part),
        files=used_in(part, str(c.cwd)),
        way=_way(c, by),
        budget=budget_of(c, room),
        tokens=tokens,
        made=SummaryOrigin(wanted.partial, got.mechanical, 0 if got.mechanical else got.dropped, go_on=wanted.trigger == "auto"),
    )
    size = tokens(written)
    put = put_back(c, items, by=by, parent=parent, kept=kept, room=max(0, ceiling(c) - stays - size), fresh=fresh)
    return SummaryParts(written, put, stays + size + size_of(c, [block for record in put.records for block in record.blocks]))


def _way(c: Conversation, node: str) -> WayBack:
    reach = c.prompt.reach
    if not reach.files:
        return WayBack(node, expand=reach.expand)
    results = c.directory / DIRECTORY if c.directory is not None else None
    spilled = str(results) if results is not None and results.is_dir() else ""
    return WayBack(node, str(c.store.path or ""), spilled, reach.expand)


def apply_summary(
    c: Conversation, items: Sequence[Item], made: SummaryPlan, got: SummaryMade, how: How, wanted: CompactionRequest
) -> Compacted:
    """Commit the summary, unless the view would not get smaller."""
    decision, within = new_id(), made.start > 0
    summary = decision if within else str(uuid4())
    parent = c.log.tree.leaf if within else summary
    parts = put_together(c, items, made, got, wanted, by=decision, parent=parent)
    too_large = parts.after > ceiling(c) or tokens_of(c, got.text) > MOST_RESERVES * reserve(c)
    if too_large and (short := _within_room(c, got, parts.after - ceiling(c))) != got:
        got, parts = short, put_together(c, items, made, short, wanted, by=decision, parent=parent)
    # Both sides use the same estimate, since the provider's reported count may follow another rule.
    was = c.count.before_messages + size_of(c, [block for item in items for block in item.blocks])
    if parts.after >= was:
        why = f"the conversation would not get smaller ({was:,} tokens before, {parts.after:,} after)"
        return Compacted(why=why, usage=got.usage, tokens_before=wanted.before)
    part = items[made.start : made.end]
    new = Replacement(
        decision,
        summary,
        parts.text,
        how,
        tuple(item.uuid for item in part),
        parts.put,
        fates={item.uuid: Told("left_out") for item in part if _is_left_out(item, got, parts)},
        usage=got.usage,
        left_out=got.dropped,
        instead=got.instead,
        saved=max(0, was - parts.after),
    )
    return commit(c, items, new, wanted)


def _within_room(c: Conversation, got: SummaryMade, over: int) -> SummaryMade:
    """Shorten a summary with which the window would hold `over` tokens too many, or that is longer than it was asked to be.

    One that fills the window could never be compacted again, and every call would pay for it."""

    def tokens(words: str) -> int:
        return tokens_of(c, words)

    most = min(reserve(c), tokens(got.text) - max(0, over))
    return msgspec.structs.replace(got, text=shortened(got.text, max(1, most), tokens, least=LEAST_CHARACTERS))


def _is_left_out(item: Item, got: SummaryMade, parts: SummaryParts) -> bool:
    """Return whether an item is lost from the view: no model saw it, and neither the summary nor the restored context contains
    it."""
    if item.uuid not in got.unseen or item.uuid in parts.put.elsewhere:
        return False
    return not (is_said(item) and escaped(words_of(item.blocks)) in parts.text)

"""Layer 3 in a turn: notes are updated in the background (background.py), and a compaction can use them.

    after_answer   start an update if one is due
    compact        replace the messages that the notes cover, without a model call; if that is not possible, layer 4 takes over

A compaction is appended in one write, with a receipt for every record in view. A crash leaves the old view or the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

from ...conversation import pins
from ...conversation.compaction.commit import Compacted, CompactionRequest, Replacement, budget_of, ceiling, commit
from ...conversation.compaction.compose import listed, used_in, users_section
from ...conversation.compaction.hooks import CompactHooks
from ...conversation.compaction.restoration import (
    INSTRUCTIONS,
    NESTED,
    PIN,
    put_back,
    size_of,
    tokens_of,
)
from ...conversation.compaction.user_messages import escaped, said_in, select
from ...conversation.isolate import take_job_results
from ...conversation.state import Conversation
from ...conversation.triggers import compaction_at
from ...conversation.window.count import replaced
from ...conversation.window.features import measure_all
from ...core.blocks import Block, text
from ...core.effects import Flow, Wait
from ...core.prompt_files import prompt_sections
from ...core.view import Item
from .background import NAME, after_answer, limits_of, state_of
from .plan import Cursor, KeepRule, NotesTail, covered_after, lowered, plan_tail, summary_text
from .sections import Misfit, Notes, cut, is_fresh
from .update import load_texts, notes_path, read_current, read_file

__all__ = ["after_answer", "compact"]

# Attachments that a compaction restores in their current state, so the old ones are removed.
AGAIN = frozenset(f"attachment:{kind}" for kind in (INSTRUCTIONS, NESTED, "file", "todos"))

SkipReason: TypeAlias = Literal[
    "in memory",
    "no notes",
    "not notes",
    "nothing noted",
    "nothing known to be covered",
    "nothing to take out",
    "no smaller",
    "too large still",
    "a hook said no",
    "a hook adds instructions",
]


class GivenUp(NamedTuple):
    reason: SkipReason
    detail: str = ""


class PlannedCompaction(NamedTuple):
    node: str  # the id of the decision
    notes: Notes
    cursor: Cursor
    tail: NotesTail
    text: str  # text of the summary
    tokens: int  # tokens of the view without the restored attachments


def compact(c: Conversation, hooks: CompactHooks) -> Flow[Compacted | None]:
    """Compact with the notes. Return None and change nothing if that is not possible or a hook vetoes it."""
    if not (c.settings.notes_compaction and c.settings.compaction):
        return None
    began, before = c.clock(), c.count.tokens
    yield from _wait(c)
    items = tuple(c.log.view.items)
    planned = _plan(c)
    done = (
        planned
        if isinstance(planned, GivenUp)
        else _ask_hooks(hooks)
        or _commit(c, items, planned, CompactionRequest(hooks.trigger, began, before, because=hooks.because))
    )
    if isinstance(done, GivenUp):
        detail = {"detail": done.detail} if done.detail else {}
        c.record_event("notes_compaction_skipped", {"reason": done.reason, **detail})
        return None
    return done


def _ask_hooks(hooks: CompactHooks) -> GivenUp | None:
    """Return why the hooks rule out notes: a veto, or extra instructions, which only a summary can follow."""
    if not hooks.ask():
        return GivenUp("a hook said no")
    return GivenUp("a hook adds instructions") if hooks.instructions else None


def _wait(c: Conversation) -> Flow[None]:
    """Wait for a running update, unless it has been running so long that it is probably stuck."""
    age = c.background.running(NAME)
    if age is not None and age < c.policy.notes.stale_seconds:
        yield Wait(NAME, c.policy.notes.wait_seconds)
    take_job_results(c)


def _plan(c: Conversation) -> PlannedCompaction | GivenUp:
    if c.directory is None:
        return GivenUp("in memory")
    notes = _usable(c)
    if isinstance(notes, GivenUp):
        return notes
    for cursor in (state_of(c).cursor, state_of(c).earlier):
        tail = _tail(c, cursor.covered) if cursor is not None else None
        if cursor is not None and tail is not None:
            break
    else:
        return GivenUp("nothing known to be covered")
    if not tail.gone:
        return GivenUp("nothing to take out")
    node, _, _ = c.head()
    summary = _summary(c, notes, tail, node)
    tokens = _tokens(c, [block for item in _kept(c, tail) for block in item.blocks], summary)
    return _too_large(c, tokens) or PlannedCompaction(node, notes, cursor, tail, summary, tokens)


def _too_large(c: Conversation, tokens: int) -> GivenUp | None:
    """Return why a compaction to this many tokens is useless, or None.

    It is checked twice: first without the restored attachments, which take time to collect, and then with them."""
    if tokens >= compaction_at(c):
        return GivenUp("too large still", f"{tokens:,} tokens")
    return GivenUp("no smaller", f"{tokens:,} of {c.count.judged:,} tokens") if tokens >= c.count.judged else None


def _usable(c: Conversation) -> Notes | GivenUp:
    assert c.directory is not None
    template = load_texts(c.home).template
    notes = read_current(read_file(notes_path(c.directory)), template)
    if notes is None:
        return GivenUp("no notes")
    if isinstance(notes, Misfit):
        return GivenUp("not notes", notes.why)
    return GivenUp("nothing noted") if is_fresh(notes, template) else notes


def _tail(c: Conversation, covered: str) -> NotesTail | None:
    view, policy, cut = c.log.view, c.policy.notes, pins.budgets(c)
    return plan_tail(
        view.items,
        covered,
        [pin.target for pin in view.pins.values() if pin.target is not None and pin.uuid not in cut],
        again=lambda item: item.kind in AGAIN or item.kind.startswith(f"attachment:{PIN}"),
        size=lambda block: size_of(c, (block,)),
        keep=KeepRule(c.limits.scaled(policy.keep_tokens), policy.keep_messages, c.limits.scaled(policy.keep_cap)),
    )


def _summary(c: Conversation, notes: Notes, tail: NotesTail, node: str) -> str:
    assert c.directory is not None
    shown = cut(notes, lambda words: tokens_of(c, words), limits_of(c).section, prompt_sections(__file__, "summary")["cut"])
    places = {"path": str(notes_path(c.directory)), "transcript": str(c.store.path), "node": node}
    summary = escaped(summary_text(shown, **places, reach=c.prompt.reach))
    return "\n\n".join([summary, *_sections_from_log(c, tail, summary)])


def _sections_from_log(c: Conversation, tail: NotesTail, summary: str) -> Iterator[str]:
    """Yield the parts that do not depend on the notes: the user's own messages and the list of files used, both from the log.

    A summary contains the same parts, so the next compaction finds them again, whichever way it is made."""
    kept = set(tail.kept)
    gone = [item for item in c.log.view.items if item.uuid not in kept]
    stays = c.count.before_messages + size_of(c, [block for item in _kept(c, tail) for block in item.blocks])
    budget = budget_of(c, max(0, ceiling(c) - stays - tokens_of(c, summary)))
    if words := said_in(gone):
        yield users_section(select(words, budget.users, lambda one: tokens_of(c, one)))
    if files := listed(used_in(gone, str(c.cwd)), budget.files, lambda one: tokens_of(c, one)):
        yield files


def _kept(c: Conversation, tail: NotesTail) -> list[Item]:
    kept = set(tail.kept)
    return [item for item in c.log.view.items if item.uuid in kept]


def _tokens(c: Conversation, blocks: Sequence[Block], summary: str) -> int:
    """Return the token count that thresholds would see if the view were this summary and these blocks."""
    return replaced(c.count, measure_all([text(summary), *blocks], c.memo)).judged


def _commit(c: Conversation, items: Sequence[Item], planned: PlannedCompaction, wanted: CompactionRequest) -> Compacted | GivenUp:
    """Append the compaction in one write, unless it turns out too large with the restored attachments."""
    summary, kept = str(uuid4()), _kept(c, planned.tail)
    room = max(0, ceiling(c) - planned.tokens)
    put = put_back(c, items, by=planned.node, parent=summary, kept=kept, room=room)
    blocks = [block for item in kept for block in item.blocks] + [block for record in put.records for block in record.blocks]
    if large := _too_large(c, _tokens(c, blocks, planned.text)):
        return large
    new = Replacement(planned.node, summary, planned.text, "notes", planned.tail.gone, put)
    return commit(c, items, new, wanted, during=_moving_cursor(c, planned, summary))


@contextmanager
def _moving_cursor(c: Conversation, planned: PlannedCompaction, summary: str) -> Iterator[None]:
    """Move the cursor before the write, so that the checkpoint after the boundary contains it. A failed write moves it back."""
    state = state_of(c)
    before = state.cursor, state.earlier
    state.cursor = Cursor(planned.cursor.tokens, covered_after(planned.tail, planned.cursor.covered, summary))
    state.earlier = planned.cursor
    try:
        yield
    except BaseException:
        state.cursor, state.earlier = before
        raise
    state.cursor = lowered(state.cursor, c.count.tokens)

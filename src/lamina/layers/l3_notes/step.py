"""Layer 3 in a turn: notes are kept in the background (noting.py), and a compaction may use them.

    after_answer   maybe start an update
    landed         an update came back
    compact        the notes take the place of what they cover, without a call; what they cannot do is left to layer 4

A compaction is entered in one write, with the receipt of every record in view; a crash leaves the old view or the new one.
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

# Attachments that are put back anew, as they are now: the old ones go.
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
    text: str  # of the summary
    tokens: int  # of the view without what is put back


def compact(c: Conversation, asked: CompactHooks) -> Flow[Compacted | None]:
    """N6: compact with the notes; None, and nothing changed, when they cannot do it or a hook said no to it."""
    if not (c.settings.notes_compaction and c.settings.compaction):
        return None
    began, before = c.clock(), c.count.tokens
    yield from _wait(c)
    items = tuple(c.log.view.items)
    planned = _plan(c)
    done = (
        planned
        if isinstance(planned, GivenUp)
        else _asked(asked) or _commit(c, items, planned, CompactionRequest(asked.trigger, began, before))
    )
    if isinstance(done, GivenUp):
        detail = {"detail": done.detail} if done.detail else {}
        c.record_event("notes_compaction_skipped", {"reason": done.reason, **detail})
        return None
    return done


def _asked(wanted: CompactHooks) -> GivenUp | None:
    """What hooks add to the instructions only a summary can follow."""
    if not wanted.ask():
        return GivenUp("a hook said no")
    return GivenUp("a hook adds instructions") if wanted.instructions else None


def _wait(c: Conversation) -> Flow[None]:
    """N7: an update under way is worth waiting for, unless it has hung for long."""
    age = c.background.running(NAME)
    if age is not None and age < c.policy.notes.stale_seconds:
        yield Wait(NAME, c.policy.notes.wait_seconds)
    take_job_results(c)


# What is decided


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
    said = _summary(c, notes, tail, node)
    tokens = _tokens(c, [block for item in _kept(c, tail) for block in item.blocks], said)
    return _too_large(c, tokens) or PlannedCompaction(node, notes, cursor, tail, said, tokens)


def _too_large(c: Conversation, tokens: int) -> GivenUp | None:
    """What would be left is judged twice: without what is put back, which costs time to gather, and with it."""
    if tokens >= c.limits.autocompact:
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
    said = escaped(summary_text(shown, path=str(notes_path(c.directory)), transcript=str(c.store.path), node=node))
    return "\n\n".join([said, *_beside(c, tail, said)])


def _beside(c: Conversation, tail: NotesTail, said: str) -> Iterator[str]:
    """What is not left to notes, as in a summary (C3): the person's own words and the files used, from the log. The next compaction
    finds both again, whichever way it is made."""
    kept = set(tail.kept)
    gone = [item for item in c.log.view.items if item.uuid not in kept]
    stays = c.count.fixed + size_of(c, [block for item in _kept(c, tail) for block in item.blocks])
    budget = budget_of(c, max(0, ceiling(c) - stays - tokens_of(c, said)))
    if words := said_in(gone):
        yield users_section(select(words, budget.users, lambda one: tokens_of(c, one)))
    if files := listed(used_in(gone, str(c.cwd)), budget.files, lambda one: tokens_of(c, one)):
        yield files


def _kept(c: Conversation, tail: NotesTail) -> list[Item]:
    kept = set(tail.kept)
    return [item for item in c.log.view.items if item.uuid in kept]


def _tokens(c: Conversation, blocks: Sequence[Block], said: str) -> int:
    """What thresholds would be tested with if these were the view (T10)."""
    return replaced(c.count, measure_all([text(said), *blocks], c.memo)).judged


# What is done


def _commit(c: Conversation, items: Sequence[Item], planned: PlannedCompaction, wanted: CompactionRequest) -> Compacted | GivenUp:
    """Everything in one write."""
    summary, kept = str(uuid4()), _kept(c, planned.tail)
    room = max(0, ceiling(c) - planned.tokens)
    put = put_back(c, items, by=planned.node, parent=summary, kept=kept, room=room)
    blocks = [block for item in kept for block in item.blocks] + [block for record in put.records for block in record.blocks]
    if large := _too_large(c, _tokens(c, blocks, planned.text)):
        return large
    new = Replacement(planned.node, summary, planned.text, "notes", planned.tail.gone, put)
    return commit(c, items, new, wanted, during=_moved(c, planned, summary))


@contextmanager
def _moved(c: Conversation, planned: PlannedCompaction, summary: str) -> Iterator[None]:
    """The cursor moves first, so that the checkpoint behind the boundary holds it; what was not written did not move it."""
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

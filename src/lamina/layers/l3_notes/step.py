"""Layer 3 in a turn: notes are updated in the background, and a compaction can use them.

    after_answer   start an update if one is due
    compact        replace the messages that the notes cover, without a model call; if that is not possible, layer 4 takes over

A compaction is appended in one write, with a receipt for every record in view. A crash leaves the old view or the new one.

An update starts after an answer, and the conversation's own thread takes its result in (N1-N5). `NotesState` owns the cursor of the
last update. It is logged as an event (`notes`) and stored in every checkpoint, so that a resumed session knows which messages the
notes cover. Only a successful update moves the cursor, when the conversation's thread takes it in. A crash between writing the file
and logging the event leaves newer notes with an older cursor: a compaction then keeps more than necessary, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event as Abort
from typing import Literal, NamedTuple, TypeAlias, assert_never
from uuid import uuid4

import msgspec
from msgspec.structs import replace

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
    size_of_items,
    tokens_of,
)
from ...conversation.compaction.user_messages import escaped, said_in, select
from ...conversation.forks import ForkDriver, ended, failed, hand_over
from ...conversation.isolate import take_job_results
from ...conversation.state import Conversation
from ...conversation.triggers import compaction_at, last_compaction
from ...conversation.window.count import replaced
from ...conversation.window.estimate import Calibration, estimate
from ...conversation.window.features import measure, measure_all
from ...core.blocks import Block, ToolUse, text
from ...core.effects import Flow, Wait, drive
from ...core.errors import Aborted
from ...core.prompt_files import prompt_sections
from ...core.view import Item
from ...fork.background import JobResult
from ...fork.handover import PrefixChanged
from ...language.text import Text
from ...language.wording import counted
from ...providers.models import known
from .plan import Cursor, FailedUpdates, KeepRule, NotesTail, covered_after, due, lowered, plan_tail, still_failed, summary_text
from .sections import How, Misfit, Notes, NotesLimits, Size, cut, is_fresh
from .update import (
    Draft,
    NotesOrder,
    NotUpdated,
    Updated,
    UpdateOutcome,
    begin,
    finish,
    is_our_edit,
    load_texts,
    notes_path,
    read_current,
    read_file,
    rewrite,
    with_draft,
)

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
    age = c.background.running(NAME)
    # An update that has been running for longer is probably stuck, and nothing waits for it.
    if age is not None and age < c.policy.notes.stale_seconds:
        yield Wait(NAME, c.policy.notes.wait_seconds)
    take_job_results(c)
    items = tuple(c.log.view.items)
    planned = _plan(c)
    outcome = (
        planned
        if isinstance(planned, GivenUp)
        else _ask_hooks(hooks)
        or _commit(c, items, planned, CompactionRequest(hooks.trigger, began, before, because=hooks.because))
    )
    if isinstance(outcome, GivenUp):
        detail = {"detail": outcome.detail} if outcome.detail else {}
        c.record_event("notes_compaction_skipped", {"reason": outcome.reason, **detail})
        return None
    return outcome


def _ask_hooks(hooks: CompactHooks) -> GivenUp | None:
    """Return why the hooks rule out notes: a veto, or extra instructions, which only a summary can follow."""
    if not hooks.ask():
        return GivenUp("a hook said no")
    return GivenUp("a hook adds instructions") if hooks.instructions else None


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
        return GivenUp("too large still", Text("{tokens:,} tokens", tokens=tokens))
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
    fitting = cut(notes, partial(tokens_of, c), limits_of(c).section, prompt_sections(__file__, "summary")["cut"])
    places = {"path": str(notes_path(c.directory)), "transcript": str(c.store.path), "node": node}
    summary = escaped(summary_text(fitting, **places, reach=c.prompt.reach))
    return "\n\n".join([summary, *_sections_from_log(c, tail, summary)])


def _sections_from_log(c: Conversation, tail: NotesTail, summary: str) -> Iterator[str]:
    """Yield the parts that do not depend on the notes: the user's own messages and the list of files used, both from the log.

    A summary contains the same parts, so the next compaction finds them again, whichever way it is made."""
    tail_ids = set(tail.kept)
    gone = [item for item in c.log.view.items if item.uuid not in tail_ids]
    stays = c.count.before_messages + size_of_items(c, _kept(c, tail))
    budget = budget_of(c, max(0, ceiling(c) - stays - tokens_of(c, summary)))
    if words := said_in(gone):
        yield users_section(select(words, budget.users, partial(tokens_of, c)))
    if files := listed(used_in(gone, str(c.cwd)), budget.files, partial(tokens_of, c)):
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


# The name of the background job. Only one job of a name runs at a time, so updates never overlap (N4).
NAME = "notes"
STOPPED = Text(
    "Updating the session notes failed ({tries} in a row), so updates stop until the next compaction, "
    "which is made with a summary instead. Last reason: {why}."
)
# An answer may contain all notes, with this many sections over their limit.
SPARE_SECTIONS = 2


class NotesState:
    """The cursor, and state that lasts only as long as this process."""

    def __init__(self) -> None:
        self.known = False  # whether the cursor was read from the log
        self.cursor: Cursor | None = None
        self.earlier: Cursor | None = None  # the cursor before the last compaction, in case it is undone
        self.failed = FailedUpdates()


def state_of(c: Conversation) -> NotesState:
    state = c.layer_state(NotesState)
    if not state.known:
        state.known = True
        # A session continued under a new id has the cursor of the old session but not its files.
        if c.directory is not None and notes_path(c.directory).exists():
            cursor = _recorded(c)
            state.cursor = _lowered_by_usage(c, cursor) if cursor is not None else None
        c.checkpoint_with(NAME, lambda: msgspec.to_builtins(state.cursor))
    return state


def _recorded(c: Conversation) -> Cursor | None:
    """Return the cursor of the last event, or that of the checkpoint if the event's message has left the view."""
    event = c.log.events.get(NAME)
    cursors = [_read_cursor(event.data if event is not None else None), _read_cursor(c.resumed.get(NAME))]
    uuids = {item.uuid for item in c.log.view.items}
    return next((cursor for cursor in cursors if cursor is not None and cursor.covered in uuids), cursors[0] or cursors[1])


def _lowered_by_usage(c: Conversation, cursor: Cursor) -> Cursor:
    """Return the cursor, lowered if the token count fell after the update (by a clearing).

    The usage of the answers since then shows how far it fell, so a resumed session measures the same growth as an uninterrupted
    one."""
    for item in reversed(c.log.view.items):
        if item.uuid == cursor.covered:
            break
        if item.role == "assistant" and item.usage is not None and item.stop_reason is not None:
            cursor = lowered(cursor, item.usage.total)
    return cursor


def _read_cursor(raw: object) -> Cursor | None:
    try:
        return msgspec.convert(raw, Cursor | None)
    except msgspec.ValidationError:
        return None


def after_answer(c: Conversation) -> None:
    """Start an update if one is due and none is running."""
    if c.directory is None or not (c.settings.session_notes and c.autocompact) or c.background.running(NAME) is not None:
        return
    state, items = state_of(c), c.log.view.items
    if not items or items[-1].role != "assistant" or items[-1].stop_reason is None:
        return
    tokens = c.count.tokens
    state.failed = still_failed(state.failed, tokens, _boundary(c))
    if state.cursor is not None:
        state.cursor = lowered(state.cursor, tokens)
    why = due(
        state.cursor,
        tokens=tokens,
        calls=lambda: _calls_since(c, state.cursor.covered if state.cursor else ""),
        called=_last_answer_calls_tool(c),
        policy=c.policy.notes,
        scaled=c.limits.scaled,
        failed=state.failed,
        retries=c.policy.compact.summary_retries,
    )
    if why is not None and c.background.allows(NAME):
        c.background.start(NAME, _job(c, Cursor(tokens, items[-1].uuid)), partial(_take, c))


def _boundary(c: Conversation) -> str:
    newest = last_compaction(c)
    return newest.uuid if newest is not None else ""


def _calls_since(c: Conversation, covered: str) -> int:
    calls = 0
    for item in reversed(c.log.view.items):
        if item.uuid == covered:
            break
        calls += sum(isinstance(block, ToolUse) for block in item.blocks)
    return calls


def _last_answer_calls_tool(c: Conversation) -> bool:
    """Return whether the last answer calls a tool. Each block of an answer is a separate record, so several are checked."""
    items = c.log.view.items
    last = items[-1]
    for item in reversed(items):
        if item is not last and (item.role != "assistant" or item.key is None or item.key != last.key):
            return False
        if any(isinstance(block, ToolUse) for block in item.blocks):
            return True
    return False


def _job(c: Conversation, cursor: Cursor) -> Callable[[Abort], UpdateOutcome]:
    """Return the update as a background job. It copies everything it needs now and never touches the conversation."""
    assert c.directory is not None
    limits, model = limits_of(c), known(c.prompt.model)
    max_tokens = max(c.prompt.max_tokens, limits.total + SPARE_SECTIONS * limits.section)
    if model is not None and model.max_output:
        max_tokens = min(max_tokens, model.max_output)
    order = NotesOrder(
        path=notes_path(c.directory), home=c.home, how=_how(c), limits=limits, cursor=cursor, max_tokens=max_tokens
    )
    handover, size, ask, draft = hand_over(c), _size(c.count.calibration), c.ask_side, Draft()
    tool_runner = None
    if order.how == "edit" and c.host.tool_runner is not None:
        lent = c.host.tool_runner.restrict(abort=Abort(), only_edit=order.path)
        tool_runner = replace(lent, tools=with_draft(lent.tools, draft))

    def job(abort: Abort) -> UpdateOutcome:
        begun = begin(order)
        rewritten = drive(rewrite(order, begun, handover, draft, size), ForkDriver(ask, abort, tool_runner).until(abort))
        if abort.is_set():
            raise Aborted
        return finish(order, begun, rewritten, size)

    return job


def _how(c: Conversation) -> How:
    """Return "edit" if our Edit tool is in both the host's tool runner and the prompt. Otherwise the fork answers with
    sections."""
    runs_our_edit = c.host.tool_runner is not None and any(is_our_edit(tool) for tool in c.host.tool_runner.tools)
    return "edit" if runs_our_edit and any(tool.get("name") == "Edit" for tool in c.prompt.tools) else "sections"


def limits_of(c: Conversation) -> NotesLimits:
    return NotesLimits(c.limits.scaled(c.policy.notes.section_tokens), c.limits.scaled(c.policy.notes.total_tokens))


def _size(calibration: Calibration) -> Size:
    return lambda words: estimate(measure(text(words)), calibration) if words else 0


def _take(c: Conversation, job: JobResult) -> None:
    """Take in the result of an update."""
    state = state_of(c)
    value: UpdateOutcome = job.value if job.error is None else NotUpdated(str(job.error) or type(job.error).__name__)
    if isinstance(job.error, PrefixChanged):
        failed(c, NAME, job.error)
    for outcome in value.outcomes:
        ended(c, NAME, outcome, job.seconds)
    match value:
        case Updated():
            state.cursor, state.earlier, state.failed = value.cursor, None, FailedUpdates()
            beside = {"beside": value.beside} if value.beside else {}
            c.record_event(NAME, {**msgspec.to_builtins(value.cursor), "size": value.tokens, **beside})
        case NotUpdated():
            boundary = _boundary(c)
            before = still_failed(state.failed, c.count.tokens, boundary)
            state.failed = FailedUpdates(before.times + 1, c.count.tokens, boundary)
            c.record_event("notes_failed", {"why": value.why, "times": state.failed.times})
            if state.failed.times == c.policy.notes.breaker:
                c.notify(Text(STOPPED, tries=counted(state.failed.times, "failure"), why=Text.whole(value.why.rstrip("."))))
        case _:
            assert_never(value)
    c.notify_once(*value.remarks)

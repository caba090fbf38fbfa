"""Background updates of the notes: started after an answer, and taken in by the conversation's own thread (N1-N5).

Owns the cursor of the last update. It is logged as an event (`notes`) and stored in every checkpoint, so that a resumed session
knows which messages the notes cover. Only a successful update moves the cursor, when the conversation's thread takes it in. A
crash between writing the file and logging the event leaves newer notes with an older cursor: a compaction then keeps more than
necessary, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event as Abort
from typing import assert_never

import msgspec
from msgspec.structs import replace

from ...conversation.forks import ForkDriver, ended, failed, hand_over
from ...conversation.state import Conversation
from ...conversation.window.estimate import Calibration, estimate
from ...conversation.window.features import measure
from ...core.blocks import ToolUse, text
from ...core.effects import drive
from ...core.errors import Aborted
from ...core.records import Boundary
from ...fork.background import JobResult
from ...fork.handover import PrefixChanged
from ...language.wording import counted
from ...providers.models import known
from .plan import Cursor, FailedUpdates, due, lowered, still_failed
from .sections import Size
from .template import How, NotesLimits
from .update import (
    Draft,
    NotesOrder,
    NotUpdated,
    Updated,
    UpdateOutcome,
    begin,
    finish,
    is_our_edit,
    notes_path,
    rewrite,
    with_draft,
)

# The name of the background job. Only one job of a name runs at a time, so updates never overlap (N4).
NAME = "notes"
STOPPED = (
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
    found = [_read_cursor(event.data if event is not None else None), _read_cursor(c.resumed.get(NAME))]
    shown = {item.uuid for item in c.log.view.items}
    return next((cursor for cursor in found if cursor is not None and cursor.covered in shown), found[0] or found[1])


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
    state.failed = still_failed(state.failed, tokens, _last_compaction(c))
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


def _last_compaction(c: Conversation) -> str:
    return next((made.uuid for made in reversed(c.log.decisions.values()) if isinstance(made, Boundary)), "")


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
    order = NotesOrder(
        path=notes_path(c.directory), home=c.home, how=_how(c), limits=limits_of(c), cursor=cursor, max_tokens=_max_tokens(c)
    )
    handover, size, ask, draft = hand_over(c), _size(c.count.calibration), c.ask_side, Draft()
    tool_runner = None
    if order.how == "edit" and c.host.tool_runner is not None:
        lent = c.host.tool_runner.restrict(abort=Abort(), only_edit=order.path)
        tool_runner = replace(lent, tools=with_draft(lent.tools, draft))

    def job(abort: Abort) -> UpdateOutcome:
        begun = begin(order)
        done = drive(rewrite(order, begun, handover, draft, size), ForkDriver(ask, abort, tool_runner).until(abort))
        if abort.is_set():
            raise Aborted
        return finish(order, begun, done, size)

    return job


def _how(c: Conversation) -> How:
    """Return "edit" if our Edit tool is in both the host's tool runner and the prompt. Otherwise the fork answers with
    sections."""
    runs_our_edit = c.host.tool_runner is not None and any(is_our_edit(tool) for tool in c.host.tool_runner.tools)
    return "edit" if runs_our_edit and any(tool.get("name") == "Edit" for tool in c.prompt.tools) else "sections"


def limits_of(c: Conversation) -> NotesLimits:
    return NotesLimits(c.limits.scaled(c.policy.notes.section_tokens), c.limits.scaled(c.policy.notes.total_tokens))


def _max_tokens(c: Conversation) -> int:
    limits = limits_of(c)
    wanted = max(c.prompt.max_tokens, limits.total + SPARE_SECTIONS * limits.section)
    model = known(c.prompt.model)
    return min(wanted, model.max_output) if model is not None and model.max_output else wanted


def _size(calibration: Calibration) -> Size:
    return lambda words: estimate(measure(text(words)), calibration) if words else 0


def _take(c: Conversation, one: JobResult) -> None:
    """Take in the result of an update."""
    state = state_of(c)
    value: UpdateOutcome = one.value if one.error is None else NotUpdated(str(one.error) or type(one.error).__name__)
    if isinstance(one.error, PrefixChanged):
        failed(c, NAME, one.error)
    for outcome in value.outcomes:
        ended(c, NAME, outcome, one.seconds)
    match value:
        case Updated():
            state.cursor, state.earlier, state.failed = value.cursor, None, FailedUpdates()
            beside = {"beside": value.beside} if value.beside else {}
            c.record_event(NAME, {**msgspec.to_builtins(value.cursor), "size": value.tokens, **beside})
        case NotUpdated():
            boundary = _last_compaction(c)
            before = still_failed(state.failed, c.count.tokens, boundary)
            state.failed = FailedUpdates(before.times + 1, c.count.tokens, boundary)
            c.record_event("notes_failed", {"why": value.why, "times": state.failed.times})
            if state.failed.times == c.policy.notes.breaker:
                c.notify(STOPPED.format(tries=counted(state.failed.times, "failure"), why=value.why.rstrip(".")))
        case _:
            assert_never(value)
    c.notify_once(*value.remarks)

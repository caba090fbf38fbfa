"""Layer 1 in a turn: results are checked against their budget when they arrive, and again together before they are sent.

A spilled result never enters the log whole. Its file is written first; then a single append adds the spill's record and the
message, whose block already holds the preview. A result that is shown once is written the same way, but its message holds all of
it: the view shows the preview after the next complete answer. Every decision about a result is made before it is first sent, and is
final (R3): everything before the last answer was sent and is not checked again.

If the disk cannot be written, the layer steps aside: a result stays whole while it fits below the blocking limit, and is cut with
a note if it does not. The user is notified once, and again only if writing worked in between.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...core.blocks import Block, ToolResult, ToolUse, tool_result
from ...core.errors import InputError
from ...core.policy import OncePolicy
from ...core.reach import path_in
from ...core.records import Record, Revoke, Spill
from ...core.shown_results import escape_result
from ...disk.session_files.spills import DIRECTORY, named_by
from .plan import (
    ArrivedResult,
    ResultBudget,
    ResultFate,
    alone,
    budget_for,
    empty_marker,
    plan,
    shown_once,
    shrunk,
    together,
    weigh,
)
from .preview import cut_to_page
from .reopen import LoggedResults, as_kept, is_nothing
from .source import Readable, RereadStream, is_json, read_small, result_output, tape_of, whole_text
from .spilling import ResultsState, Spilling, is_mixed, most_that_fits, unsent_results

LAYER = "l1_results"
# Results shorter than this are never spilled or cut, however small the window, so the log is not read to find out.
SHORTEST_CUT = 500


class HandedIn(msgspec.Struct, frozen=True):
    """An incoming result with what is already known about it."""

    block: ToolResult
    file: str | None = None  # a file of the session that already holds the complete result (Bash output); not written again
    spilled: tuple[Record, ...] | None = None  # the records of a result that was spilled while it was read
    ours: bool = False  # a text of Lamina's own, with fences around the data in it


def arriving(c: Conversation, given: Sequence[Block | HandedIn]) -> tuple[list[Record], list[Block]]:
    """Return the records to append before the message, and the message's blocks as they are logged."""
    state, blocks = c.layer_state(ResultsState), [block_of(item) for item in given]
    logged = [_escaped(item) for item in given]
    state.entered |= {block.digest: new for block, new in zip(blocks, logged, strict=True) if new is not block}
    handed = {item.block.tool_use_id: item for item in given if isinstance(item, HandedIn)}
    spilled = {call: item.spilled for call, item in handed.items() if item.spilled is not None}
    files = {call: item.file for call, item in handed.items() if item.file is not None}
    records = _left_behind(c, blocks) + [record for spill_records in spilled.values() for record in spill_records]
    # Of two results with the same id, the first is shown. A decision about an id is final.
    new: dict[str, int] = {}
    for index, block in enumerate(blocks):
        if isinstance(block, ToolResult) and block.tool_use_id not in spilled and not _frozen(c, block.tool_use_id):
            new.setdefault(block.tool_use_id, index)
    if not new or not c.settings.spill:
        return records, logged
    results = [block for index in new.values() if isinstance(block := blocks[index], ToolResult)]
    calls, budget = _calls(c, new), _budget(c)
    arrived = [_arrived(c, budget, block, calls.get(block.tool_use_id), files) for block in results]
    # Results that arrive one by one are checked together once all have arrived (`settle`).
    fates = [alone(result, budget) for result in arrived] if any(True for _ in unsent_results(c)) else plan(arrived, budget)
    whole = [block for block, fate in zip(results, fates, strict=True) if fate != "spill"]
    work, once = Spilling(c, budget, kept=whole, coming=len(results) - len(whole)), _once(c)
    for index, result, fate, block in zip(new.values(), arrived, fates, results, strict=True):
        call = block.tool_use_id
        if fate != "keep":
            logged[index] = _logged(work, budget, block, result, fate, calls.get(call), files.get(call))
        if once is not None and shown_once(result, fate, once) and call in calls:
            work.show_once(block, result.tool)
        if logged[index] is not block:
            state.entered[block.digest] = logged[index]
    return records + work.records, logged


def _escaped(item: Block | HandedIn) -> Block:
    """Return the block as it is logged: no tool result can open or close one of Lamina's tags."""
    block = block_of(item)
    ours = isinstance(item, HandedIn) and (item.ours or item.spilled is not None)
    return escape_result(block) if isinstance(block, ToolResult) and not ours else block


def _once(c: Conversation) -> OncePolicy | None:
    """Return the numbers for results that are shown once, or None if no result is.

    A model that binds its thinking to everything before it would lose the thinking after each result that changes."""
    thinking = c.prompt.options.get("thinking")
    thinks = not isinstance(thinking, Mapping) or thinking.get("type") != "disabled"
    if not c.policy.once.from_chars or (c.capabilities.binds_thinking and thinks):
        return None
    once, own = c.policy.once, c.host.read_tool
    return replace(
        once, from_chars=shrunk(once.from_chars, c.limits.scale), kept_tools=once.kept_tools | {own} if own else once.kept_tools
    )


def _frozen(c: Conversation, tool_use_id: str) -> bool:
    """Return whether the text that the model sees for this result is already decided."""
    view = c.log.view
    return (tool_use_id in view.replaced or tool_use_id in view.once) and view.flat.fate_of_call(tool_use_id) != "open"


def _left_behind(c: Conversation, blocks: Sequence[Block]) -> list[Record]:
    """Return revocations of spills whose result is no longer in the conversation.

    Either the conversation was rewound to the call, or the process ended between a spill's record and its message. The result
    that arrives now is a different one and must not show the old preview."""
    view = c.log.view
    ids = {block.tool_use_id for block in blocks if isinstance(block, ToolResult)}
    stale = {call for call in ids if (call in view.replaced or call in view.once) and not _frozen(c, call)}
    decisions = (
        [spill for spill in c.log.decisions.values() if isinstance(spill, Spill) and spill.tool_use_id in stale] if stale else []
    )
    records: list[Record] = []
    for spill in decisions:
        uuid, parent, time = c.head()
        records.append(Revoke(uuid, parent, time, spill.uuid))
    return records


def _logged(
    work: Spilling,
    budget: ResultBudget,
    block: ToolResult,
    result: ArrivedResult,
    fate: ResultFate,
    call: ToolUse | None,
    file: str | None,
) -> ToolResult:
    match fate:
        case "keep":
            return block
        case "mark":
            return tool_result(block.tool_use_id, empty_marker(result.tool))
        case "page":
            return escape_result(
                tool_result(block.tool_use_id, cut_to_page(block.text, budget.page_of(result), offset=_offset(call)))
            )
        case "spill":
            return work.block(block, result.tool, file)
        case _:
            assert_never(fate)


def settle(c: Conversation) -> None:
    """Check all unsent results together, and spill the largest until the message fits."""
    state, budget = c.layer_state(ResultsState), _budget(c)
    unsent = list(unsent_results(c))[::-1]
    before, state.settled = state.settled, frozenset(block.tool_use_id for block in unsent)
    if not c.settings.spill or c.directory is None:
        return
    # Cheap for the usual small results: a text has at most four bytes per character.
    characters = sum(len(block.text) for block in unsent)
    if characters <= budget.per_message and characters * 4 <= budget.whole:
        return
    calls = _calls(c, state.settled)
    frozen = c.log.view.replaced.keys() | before | state.cut
    arrived = [
        msgspec.structs.replace(result, kind="fixed") if block.tool_use_id in frozen else result
        for block in unsent
        for result in (_arrived(c, budget, block, calls.get(block.tool_use_id)),)
    ]
    work = Spilling(c, budget)
    for block, result, fate in zip(unsent, arrived, together(arrived, ["keep"] * len(unsent), budget), strict=True):
        if fate == "spill":
            work.spill_logged(block, result.tool)
    if work.records:
        c.append(work.records)


def hand_in(c: Conversation, tool_use_id: str, output: object, *, is_error: bool = False) -> HandedIn:
    """Read a tool's output into a result block. Output that is too large is written to its file here, chunk by chunk, so neither
    a stream nor a gigabyte of bytes is ever held as one block. If that fails, the block holds as much as could ever be shown."""
    content = result_output(output)
    if isinstance(content, list):
        return HandedIn(tool_result(tool_use_id, content, is_error=is_error))
    source = content if isinstance(content, str | memoryview) else RereadStream(content, keep=most_that_fits(c))

    def read(_: Conversation) -> HandedIn | InputError:
        try:
            return _read(c, tool_use_id, source, is_error=is_error)
        except InputError as error:  # the caller's stream cannot be read, which is no failure of the layer
            return error

    handed = isolate(c, LAYER, read, None)
    if isinstance(handed, InputError):
        raise handed
    return handed or HandedIn(tool_result(tool_use_id, whole_text(source), is_error=is_error))


def _read(c: Conversation, tool_use_id: str, source: str | memoryview | Readable, *, is_error: bool) -> HandedIn:
    def result(content: str) -> HandedIn:
        return HandedIn(tool_result(tool_use_id, content, is_error=is_error))

    call, budget = _calls(c, (tool_use_id,)).get(tool_use_id), _budget(c)
    tool = call.name if call is not None else ""
    limit = budget.whole if is_error else budget.threshold(tool)
    small = read_small(source, limit if c.settings.spill else None)
    if isinstance(small, str):
        return result(small)
    if _frozen(c, tool_use_id):
        return result(c.log.view.replaced.get(tool_use_id) or c.log.view.once[tool_use_id])
    tape = tape_of(source, keep=most_that_fits(c), before=small)
    work = Spilling(c, budget)
    if call is not None and not is_error and reads_a_spill(c, call):
        text = tape.wind()
        page = budget.page_of(ArrivedResult(tool, len(text), weigh(text, len(text))))
        return result(cut_to_page(text, page, offset=_offset(call)))
    block = work.tape(tool_use_id, tape, tool, is_error=is_error, json=is_json(source))
    return HandedIn(block, spilled=tuple(work.records))


def block_of(given: Block | HandedIn) -> Block:
    return given.block if isinstance(given, HandedIn) else given


def kept_as(c: Conversation, block: Block) -> Block:
    """Return the block that the log holds for a block of the caller's own list (Session.sync): a preview, a page, or the marker
    of an empty result. Later decisions about it are ignored, since the caller's list does not contain them."""
    if not isinstance(block, ToolResult):
        return block
    if (entered := c.layer_state(ResultsState).entered.get(block.digest)) is not None:
        return entered
    # A result that was spilled later was logged before, escaped.
    escaped = escape_result(block)
    logged = _kept_as(c, block)
    return logged if logged is not block or escaped is block else _kept_as(c, escaped)


def _kept_as(c: Conversation, block: ToolResult) -> Block:
    call = block.tool_use_id
    name = c.log.view.flat.tool_name(call)
    if name is None and is_nothing(block):
        name = _known(c).names.get(call)
    spill = next(
        (decision for decision in c.log.decisions.values() if isinstance(decision, Spill) and decision.tool_use_id == call), None
    )
    if spill is None and c.start:
        spill = _known(c).spills.get(call)
    logged = as_kept(block, name or "", c.log.view.replaced.get(call), spill)
    return logged if logged is not block or len(block.text) < SHORTEST_CUT else _known(c).stands_for(block)


def _known(c: Conversation) -> LoggedResults:
    """Return what the log knows about results that left the view or were logged before a resume.

    The log is read again whenever more results may have left the view."""
    state, position = c.layer_state(ResultsState), (c.start, c.log.view.generation)
    if state.known is None or state.known.at != position:
        state.known = LoggedResults(position, c.store.read())
    return state.known


def _budget(c: Conversation) -> ResultBudget:
    return budget_for(c.policy.results, c.limits.effective, scale=c.limits.scale)


def _arrived(
    c: Conversation, budget: ResultBudget, block: ToolResult, call: ToolUse | None, files: Container[str] = ()
) -> ArrivedResult:
    tool, text = call.name if call is not None else "", block.text
    fixed = block.is_error or is_mixed(block)
    result = ArrivedResult(tool, len(text), weigh(text, budget.whole if fixed else budget.threshold(tool)))
    if fixed:
        return msgspec.structs.replace(result, kind="fixed")
    if not text or text.isspace():
        return msgspec.structs.replace(result, kind="empty")
    if call is not None and budget.exceeds(msgspec.structs.replace(result, size=result.size * 2)) and reads_a_spill(c, call):
        return msgspec.structs.replace(result, kind="page")
    if block.tool_use_id in files:
        # The block holds only a part of the result; the complete one is over the threshold.
        return msgspec.structs.replace(result, size=max(result.size, budget.threshold(tool) + 1))
    return result


def _calls(c: Conversation, ids: Iterable[str]) -> dict[str, ToolUse]:
    """Return the calls with these ids. They are almost always in the last answer, so the search starts there."""
    wanted, calls = set(ids), dict[str, ToolUse]()
    for item in reversed(c.log.view.items):
        if item.role == "assistant":
            calls |= {block.id: block for block in item.blocks if isinstance(block, ToolUse) and block.id in wanted}
            if len(calls) == len(wanted):
                break
    return calls


def reads_a_spill(c: Conversation, call: ToolUse) -> bool:
    """Return whether a call reads a spilled result, of this session or of the one it continues."""
    path = path_in(call.input) if call.name in ("Read", c.host.read_tool) else None
    if path is None:
        return False
    if named_by(path) is not None:
        return True
    full = os.path.normpath(os.path.join(c.cwd, path))
    own = c.directory is not None and os.path.dirname(full) == os.path.join(c.directory, DIRECTORY)
    return own or any(isinstance(decision, Spill) and decision.path == full for decision in c.log.decisions.values())


def _offset(call: ToolUse | None) -> int:
    offset = call.input.get("offset") if call is not None and isinstance(call.input, dict) else None
    return offset if isinstance(offset, int) and not isinstance(offset, bool) else 1

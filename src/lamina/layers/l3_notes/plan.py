"""Decide when to update the notes, and what a compaction with notes keeps. Pure.

Updates (N3): the conversation must always grow by some tokens between two updates. Growth is measured from a cursor, and only a
successful update moves the cursor up. When the view shrinks, the cursor moves down with it, so that updates continue after a
compaction.

Compaction (N6, B1, B2): a message leaves the view only if the notes cover it, it is not pinned, and it is not the last user
message. A call and its results stay or leave together, and so do the parts of one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Block, Text, ToolResult, ToolUse
from ...core.fence import escape, reminder
from ...core.policy import NotesPolicy
from ...core.prompt_files import prompt_sections
from ...core.reach import Reach
from ...core.view import Item
from .sections import Notes, render

Why: TypeAlias = Literal["first", "grown"]


class Cursor(msgspec.Struct, frozen=True):
    """The position of the last successful update."""

    tokens: int  # the token count at that time
    covered: str  # the last record that the notes cover


class FailedUpdates(msgspec.Struct, frozen=True):
    """The number of consecutive failed updates, the token count at the last of them, and the last compaction before it."""

    times: int = 0
    tokens: int = 0
    boundary: str = ""


NONE_FAILED = FailedUpdates()


def due(
    cursor: Cursor | None,
    *,
    tokens: int,
    calls: Callable[[], int],
    called: bool,
    policy: NotesPolicy,
    scaled: Callable[[int], int],
    failed: FailedUpdates = NONE_FAILED,
    retries: int = 0,
) -> Why | None:
    """Return why an update is due, or None.

    `calls` counts the tool calls since the cursor; `called` tells whether the last answer called a tool.

    A failed update is retried after the next answers, up to `retries` times. After that the conversation must grow before each
    further try, so that failing updates cost no more than successful ones. After `policy.breaker` failures there are no more tries.
    """
    growth = scaled(policy.growth)
    if failed.times >= policy.breaker:
        return None
    if failed.times > retries and tokens - failed.tokens < growth:
        return None
    if cursor is None:
        return "first" if tokens >= scaled(policy.first_at) else None
    if tokens - cursor.tokens < growth:
        return None
    return "grown" if not called or calls() >= policy.tool_calls else None


def lowered(cursor: Cursor, tokens: int) -> Cursor:
    """Return the cursor, lowered to the token count if that fell, so that new messages count as growth again."""
    return cursor if tokens >= cursor.tokens else Cursor(tokens, cursor.covered)


def still_failed(failed: FailedUpdates, tokens: int, boundary: str) -> FailedUpdates:
    """Return the failures that still count. A compaction starts anew; a token count that fell moves the last failure down."""
    if boundary != failed.boundary:
        return NONE_FAILED
    return failed if tokens >= failed.tokens else FailedUpdates(failed.times, tokens, boundary)


SizeOf: TypeAlias = Callable[[Block], int]


class KeepRule(NamedTuple):
    """The amount that a compaction keeps verbatim, scaled to the window."""

    tokens: int
    messages: int
    cap: int


class NotesTail(NamedTuple):
    kept: tuple[str, ...]  # ids, in the order of the view
    gone: tuple[str, ...]


def plan_tail(
    items: Sequence[Item],
    covered: str,
    pinned: Iterable[str],
    *,
    size: SizeOf,
    keep: KeepRule,
    again: Callable[[Item], bool] = lambda item: False,
) -> NotesTail | None:
    """Decide what stays in view, or return None if the last covered record is not in view.

    `again` selects the items that are restored after the compaction and need not stay. The cap limits only the covered messages
    that are kept in addition. Messages after the notes always stay, since they exist nowhere else.
    """
    covered_index = next((index for index in range(len(items) - 1, -1, -1) if items[index].uuid == covered), None)
    if covered_index is None:
        return None
    # The notes were written with the last summary in view, so they cover it and everything before it.
    floor = next((index + 1 for index in range(covered_index, -1, -1) if items[index].kind == "summary"), 0)
    start = _widened(items, covered_index + 1, floor, size, keep)
    wanted = {item.uuid for item in items[start:] if not again(item)} | (set(pinned) & {item.uuid for item in items})
    said_last = next((item.uuid for item in reversed(items) if item.role == "user" and _has_text(item)), None)
    if said_last is not None:
        wanted.add(said_last)
    kept = _whole(items, wanted)
    return NotesTail(
        tuple(item.uuid for item in items if item.uuid in kept), tuple(item.uuid for item in items if item.uuid not in kept)
    )


def _widened(items: Sequence[Item], start: int, floor: int, size: SizeOf, keep: KeepRule) -> int:
    tokens = sum(size(block) for item in items[start:] for block in item.blocks)
    texts = {_message(item) for item in items[start:] if _has_text(item)}
    while start > floor and (tokens < keep.tokens or len(texts) < keep.messages):
        before = items[start - 1]
        tokens += sum(size(block) for block in before.blocks)
        if tokens > keep.cap:
            break
        if _has_text(before):
            texts.add(_message(before))
        start -= 1
    return start


def _whole(items: Sequence[Item], wanted: set[str]) -> set[str]:
    """Add everything that must stay with the wanted items: the calls of results, the results of calls, the parts of one
    answer."""
    groups: dict[str, list[int]] = {}
    ties = [_ties(item) for item in items]
    for index, names in enumerate(ties):
        for name in names:
            groups.setdefault(name, []).append(index)
    whole: set[str] = set()
    todo = [index for index, item in enumerate(items) if item.uuid in wanted]
    while todo:
        index = todo.pop()
        if items[index].uuid not in whole:
            whole.add(items[index].uuid)
            todo += [other for name in ties[index] for other in groups.pop(name, ())]
    return whole


def _ties(item: Item) -> list[str]:
    ties = [f"call:{block.id}" for block in item.blocks if isinstance(block, ToolUse)]
    ties += [f"call:{block.tool_use_id}" for block in item.blocks if isinstance(block, ToolResult)]
    return [*ties, f"answer:{item.key}"] if item.key is not None else ties


def _has_text(item: Item) -> bool:
    return item.kind == "said" and any(isinstance(block, Text) and block.text.strip() for block in item.blocks)


def _message(item: Item) -> str:
    return item.key or item.uuid


def covered_after(tail: NotesTail, covered: str, summary: str) -> str:
    """Return the last covered record after the compaction: the same one, or the summary if that record left the view."""
    return covered if covered in tail.kept else summary


def summary_text(notes: Notes, *, path: str, transcript: str, node: str, reach: Reach) -> str:
    """Return the first message after the boundary: the notes as data, and where to find the whole conversation."""
    prompt = prompt_sections(__file__, "summary")
    way = "whole" if reach.files else "expand" if reach.expand else "kept"
    whole = prompt[way].format(path=path, transcript=transcript, node=node)
    return "\n\n".join([prompt["opening"], whole, reminder([escape(render(notes).rstrip("\n"))])])

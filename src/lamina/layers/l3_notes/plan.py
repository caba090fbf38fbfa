"""Compaction with notes: what stays as it was said, and the text that stands for the rest (N6, B1, B2).

Pure. Invariants: nothing leaves the view that the notes do not cover, that is pinned, or that is the person's last message; a call
and its results, and the parts of one answer, stay or go together.

Due: whether the notes are to be updated after this answer (N3).

Pure. Invariants: growth in tokens is always required; only a success moves the cursor it is measured from. A view that shrank moves the
cursor down with it, so that notes go on after a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Block, Text, ToolResult, ToolUse
from ...core.fence import escape, reminder
from ...core.policy import NotesPolicy
from ...core.prompt_files import prompt_sections
from ...core.view import Item
from .sections import Notes, render

Why: TypeAlias = Literal["first", "grown"]


class Cursor(msgspec.Struct, frozen=True):
    """What the last successful update recorded."""

    tokens: int  # the count at that time
    covered: str  # the last record the notes know of


class FailedUpdates(msgspec.Struct, frozen=True):
    """Updates that failed in a row, and the count at the last of them."""

    times: int = 0
    tokens: int = 0


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
    """`calls` counts the tool calls since the cursor; `called` says whether the last answer called a tool.

    An update that failed is tried again after the next answers, `retries` times; from then on the conversation must grow before
    each further try, so that what cannot work costs no more than what works.
    """
    growth = scaled(policy.growth)
    if failed.times > retries and tokens - failed.tokens < growth:
        return None
    if cursor is None:
        return "first" if tokens >= scaled(policy.first_at) else None
    if tokens - cursor.tokens < growth:
        return None
    return "grown" if not called or calls() >= policy.tool_calls else None


def lowered(cursor: Cursor, tokens: int) -> Cursor:
    """The cursor under a count that fell: what was said since then counts as growth again."""
    return cursor if tokens >= cursor.tokens else Cursor(tokens, cursor.covered)


SizeOf: TypeAlias = Callable[[Block], int]


class KeepRule(NamedTuple):
    """N6, scaled to the window (T9)."""

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
    """What stays in view; None when the last covered record is not in it. `again` names what is put back anew and need not stay.

    The cap holds for what is added to the messages behind the notes, never for those messages: they are nowhere else.
    """
    at = next((index for index in range(len(items) - 1, -1, -1) if items[index].uuid == covered), None)
    if at is None:
        return None
    # A summary above is the notes' own past: they were made with it in view.
    floor = next((index + 1 for index in range(at, -1, -1) if items[index].kind == "summary"), 0)
    start = _widened(items, at + 1, floor, size, keep)
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
    """With everything that may not be parted from it: the calls of results, the results of calls, the parts of one answer."""
    groups: dict[str, list[int]] = {}
    ties = [_ties(item) for item in items]
    for index, names in enumerate(ties):
        for name in names:
            groups.setdefault(name, []).append(index)
    kept: set[str] = set()
    todo = [index for index, item in enumerate(items) if item.uuid in wanted]
    while todo:
        index = todo.pop()
        if items[index].uuid not in kept:
            kept.add(items[index].uuid)
            todo += [other for name in ties[index] for other in groups.pop(name, ())]
    return kept


def _ties(item: Item) -> list[str]:
    ties = [f"call:{block.id}" for block in item.blocks if isinstance(block, ToolUse)]
    ties += [f"call:{block.tool_use_id}" for block in item.blocks if isinstance(block, ToolResult)]
    return [*ties, f"answer:{item.key}"] if item.key is not None else ties


def _has_text(item: Item) -> bool:
    return item.kind == "said" and any(isinstance(block, Text) and block.text.strip() for block in item.blocks)


def _message(item: Item) -> str:
    return item.key or item.uuid


def covered_after(tail: NotesTail, covered: str, summary: str) -> str:
    """The last covered record once the compaction is done: the same, or the summary itself, which stands first."""
    return covered if covered in tail.kept else summary


def summary_text(notes: Notes, *, path: str, transcript: str, node: str) -> str:
    """The first message after the boundary: the notes as data, and where all of it lies."""
    said = prompt_sections(__file__, "summary")
    whole = said["whole"].format(path=path, transcript=transcript, node=node)
    return "\n\n".join([said["opening"], whole, reminder([escape(render(notes).rstrip("\n"))])])

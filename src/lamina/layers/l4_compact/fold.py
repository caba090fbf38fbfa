"""Snip and collapse (C10): a run of messages gives its place to one line, and can be opened again. Pure: items in, a frozen value out.

A snip is a person's or a model's word: this range, out. A collapse is the window's: from the oldest on, whole finished turns, until
enough room is made. Neither parts a call from its result, touches what is pinned, or takes what the person said last.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import msgspec

from ...conversation.compaction.cuts import FOLDED, Size, is_said, legal_cuts
from ...core.blocks import Text
from ...core.errors import InputError
from ...core.fence import escape
from ...core.view import Item

# Enough of what was asked to know the turn by.
QUOTED = 120


class Folded(msgspec.Struct, frozen=True):
    """items[start:end] fold into one text."""

    start: int
    end: int
    tokens: int
    words: str  # what the turn began with


def snip(items: Sequence[Item], first: str, last: str, *, size: Size, pinned: Collection[str] = ()) -> Folded:
    """The range between two records, both included, widened until no pair is parted."""
    places = {item.uuid: index for index, item in enumerate(items)}
    for uuid in (first, last):
        if uuid not in places:
            raise InputError(uuid, "is not in view", "name two messages the model sees now")
    start, end = sorted((places[first], places[last]))
    legal = legal_cuts(items)
    start = next(at for at in range(start, -1, -1) if legal[at])
    end = next(at for at in range(end + 1, len(items) + 1) if legal[at])
    for item in items[start:end]:
        if item.uuid in pinned:
            raise InputError(item.uuid, "is pinned", "undo the pin first")
        if item.kind in FOLDED:
            raise InputError(item.uuid, "stands for other messages already", "undo that first, or choose a range without it")
    if end > _last_said(items):
        raise InputError(last, "the range reaches what was said last", "end it before that message")
    return _folded(items, start, end, size)


def collapse(
    items: Sequence[Item], *, free: int, keep: int, size: Size, pinned: Collection[str] = (), open_calls: Collection[str] = ()
) -> list[Folded]:
    """The oldest finished turns, one by one, until they free so many tokens; the newest `keep` tokens are not touched."""
    legal = legal_cuts(items)
    starts = [index for index, item in enumerate(items) if is_said(item) and legal[index]]
    end = _kept_from(items, keep, size)
    found: list[Folded] = []
    for start, stop in pairwise(starts):
        if free <= 0 or stop > end:
            break
        turn = items[start:stop]
        answered = any(item.role == "assistant" for item in turn)
        if not answered or any(item.uuid in pinned or item.kind in FOLDED for item in turn):
            continue
        found.append(_folded(items, start, stop, size))
        free -= found[-1].tokens
    return found


def text(kind: str, folded: Folded, count: int, node: str) -> str:
    """What stands in its place. The words are somebody's: they cannot pose as ours."""
    words = f' that began with "{escape(folded.words)}"' if folded.words else ""
    what = "A finished turn" if kind == "collapse" else "A part of the conversation"
    how = "was folded away to make room" if kind == "collapse" else "was taken out"
    return f"[{what}{words} {how}: {count} messages, about {folded.tokens:,} tokens. Expand {node} shows it again.]"


def _folded(items: Sequence[Item], start: int, end: int, size: Size) -> Folded:
    said = next((item for item in items[start:end] if is_said(item)), None)
    words = " ".join(block.text for block in said.blocks if isinstance(block, Text)) if said is not None else ""
    short = " ".join(words.split())
    short = short if len(short) <= QUOTED else f"{short[: QUOTED - 1]}…"
    return Folded(start, end, size(block for item in items[start:end] for block in item.blocks), short)


def _last_said(items: Sequence[Item]) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if is_said(items[index])), len(items))


def _kept_from(items: Sequence[Item], keep: int, size: Size) -> int:
    """Where the newest `keep` tokens begin; never behind what was said last."""
    held = 0
    at = last = _last_said(items)
    for index in range(len(items) - 1, -1, -1):
        held += size(items[index].blocks)
        if held > keep:
            at = index + 1
            break
        at = index
    return min(at, last)

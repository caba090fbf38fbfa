"""`lamina context --turn N`: one request block by block, and what changed since another one (B10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from ..conversation.window.estimate import estimate
from ..conversation.window.features import measure
from ..core.blocks import Block
from ..core.explanation import MEMORY, Changed, Explained, Piece, difference, explain
from ..core.records import Record
from .console import print_result
from .safe_text import printable, sentence, shorten

# Of a request with hundreds of blocks the beginning and the end tell most; --json has them all.
MOST_LINES = 60
SIGNS = {"read": "cached", "partly": "partly", "new": "new", "unknown": ""}
_COLUMNS = 20  # tokens and whether it was cached
NARROWEST = 60


def print_request(
    read: Callable[[], Iterable[Record]], session_id: str, number: int, against: int | None, *, as_json: bool, width: int
) -> None:
    found = explain(read(), number, tokens_of)
    changed = difference(explain(read(), against, tokens_of), found) if against is not None else None
    told = {"session_id": session_id, "turn": number, **found.request, **to_json(found, changed, against)}
    print_result(told, format_request(found, changed, against, max(NARROWEST, width)), as_json=as_json)


def tokens_of(block: Block) -> int:
    return estimate(measure(block))


def to_json(found: Explained, changed: Changed | None, against: int | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "blocks": [_json(piece) for piece in found.pieces],
        "breaks": list(found.breaks),
        "usage": found.usage.wire() if found.usage is not None else None,
    }
    if changed is not None:
        shown["changed"] = {
            "against": against,
            "common": changed.common,
            "removed": [_json(piece) for piece in changed.removed],
            "added": [_json(piece) for piece in changed.added],
        }
    return shown


def _json(piece: Piece) -> dict[str, Any]:
    return {name: getattr(piece, name) for name in ("path", "kind", "why", "tokens", "cached", "record", "words")}


def format_request(found: Explained, changed: Changed | None, against: int | None, width: int) -> list[str]:
    tokens = sum(piece.tokens for piece in found.pieces)
    shown = [
        printable(
            f"Call {found.turn} to {found.model or 'an unknown model'}: {len(found.pieces)} blocks, about {tokens:,} tokens"
        )
    ]
    if found.usage is not None:
        usage = found.usage
        read = f"{usage.cache_read / max(1, usage.prompt):.0%}"
        shown.append(f"reported: {usage.prompt:,} tokens, {read} of them read from the cache, {usage.output_tokens:,} answered")
    for reason in found.breaks:
        shown.append(f"announced before it: the beginning changed ({reason})")
    if changed is None:
        return [*shown, *_rows(found.pieces, width)]
    shown.append(
        f"{changed.common} blocks stand as in call {against}; {len(changed.removed)} are gone, {len(changed.added)} are new"
    )
    if changed.removed:
        shown += ["Gone:", *_rows(changed.removed, width)]
    return [*shown, "New:", *_rows(changed.added, width)] if changed.added else shown


def _rows(pieces: Sequence[Piece], width: int) -> list[str]:
    rows = [_row(piece, width) for piece in pieces]
    if len(rows) > MOST_LINES:
        half = MOST_LINES // 2
        rows[half:-half] = [[f"  … {len(pieces) - MOST_LINES} more blocks (--json shows all)"]]
    return list(chain.from_iterable(rows))


def _row(piece: Piece, width: int) -> list[str]:
    first = printable(f"{piece.tokens:>9,} {SIGNS[piece.cached]:<7} {piece.path}  {sentence(piece.kind)}: {sentence(piece.why)}")
    margin = " " * (_COLUMNS - 2)
    if piece.kind == MEMORY:
        # Why it is there is told in full (B10); what it says is in its file.
        return [shorten(first, width), printable(f"{margin}{sentence(piece.why)}")]
    return [shorten(first, width), shorten(f"{margin}{sentence(piece.words)}", width)] if piece.words else [shorten(first, width)]

"""`context_management`: clears parts of a request before the model sees it, as the provider would.

The request itself is not changed. In a new body, old results are replaced by one line and old thinking is removed. No state is
kept: the same request is always edited the same way. A request that is edited differently from the last one loses its cache from
the first edit on, as with the real API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.blocks import Wire
from ..core.cache import Piece, Prompt, PromptReader
from .api_json import Problem, bad

CLEARED = "[This result was cleared to save room]"
# The API's own defaults for clear_tool_uses_20250919.
DEFAULT_TRIGGER = 100_000
DEFAULT_KEEP = 3


class Edited(NamedTuple):
    body: Wire
    applied: tuple[Wire, ...]


def edit_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with the edits in a request."""
    edits = (body.get("context_management") or {}).get("edits")
    if edits is None:
        return
    if not isinstance(edits, list):
        yield bad("context_management.edits: Input should be a valid list")
        return
    for at, edit in enumerate(edits):
        where = f"context_management.edits.{at}"
        if not isinstance(edit, dict) or not isinstance(edit.get("type"), str):
            yield bad(f"{where}: Input should be an object with a type")
        for name in ("trigger", "clear_at_least"):
            if edit.get(name) is not None and not isinstance(edit[name], dict):
                yield bad(f"{where}.{name}: Input should be an object")
        for name in ("exclude_tools", "clear_tool_inputs"):
            if isinstance(names := edit.get(name), list) and not all(isinstance(tool, str) for tool in names):
                yield bad(f"{where}.{name}: Input should be a list of tool names")
        if edit.get("exclude_tools") is not None and not isinstance(edit["exclude_tools"], list):
            yield bad(f"{where}.exclude_tools: Input should be a list of tool names")
        if not isinstance(edit.get("clear_tool_inputs"), bool | list | None):
            yield bad(f"{where}.clear_tool_inputs: Input should be true, false or a list of tool names")


def apply_edits(body: Wire, reader: PromptReader) -> Edited:
    """Return the body that the model sees, and the applied edits. Thinking is cleared first, as the API requires."""
    applied: list[Wire] = []
    asked = (body.get("context_management") or {}).get("edits") or ()
    for edit in asked:
        prompt = reader.read_sent(body)
        if edit.get("type") == "clear_thinking_20251015":
            gone = _old_thinking(prompt, edit.get("keep"))
            report = {"cleared_thinking_turns": len({turn for turn, piece in _thoughts(prompt) if piece in gone})}
        elif edit.get("type") == "clear_tool_uses_20250919":
            gone = _old_results(prompt, edit)
            report = {"cleared_tool_uses": len(gone)}
        else:
            continue
        if not gone:
            continue
        edited = _without(body, gone, inputs=edit.get("clear_tool_inputs") or False)
        cleared = prompt.tokens - reader.read_sent(edited).tokens
        if cleared < _number(edit.get("clear_at_least"), 0):
            continue
        body = edited
        applied.append({"type": edit["type"], "cleared_input_tokens": cleared, **report})
    return Edited(body, tuple(applied))


def _old_thinking(prompt: Prompt, keep: Any) -> list[Piece]:
    """Return the thinking blocks outside the newest turns with thinking."""
    if keep == "all" or (isinstance(keep, Mapping) and keep.get("type") == "all"):
        return []
    thoughts = _thoughts(prompt)
    kept = {turn for turn, _ in thoughts[-1:]}
    for turn, _ in reversed(thoughts):
        if len(kept) >= _number(keep, 1) and turn not in kept:
            break
        kept.add(turn)
    return [piece for turn, piece in thoughts if turn not in kept]


def _thoughts(prompt: Prompt) -> list[tuple[int, Piece]]:
    """Return the thinking blocks with their turns. A turn begins with a user message other than a tool result."""
    turn = 0
    found = []
    for piece in prompt.pieces:
        if piece.role == "user" and piece.kind != "tool_result":
            turn = piece.at[1]
        elif piece.kind in ("thinking", "redacted_thinking"):
            found.append((turn, piece))
    return found


def _old_results(prompt: Prompt, edit: Mapping[str, Any]) -> list[Piece]:
    """Return all but the newest results, oldest first, once the trigger is reached."""
    excluded = set(edit.get("exclude_tools") or ())
    names = {piece.block["id"]: piece.block["name"] for piece in prompt.pieces if piece.kind == "tool_use"}
    results = [piece for piece in prompt.pieces if piece.kind == "tool_result"]
    trigger = edit.get("trigger") or {}
    size = len(results) if trigger.get("type") == "tool_uses" else prompt.tokens
    if size <= _number(trigger, DEFAULT_TRIGGER):
        return []
    kept = _number(edit.get("keep"), DEFAULT_KEEP)
    old = results[: len(results) - kept] if kept else results
    return [piece for piece in old if names.get(str(piece.block.get("tool_use_id"))) not in excluded]


def _without(body: Wire, gone: Sequence[Piece], *, inputs: bool | Sequence[str]) -> Wire:
    places = {piece.at[1:] for piece in gone}
    calls = {str(piece.block.get("tool_use_id")) for piece in gone if piece.kind == "tool_result"} if inputs else set()
    only = None if isinstance(inputs, bool) else set(inputs)
    messages = []
    for at, message in enumerate(body["messages"]):
        content = message.get("content")
        if not isinstance(content, list):
            messages.append(message)
            continue
        blocks = []
        for index, block in enumerate(content):
            if (at, index) in places:
                if block["type"] == "tool_result":
                    blocks.append({**block, "content": CLEARED})
            elif block.get("type") == "tool_use" and block["id"] in calls and (only is None or block["name"] in only):
                blocks.append({**block, "input": {}})
            else:
                blocks.append(block)
        messages.append({**message, "content": blocks})
    return {**body, "messages": messages}


def _number(value: Any, default: int) -> int:
    found = value.get("value") if isinstance(value, Mapping) else None
    return found if isinstance(found, int) else default

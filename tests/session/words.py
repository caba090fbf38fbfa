"""Helpers for session tests: blocks, messages, answers, and the resulting requests and records."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tests.core.api_rules import complaints

from lamina.core.cache import ONCE_HEADER
from lamina.core.records import Break, Record
from lamina.disk.transcripts.store import read_transcript
from lamina.session.session import Session
from lamina.tools.conversation_tools import compact_tool, expand_tool
from lamina.tools.tool import definition

Wire: TypeAlias = dict[str, Any]

READ: Wire = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
EXPAND: Wire = definition(expand_tool())
COMPACT: Wire = definition(compact_tool())
GREP: Wire = {"name": "Grep", "description": "Searches files.", "input_schema": {"type": "object"}}


def pins_of(session: Session) -> dict[str, str]:
    """The pins in force, by id: the pinned text, or which message is pinned."""
    return {decision.id: decision.text for decision in session.decisions() if decision.kind == "pin"}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def call(call_id: str, **given: Any) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": given}


def result(call_id: str, content: Any = "found") -> Wire:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def thinking(words: str, signature: str = "signed") -> Wire:
    return {"type": "thinking", "thinking": words, "signature": signature}


def user(*content: Wire | str) -> Wire:
    return {"role": "user", "content": [text(part) if isinstance(part, str) else part for part in content]}


def assistant(*content: Wire | str) -> Wire:
    return {"role": "assistant", "content": [text(part) if isinstance(part, str) else part for part in content]}


def answer(answer_id: str, *content: Wire | str, stop: str | None = None, usage: Wire | None = None) -> Wire:
    """A response of the Messages API; it stops for its calls if it has any."""
    blocks = assistant(*content)["content"]
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": answer_id,
        "type": "message",
        "role": "assistant",
        "model": "a-model",
        "content": blocks,
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "usage": usage or {"input_tokens": 10, "output_tokens": 5},
    }


def cut_off(answer_id: str, *content: Wire | str) -> Wire:
    """A response that never said why it stopped."""
    return answer(answer_id, *content) | {"stop_reason": None}


def unmarked(value: Any) -> Any:
    """A copy without cache marks."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else copy.copy(value)


def refused(request: Wire) -> list[str]:
    """Return the API's objections to a request; empty if it is valid."""
    return complaints(unmarked(request["messages"]))


def marks(request: Wire) -> list[str]:
    """Return the positions of the cache marks: `tools.1`, `system.0`, `messages.4.0`."""
    rows = [(name, blocks) for name in ("tools", "system") if (blocks := request.get(name))]
    rows += [(f"messages.{index}", message["content"]) for index, message in enumerate(request["messages"])]
    return [f"{name}.{at}" for name, blocks in rows for at, block in enumerate(blocks) if "cache_control" in block]


def prefix(request: Wire) -> list[tuple[str, str]]:
    """Everything a provider's cache sees, block by block and in order."""
    rows = [("tools", block) for block in request.get("tools", ())]
    rows += [("system", block) for block in request.get("system", ())]
    rows += [(message["role"], block) for message in request["messages"] for block in message["content"]]
    return [(role, json.dumps(unmarked(block))) for role, block in rows]


def extends(before: Wire, after: Wire) -> bool:
    """Whether a request starts with all blocks of the one before, up to a result that it shows once."""
    once = before.get("extra_headers", {}).get(ONCE_HEADER)
    found = (at for at, (_, block) in enumerate(prefix(before)) if json.loads(block).get("tool_use_id") == once)
    repeated = prefix(before)[: next(found)] if once else prefix(before)
    return prefix(after)[: len(repeated)] == repeated


def records(path: Path | None) -> list[Record]:
    assert path is not None
    return list(read_transcript(path))


def reasons(path: Path | None) -> list[str]:
    """Of the breaks that stand in a transcript."""
    return [record.reason for record in records(path) if isinstance(record, Break)]


def objects(path: Path | None) -> list[Wire]:
    assert path is not None
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def said(messages: list[Wire]) -> list[str]:
    """All texts of a message list."""
    return [block["text"] for message in messages for block in message["content"] if block["type"] == "text"]


def files_under(directory: Path) -> Iterator[Path]:
    return (path for path in sorted(directory.rglob("*")) if path.is_file())

"""Steps of recorded sessions: what was added between two consecutive responses, and what the provider then reported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from lamina.conversation.window.features import Features, measure_all
from lamina.core.blocks import Block, Text, Thinking, ToolResult, ToolUse, canonical, read_content, tool_result
from lamina.core.usage import Usage, read_usage

Record: TypeAlias = dict[str, Any]


class Step(NamedTuple):
    source: str  # the directory directly under PATH
    session: str
    before: int  # tokens reported before the step
    after: int  # the prompt of the next request
    added: Features
    counts: tuple[int, ...]  # letters, blanks, marks, rare, then texts, thinkings, calls, keys, results
    chars: int
    blocks: int

    @property
    def truth(self) -> int:
        return self.after - self.before


def step_of(source: str, session: str, before: int, after: int, blocks: list[Block]) -> Step:
    added = measure_all(blocks)
    keys = sum(len(block.input) for block in blocks if isinstance(block, ToolUse))
    kinds = [sum(isinstance(block, kind) for block in blocks) for kind in (Text, Thinking, ToolUse, ToolResult)]
    counts = (added.letters, added.blanks, added.marks, added.rare, *kinds[:3], keys, kinds[3])
    return Step(source, session, before, after, added, counts, sum(map(chars_of, blocks)), len(blocks))


def chars_of(block: Block) -> int:
    match block:
        case Text():
            return len(block.text)
        case Thinking():
            return len(block.thinking)
        case ToolUse():
            return len(canonical(block.input).decode())
        case ToolResult():
            return len(block.text)
        case _:
            return 0


# Claude Code: one record per block, usage repeated per message id, records linked by parentUuid.


class Response(NamedTuple):
    model: str
    usage: Usage
    records: list[Record]


def claude_steps(source: str, session: str, records: list[Record], dropped: Counter[str]) -> Iterator[Step]:
    by_id = {record["uuid"]: record for record in records if "uuid" in record}
    responses, owner = responses_in(records)
    results = results_in(records)
    for response in responses.values():
        between, previous = walk_back(response.records[0], by_id, owner)
        if previous not in responses:
            dropped[previous] += 1
            continue
        earlier = responses[previous]
        if earlier.model != response.model:
            dropped["the model changed"] += 1
            continue
        if response.usage.prompt <= earlier.usage.prompt:
            dropped["the prompt shrank"] += 1
            continue
        blocks = list(blocks_between(earlier.records, between, results))
        yield step_of(source, session, earlier.usage.prompt, response.usage.prompt, blocks)


def responses_in(records: list[Record]) -> tuple[dict[str, Response], dict[str, str]]:
    """Responses by message id, in file order, and the message id of each of their records; without usage it is none."""
    responses: dict[str, Response] = {}
    owner: dict[str, str] = {}
    for record in records:
        message = record.get("message")
        if record.get("type") != "assistant" or not isinstance(message, dict):
            continue
        usage = read_usage(message.get("usage"))
        if usage is None:
            continue
        name = f"{message['id']}/{record.get('agentId', '')}"
        owner[record["uuid"]] = name
        responses.setdefault(name, Response(message.get("model", ""), usage, [])).records.append(record)
    return responses, owner


def results_in(records: list[Record]) -> dict[str, Record]:
    """The record of each tool result; parallel results branch off and are not on the next response's chain."""
    found: dict[str, Record] = {}
    for record in records:
        content = record["message"].get("content") if record.get("type") == "user" else None
        for raw in content if isinstance(content, list) else ():
            if raw.get("type") == "tool_result":
                found.setdefault(raw["tool_use_id"], record)
    return found


def walk_back(first: Record, by_id: dict[str, Record], owner: dict[str, str]) -> tuple[list[Record], str]:
    """The records between a response and the one before it, newest first, and that one's name; a reason where there is none."""
    between: list[Record] = []
    parent = first.get("parentUuid")
    while parent:
        record = by_id.get(parent)
        if record is None:
            return between, "its parent is not in the file"
        if "compact" in str(record.get("subtype")):
            return between, "a compaction lies between"
        if parent in owner:
            return between, owner[parent]
        between.append(record)
        parent = record.get("parentUuid")
    return between, "first of its chain"


def blocks_between(response: list[Record], between: list[Record], results: dict[str, Record]) -> Iterator[Block]:
    """The response's blocks and what followed, each once: resumed files repeat records under new ids."""
    seen: set[str] = set()
    calls: list[Block] = []
    for record in response:
        for block in content_of(record):
            if (key := block.id if isinstance(block, ToolUse) else block.digest.hex()) not in seen:
                seen.add(key)
                calls += [block] if isinstance(block, ToolUse) else []
                yield block
    late = [results[call.id] for call in calls if isinstance(call, ToolUse) and call.id in results]
    for record in [*late, *reversed(between)]:
        for index, block in enumerate(content_of(record)):
            key = f"result {block.tool_use_id}" if isinstance(block, ToolResult) else f"{record['uuid']}/{index}"
            if key not in seen:
                seen.add(key)
                yield block


def content_of(record: Record) -> tuple[Block, ...]:
    if record.get("type") not in ("user", "assistant") or record.get("isVisibleInTranscriptOnly"):
        return ()
    return read_content(record["message"].get("content"))


# Pi: whole messages in order, final output counts.


def pi_steps(source: str, session: str, records: list[Record], dropped: Counter[str]) -> Iterator[Step]:
    total: int | None = None
    added: list[Block] = []
    for record in records:
        message = record.get("message", {})
        match record.get("type"), message.get("role"):
            case ("message", "assistant"):
                usage = pi_usage(message)
                if usage is None:
                    dropped["aborted or failed"] += 1
                    total = None
                    continue
                if total is None:
                    dropped["first of its chain"] += 1
                elif usage.prompt <= total:
                    dropped["the prompt shrank"] += 1
                else:
                    yield step_of(source, session, total, usage.prompt, added)
                total, added = usage.total, []
            case ("message", "toolResult"):
                added.append(tool_result(message["toolCallId"], message["content"]))
            case ("message", "user"):
                added += read_content(message["content"])
            case ("message" | "compaction" | "model_change", _):
                total = None
            case _:
                pass


def pi_usage(message: Record) -> Usage | None:
    usage = message["usage"]
    done = message.get("stopReason") in ("toolUse", "stop")
    return Usage(usage["input"], usage["cacheRead"], usage["cacheWrite"], 0, usage["output"]) if done else None


def read_steps(root: Path, dropped: Counter[str]) -> list[Step]:
    steps: list[Step] = []
    for path in sorted(root.rglob("*.jsonl")):
        records = [record for line in path.read_bytes().splitlines() if isinstance(record := parsed(line), dict)]
        source = path.relative_to(root).parts[0] if path.parent != root else root.name
        reader = reader_of(records)
        if reader is not None:
            steps += reader(source, str(path), records, dropped)
    return steps


def parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def reader_of(records: list[Record]) -> Callable[[str, str, list[Record], Counter[str]], Iterable[Step]] | None:
    if any("uuid" in record and "message" in record for record in records):
        return claude_steps
    if any(record.get("type") == "session" for record in records):
        return pi_steps
    return None

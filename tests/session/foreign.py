"""A transcript as another program writes it: the shape of Claude Code's files, with words of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "5e55101d-0000-4000-8000-000000000001"
# What a reader finds said in it, in order.
TEXTS = ["Which port does the service use?", "Let me look.", "It listens on 8080.", "Thanks, and the database?"]


def foreign_rows(cwd: str = "/somewhere") -> list[dict[str, Any]]:
    """Parallel results hang on their own call, so the tree branches; much of it is no message at all."""
    common = {
        "isSidechain": False,
        "userType": "external",
        "cwd": cwd,
        "sessionId": SESSION,
        "version": "2.1.0",
        "gitBranch": "main",
    }

    def row(uuid: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "parentUuid": parent,
            **common,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-02-03T04:05:{uuid[-2:]}.000Z",
            **more,
        }

    def answer(uuid: str, parent: str, message_id: str, block: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 900, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": [block]}
        return row(
            uuid, parent, "assistant", message={**message, "stop_reason": None, "usage": usage}, requestId=f"req_{message_id}"
        )

    def found(uuid: str, parent: str, call: str, words: str) -> dict[str, Any]:
        content = [{"type": "tool_result", "tool_use_id": call, "content": words}]
        return row(uuid, parent, "user", message={"role": "user", "content": content}, toolUseResult={"stdout": words})

    def call(name: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": name, "name": "Grep", "input": {"pattern": "port"}}

    reminder = {"type": "date", "rendered": ["<system-reminder>Today is a day.</system-reminder>"], "renderedRole": "user"}
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {"trackedFileBackups": {}}, "isSnapshotUpdate": False},
        {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-02-03T04:05:00.000Z", "sessionId": SESSION},
        row("u-10", None, "user", isMeta=True, message={"role": "user", "content": "Caveat: a program says this."}),
        row("u-11", "u-10", "user", message={"role": "user", "content": TEXTS[0]}),
        row("t-12", "u-11", "attachment", attachment=reminder),
        answer("a-13", "t-12", "msg_1", {"type": "text", "text": TEXTS[1]}),
        answer("a-14", "a-13", "msg_1", call("toolu_1")),
        row("p-15", "a-14", "progress", data={"type": "hook_progress"}, toolUseID="toolu_1"),
        found("r-16", "a-14", "toolu_1", "port: 8080"),
        answer("a-17", "a-14", "msg_1", call("toolu_2")),
        found("r-18", "a-17", "toolu_2", "no match"),
        answer("a-19", "r-18", "msg_2", {"type": "text", "text": TEXTS[2]}),
        row("s-20", "a-19", "system", subtype="turn_duration", durationMs=5),
        row(
            "a-21",
            "s-20",
            "assistant",
            isApiErrorMessage=True,
            message={"role": "assistant", "content": [{"type": "text", "text": "API Error"}]},
        ),
        row("u-22", "a-21", "user", message={"role": "user", "content": [{"type": "text", "text": TEXTS[3]}]}),
        {"type": "summary", "summary": "Ports of the service", "leafUuid": "u-22"},
        row("z-23", "u-22", "a-kind-of-tomorrow", payload=[1, {"deep": None}]),
    ]


def foreign_transcript(directory: Path, cwd: str = "/somewhere") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{SESSION}.jsonl"
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in foreign_rows(cwd)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

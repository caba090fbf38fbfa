"""Homes of other agents as they look on disk: the formats of Claude Code, Codex and pi, with words of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lamina.disk.paths.project import slug

CLAUDE = "c1a0de00-0000-4000-8000-000000000001"
CODEX = "019b0000-aaaa-7000-8000-000000000002"
CODEX_CHILD = "019b0000-bbbb-7000-8000-000000000003"
CODEX_WINDOW = 272_000
PI = "91000000-0000-4000-8000-000000000004"


def write(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


# Claude Code


def claude_user(number: int, text: Any, cwd: Path | str = "/p", **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": f"u{number}",
        "parentUuid": f"a{number - 1}" if number > 1 else None,
        "isSidechain": False,
        "sessionId": CLAUDE,
        "cwd": str(cwd),
        "timestamp": f"2026-03-0{min(number, 9)}T10:00:00.000Z",
        "message": {"role": "user", "content": text},
        **more,
    }


def claude_answer(number: int, *blocks: dict[str, Any], cwd: Path | str = "/p", **more: Any) -> list[dict[str, Any]]:
    """One record per block, all with the usage of the whole answer."""
    usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 0}
    return [
        {
            "type": "assistant",
            "uuid": f"a{number}" if at == len(blocks) - 1 else f"a{number}-{at}",
            "parentUuid": f"u{number}" if at == 0 else f"a{number}-{at - 1}",
            "isSidechain": False,
            "sessionId": CLAUDE,
            "cwd": str(cwd),
            "timestamp": f"2026-03-0{min(number, 9)}T10:00:05.000Z",
            "message": {
                "id": f"msg_{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [block],
                "usage": usage,
            },
            **more,
        }
        for at, block in enumerate(blocks)
    ]


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def claude_home(home: Path, cwd: Path) -> Path:
    """A session with a stored result, a compaction and a subagent, and a memory. Returns the session's file."""
    project = home / "projects" / slug(cwd)
    stored = project / CLAUDE / "tool-results" / "toolu_1.txt"
    stored.parent.mkdir(parents=True)
    stored.write_text("line\n" * 9_000 + "error E474 in the spilled part\n")
    saved = f"Output too large (45.0KB). Full output saved to: {stored}"
    preview = f"<persisted-output>\n{saved}\n\nPreview (first 2KB):\nline\n...\n</persisted-output>"
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": preview}]
    rows = [
        claude_user(1, "Why did we drop redis from the queue?", cwd),
        *claude_answer(1, said("I will look."), call, cwd=cwd),
        claude_user(2, result, cwd, parentUuid="a1"),
        *claude_answer(2, said("It lost messages on restart, so the queue uses Postgres now."), cwd=cwd),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "b1",
            "parentUuid": None,
            "logicalParentUuid": "a2",
            "isSidechain": False,
            "sessionId": CLAUDE,
            "timestamp": "2026-03-03T09:00:00.000Z",
            "compactMetadata": {"trigger": "auto", "preTokens": 1200},
        },
        claude_user(3, "This session is being continued: redis was dropped.", cwd, parentUuid="b1", isCompactSummary=True),
        claude_user(4, "Rename the queue module.", cwd, parentUuid="u3"),
        *claude_answer(4, said("Renamed it to jobs."), cwd=cwd),
        {"type": "ai-title", "aiTitle": "Queue without redis", "sessionId": CLAUDE},
    ]
    path = write(project / f"{CLAUDE}.jsonl", rows)
    child = [
        claude_user(1, "Count the tests.", cwd, isSidechain=True, agentId="c0"),
        *claude_answer(1, said("There are 12 tests."), cwd=cwd, isSidechain=True, agentId="c0"),
    ]
    write(project / CLAUDE / "subagents" / "agent-c0.jsonl", child)
    memory = project / "memory" / "queue.md"
    memory.parent.mkdir()
    memory.write_text(
        "---\nname: queue\ndescription: The queue runs on Postgres\nmetadata:\n  type: project\n---\n\nNo redis anywhere.\n"
    )
    return path


# Codex


def codex_row(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-04-01T08:00:{second:02}.000Z", "ordinal": second, "type": kind, "payload": payload}


def codex_message(role: str, text: str, second: int) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_row("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}, second)


def codex_usage(given: int, cached: int, output: int, second: int) -> dict[str, Any]:
    usage = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 1}
    return codex_row("token_usage_record", {"usage": usage}, second)


def codex_rows(cwd: Path | str, thread: str = CODEX, **meta: Any) -> list[dict[str, Any]]:
    """Two answers before a compaction and one after it. Every text stands twice, as Codex writes it."""
    totals = {"input_tokens": 99_999, "output_tokens": 9}
    counted = {"type": "token_count", "info": {"total_token_usage": totals, "model_context_window": CODEX_WINDOW}}
    history = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Summary so far: the parser uses a table."}],
        }
    ]
    return [
        codex_row("session_meta", {"id": thread, "cwd": str(cwd), "cli_version": "0.166.0", **meta}),
        codex_message("developer", "Be brief.", 1),
        codex_message("user", f"<environment_context>\n<cwd>{cwd}</cwd>\n</environment_context>", 2),
        codex_row("turn_context", {"model": "gpt-5", "cwd": str(cwd)}, 3),
        codex_message("user", "Which table drives the parser?", 4),
        codex_row("event_msg", {"type": "user_message", "message": "Which table drives the parser?"}, 5),
        codex_row(
            "response_item", {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"}, 6
        ),
        codex_usage(1000, 0, 20, 7),
        codex_row("event_msg", counted, 8),
        codex_row("response_item", {"type": "function_call_output", "call_id": "call_1", "output": "grammar.tbl"}, 9),
        codex_message("assistant", "The parser reads grammar.tbl.", 10),
        codex_row("event_msg", {"type": "item_completed", "item": {"text": "The parser reads grammar.tbl."}}, 11),
        codex_usage(1200, 1000, 30, 12),
        codex_row("event_msg", counted, 13),
        codex_row("compacted", {"message": "", "replacement_history": history, "window_number": 1}, 14),
        codex_message("user", "And who generates it?", 15),
        codex_message("assistant", "A script called tablegen.", 16),
        codex_usage(500, 400, 5, 17),
        codex_row("event_msg", {"type": "task_complete"}, 18),
    ]


def asked(*questions: str, second: int = 1) -> list[dict[str, Any]]:
    """Questions to Codex, each with an answer and its usage."""
    return [
        row
        for at, question in enumerate(questions)
        for row in (
            codex_message("user", question, second + at),
            codex_message("assistant", f"Answer to {question}", second + at),
            codex_usage(1_000, 100, 10, second + at),
        )
    ]


def rollout(
    home: Path, name: str, *rows: dict[str, Any], base: Path | None = None, until: int | None = None, **meta: Any
) -> Path:
    """Write a rollout. With `base` it continues that file up to byte `until`, which is the file's end without one."""
    session = {"id": name.partition("_")[0], "cwd": "/p", "history_mode": "paginated", **meta}
    if base is not None:
        end = base.stat().st_size if until is None else until
        session["history_base"] = {"thread_id": base.stem[-36:], "end_ordinal_exclusive": 9, "end_byte_offset": end}
    head = [codex_row("session_meta", session), codex_row("turn_context", {"model": "gpt-5"})]
    return write(home / "sessions/2026/04/01" / f"rollout-2026-04-01T08-00-00-{name}.jsonl", [*head, *rows])


def codex_home(home: Path, cwd: Path) -> Path:
    day = home / "sessions" / "2026" / "04" / "01"
    path = write(day / f"rollout-2026-04-01T08-00-00-{CODEX}.jsonl", codex_rows(cwd))
    child = [
        codex_row("session_meta", {"id": CODEX_CHILD, "cwd": str(cwd), "parent_thread_id": CODEX, "session_id": CODEX}),
        codex_row("turn_context", {"model": "gpt-5"}, 1),
        codex_message("user", "Look for generators.", 2),
        codex_message("assistant", "Found one.", 3),
        codex_usage(100, 0, 1, 4),
    ]
    write(day / f"rollout-2026-04-01T08-00-30-{CODEX_CHILD}.jsonl", child)
    notes = home / "memories" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("# Task Group: parser\nscope: The parser is driven by a table\n\nRun tablegen after a change.\n")
    return path


# pi


def pi_rows(cwd: Path | str) -> list[dict[str, Any]]:
    def entry(number: int, kind: str, **more: Any) -> dict[str, Any]:
        parent = f"e{number - 1}" if number > 1 else None
        return {"type": kind, "id": f"e{number}", "parentId": parent, "timestamp": f"2026-05-01T07:00:{number:02}.000Z", **more}

    def answer(number: int, *content: dict[str, Any]) -> dict[str, Any]:
        usage = {"input": 50, "output": 5, "cacheRead": 200, "cacheWrite": 10, "cost": {"total": 0.25}}
        message = {"role": "assistant", "content": list(content), "model": "some-model", "usage": usage, "stopReason": "stop"}
        return entry(number, "message", message=message)

    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "theme.md"}}
    result = {"role": "toolResult", "toolCallId": "t1", "toolName": "read", "content": [said("accent is teal")], "isError": False}
    return [
        {"type": "session", "version": 3, "id": PI, "timestamp": "2026-05-01T07:00:00.000Z", "cwd": str(cwd)},
        entry(1, "message", message={"role": "user", "content": [said("Which accent colour does the theme use?")]}),
        answer(2, call),
        entry(3, "message", message=result),
        answer(4, said("The accent is teal.")),
        entry(5, "message", message={"role": "user", "content": "Make it green."}),
        answer(6, said("Done, it is green now.")),
        entry(7, "compaction", summary="The theme's accent was changed.", firstKeptEntryId="e5", tokensBefore=900),
        entry(8, "message", message={"role": "user", "content": [said("Undo that.")]}),
        answer(9, said("It is teal again.")),
    ]


def pi_home(home: Path, cwd: Path) -> Path:
    name = str(cwd).strip("/").replace("/", "-")
    return write(home / "sessions" / f"--{name}--" / f"2026-05-01T07-00-00-000Z_{PI}.jsonl", pi_rows(cwd))

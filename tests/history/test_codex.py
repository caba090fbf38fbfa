"""What a rollout of Codex holds besides words: compactions with their calls, pictures, and messages of programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.core.blocks import Image, ToolResult, ToolUse
from lamina.core.log import Log
from lamina.core.records import Attachment, Message
from lamina.history import sessions as sources
from lamina.history.codex import SUMMARY_CALL, scan_row
from lamina.history.scan import IMAGE_CHARS, Scan
from lamina.history.session_stats import session_stats
from lamina.history.turns import is_users
from lamina.replay.recorded_row import replay_recorded
from lamina.replay.script import read_script
from lamina.replay.token_scale import TokenCounter

from .agents import codex_message, codex_row, codex_usage, write

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "high"}


def session(path: Path, *rows: dict[str, Any]) -> Path:
    head = [codex_row("session_meta", {"id": "s", "cwd": "/p", "history_mode": "paginated"})]
    return write(path / "rollout-s.jsonl", [*head, codex_row("turn_context", {"model": "gpt-5"}), *rows])


def scanned(path: Path) -> Scan:
    scan = Scan()
    for line in path.read_text().splitlines():
        scan_row(scan, [], json.loads(line))
    return scan


def user(*parts: dict[str, Any], kinds: list[str] | None = None) -> dict[str, Any]:
    named = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}} if kinds is not None else {}
    return codex_row("response_item", {"type": "message", "role": "user", "content": list(parts), **named}, 3)


def words(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    """A compaction as Codex writes it: the call, its usage, and a history with the user's messages, context and the summary."""
    summary = codex_message("assistant", "The parser has a table.", 6) | {"metadata": {"compaction_output": True}}
    texts = ("Which table?", "And who made it?", "<environment_context>\n<cwd>/p</cwd>\n</environment_context>")
    kept = [codex_message("user", text, 8)["payload"] for text in texts]
    last = codex_message("user", "Another model wrote this summary:\nThe parser has a table.", 8)["payload"]
    history = [*kept[:2], codex_message("developer", "Be brief.", 8)["payload"], kept[2], last]
    return session(
        tmp_path,
        codex_message("user", "Which table?", 1),
        codex_message("assistant", "grammar.tbl", 2),
        codex_usage(2_000, 0, 10, 2),
        codex_message("user", "And who made it?", 3),
        codex_message("assistant", "tablegen", 4),
        codex_usage(3_000, 2_000, 10, 4),
        summary,
        codex_usage(4_000, 3_000, 50, 7),
        codex_row("compacted", {"message": last["content"][0]["text"], "replacement_history": history}, 8),
        codex_message("user", "Thanks.", 9),
        codex_message("assistant", "Good.", 10),
        codex_usage(1_000, 0, 5, 10),
    )


def test_a_compaction_has_one_summary_and_restores_the_rest(compacted: Path) -> None:
    records = list(sources.read(compacted))
    assert [record.blocks[0].wire["text"] for record in records if isinstance(record, Message) and record.summary] == [
        "Another model wrote this summary:\nThe parser has a table."
    ]
    items = Log.load(lambda: records).view.items
    assert [(item.role, item.kind) for item in items] == [
        ("user", "summary"),
        ("user", "attachment:kept_message"),
        ("user", "attachment:kept_message"),
        ("user", "attachment:instructions"),
        ("user", "attachment:instructions"),
        ("user", "said"),
        ("assistant", "said"),
    ]


def test_the_call_that_wrote_a_summary_is_no_answer_and_is_paid_once(compacted: Path) -> None:
    figures, scan = session_stats(sources.read(compacted)), scanned(compacted)
    assert (figures.turns, figures.calls, figures.compactions) == (3, 3, {"the agent": 1})
    assert {purpose: cost.calls for purpose, cost in figures.side.items()} == {SUMMARY_CALL: 1}
    assert figures.side[SUMMARY_CALL].usage.output_tokens == 50
    assert scan.figures().usage == figures.total + figures.side_total().usage
    assert (scan.number, scan.figures().compactions, scan.figures().messages) == (3, 1, 6)


def test_a_replay_does_not_estimate_a_summary_call_that_is_in_the_file(compacted: Path) -> None:
    script = read_script(compacted)
    recorded = replay_recorded(script, {}, 272_000, TokenCounter(1.0)).figures
    assert (recorded.compactions, recorded.unrecorded_calls) == (1, 0)
    texts = [block.wire.get("text") for step in script.steps for block in step.blocks]
    assert texts.count("Which table?") == 1
    rows = [json.loads(line) for line in compacted.read_text().splitlines()]
    at = next(at for at, row in enumerate(rows) if "metadata" in row)
    write(compacted, rows[:at] + rows[at + 2 :])  # without the call
    assert replay_recorded(read_script(compacted), {}, 272_000, TokenCounter(1.0)).figures.unrecorded_calls == 1


@pytest.mark.parametrize("history", [None, [], "x", [7, None], [{"type": "compaction", "encrypted_content": "gAAA"}]])
def test_a_compaction_of_any_shape_breaks_nothing(tmp_path: Path, history: Any) -> None:
    rows = [codex_message("user", "One?", 1), codex_message("assistant", "Yes.", 2), codex_usage(9, 0, 1, 2)]
    row = codex_row("compacted", {"message": "So far: one.", "replacement_history": history}, 3)
    path = session(tmp_path, *rows, row, codex_message("user", "Two?", 4))
    texts = [block.wire.get("text") for item in Log.load(lambda: sources.read(path)).view.items for block in item.blocks]
    assert texts in (["So far: one.", "Two?"], ["Two?"])
    assert scanned(path).number == 2


def test_pictures_of_messages_and_results_are_pictures(tmp_path: Path) -> None:
    opening, closing = words('<image name=[Image #1] path="/p/a.png">'), words("</image>")
    call = {"type": "function_call", "name": "view_image", "arguments": "{}", "call_id": "c"}
    path = session(
        tmp_path,
        user(words("What is this?"), opening, PICTURE, closing, {"type": "input_image", "image_url": "https://e.org/b.png"}),
        codex_row("response_item", call, 4),
        codex_row("response_item", {"type": "function_call_output", "call_id": "c", "output": [words("a.png"), PICTURE]}, 5),
        codex_usage(10, 0, 1, 5),
    )
    asked, _, result = (record for record in sources.read(path) if isinstance(record, Message))
    assert [block.wire for block in asked.blocks] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source": {"type": "url", "url": "https://e.org/b.png"}},
    ]
    assert isinstance(asked.blocks[1], Image)
    [block] = result.blocks
    assert isinstance(block, ToolResult)
    assert isinstance(block.content, list)
    assert [part["type"] for part in block.content] == ["text", "image"]
    held = scanned(path).held
    assert held["user"] == len("What is this?") + 2 * IMAGE_CHARS
    assert held["files"] == len("a.png") + IMAGE_CHARS


def test_tags_around_nothing_are_the_users_words(tmp_path: Path) -> None:
    path = session(tmp_path, user(words("<image>")), user(words("Why does </image> end it?")))
    assert [record.blocks[0].wire["text"] for record in sources.read(path) if isinstance(record, Message)] == [
        "<image>",
        "Why does </image> end it?",
    ]


def test_parts_that_codex_names_as_context_are_not_the_users_words(tmp_path: Path) -> None:
    path = session(
        tmp_path,
        user(words("<subagent_notification>done</subagent_notification>"), kinds=["multi_agent.subagent_notification"]),
        user(words("Go on."), words("beside it"), kinds=["user.text"]),
    )
    records = list(sources.read(path))
    assert [record.blocks[0].wire["text"] for record in records if isinstance(record, Message) and is_users(record)] == [
        "Go on.\n\nbeside it"
    ]
    assert sum(isinstance(record, Attachment) for record in records) == 1
    assert scanned(path).number == 1


def test_tools_have_the_names_that_other_agents_give_them(tmp_path: Path) -> None:
    found = [{"type": "namespace", "name": "mcp__lamina", "tools": [{"type": "function", "name": "memory_search"}]}]
    search = {"type": "tool_search_call", "call_id": "a", "arguments": {"query": "memory"}}
    call = {"type": "function_call", "call_id": "b", "namespace": "mcp__lamina", "name": "memory_search", "arguments": "{}"}
    spawn = {"type": "function_call", "call_id": "c", "namespace": "multi_agent_v1", "name": "spawn_agent", "arguments": "{}"}
    rows: tuple[dict[str, Any], ...] = (search, {"type": "tool_search_output", "call_id": "a", "tools": found}, call, spawn)
    path = session(tmp_path, *(codex_row("response_item", row, at) for at, row in enumerate(rows)))
    blocks = [block for record in sources.read(path) if isinstance(record, Message) for block in record.blocks]
    assert [block.name for block in blocks if isinstance(block, ToolUse)] == [
        "tool_search",
        "mcp__lamina__memory_search",
        "spawn_agent",
    ]
    [result] = [block for block in blocks if isinstance(block, ToolResult)]
    assert "memory_search" in result.text

"""A small command grammar over the tools, for the offline chat.

    read PATH                              Read
    list [PATTERN]                         Glob
    search TEXT [in PATH]                  Grep
    run COMMAND                            Bash
    write PATH: TEXT                       Write
    replace "OLD" with "NEW" in PATH       Read, then Edit
    todo: FIRST; SECOND; …                 TodoWrite

Each command is a row of steps; how many calls stand behind the command in the conversation says which step is next, so the function needs
no memory of its own. A step that failed ends the row with what it said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...core.blocks import Wire
from .turn_context import result_text, say

Steps: TypeAlias = tuple[tuple[str, Wire], ...]

# What is shown of a result; the whole of it stands in the conversation above.
SHOWN = 2_000


class Command(NamedTuple):
    pattern: re.Pattern[str]
    steps: Callable[[re.Match[str]], Steps]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{text}\s*", re.IGNORECASE | re.DOTALL)


def _edit(match: re.Match[str]) -> Steps:
    path = match["path"]
    change = {"file_path": path, "old_string": match["old"], "new_string": match["new"]}
    return (("Read", {"file_path": path}), ("Edit", change))


def _search(match: re.Match[str]) -> Steps:
    arguments: Wire = {"pattern": match["what"], "output_mode": "content", "-n": True}
    return (("Grep", arguments | ({"path": match["path"]} if match["path"] else {})),)


def _todo(match: re.Match[str]) -> Steps:
    items = [item.strip() for item in re.split(r"[;；\n]", match["items"]) if item.strip()]
    return (("TodoWrite", {"todos": [{"content": item, "status": "pending", "activeForm": item} for item in items]}),)


COMMANDS = (
    Command(_pattern(r"(?:read|读|読む)\s+(?P<path>\S+)"), lambda m: (("Read", {"file_path": m["path"]}),)),
    Command(_pattern(r"(?:list|列出)(?:\s+(?P<what>\S+))?"), lambda m: (("Glob", {"pattern": m["what"] or "*"}),)),
    Command(_pattern(r"(?:search|搜索)\s+(?:for\s+)?(?P<what>.+?)(?:\s+in\s+(?P<path>\S+))?"), _search),
    Command(_pattern(r"(?:run|运行)\s+(?P<command>.+)"), lambda m: (("Bash", {"command": m["command"].strip()}),)),
    Command(
        _pattern(r"(?:write|写)\s+(?P<path>[^\s:：]+)\s*[:：]\s?(?P<text>.*)"),
        lambda m: (("Write", {"file_path": m["path"], "content": m["text"].rstrip() + "\n"}),),
    ),
    Command(_pattern(r"replace\s+([\"'`])(?P<old>.+?)\1\s+(?:with|by)\s+([\"'`])(?P<new>.*?)\3\s+in\s+(?P<path>\S+)"), _edit),
    Command(_pattern(r"(?:todo|待办)\s*[:：]\s*(?P<items>.+)"), _todo),
)


def next_step(prompt: str, behind: list[Wire], tools: set[str], at: int) -> list[Wire] | None:
    """The answer to a command: its next call, or what came of the last one; None where the prompt is no command.

    `behind` is what stands in the conversation behind the prompt: our own calls and their results; `at` is the prompt's place."""
    steps = _steps(prompt, tools)
    if steps is None:
        return None
    results = [block for message in behind for block in message["content"] if block["type"] == "tool_result"]
    if results and (results[-1].get("is_error") or len(results) >= len(steps)):
        return say(_told(results[-1]))
    name, arguments = steps[len(results)]
    # The place makes the id new: the same words may be said again later.
    return [{"type": "tool_use", "id": f"toolu_offline_{at}_{len(results)}", "name": name, "input": arguments}]


def _steps(prompt: str, tools: set[str]) -> Steps | None:
    for command in COMMANDS:
        if match := command.pattern.fullmatch(prompt):
            steps = command.steps(match)
            return steps if all(name in tools for name, _ in steps) else None
    return None


def _told(result: Wire) -> str:
    text = result_text(result) or "(no output)"
    said = text if len(text) <= SHOWN else f"{text[:SHOWN]}\n… ({len(text):,} characters in all)"
    return f"That did not work: {said}" if result.get("is_error") else said

"""Layer 1 inside Claude Code: a large tool result is replaced by a preview, and the whole result stays in a file.

The hook PostToolUse answers with a new output, which must have the tool's own shape; with any other, Claude Code keeps the old one. Its
transcript then holds the replacement alone, so the original is written first, into the session's `tool-results`, which Claude Code may read
without asking. A result that it has stored there itself is not written again. Failed calls cannot be replaced and never come here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..core.reach import Reach
from ..core.settings import Settings
from ..disk.regular_file import open_regular
from ..disk.session_files.spills import DIRECTORY, open_spills
from ..layers.l1_results.plan import ArrivedResult, ResultBudget, alone, budget_for, weigh
from ..layers.l1_results.preview import head_of, last_lines, line_end, persisted, rest_of
from ..layers.l1_results.source import BYTES_PER_CHARACTER, encoded
from .hook_input import HookInput

# The tools of this server show what their own limits allow.
OWN = ("mcp__plugin_lamina_", "mcp__lamina__")
# How the names of the files begin, so that an uninstallation can list them among those of Claude Code.
SPILLED = "lamina-"
# Tokens that the answer of a model takes at most; the rest of the window is for the conversation.
ANSWER_TOKENS = 20_000


class ToolText(NamedTuple):
    """The text of a result, and how a new text becomes a result of the same shape."""

    text: str
    rebuild: Callable[[str], Any]
    stored: Path | None = None  # the file in which Claude Code keeps the whole result
    page: bool = False  # a part of a file that exists anyway: one page of it is shown


def replaced_output(settings: Settings, given: HookInput) -> Any | None:
    """Return what replaces the result of a call, or None if it stays as it is."""
    directory = given.session_directory
    found = tool_text(given, directory) if settings.spill and directory is not None else None
    if found is None or directory is None:
        return None
    policy = settings.policy
    budget = budget_for(policy.results, policy.window.default_window - ANSWER_TOKENS)
    one = _arrived(given.tool_name, found, budget)
    match alone(one, budget):
        case "page":
            return found.rebuild(_page(found.text, budget.page_of(one), _first_line(given)))
        case "spill":
            return found.rebuild(_preview(given, found, directory, budget))
        case _:
            return None


def _arrived(tool: str, found: ToolText, budget: ResultBudget) -> ArrivedResult:
    size = len(found.text)
    if found.stored is not None:
        size = max(size, found.stored.stat().st_size)
    weight = max(size if found.stored is not None else 0, weigh(found.text, budget.threshold(tool)))
    return ArrivedResult(tool, size, weight, "page" if found.page else "text")


def _page(text: str, most: int, first: int) -> str:
    """Return one page of a file, which begins at its line `first`. Line numbers are added later, by Claude Code."""
    shown = line_end(text, most)
    return f"{shown}\n[A page of this file is {most:,} characters. Continue with offset={first + shown.count(chr(10)) + 1}.]"


def _preview(given: HookInput, found: ToolText, directory: Path, budget: ResultBudget) -> str:
    whole = budget.preview_of(given.tool_name)
    most_end = whole * budget.end_percent // 100
    most, end_bytes = whole - most_end, most_end * BYTES_PER_CHARACTER
    if found.stored is not None:
        path, size = found.stored, found.stored.stat().st_size
        with open_regular(found.stored) as file:
            data = file.read(BYTES_PER_CHARACTER * (most + 1))
            file.seek(max(len(data), size - end_bytes))
            tail = file.read(end_bytes)
        head = head_of(data, most, whole=len(data) == size)
    else:
        data = encoded(found.text)
        with open_spills(directory) as spills:
            written = spills.write(SPILLED + (given.tool_use_id or given.session_id), [data])
        path, size = written.path, written.size
        head, tail = head_of(data, most, whole=True), data[max(0, size - end_bytes) :]
    rest = rest_of(given.tool_use_id, Reach(read=True))
    return persisted(head, most=most, size=size, path=str(path), rest=rest, end=last_lines(tail, most_end))


# Shapes


def tool_text(given: HookInput, directory: Path | None) -> ToolText | None:
    """Return the text of a result whose shape is known."""
    response = given.tool_response
    if given.tool_name.startswith(OWN):
        return None
    if given.tool_name.startswith("mcp__"):
        return _mcp(response)
    shapes: dict[str, Callable[[dict[str, Any]], ToolText | None]] = {
        "Bash": lambda shape: _bash(shape, directory),
        "Read": _read,
        "Grep": _grep,
        "Glob": _glob,
    }
    shape = shapes.get(given.tool_name)
    return shape(response) if shape is not None and isinstance(response, dict) else None


def _bash(response: dict[str, Any], directory: Path | None) -> ToolText | None:
    stdout = response.get("stdout")
    if not isinstance(stdout, str) or response.get("isImage"):
        return None
    kept = {name: response.get(name, usual) for name, usual in (("stderr", ""), ("interrupted", False), ("isImage", False))}
    return ToolText(stdout, lambda text: {"stdout": text, **kept}, _stored(response.get("persistedOutputPath"), directory))


def _stored(named: object, directory: Path | None) -> Path | None:
    """Return the file in which Claude Code has stored the output, if it is one of the session's."""
    if not isinstance(named, str) or directory is None or os.path.dirname(named) != str(directory / DIRECTORY):
        return None
    path = Path(named)
    return path if path.is_file() and not path.is_symlink() else None


def _read(response: dict[str, Any]) -> ToolText | None:
    file = response.get("file")
    content = file.get("content") if response.get("type") == "text" and isinstance(file, dict) else None
    if not isinstance(content, str) or not isinstance(file, dict):
        return None
    fields = file
    return ToolText(
        content,
        lambda text: {"type": "text", "file": {**fields, "content": text, "numLines": text.count("\n") + 1}},
        page=True,
    )


def _grep(response: dict[str, Any]) -> ToolText | None:
    content = response.get("content")
    if response.get("mode") != "content" or not isinstance(content, str):
        return None
    return ToolText(content, lambda text: {**response, "content": text, "numLines": text.count("\n") + 1})


def _glob(response: dict[str, Any]) -> ToolText | None:
    names = response.get("filenames")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return ToolText(
        "\n".join(names), lambda text: {**response, "filenames": text.split("\n"), "numFiles": len(names), "truncated": True}
    )


def _mcp(response: Any) -> ToolText | None:
    if isinstance(response, str):
        return ToolText(response, lambda text: text)
    if not isinstance(response, list) or not response or not all(_is_text(block) for block in response):
        return None
    return ToolText("\n\n".join(block["text"] for block in response), lambda text: [{"type": "text", "text": text}])


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _first_line(given: HookInput) -> int:
    file = given.tool_response["file"]
    line = file.get("startLine")
    return line if isinstance(line, int) and line > 0 else 1

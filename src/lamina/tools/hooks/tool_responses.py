"""Tool output as hooks see it and replace it: the object that Claude Code has for the same tool. Pure.

Bash, Read, Grep, Glob, Write, Edit and Agent have objects of their own. Every other tool has a list of content blocks. A replacement must
have the shape of what it replaces. For Write and Edit the model gets the same sentence as before. Our Bash reads both streams of a
command in the order they were written, so `stderr` is always empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

Wire = dict[str, Any]
Content = str | list[Wire]

NOTHING = "(nothing)"
_NUMBERED = re.compile(r"(\d+)\t(.*)", re.DOTALL)


class ToolOutcome(NamedTuple):
    """A finished call, as hooks receive it."""

    name: str
    input: Mapping[str, Any]
    content: Content
    facts: Mapping[str, Any]
    milliseconds: int


def tool_response(call: ToolOutcome) -> Any:
    """Return the value of `tool_response`."""
    content, facts, arguments = call.content, call.facts, call.input
    path = facts.get("path", arguments.get("file_path"))
    if not isinstance(content, str):
        if call.name != "Read":
            return content
        source: Wire = next((block["source"] for block in content if block.get("type") == "image"), {})
        return {"type": "image", "file": {"base64": source.get("data", ""), "type": source.get("media_type", "")}}
    match call.name:
        case "Bash":
            output = {"stdout": content if facts.get("bytes") else "", "stderr": "", "interrupted": False, "isImage": False}
            file = facts.get("output_file")
            whole = {"persistedOutputPath": file, "persistedOutputSize": facts.get("bytes", 0)}
            return output | (whole if isinstance(file, str) else {})
        case "Read":
            lines = [line[2] for line in map(_NUMBERED.fullmatch, content.split("\n")) if line is not None]
            first = facts.get("first", 1)
            page = {"filePath": path, "content": "\n".join(lines), "numLines": len(lines), "startLine": first}
            return {"type": "text", "file": page | {"totalLines": facts.get("total", first + len(lines) - 1)}}
        case "Grep":
            mode, lines = arguments.get("output_mode") or "files_with_matches", _lines(content, facts.get("lines"))
            if mode == "files_with_matches":
                return {"mode": mode, "numFiles": len(lines), "filenames": lines}
            text = {"content": "\n".join(lines), "numLines": len(lines)}
            return {"mode": mode, "numFiles": facts.get("files", 0), "filenames": [], **text}
        case "Glob":
            names, truncated = _lines(content, facts.get("files")), bool(facts.get("more"))
            return {"filenames": names, "durationMs": call.milliseconds, "numFiles": len(names), "truncated": truncated}
        case "Write":
            return {"type": "create" if facts.get("created") else "update", "filePath": path, "content": arguments.get("content")}
        case "Edit":
            texts = {"oldString": arguments.get("old_string"), "newString": arguments.get("new_string")}
            return {"filePath": path, **texts, "replaceAll": bool(arguments.get("replace_all")), "userModified": False}
        case "Agent":
            return {
                "status": "async_launched" if facts.get("background") else "completed",
                "prompt": arguments.get("prompt"),
                "agentId": facts.get("agent"),
                "agentType": arguments.get("subagent_type"),
                "content": [{"type": "text", "text": content}],
                "totalDurationMs": call.milliseconds,
                "totalTokens": facts.get("tokens", 0),
                "totalToolUseCount": facts.get("calls", 0),
            }
        case _:
            return [{"type": "text", "text": content}]


def _lines(text: str, count: object) -> list[str]:
    """Return the lines of a listing, without our own sentences behind it."""
    return text.split("\n")[: count if isinstance(count, int) else None]


def replaced_content(name: str, new: Any) -> Content | None:
    """Return what the model reads instead, or None if the model's text stays as it is. Raises ValueError for any other shape."""
    fields: Mapping[str, Any] = new if isinstance(new, dict) else {}
    names = fields.get("filenames")
    match name:
        case "Bash":
            wanted = "an object with stdout, stderr, interrupted and isImage"
            texts: list[Any] = [fields.get("stdout"), fields.get("stderr")]
            switches = [fields.get("interrupted"), fields.get("isImage")]
            if all(isinstance(text, str) for text in texts) and all(isinstance(switch, bool) for switch in switches):
                return "\n".join(text.rstrip("\n") for text in texts if text.strip()) or NOTHING
        case "Read":
            wanted = 'an object with type "text" and a file with its content'
            file = fields.get("file") if fields.get("type") == "text" else None
            if isinstance(file, dict) and isinstance(file.get("content"), str):
                first = file.get("startLine")
                first = first if isinstance(first, int) and not isinstance(first, bool) and first > 0 else 1
                lines = file["content"].removesuffix("\n").split("\n")
                return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))
        case "Grep" if isinstance(fields.get("content"), str):
            return fields["content"] or NOTHING
        case "Grep" | "Glob":
            wanted = "an object with its content or a list filenames" if name == "Grep" else "an object with a list filenames"
            if isinstance(names, list) and all(isinstance(file, str) for file in names):
                return "\n".join(names) or NOTHING
        case "Write" | "Edit":
            wanted = "an object"
            if isinstance(new, dict):
                return None
        case _:
            wanted = "a text or a list of text blocks"
            if isinstance(new, str):
                return new
            if (
                isinstance(new, list)
                and new
                and all(isinstance(block, dict) and isinstance(block.get("text"), str) for block in new)
            ):
                return [{"type": "text", "text": block["text"]} for block in new]
    raise ValueError(f"updatedToolOutput for {name} must be {wanted}")

"""Tool output as hooks see it and replace it: the object that Claude Code has for the same tool. Pure.

Bash, Read, Grep, Glob, Write, Edit and Agent have objects of their own. Every other tool has a list of content blocks. A replacement must
have the shape of what it replaces. For Write and Edit the model gets the same sentence as before. Our Bash reads both streams of a
command in the order they were written, so `stderr` is always empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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


def tool_response(done: ToolOutcome) -> Any:
    """Return the value of `tool_response`."""
    make = _RESPONSES.get(done.name)
    if make is not None and isinstance(done.content, str):
        return make(done, done.content)
    if done.name == "Read" and not isinstance(done.content, str):
        source: Wire = next((block["source"] for block in done.content if block.get("type") == "image"), {})
        return {"type": "image", "file": {"base64": source.get("data", ""), "type": source.get("media_type", "")}}
    return _blocks(done.content)


def replaced_content(name: str, new: Any) -> Content | None:
    """Return what the model reads instead, or None if the model's text stays as it is. Raises ValueError for any other shape."""
    accept = _REPLACEMENTS.get(name, _accept_text)
    found = accept(new)
    if isinstance(found, _Refused):
        raise ValueError(f"updatedToolOutput for {name} must be {found.wanted}")
    return found


class _Refused(NamedTuple):
    wanted: str


def _blocks(content: Content) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _lines(text: str, count: object) -> list[str]:
    """Return the lines of a listing, without our own sentences behind it."""
    return text.split("\n")[: count if isinstance(count, int) else None]


def _bash(done: ToolOutcome, text: str) -> Wire:
    response: Wire = {"stdout": text if done.facts.get("bytes") else "", "stderr": "", "interrupted": False, "isImage": False}
    if isinstance(file := done.facts.get("output_file"), str):
        response |= {"persistedOutputPath": file, "persistedOutputSize": done.facts.get("bytes", 0)}
    return response


def _read(done: ToolOutcome, text: str) -> Wire:
    lines = [found[2] for line in text.split("\n") if (found := _NUMBERED.fullmatch(line))]
    first = done.facts.get("first", 1)
    file: Wire = {"filePath": done.facts.get("path", done.input.get("file_path")), "content": "\n".join(lines)}
    return {
        "type": "text",
        "file": file
        | {"numLines": len(lines), "startLine": first, "totalLines": done.facts.get("total", first + len(lines) - 1)},
    }


def _grep(done: ToolOutcome, text: str) -> Wire:
    mode, lines = done.input.get("output_mode") or "files_with_matches", _lines(text, done.facts.get("lines"))
    if mode == "files_with_matches":
        return {"mode": mode, "numFiles": len(lines), "filenames": lines}
    return {
        "mode": mode,
        "numFiles": done.facts.get("files", 0),
        "filenames": [],
        "content": "\n".join(lines),
        "numLines": len(lines),
    }


def _glob(done: ToolOutcome, text: str) -> Wire:
    names = _lines(text, done.facts.get("files"))
    truncated = bool(done.facts.get("more"))
    return {"filenames": names, "durationMs": done.milliseconds, "numFiles": len(names), "truncated": truncated}


def _write(done: ToolOutcome, text: str) -> Wire:
    kind = "create" if done.facts.get("created") else "update"
    return {"type": kind, "filePath": done.facts.get("path", done.input.get("file_path")), "content": done.input.get("content")}


def _edit(done: ToolOutcome, text: str) -> Wire:
    given = done.input
    return {
        "filePath": done.facts.get("path", given.get("file_path")),
        "oldString": given.get("old_string"),
        "newString": given.get("new_string"),
        "replaceAll": bool(given.get("replace_all")),
        "userModified": False,
    }


def _agent(done: ToolOutcome, text: str) -> Wire:
    facts = done.facts
    return {
        "status": "async_launched" if facts.get("background") else "completed",
        "prompt": done.input.get("prompt"),
        "agentId": facts.get("agent"),
        "agentType": done.input.get("subagent_type"),
        "content": _blocks(text),
        "totalDurationMs": done.milliseconds,
        "totalTokens": facts.get("tokens", 0),
        "totalToolUseCount": facts.get("calls", 0),
    }


def _accept_bash(new: Any) -> Content | _Refused:
    texts = isinstance(new, dict) and all(isinstance(new.get(key), str) for key in ("stdout", "stderr"))
    if not texts or not all(isinstance(new.get(key), bool) for key in ("interrupted", "isImage")):
        return _Refused("an object with stdout, stderr, interrupted and isImage")
    return "\n".join(part.rstrip("\n") for part in (new["stdout"], new["stderr"]) if part.strip()) or NOTHING


def _accept_read(new: Any) -> Content | _Refused:
    file = new.get("file") if isinstance(new, dict) and new.get("type") == "text" else None
    if not isinstance(file, dict) or not isinstance(file.get("content"), str):
        return _Refused('an object with type "text" and a file with its content')
    first = file.get("startLine")
    first = first if isinstance(first, int) and not isinstance(first, bool) and first > 0 else 1
    text = file["content"].removesuffix("\n")
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(text.split("\n"), first))


def _accept_grep(new: Any) -> Content | _Refused:
    if isinstance(new, dict) and isinstance(new.get("content"), str):
        return new["content"] or NOTHING
    return _accept_names(new, "an object with its content or a list filenames")


def _accept_glob(new: Any) -> Content | _Refused:
    return _accept_names(new, "an object with a list filenames")


def _accept_names(new: Any, wanted: str) -> Content | _Refused:
    names = new.get("filenames") if isinstance(new, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return _Refused(wanted)
    return "\n".join(names) or NOTHING


def _accept_change(new: Any) -> _Refused | None:
    return None if isinstance(new, dict) else _Refused("an object")


def _accept_text(new: Any) -> Content | _Refused:
    if isinstance(new, str):
        return new
    texts = isinstance(new, list) and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in new)
    return (
        [{"type": "text", "text": one["text"]} for one in new] if texts and new else _Refused("a text or a list of text blocks")
    )


_RESPONSES: dict[str, Callable[[ToolOutcome, str], Wire]] = {
    "Bash": _bash,
    "Read": _read,
    "Grep": _grep,
    "Glob": _glob,
    "Write": _write,
    "Edit": _edit,
    "Agent": _agent,
}
_REPLACEMENTS: dict[str, Callable[[Any], Content | _Refused | None]] = {
    "Bash": _accept_bash,
    "Read": _accept_read,
    "Grep": _accept_grep,
    "Glob": _accept_glob,
    "Write": _accept_change,
    "Edit": _accept_change,
}

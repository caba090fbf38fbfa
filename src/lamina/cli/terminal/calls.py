"""Text for a tool call: its title, a short result, and a preview for the permission question.

Pure functions. The user sees everything that would run: a command is shown in full, and if a text is too long to show, a line
counts what is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...language.text import Text, joined
from ...language.wording import counted
from .screen import Style

# Lines of a change shown on each side.
MOST_CHANGED = 30
# Number of lines of a command that are shown; the rest is counted.
MOST_COMMAND = 200
LONGEST = 2_000
TITLE = 300
# What became of a memory. The call already names its file.
_MEMORY = {
    "saved": Text("saved##a memory"),
    "updated": Text("updated"),
    "removed": Text("removed"),
    "unchanged": Text("unchanged"),
    "waiting": Text("waits for your approval"),
}
# Lines that Lamina appends to a command's output.
OURS = ("[exit code", "[The whole output is in")


class PreviewLine(NamedTuple):
    text: str
    style: Style = "plain"


def describe_call(name: str, given: object, cwd: Path, home: Path | None = None) -> str:
    """Describe a call and its arguments on one line. Paths under `home` are shown relative to the project's directory there."""
    arguments = given if isinstance(given, Mapping) else {}
    match name:
        case "Bash":
            what = _text(arguments, "command")
        case "Read" | "Write" | "Edit":
            what = shorten_path(_text(arguments, "file_path"), cwd, home) + _range(arguments)
        case "Grep":
            where = shorten_path(_text(arguments, "path"), cwd, home)
            what = f"{_text(arguments, 'pattern')!r}" + (f" in {where}" if where else "")
        case "Glob":
            what = _text(arguments, "pattern")
        case "Expand":
            what = " ".join(filter(None, (_text(arguments, "node"), _text(arguments, "find"))))
        case "Agent":
            kind = _text(arguments, "subagent_type")
            what = _text(arguments, "description") + (f" ({kind})" if kind else "")
        case "SendMessage":
            what = f"to {_text(arguments, 'to')}: {_text(arguments, 'summary') or _text(arguments, 'message')}"
        case "TodoWrite":
            todos = arguments.get("todos")
            what = counted(len(todos), "to-do") if isinstance(todos, list) else ""
        case _:
            what = json.dumps(given, ensure_ascii=False, default=str) if given else ""
    return " ".join(f"{name} {what}".split())[:TITLE]


def shorten_path(path: str, cwd: Path, home: Path | None = None) -> str:
    """Return the path relative to the working directory, if it is inside."""
    if not path or not os.path.isabs(path):
        return path
    whole = Path(path)
    if home is not None and whole.is_relative_to(home / "projects"):
        inside = whole.relative_to(home / "projects").parts[1:]
        return os.path.join(*inside) if inside else path
    return str(whole.relative_to(cwd)) if whole.is_relative_to(cwd) else path


def _range(arguments: Mapping[str, Any]) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if not isinstance(offset, int) and not isinstance(limit, int):
        return ""
    first = offset if isinstance(offset, int) else 1
    return f":{first}-{first + limit - 1}" if isinstance(limit, int) else f":{first}-"


def describe_result(name: str, given: object, content: object, facts: Mapping[str, Any], *, is_error: bool) -> str:
    """Describe the result of a call in half a line."""
    text = content if isinstance(content, str) else ""
    if facts.get("denied"):
        return Text.whole(facts["reason"])
    if name == "Bash":
        return _ran(text, facts)
    if is_error:
        return _first(text) or Text("failed")
    match name:
        case "Read" if "lines" in facts:
            lines = counted(facts["lines"], "line")
            return (
                Text("{lines} of {total:,}", lines=lines, total=facts["total"])
                if facts.get("more") and "total" in facts
                else lines
            )
        case "Write" if "lines" in facts:
            lines = counted(facts["lines"], "line")
            return Text("new, {lines}", lines=lines) if facts.get("created") else lines
        case "Write" | "Edit" if done := _MEMORY.get(str(facts.get("memory"))):
            return done
        case "Write" if "bullets" in facts:
            return Text("added {bullets}", bullets=counted(facts["bullets"], "bullet"))
        case "Edit" if "line" in facts:
            return _changed(given, facts)
        case "Grep" if "lines" in facts:
            return Text("{n} line in {files}|{n} lines in {files}", n=facts["lines"], files=counted(facts["files"], "file"))
        case "Glob" if "files" in facts:
            return counted(facts["files"], "file")
        case "Agent" if "calls" in facts:
            return joined((counted(facts["calls"], "call"), f"{facts['seconds']:.0f} s", counted(facts["tokens"], "token")))
        case "Agent" if facts.get("background"):
            return Text("in the background as {agent}", agent=facts["agent"])
        case _:
            return _first(text)


def _changed(given: object, facts: Mapping[str, Any]) -> str:
    arguments = given if isinstance(given, Mapping) else {}
    old, new = (len(_text(arguments, name).splitlines()) for name in ("old_string", "new_string"))
    places = facts.get("replacements", 1)
    if places == 1:
        return Text("-{old} +{new} at line {line}", old=old, new=new, line=facts["line"])
    form = Text("-{old} +{new} in {places} places from line {line}")
    return Text(form, old=old, new=new, places=places, line=facts["line"])


def _ran(text: str, facts: Mapping[str, Any]) -> str:
    """Summarise a command by its last line, which usually has the result of a test run, build or failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if not line.startswith(OURS)), "")
    match facts.get("why"), facts.get("exit_code"):
        case "abort", _:
            ended = Text("stopped")
        case "timeout", _:
            ended = Text("timed out")
        case "full", _:
            return Text("stopped: too much output")
        case _, int(code) if code:
            ended = Text("exit code {code}", code=code)
        case _:
            return last
    return Text("{ended}: {last}", ended=ended, last=last) if last else ended


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def preview_call(name: str, given: object) -> list[PreviewLine]:
    """Preview what the call would do, for the permission question: the command, the change, or the raw arguments."""
    arguments = given if isinstance(given, Mapping) else {}
    match name:
        case "Bash":
            return [*_bounded(_text(arguments, "command"), MOST_COMMAND, "", "bold")]
        case "Edit":
            old, new = _text(arguments, "old_string"), _text(arguments, "new_string")
            everywhere = (
                [PreviewLine(Text("all occurrences in the file"), "yellow")] if arguments.get("replace_all") is True else []
            )
            return [*everywhere, *_bounded(old, MOST_CHANGED, "- ", "red"), *_bounded(new, MOST_CHANGED, "+ ", "green")]
        case "Write":
            return [*_bounded(_text(arguments, "content"), MOST_CHANGED, "+ ", "green")]
        case "Read" | "Grep" | "Glob":
            return []
        case _:
            return [*_bounded(json.dumps(given, ensure_ascii=False, indent=2, default=str), MOST_CHANGED, "", "plain")]


def _bounded(text: str, most: int, sign: str, style: Style) -> Iterator[PreviewLine]:
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines = lines[:-1]
    if not text:
        return
    for line in lines[:most]:
        more = f" … (+{len(line) - LONGEST:,})" if len(line) > LONGEST else ""
        yield PreviewLine(f"{sign}{line[:LONGEST]}{more}", style)
    if len(lines) > most:
        yield PreviewLine(
            Text("… and {n} more line not shown here|… and {n} more lines not shown here", n=len(lines) - most), "yellow"
        )


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False, default=str)

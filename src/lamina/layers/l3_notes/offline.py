"""Notes without a model, taken from the request itself (O1).

A pure function of the request. Existing lines stay and new ones are added below them; when a section is full, the oldest lines
are dropped. A line is never a heading, so the result always matches the template. Sections with unknown names stay unchanged.

Texts that Lamina put into the conversation (reminders, summaries, folded turns, placeholders of results) are neither wishes of the
user nor errors. Of a summary, only the user's messages that it quotes count.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...conversation.compaction import compose
from ...conversation.compaction.user_messages import written_in
from ...core.blocks import Wire
from ...core.message_list import MISSING_RESULT
from ...core.prompt_files import prompt_sections
from ...core.record_lines import UNRECORDED_MARKER
from ...fork.fork import directive_in
from ...fork.handover import PLACEHOLDER
from ...language.wording import shorten
from .sections import ADD, CLOSE, OPEN, Misfit, Notes, Section, own_template, read_template, render, says_left_out

# Maximum characters of a line: enough to recognise the message.
LINE = 300
TITLE_LEAST, TITLE_WORDS = 5, 10
# The section limit if the request names none (a tenth of N2's total).
SECTION_TOKENS = 1_200
# A safe estimate: text has more characters per token than this.
LETTERS_PER_TOKEN = 3
SECTIONS = 10

_NOTES = re.compile(r"<system-reminder>\n(.*?)\n</system-reminder>", re.DOTALL)
_SIZES = re.compile(r"about ([\d,]+) tokens in all and ([\d,]+) in one section")
_EDITS = re.compile(r"all calls in one answer, on (.+?) alone, which counts as read")
_LATE = "Late result of "
# How injected user texts begin. The last ones are those of other agents, whose transcripts can be continued here.
_INJECTED = (
    "<system-reminder>",
    "<fork ",
    "<agent-message",
    "<local-command",
    "<command-",
    "Caveat:",
    "[Request interrupted",
    _LATE,
)
_FOLDED = re.compile(r"\[(?:A finished turn|A part of the conversation)\b.*\.(?: Expand \S+ shows it again\.)?\]", re.DOTALL)
# How results begin that tell nothing about the call.
_NO_ERRORS = (MISSING_RESULT, PLACEHOLDER, "[Cleared to save room: ", UNRECORDED_MARKER, "<persisted-output>")
# Where a long sentence can be cut without losing its sense.
_CLAUSE = re.compile(r"[,;:]$|^[-–—]$")
_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_PATHS = ("file_path", "path", "notebook_path")


class Call(NamedTuple):
    name: str
    input: Mapping[str, Any]
    failed: str = ""  # the beginning of the error message


class Dialogue(NamedTuple):
    """The content of the conversation, in order."""

    user: tuple[str, ...]
    answers: tuple[str, ...]
    calls: tuple[Call, ...]
    steps: tuple[str, ...]  # one line for each user message


def answer(request: Wire) -> list[Wire]:
    """Return the changes to the notes, as Edit calls if the directive asks for them, else as sections."""
    directive = directive_in(request) or ""
    current = _current(directive)
    new = updated(current, read_dialogue(request["messages"]), _letters(directive))
    path = _EDITS.search(directive)
    if path is not None and any(tool.get("name") == "Edit" for tool in request.get("tools") or ()):
        return _edits(current, new, path[1]) or [_text("The notes are up to date.")]
    return [_text("\n\n".join([OPEN, *_changed(current, new), CLOSE]))]


def _changed(old: Notes, new: Notes) -> Iterator[str]:
    for before, after in zip(old.sections, new.sections, strict=True):
        if before != after:
            grown = before.body and after.body.startswith(f"{before.body}\n")
            # Only the added lines are sent: a whole body that starts in italics would be taken for a changed description.
            added = f"{after.head.line}\n{ADD}\n" + after.body.removeprefix(f"{before.body}\n")
            yield added if grown else _section(after)


def _edits(old: Notes, new: Notes, path: str) -> list[Wire]:
    calls = []
    for number, (before, after) in enumerate(zip(old.sections, new.sections, strict=True)):
        if before != after:
            edit = {"file_path": path, "old_string": _section(before), "new_string": _section(after)}
            calls.append({"type": "tool_use", "id": f"notes_{number}", "name": "Edit", "input": edit})
    return calls


def _section(section: Section) -> str:
    """Return a section as it is in the file. If only its end is shown, return that end."""
    first, *lines = section.body.split("\n")
    return "\n".join(lines) if says_left_out(first) else render(Notes((section,))).rstrip("\n")


def _text(words: str) -> Wire:
    return {"type": "text", "text": words}


def _current(directive: str) -> Notes:
    quoted = _NOTES.findall(directive)
    template = read_template(quoted[-1]) if quoted else own_template()
    return own_template().notes if isinstance(template, Misfit) else template.notes


def _letters(directive: str) -> int:
    limits = _SIZES.search(directive)
    tokens = SECTION_TOKENS
    if limits is not None:
        total, section = (int(number.replace(",", "")) for number in limits.groups())
        tokens = min(section, total // SECTIONS)
    return max(1, tokens) * LETTERS_PER_TOKEN


def read_dialogue(messages: Iterable[Mapping[str, Any]]) -> Dialogue:
    user: list[str] = []
    answers: list[str] = []
    calls: dict[str, Call] = {}
    steps: list[tuple[str, list[str]]] = []
    for role, block in _blocks(messages):
        kind = block.get("type")
        if kind == "text" and role == "user":
            message = str(block["text"])
            if _is_summary(message):
                user += written_in(message)
            elif not message.lstrip().startswith(_INJECTED) and not _FOLDED.fullmatch(message.strip()):
                user.append(message)
                steps.append((message, []))
        elif kind == "text" and role == "assistant":
            answers.append(str(block["text"]))
        elif kind == "tool_use":
            arguments = block.get("input")
            calls[str(block.get("id"))] = Call(str(block.get("name")), arguments if isinstance(arguments, Mapping) else {})
            if steps:
                steps[-1][1].append(str(block.get("name")))
        elif kind == "tool_result" and block.get("is_error") and (call := calls.get(str(block.get("tool_use_id")))):
            words = _words(block.get("content"))
            if not words.startswith(_NO_ERRORS):
                calls[str(block.get("tool_use_id"))] = call._replace(failed=words)
    return Dialogue(tuple(user), tuple(answers), tuple(calls.values()), tuple(_step(message, tools) for message, tools in steps))


def _is_summary(message: str) -> bool:
    framed = prompt_sections(compose.__file__, "framed")
    openings = (framed["opening"], framed["opening partial"], prompt_sections(__file__, "summary")["opening"])
    return message.startswith(openings)


def _blocks(messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content or ""}]:
            yield str(message.get("role")), block


def _words(content: object) -> str:
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return _line(str(content))


def _step(message: str, tools: list[str]) -> str:
    counted = ", ".join(f"{name} x{tools.count(name)}" for name in dict.fromkeys(tools))
    return _line(message)[: LINE // 2] + (f" ({counted})" if counted else "")


def _line(words: str) -> str:
    """Return the text as one line. It cannot become a heading or open a code block, since it never starts a line of the notes."""
    return shorten(" ".join(words.split()), LINE)


def updated(notes: Notes, dialogue: Dialogue, letters: int) -> Notes:
    return notes._replace(
        sections=tuple(
            section._replace(body=_WRITERS[key](section.body, dialogue, letters))
            if (key := section.head.name.casefold()) in _WRITERS
            else section
            for section in notes.sections
        )
    )


def _title(body: str, dialogue: Dialogue, letters: int) -> str:
    first = dialogue.user[0].replace("#", " ").strip() if dialogue.user else ""
    return body or _short(_SENTENCE.split(first, maxsplit=1)[0].split())[: min(LINE, letters)].strip("`~ ")


def _short(words: list[str]) -> str:
    """Return a sentence of at most `TITLE_WORDS` words, cut where a clause ends if possible."""
    if len(words) <= TITLE_WORDS:
        return " ".join(words)
    ends = [count for count in range(TITLE_LEAST, TITLE_WORDS + 1) if _CLAUSE.search(words[count - 1])]
    if ends:
        return " ".join(words[: ends[-1]]).rstrip(",;:-–— ")
    return " ".join(words[:TITLE_WORDS]) + " …"


def _state(body: str, dialogue: Dialogue, letters: int) -> str:
    rows = [f"- Last request: {_line(dialogue.user[-1])}"] if dialogue.user else []
    rows += [f"- Last answer: {_line(dialogue.answers[-1])}"] if dialogue.answers else []
    rows += [f"- {_line(todo)}" for todo in _todos(dialogue.calls)]
    return _fitting(rows, letters) or body


def _todos(calls: Iterable[Call]) -> Iterator[str]:
    written = [call.input.get("todos") for call in calls if call.name == "TodoWrite"]
    for todo in written[-1] if written and isinstance(written[-1], list) else ():
        if isinstance(todo, Mapping) and todo.get("status") != "completed":
            yield f"To do ({todo.get('status') or 'pending'}): {todo.get('content')}"


def _added(
    rows: Callable[[Dialogue], Iterable[str]],
    *,
    first: bool = False,
    join: Callable[[list[str], Iterable[str]], list[str]] | None = None,
) -> Callable[[str, Dialogue, int], str]:
    """Return a writer that appends the rows not yet in the section. With `first`, the oldest line is never dropped."""

    def write(body: str, dialogue: Dialogue, letters: int) -> str:
        new = dict.fromkeys(f"- {row}" for row in rows(dialogue) if row)
        if says_left_out(body.split("\n", 1)[0]):
            return "\n".join([body, *_after(body.split("\n"), list(new))])
        old = body.split("\n") if body else []
        combined = join(old, new) if join is not None else [*old, *(row for row in new if row not in old)]
        newest = _fitting(combined[1:], letters - len(combined[0])) if first and combined else ""
        return f"{combined[0]}\n{newest}" if newest else _fitting(combined, letters)

    return write


def _after(visible: list[str], rows: list[str]) -> list[str]:
    """Return the rows after the last one that is shown. Earlier rows are already in the notes."""
    last = max((index for index, row in enumerate(rows) if row in visible), default=-1)
    return [row for row in rows[last + 1 :] if row not in visible]


def _fitting(rows: list[str], letters: int) -> str:
    """Return the newest rows that fit, in order."""
    room, chosen = letters, list[str]()
    for row in reversed(rows):
        room -= len(row) + 1
        if room < 0 and chosen:
            # Half a code block would turn the headings below it into code.
            chosen = [line for line in chosen if line.startswith("- ")]
            break
        chosen.append(row[:letters])
    return "\n".join(reversed(chosen))


def _files(dialogue: Dialogue) -> Iterator[str]:
    tools_by_file: dict[str, dict[str, None]] = {}
    for call in dialogue.calls:
        path = next((call.input[name] for name in _PATHS if isinstance(call.input.get(name), str)), None)
        if path:
            tools_by_file.setdefault(_line(path), {})[call.name] = None
    return (f"{path}: {', '.join(names)}" for path, names in tools_by_file.items())


_FILE_ROW = re.compile(r"- (?P<path>\S.*): (?P<tools>[\w-]+(?:, [\w-]+)*)")


def _joined_files(old: list[str], new: Iterable[str]) -> list[str]:
    """Return one row for each file, with the tools of all its rows. Files used again move to the end. Other rows stay."""
    rows: dict[str, dict[str, None]] = {}
    for row in (*old, *new):
        match = _FILE_ROW.fullmatch(row)
        key = _same_file(rows, posixpath.normpath(match["path"])) if match else row
        tools = rows.pop(key, {})
        rows[key] = tools | dict.fromkeys(match["tools"].split(", ") if match else ())
    return [f"- {path}: {', '.join(tools)}" if tools else path for path, tools in rows.items()]


def _same_file(rows: Iterable[str], path: str) -> str:
    """Return the row's path for this file, which another call may have named relative to a directory."""
    return next((row for row in rows if row == path or row.endswith(f"/{path}") or path.endswith(f"/{row}")), path)


def _commands(dialogue: Dialogue) -> Iterator[str]:
    return (f"`{_line(str(call.input['command']))}`" for call in dialogue.calls if isinstance(call.input.get("command"), str))


def _errors(dialogue: Dialogue) -> Iterator[str]:
    for call in dialogue.calls:
        if call.failed:
            what = next((str(call.input[name]) for name in ("command", *_PATHS) if call.input.get(name)), "")
            yield f"{call.name} {_line(what)[: LINE // 3]} failed: {call.failed}"


_WRITERS: dict[str, Callable[[str, Dialogue, int], str]] = {
    "session title": _title,
    "current state": _state,
    "task specification": _added(lambda dialogue: (_line(said) for said in dialogue.user), first=True),
    "files and functions": _added(_files, join=_joined_files),
    "workflow": _added(_commands),
    "errors & corrections": _added(_errors),
    "worklog": _added(lambda dialogue: dialogue.steps),
}

"""Edit and Write: replace a text in a file, and create or replace a whole file.

`plan_edit`, a pure function, finds the text of an Edit, and explains a missing or ambiguous match. `disk.user_files` writes the whole file
or nothing. Invariants: an existing file was read in this conversation and has not changed since, neither before nor during the write. Mode,
encoding, byte order mark and line ends stay (unless the text of a Write brings its own line ends), and an Edit keeps everything outside the
matches byte for byte. A new file is UTF-8 and exactly the given text; missing directories are created. A file with a keeper is written by
the keeper.

Facts of Edit: path, bytes (new size), replacements, line (of the first), added and removed (lines). Facts of Write: path, bytes, lines,
created; for a file with a keeper: path, bytes, kept."""

from __future__ import annotations

import re
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import NamedTuple

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from ..core.shown_results import find_shown, unescape, unescape_lines
from ..disk.paths.user_paths import missing, resolve
from ..disk.user_files import FileContent, read_whole, replace
from ..language.wording import counted
from .file_kinds import HEAD_BYTES, TextForm, TextKind, decode, detect_kind, encode, split_lines, with_line_ends
from .read_state import MAX_DIGESTED, ReadRange, digest
from .tool import Builtin, Context, FileChange, ToolOutput, failure, offer_to_keeper

# Larger than any text written by hand; a text is held about four times while it is edited.
MAX_EDITED = 16 << 20
# The excerpt shows the change and a few lines around it.
_AROUND = 3
_MOST_SHOWN = 40
# Longer lines are cut before they are shown or compared with the model's text.
_MOST_CHARACTERS = 300

EDIT_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "Absolute path of the file"},
        "old_string": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as in the file"},
        "new_string": {"type": "string", "description": "The replacement text"},
        "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)"},
    },
    "required": ["file_path", "old_string", "new_string"],
}


def edit_tool() -> Builtin:
    return Builtin(name="Edit", description=prompt_text(__file__, "edit"), schema=EDIT_SCHEMA, read_only=False, act=_edit)


def _edit(arguments: Wire, context: Context) -> ToolOutput:
    path = resolve(arguments["file_path"], context.cwd)
    content = read_whole(path, MAX_EDITED)
    if content is None:
        return failure(missing(path, context.cwd), path=str(path))
    if problem := context.reads.problem(path, content.data):
        return failure(problem, path=str(path))
    before, form = decode(content.data, str(path))
    everywhere = arguments.get("replace_all", False)
    planned = plan_edit(before, arguments["old_string"], arguments["new_string"], everywhere=everywhere, line_end=form.line_end)
    if isinstance(planned, EditRefusal):
        return failure(f"{path}: {planned.sentence}", path=str(path))
    data = encode(form, planned.text)
    if (done := offer_to_keeper(FileChange(path, data, content.data), context)) is not None:
        return done
    replace(path, data, expect=content.stamp, roots=context.roots, target=context.target)
    # The model knows the new content as well as it knew the old one.
    seen = context.reads.get(path) or ReadRange(b"")
    context.reads.note(path, ReadRange(digest(data), seen.offset, seen.limit))
    return ToolOutput(_report(path, planned), facts=_facts(path, data, before, planned))


def _facts(path: Path, data: bytes, before: str, change: EditPlan) -> Wire:
    old, new = before.count("\n"), change.text.count("\n")
    return {
        "path": str(path),
        "bytes": len(data),
        "replacements": len(change.starts),
        "line": line_number(change.text, change.starts[0]),
        "added": max(0, new - old),
        "removed": max(0, old - new),
    }


def _report(path: Path, change: EditPlan) -> str:
    count = len(change.starts)
    times = "" if count == 1 else f" in {count:,} places; the first"
    start = change.starts[0]
    first = line_number(change.text, start)
    last = line_number(change.text, start + max(0, change.length - 1))
    return f"Changed {path}{times}:\n{excerpt(change.text, first, last)}"


def excerpt(text: str, first: int, last: int) -> str:
    """Show the lines `first` to `last` and a few around them, numbered as Read does, up to a limit."""
    lines = split_lines(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    if not lines:
        return "[The file is now empty.]"
    low, high = max(1, first - _AROUND), min(len(lines), last + _AROUND)
    shown = [f"{number}\t{lines[number - 1][:_MOST_CHARACTERS]}" for number in range(low, high + 1)]
    if len(shown) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        shown = [*shown[:half], f"[{counted(len(shown) - _MOST_SHOWN, 'more line')}]", *shown[-half:]]
    return "\n".join(shown)


# The number of line numbers in a message; a text with more matches needs more context, not a longer list.
_MOST_PLACES = 10
# The number of lines searched for a similar one: beyond that the hint takes longer than a Read.
_MOST_LINES = 5_000
_NUMBERED = re.compile(r"^ *\d+\t")


class EditPlan(NamedTuple):
    text: str  # the new content
    starts: tuple[int, ...]  # where each replacement begins in it
    length: int  # of each replacement


class EditRefusal(NamedTuple):
    sentence: str


def plan_edit(text: str, old: str, new: str, *, everywhere: bool, line_end: str) -> EditPlan | EditRefusal:
    spans = _find(text, old)
    if not spans and (shown := find_shown(text, with_line_ends(old, line_end))):
        # Read showed a tag in this text escaped; the model's text repeats what it saw.
        spans, new = list(shown), unescape(new)
    if not spans:
        return EditRefusal(_not_found(text, old))
    if len(spans) > 1 and not everywhere:
        return EditRefusal(_too_many(text, spans))
    put = with_line_ends(new, line_end)
    if all(text[start:end] == put for start, end in spans):
        return EditRefusal("old_string and new_string are the same, so nothing would change.")
    return _replace(text, spans, put)


def _find(text: str, old: str) -> list[tuple[int, int]]:
    """Return the matches from left to right, without overlaps; a line end in `old` matches either kind."""
    wanted = old.replace("\r\n", "\n")
    if "\r\n" in text and "\n" in wanted:
        pattern = re.compile(r"\r?\n".join(map(re.escape, wanted.split("\n"))))
        return [found.span() for found in pattern.finditer(text)]
    spans, start = list[tuple[int, int]](), text.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def _replace(text: str, spans: list[tuple[int, int]], put: str) -> EditPlan:
    parts, starts, done, length = list[str](), list[int](), 0, 0
    for start, end in spans:
        parts += [text[done:start], put]
        starts.append(length + start - done)
        length += start - done + len(put)
        done = end
    return EditPlan("".join([*parts, text[done:]]), tuple(starts), len(put))


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _too_many(text: str, spans: list[tuple[int, int]]) -> str:
    lines = [str(line_number(text, start)) for start, _ in spans[:_MOST_PLACES]]
    places = ", ".join(lines) + (", …" if len(spans) > _MOST_PLACES else "")
    return (
        f"old_string appears {len(spans):,} times (lines {places}). Add surrounding lines to make it unique, or set replace_all."
    )


def _not_found(text: str, old: str) -> str:
    lines = split_lines(text)
    wanted = [line for line in split_lines(old) if line.strip()]
    if not wanted:
        return "old_string was not found in the file. Read the file and copy the text exactly."
    if all(_NUMBERED.match(line) for line in wanted):
        return "old_string was not found in the file. It seems to begin with line numbers: leave out the number and tab that Read adds."
    bare = wanted[0].strip()
    number = next((number for number, line in enumerate(lines, 1) if line.strip() == bare), None)
    if number is not None:
        return _differs(lines, number, wanted)
    short = [line.strip()[:_MOST_CHARACTERS] for line in lines[:_MOST_LINES]]
    close = get_close_matches(bare[:_MOST_CHARACTERS], short, n=1, cutoff=0.6)
    if not close:
        return "old_string was not found in the file, nor anything similar. Read the file and copy the text exactly."
    return f"old_string was not found in the file. The most similar line is {short.index(close[0]) + 1:,}: {close[0]}"


def _differs(lines: list[str], number: int, wanted: list[str]) -> str:
    """Explain a near miss: the first line matches except for white space, or a later line differs."""
    if lines[number - 1] != wanted[0]:
        return (
            f"old_string was not found in the file. Line {number:,} differs only in white space: "
            "copy the line exactly, including tabs and spaces."
        )
    following = [line for line in lines[number - 1 :] if line.strip()]
    pairs = zip(following, wanted, strict=False)
    first = next(((there, here) for there, here in pairs if there != here), None)
    if first is None:
        return f"old_string was not found in the file. It begins like line {number:,}, but blank lines or the end differ."
    there, here = (line[:_MOST_CHARACTERS] for line in first)
    like = "has a similar line" if SequenceMatcher(None, there, here).ratio() > 0.6 else "continues with"
    return f"old_string was not found in the file. It begins like line {number:,}, but then the file {like}: {there.strip()}"


WRITE_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "Absolute path of the file"},
        "content": {"type": "string", "description": "The complete new content"},
    },
    "required": ["file_path", "content"],
}


def write_tool() -> Builtin:
    return Builtin(name="Write", description=prompt_text(__file__, "write"), schema=WRITE_SCHEMA, read_only=False, act=_write)


def _write(arguments: Wire, context: Context) -> ToolOutput:
    path = resolve(arguments["file_path"], context.cwd)
    there = read_whole(path, MAX_DIGESTED)
    problem = context.reads.problem(path, there.data) if there is not None else None
    text = arguments["content"]
    data = _encoded(text, there, path)
    if (done := offer_to_keeper(FileChange(path, data, there.data if there else None, problem), context)) is not None:
        return done
    if problem is not None:
        return failure(problem, path=str(path))
    replace(path, data, expect=there.stamp if there else None, roots=context.roots, target=context.target)
    context.reads.note(path, ReadRange(digest(data)))
    lines = len(split_lines(text))
    word = "Replaced" if there else "Created"
    facts: Wire = {"path": str(path), "bytes": len(data), "lines": lines, "created": there is None}
    return ToolOutput(f"{word} {path}: {counted(lines, 'line')}, {counted(len(data), 'byte')}.", facts=facts)


def _encoded(text: str, there: FileContent | None, path: Path) -> bytes:
    if there is None or not there.data or not isinstance(detect_kind(there.data[:HEAD_BYTES]), TextKind):
        return encode(TextForm(), text)
    before, form = decode(there.data, str(path))
    text = unescape_lines(text, before)
    return encode(form, text if "\r\n" in text else with_line_ends(text, form.line_end))

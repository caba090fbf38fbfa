"""Edit and Write: replace a text in a file, and create or replace a whole file.

`plan_edit`, a pure function, finds the text of an Edit, and explains a missing or ambiguous match. `disk.user_files` writes the whole file
or nothing. Invariants: an existing file was read in this conversation and has not changed since, neither before nor during the write. Mode,
encoding, byte order mark and line ends stay (unless the text of a Write brings its own line ends), and an Edit keeps everything outside the
matches byte for byte. A new file is UTF-8 and exactly the given text; missing directories are created. A file with a keeper is written by
the keeper.

Facts of Edit: path, bytes (new size), replacements, line (of the first), added and removed (lines). Facts of Write: path, bytes, lines,
created. For a file with a keeper both have path, bytes and the facts of the keeper. Those of memory are `memory` ("saved", "updated",
"removed", "unchanged" or "waiting") or `bullets` (how many were added to a daily log).
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from ..core.shown_results import find_shown, unescape, unescape_lines
from ..disk.user_files import read_whole, replace
from ..language.wording import counted
from .file_kinds import HEAD_BYTES, TextForm, TextKind, decode, detect_kind, encode, split_lines, with_line_ends
from .paths import missing, resolve
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
    change = plan_edit(before, arguments["old_string"], arguments["new_string"], everywhere=everywhere, line_end=form.line_end)
    if isinstance(change, EditRefusal):
        return failure(f"{path}: {change.sentence}", path=str(path))
    data = encode(form, change.text)
    if (answer := offer_to_keeper(FileChange(path, data, content.data), context)) is not None:
        return answer
    replace(path, data, expect=content.stamp, roots=context.roots, target=context.target)
    # The model knows the new content as well as it knew the old one.
    earlier = context.reads.get(path) or ReadRange(b"")
    context.reads.note(path, ReadRange(digest(data), earlier.offset, earlier.limit))
    count, start, text = len(change.starts), change.starts[0], change.text
    first, last = (line_number(text, place) for place in (start, start + max(0, change.length - 1)))
    more = text.count("\n") - before.count("\n")
    facts: Wire = {"path": str(path), "bytes": len(data), "replacements": count, "line": first}
    facts |= {"added": max(0, more), "removed": max(0, -more)}
    times = "" if count == 1 else f" in {count:,} places; the first"
    return ToolOutput(f"Changed {path}{times}:\n{excerpt(text, first, last)}", facts=facts)


def excerpt(text: str, first: int, last: int) -> str:
    """Show the lines `first` to `last` and a few around them, numbered as Read does, up to a limit."""
    lines = split_lines(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    if not lines:
        return "[The file is now empty.]"
    low, high = max(1, first - _AROUND), min(len(lines), last + _AROUND)
    rows = [f"{number}\t{lines[number - 1][:_MOST_CHARACTERS]}" for number in range(low, high + 1)]
    if len(rows) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        rows = [*rows[:half], f"[{counted(len(rows) - _MOST_SHOWN, 'more line')}]", *rows[-half:]]
    return "\n".join(rows)


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
    if not spans and (escaped := find_shown(text, with_line_ends(old, line_end))):
        # Read showed a tag in this text escaped; the model's text repeats what it saw.
        spans, new = list(escaped), unescape(new)
    if not spans:
        return EditRefusal(f"old_string was not found in the file{_hint(text, old)}")
    if len(spans) > 1 and not everywhere:
        lines = [str(line_number(text, start)) for start, _ in spans[:_MOST_PLACES]]
        places = ", ".join(lines) + (", …" if len(spans) > _MOST_PLACES else "")
        advice = "Add surrounding lines to make it unique, or set replace_all."
        return EditRefusal(f"old_string appears {len(spans):,} times (lines {places}). {advice}")
    put = with_line_ends(new, line_end)
    if all(text[start:end] == put for start, end in spans):
        return EditRefusal("old_string and new_string are the same, so nothing would change.")
    parts, starts, copied, length = list[str](), list[int](), 0, 0
    for start, end in spans:
        parts += [text[copied:start], put]
        starts.append(length + start - copied)
        length += start - copied + len(put)
        copied = end
    return EditPlan("".join([*parts, text[copied:]]), tuple(starts), len(put))


def _find(text: str, old: str) -> list[tuple[int, int]]:
    """Return the matches from left to right, without overlaps; a line end in `old` matches either kind."""
    wanted = old.replace("\r\n", "\n")
    if "\r\n" in text and "\n" in wanted:
        pattern = re.compile(r"\r?\n".join(map(re.escape, wanted.split("\n"))))
        return [match.span() for match in pattern.finditer(text)]
    spans, start = list[tuple[int, int]](), text.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _hint(text: str, old: str) -> str:
    """Return the end of the sentence that says that `old` is not in the text: what may be wrong with it."""
    lines = split_lines(text)
    wanted = [line for line in split_lines(old) if line.strip()]
    if not wanted:
        return ". Read the file and copy the text exactly."
    if all(_NUMBERED.match(line) for line in wanted):
        return ". It seems to begin with line numbers: leave out the number and tab that Read adds."
    bare = wanted[0].strip()
    number = next((number for number, line in enumerate(lines, 1) if line.strip() == bare), None)
    if number is None:
        starts = [line.strip()[:_MOST_CHARACTERS] for line in lines[:_MOST_LINES]]
        close = get_close_matches(bare[:_MOST_CHARACTERS], starts, n=1, cutoff=0.6)
        if not close:
            return ", nor anything similar. Read the file and copy the text exactly."
        return f". The most similar line is {starts.index(close[0]) + 1:,}: {close[0]}"
    if lines[number - 1] != wanted[0]:
        return f". Line {number:,} differs only in white space: copy the line exactly, including tabs and spaces."
    # The first line matches.
    pairs = zip((line for line in lines[number - 1 :] if line.strip()), wanted, strict=False)
    different = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if different is None:
        return f". It begins like line {number:,}, but blank lines or the end differ."
    in_file, in_old = (line[:_MOST_CHARACTERS] for line in different)
    like = "has a similar line" if SequenceMatcher(None, in_file, in_old).ratio() > 0.6 else "continues with"
    return f". It begins like line {number:,}, but then the file {like}: {in_file.strip()}"


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
    path, text = resolve(arguments["file_path"], context.cwd), arguments["content"]
    content = read_whole(path, MAX_DIGESTED)
    before = content.data if content is not None else None
    problem = context.reads.problem(path, before) if before is not None else None
    lines, form = text, TextForm()
    if before and isinstance(detect_kind(before[:HEAD_BYTES]), TextKind):
        old, form = decode(before, str(path))
        lines = unescape_lines(text, old)
        lines = lines if "\r\n" in lines else with_line_ends(lines, form.line_end)
    data = encode(form, lines)
    if (answer := offer_to_keeper(FileChange(path, data, before, problem), context)) is not None:
        return answer
    if problem is not None:
        return failure(problem, path=str(path))
    replace(path, data, expect=content.stamp if content else None, roots=context.roots, target=context.target)
    context.reads.note(path, ReadRange(digest(data)))
    count, verb = len(split_lines(text)), "Created" if content is None else "Replaced"
    facts: Wire = {"path": str(path), "bytes": len(data), "lines": count, "created": content is None}
    return ToolOutput(f"{verb} {path}: {counted(count, 'line')}, {counted(len(data), 'byte')}.", facts=facts)

"""Edit: one text in a file replaced by another.

Decides in `edit_plan`; does by `disk.user_files`, whole or not at all. Invariants (X8): the file was read in this conversation and
has not changed since, neither before nor while it is being written; mode, encoding, byte order mark and line ends stay. A file that
has a keeper is written by the keeper.

Facts: path, bytes (new size), replacements, line (of the first), added and removed (lines).
"""

from __future__ import annotations

from pathlib import Path

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from ..disk.paths.user_paths import missing, resolve
from ..disk.user_files import read_whole, replace
from .edit_plan import EditPlan, EditRefusal, line_number, plan_edit
from .read_state import ReadRange, digest
from .text_form import decode, encode, split_lines
from .tool import Builtin, Context, FileChange, ToolOutput, failure, offer_to_keeper

# No text a person wrote is larger; a text is held about four times while it is edited.
MAX_EDITED = 16 << 20
# The excerpt shows what changed and a little around it.
_AROUND = 3
_MOST_SHOWN = 40
_MOST_CHARACTERS = 300

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "The file, by its absolute path"},
        "old_string": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file"},
        "new_string": {"type": "string", "description": "The text to put there"},
        "replace_all": {"type": "boolean", "description": "Replace every place where it stands (default false)"},
    },
    "required": ["file_path", "old_string", "new_string"],
}


def tool() -> Builtin:
    return Builtin(name="Edit", description=prompt_text(__file__, "edit"), schema=SCHEMA, read_only=False, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
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
    replace(path, data, expect=content.version, roots=context.roots, target=context.target)
    # The model knows the new content as well as it knew the old one.
    seen = context.reads.get(path) or ReadRange(b"")
    context.reads.note(path, ReadRange(digest(data), seen.offset, seen.limit))
    return ToolOutput(_told(path, planned), facts=_facts(path, data, before, planned))


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


def _told(path: Path, change: EditPlan) -> str:
    count = len(change.starts)
    times = "" if count == 1 else f" in {count:,} places; the first"
    start = change.starts[0]
    first = line_number(change.text, start)
    last = line_number(change.text, start + max(0, change.length - 1))
    return f"Changed {path}{times}:\n{excerpt(change.text, first, last)}"


def excerpt(text: str, first: int, last: int) -> str:
    """The lines `first` to `last` with those around them, numbered as Read does it, and never many."""
    lines = split_lines(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    if not lines:
        return "[The file is empty now.]"
    low, high = max(1, first - _AROUND), min(len(lines), last + _AROUND)
    shown = [f"{number}\t{lines[number - 1][:_MOST_CHARACTERS]}" for number in range(low, high + 1)]
    if len(shown) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        shown = [*shown[:half], f"[{len(shown) - _MOST_SHOWN:,} more lines]", *shown[-half:]]
    return "\n".join(shown)

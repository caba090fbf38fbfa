"""Write: create or replace a whole file.

`disk.user_files` writes the whole file or nothing. Invariants: an existing file was read in this conversation and has not
changed since. It keeps its mode, and also its encoding, byte order mark and line ends unless the text brings its own. A new
file is UTF-8 and exactly the given text; missing directories are created. A file with a keeper is written by the keeper.

Facts: path, bytes, lines, created; for a file with a keeper: path, bytes, kept.
"""

from __future__ import annotations

from pathlib import Path

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from ..core.shown_results import unescape_lines
from ..disk.user_files import FileContent, read_whole, replace
from ..language.wording import counted
from .file_kinds import HEAD_BYTES, TextForm, TextKind, decode, detect_kind, encode, split_lines, with_line_ends
from .paths import resolve
from .read_state import MAX_DIGESTED, ReadRange, digest
from .tool import Builtin, Context, FileChange, ToolOutput, failure, offer_to_keeper

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "Absolute path of the file"},
        "content": {"type": "string", "description": "The complete new content"},
    },
    "required": ["file_path", "content"],
}


def tool() -> Builtin:
    return Builtin(name="Write", description=prompt_text(__file__, "write"), schema=SCHEMA, read_only=False, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
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

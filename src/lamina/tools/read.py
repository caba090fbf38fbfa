"""Read: show a page of a text file with line numbers, or an image.

The file's first bytes decide its kind. Directories, pipes and devices are refused at once, binary data with the name of its
kind. Invariants: memory is bounded whatever the size of the file. A page has at most 2,000 lines and 49,000 bytes and tells
how to continue, so that it always stays in the conversation. In a file that holds a result too large to show, long lines are
folded, so that pages reach all of it. The ReadState records what was shown, so that Edit and Write know it.

Facts: path, bytes (of the file), lines (shown), first, total (lines, if the file was read to its end), more; media_type for
an image.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import assert_never

from ..core.blocks import DIGEST_BYTES, Wire
from ..core.prompt_files import prompt_text
from ..disk.faults import AbsentIsFine, reporting
from ..disk.files import read_head
from ..disk.regular_file import open_regular
from ..language.wording import counted
from .file_kinds import HEAD_BYTES, BinaryKind, ImageKind, TextKind, detect_kind
from .pages import LINE_CHARACTERS, FoldedLines, TextPage, as_utf8, chunks, read_page
from .paths import missing, resolve
from .read_state import MAX_DIGESTED, ReadRange, digest
from .tool import MAX_RESULT, STOPPED, Builtin, Context, ToolOutput, failure

# The page size that users of other agents know, if no limit is given.
PAGE_LINES = 2_000
# Room in the result for the notes after a page.
NOTE_BYTES = 1_000
# The largest page, with or without a limit: all of it stays in the conversation.
PAGE_BYTES = MAX_RESULT - NOTE_BYTES
# The API accepts images of at most 5 MB in base64, which turns three bytes into four.
IMAGE_BYTES = 5_000_000 * 3 // 4

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "Absolute path of the file"},
        "offset": {"type": "integer", "minimum": 0, "description": "The number of the first line to read, from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "Number of lines to read"},
    },
    "required": ["file_path"],
}


def tool() -> Builtin:
    return Builtin(name="Read", description=prompt_text(__file__, "read"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    path = resolve(arguments["file_path"], context.cwd)
    if os.path.isdir(path):
        return failure(f"{path} is a directory. List its files with Glob, then read one of them.", path=str(path))
    with AbsentIsFine(), reporting(path), open_regular(path) as file:
        fd = file.fileno()
        head = read_head(fd, HEAD_BYTES)
        os.lseek(fd, 0, os.SEEK_SET)
        match detect_kind(head):
            case TextKind() as text:
                return _text(path, fd, text, arguments, context)
            case ImageKind(media_type):
                return _image(path, fd, media_type, context)
            case BinaryKind(kind):
                problem = f"{path} is {kind} and can't be shown as text. Use a command that understands it."
                return failure(problem, path=str(path), bytes=os.fstat(fd).st_size)
            case other:
                assert_never(other)
    return failure(missing(path, context.cwd), path=str(path))


def _text(path: Path, fd: int, text: TextKind, arguments: Wire, context: Context) -> ToolOutput:
    size = os.fstat(fd).st_size
    small = size <= MAX_DIGESTED
    first = max(1, arguments.get("offset", 1))
    hashed = blake2b(digest_size=DIGEST_BYTES)
    parts = chunks(fd, context.abort, most=MAX_DIGESTED if small else None)
    lines = as_utf8(_hash_all(parts, hashed.update, bom=len(text.bom)), text.codec)
    # A result that was too large to show may be one line of any length.
    folded = FoldedLines(lines) if context.scratch is not None and path.parent == context.scratch else None
    page = read_page(
        lines if folded is None else folded,
        first=first,
        most_lines=arguments.get("limit", PAGE_LINES),
        most_bytes=PAGE_BYTES,
        to_the_end=small,
    )
    if context.abort.is_set():
        return failure(STOPPED)
    if not page.lines and first > 1:
        problem = f"{path} has {counted(page.total, 'line')}, so line {first:,} does not exist. Use a smaller offset."
        return failure(problem, path=str(path))
    seen = ReadRange(hashed.digest() if small else b"", arguments.get("offset", 0), arguments.get("limit"))
    context.reads.note(path, seen)
    facts: Wire = {"path": str(path), "bytes": size, "lines": len(page.lines), "first": first, "more": page.more}
    if page.ended:
        facts["total"] = page.total
    shown = [f"{number}\t{line}" for number, line in enumerate(page.lines, page.first)]
    notes = _notes(page, size, folded=folded is not None and folded.folds > 0)
    return ToolOutput("\n".join([*shown, *(f"[{note}]" for note in notes)]), facts=facts)


def _notes(page: TextPage, size: int, *, folded: bool) -> Iterator[str]:
    last = page.first + len(page.lines) - 1
    if not page.lines:
        yield "The file is empty."
    elif page.more:
        whole = f"of {page.total:,}" if page.ended else f"of a file of {size:,} bytes"
        lines = f"Lines {page.first:,} to {last:,}" if last > page.first else f"Line {last:,}"
        yield f"{lines} {whole}. Continue with offset={last + 1}."
    if folded:
        yield f"Lines longer than {LINE_CHARACTERS:,} bytes are folded, and each piece counts as a line."
    if page.cut:
        yield f"{counted(page.cut, 'line')} longer than {LINE_CHARACTERS:,} characters cut. Use Grep or a command to see the rest."
    if page.replaced:
        yield "Invalid UTF-8 bytes are shown as \ufffd; Edit leaves them as they are."


def _image(path: Path, fd: int, media_type: str, context: Context) -> ToolOutput:
    data = read_head(fd, IMAGE_BYTES + 1)
    facts: Wire = {"path": str(path), "bytes": os.fstat(fd).st_size, "media_type": media_type}
    if len(data) > IMAGE_BYTES:
        return failure(f"{path} is an image of more than {IMAGE_BYTES:,} bytes. Make a smaller copy and read that.", **facts)
    context.reads.note(path, ReadRange(digest(data), media_type=media_type))
    source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode("ascii")}
    return ToolOutput([{"type": "image", "source": source}], facts=facts)


def _hash_all(parts: Iterable[bytes], update: Callable[[bytes], None], *, bom: int) -> Iterator[bytes]:
    """Pass the chunks on and hash all of them; the byte order mark is hashed but not passed on."""
    for part in parts:
        update(part)
        yield part[bom:]
        bom = 0

"""Safe reading of text files that anyone may have written: the read never blocks, is bounded, and never guesses an encoding.

Invariant: the result is the UTF-8 text of a regular file with `\\n` line ends, or one clause that explains the refusal. The
content decides, not the file suffix. The caller resolves links first; a link that appears at the last component afterwards
is refused.

On Windows, a link that appears in between is followed, and a named pipe may be opened.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec

from ..disk.regular_file import IrregularFile, open_regular

# 25 times the amount of a file that is sent: anything larger is data, not instructions.
MOST_BYTES = 1 << 20

# The file system has no file with a name that is too long.
_ABSENT = {errno.ENOENT, errno.ENAMETOOLONG, errno.EINVAL}
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class FileText(msgspec.Struct, frozen=True):
    text: str
    owner: int  # user id; 0 on Windows


class UnusableFile(msgspec.Struct, frozen=True):
    """The reason a file was refused: the end of a sentence that begins with the file's name."""

    problem: str


def read_text(real: Path, *, most: int = MOST_BYTES) -> FileText | UnusableFile | None:
    """Return the text at a resolved path, or None if nothing exists there."""
    try:
        with open_regular(real, follow=False) as file:
            owner = os.fstat(file.fileno()).st_uid
            data = file.read(most + 1)
    except IrregularFile as fault:
        return UnusableFile("is a directory" if fault.kind == "a directory" else "is not a regular file")
    except OSError as fault:
        return None if fault.errno in _ABSENT else UnusableFile(f"can't be read ({fault.strerror or fault})")
    if len(data) > most:
        return UnusableFile(f"is larger than {most:,} bytes")
    if data.startswith(_WIDE):
        return UnusableFile("is UTF-16 text; save it as UTF-8")
    if b"\0" in data:
        return UnusableFile("is binary, not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        return UnusableFile(f"is not UTF-8 text (byte {fault.start + 1:,})")
    return FileText(text.replace("\r\n", "\n").replace("\r", "\n"), owner)

"""What a person has typed, kept from one chat to the next: `<home>/history`, one JSON text a line, newest last.

Owns that file. Invariants: it stays small; two chats at once lose none of each other's lines; a file that can't be read or written
costs the history and nothing else. A line that begins with a blank is not kept, as in shells.

A crash at any line leaves the old history or the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History as PromptHistory

from ...core.errors import DiskError
from ...disk.files import read, update

FILE_NAME = "history"
# More than anybody goes back by hand.
MOST_LINES = 1_000
# A text pasted in is in the transcript; here it would only be in the way.
LONGEST = 4_000
MOST_BYTES = 8 << 20


class ChatHistory(PromptHistory):
    def __init__(self, home: Path | None) -> None:
        super().__init__()
        self._path = home / FILE_NAME if home is not None else None

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, as the line editor wants it."""
        if self._path is None:
            return []
        try:
            return reversed(read_lines(read(self._path, MOST_BYTES)))
        except DiskError:
            return []

    def store_string(self, string: str) -> None:
        text = string.rstrip()
        if self._path is None or not text or text[0].isspace() or len(text) > LONGEST:
            return
        try:
            update(self._path, lambda old: append_line(old, text), durability="process")
        except DiskError:
            return


def read_lines(content: bytes | None) -> list[str]:
    """The texts of a history file; what is no text is passed over."""
    found: list[str] = []
    for line in (content or b"").split(b"\n"):
        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(text, str):
            found.append(text)
    return found


def append_line(content: bytes | None, text: str) -> bytes:
    """The file with one text more; the same text twice in a row is kept once."""
    kept = read_lines(content)
    if not kept or kept[-1] != text:
        kept.append(text)
    return "".join(f"{json.dumps(one)}\n" for one in kept[-MOST_LINES:]).encode()

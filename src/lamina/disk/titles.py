"""What a list of sessions shows of a transcript, written again near its end (C4).

Titles, tags and the like are lines without an id, which stand where they were written. Programs that list sessions read the end of a
file only, so after a compaction, which puts much behind them, the newest of each kind is repeated. They are read within bounds: the
beginning of the file, and what stands behind the last compaction of ours, where they were repeated the last time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ..core.record_lines import FORMAT
from .jsonl import raw_lines_back

# Kinds that are a title, with the field that holds it.
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
# What else a list may show of a session.
OTHERS = ("tag", "agent-name", "agent-color", "mode", "permission-mode", "pr-link")
# No such line is longer; longer ones are conversation.
LONGEST = 16 << 10
# As much of the beginning as a listing reads.
HEAD_BYTES = 256 << 10
PROMPT_CHARS = 200

_KINDS = tuple(f'"{kind}"'.encode() for kind in (*TITLES, *OTHERS))


def listed_lines(path: Path, *, title: str, prompt: str, leaf: str | None) -> list[bytes]:
    """The lines to write again. `title` is what a list shows now, for a file that holds none; `prompt` the person's last message."""
    newest: dict[str, dict[str, Any]] = {}
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    for line in (*head.split(b"\n"), *reversed(list(_since_ours(path)))):
        if (value := _listed(line)) is not None:
            newest.pop(value["type"], None)
            newest[value["type"]] = value
    if title and not any(kind in TITLES for kind in newest):
        newest["summary"] = {"type": "summary", "summary": title, "leafUuid": leaf}
    if prompt:
        newest["last-prompt"] = {"type": "last-prompt", "lastPrompt": prompt[:PROMPT_CHARS]}
    # Marked as ours: who wrote last is told by the last line.
    ours = {"sessionId": path.stem, "lamina": {"v": FORMAT}}
    return [msgspec.json.encode(value | ours) for value in newest.values()]


def _since_ours(path: Path) -> Iterable[bytes]:
    for _, line in raw_lines_back(path):
        if b'"compact_boundary"' in line and b'"lamina"' in line:
            return
        if len(line) <= LONGEST:
            yield line


def _listed(line: bytes) -> dict[str, Any] | None:
    if len(line) > LONGEST or not any(kind in line for kind in _KINDS):
        return None
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    known = isinstance(value, dict) and "uuid" not in value and value.get("type") in (*TITLES, *OTHERS)
    return value if known else None

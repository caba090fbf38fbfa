"""Search for a literal text: in every message and tool result of the sessions, and in the results that were stored in files.

Reads the files themselves, not the index, so it finds error texts and paths in tool output too. Case is ignored. Memory is bounded
by the longest line; a file without the text costs one pass over its bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import LaminaError
from ..disk.regular_file import IrregularFile, open_regular
from ..disk.transcripts.jsonl import Health, raw_lines, whole_objects
from ..language.text import message
from ..memory.store.secrets import redact
from .catalogue import Tell, new_scan, scan_any
from .scan import Scan, ScannedTurn
from .sessions import SourceSession, format_of

# Characters shown on each side of a match.
AROUND = 80
STORED = "tool-results"
# Stored results larger than this are searched in part.
MOST_STORED = 64 << 20
# Objects inside a line are this deep at most; deeper ones are not read.
DEEPEST = 12
# Fields that name things, and are not what anybody said.
_NAMES = frozenset(
    {"uuid", "parentUuid", "sessionId", "requestId", "cwd", "gitBranch", "version", "timestamp", "id", "signature"}
)


class ExactMatch(NamedTuple):
    session: SourceSession
    turn: int  # for a stored result the turn that names its file
    time: str
    role: str  # user | assistant | call | tool | summary
    text: str


def search_exact(
    term: str, found: Iterable[SourceSession], unread: list[str], *, redacted: bool = False, tell: Tell = lambda done, of: None
) -> Iterator[ExactMatch]:
    """Yield the messages that contain the term, newest session and newest message first. `redacted` removes secrets from them."""

    def shown(text: str) -> str:
        # Before the cut: half of a secret would no longer be recognised.
        return around(redact(text).text if redacted else text, term)

    listed = list(found)
    for at, session in enumerate(listed):
        tell(at, len(listed))
        try:
            if _holds(Path(session.path), term):
                yield from reversed(list(_matches(session, term, shown)))
            yield from _stored(session, term, shown)
        except (LaminaError, OSError) as error:
            unread.append(message(error))


def _needles(term: str) -> tuple[bytes, ...] | None:
    """Return the term as a line of JSON may spell it; None if its case cannot be told from the bytes."""
    if not term.isascii():
        return None
    return (json.dumps(term)[1:-1].lower().encode(),)


def _holds(path: Path, term: str) -> bool:
    needles = _needles(term)
    return needles is None or any(needle in line.lower() for _, line in raw_lines(path, 0, Health()) for needle in needles)


def _matches(session: SourceSession, term: str, shown: Callable[[str], str]) -> Iterator[ExactMatch]:
    wanted, needles, origin = term.casefold(), _needles(term), format_of(Path(session.path))
    scan = new_scan(origin, session.path, parent=session.parent)
    for _, line in raw_lines(session.path, 0, Health()):
        turns: list[ScannedTurn] = []
        scan_any(origin, line, scan, turns)
        if needles is not None and not any(needle in line.lower() for needle in needles):
            continue
        for row in whole_objects(0, line, Health()):
            text = next((text for text in _said(row) if wanted in text.casefold()), None)
            if text is not None:
                time = row.get("timestamp")
                yield ExactMatch(
                    session, max(1, scan.number), time if isinstance(time, str) else "", _role(row, text), shown(text)
                )


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a line that belong to the conversation. Codex repeats its texts as events, and pi adds what it displays as
    details of a result; both are left out."""
    if row.get("type") == "event_msg":
        return
    for name in ("message", "payload", "summary"):
        value = row.get(name)
        if isinstance(value, Mapping) and value.get("role") == "toolResult":
            value = {key: inner for key, inner in value.items() if key != "details"}
        yield from _texts(value, DEEPEST)


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in _NAMES:
                yield from _texts(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:
            yield from _texts(inner, depth - 1)


def _role(row: Mapping[str, Any], text: str) -> str:
    """Return whose text of a line it is: of the user, the assistant, a tool call, a tool's result (`tool`) or a summary."""
    if row.get("isCompactSummary") or row.get("type") in ("compacted", "compaction"):
        return "summary"
    for name in ("message", "payload"):
        inner = row.get(name)
        if isinstance(inner, Mapping) and isinstance(inner.get("role"), str):
            return "tool" if _is_result(inner) else "call" if _is_called(inner, text) else str(inner["role"])
    payload = row.get("payload")
    if not isinstance(payload, Mapping):
        return str(row.get("type"))
    return "call" if str(payload.get("type")).endswith("_call") else "tool"


def _is_called(message: Mapping[str, Any], text: str) -> bool:
    """Return whether only the calls of a message have this text: their input was not said to anybody."""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    return any(_is_call(block) for block in blocks) and not any(
        text in _texts(block, DEEPEST) for block in blocks if not _is_call(block)
    )


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("tool_use", "toolCall")


def _is_result(message: Mapping[str, Any]) -> bool:
    """Return whether a message holds only tool results, which some formats record under the role of the user."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    results = [isinstance(block, Mapping) and block.get("type") == "tool_result" for block in blocks]
    return message["role"] == "toolResult" or (bool(results) and all(results))


def _stored(session: SourceSession, term: str, shown: Callable[[str], str]) -> Iterator[ExactMatch]:
    directory = Path(session.path).with_suffix("") / STORED
    if not directory.is_dir() or directory.is_symlink():
        return
    for path in sorted(directory.iterdir()):
        try:
            with open_regular(path, follow=False) as file:
                text = file.read(MOST_STORED).decode("utf-8", "replace")
                time = os.fstat(file.fileno()).st_mtime
        except IrregularFile:
            continue
        if term.casefold() in text.casefold():
            when = datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
            yield ExactMatch(session, _turn_naming(session, path.name), when, f"stored result {path.name}", shown(text))


def _turn_naming(session: SourceSession, name: str) -> int:
    """Return the turn whose records name a stored result; the first one if none does."""
    scan, origin, wanted = Scan(parent=session.parent), format_of(Path(session.path)), name.encode()
    for _, line in raw_lines(session.path, 0, Health()):
        scan_any(origin, line, scan, [])
        if wanted in line:
            return max(1, scan.number)
    return 1


def around(text: str, term: str) -> str:
    """Return the part of a text around the term, on one line."""
    at = max(0, text.casefold().find(term.casefold()))
    start, end = max(0, at - AROUND), at + len(term) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"

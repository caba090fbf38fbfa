"""The state of a session's agents, for other processes: `<session>/agents.json`, replaced as a whole.

Owns that file. Invariants: it lists the newest MOST agents at most; a reader sees one state or the next. A crash leaves the last
state, which counts only while the session that wrote it is alive. Nothing is synced, because no session survives a power loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ..files import read, replace

FILE = "agents.json"
MOST = 50
MOST_BYTES = 256 << 10


def write_states(directory: Path, states: Sequence[dict[str, Any]]) -> None:
    replace(directory / FILE, msgspec.json.encode({"agents": list(states[-MOST:])}), durability="process")


def read_states(directory: Path) -> list[dict[str, Any]]:
    """Return the states; an empty list if the file is missing or unreadable."""
    try:
        document = msgspec.json.decode(read(directory / FILE, MOST_BYTES) or b"{}", type=dict[str, list[dict[str, Any]]])
    except (DiskError, *UNDECODABLE):
        return []
    return document.get("agents", [])[:MOST]

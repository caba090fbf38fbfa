"""How the background agents of a session stand, for other processes: `<session>/agents.json`, replaced as a whole.

Owns that file. Invariants: at most MOST agents, the newest; whoever reads sees one state or the next. A crash leaves the last one, which
counts only while the session that wrote it lives. Nothing is synced: after a loss of power no such session lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DiskError
from ..files import read, replace
from ..transcripts.jsonl import UNDECODABLE

FILE = "agents.json"
MOST = 50
MOST_BYTES = 256 << 10


def write_states(directory: Path, states: Sequence[dict[str, Any]]) -> None:
    replace(directory / FILE, msgspec.json.encode({"agents": list(states[-MOST:])}), durability="process")


def read_states(directory: Path) -> list[dict[str, Any]]:
    """Return the states; none where there is no file, or none that can be read."""
    try:
        found = msgspec.json.decode(read(directory / FILE, MOST_BYTES) or b"{}", type=dict[str, list[dict[str, Any]]])
    except (DiskError, *UNDECODABLE):
        return []
    return found.get("agents", [])[:MOST]

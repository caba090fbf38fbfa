"""Proposals that the user decided, kept so that a decision can be taken back later.

It owns `.inbox/decided/*.json` in the memory directory. Invariants: at most MOST_DECIDED are kept, the oldest go first. Each was redacted
when it was proposed. Forgetting a subject finds them like the proposals that wait. A crash leaves a decision that is kept or not: the
memory and the proposals that wait are not touched here.
"""

from __future__ import annotations

import re

import msgspec

from ...core.decoding import UNDECODABLE
from ...disk.trees.rootdir import RootDir
from ...language.text import encodable
from .draft import MOST_BYTES
from .modes import Proposal
from .scopes import INBOX

DECIDED = f"{INBOX}/decided"
MOST_DECIDED = 50
_FILE = re.compile(r"[0-9a-f]{12}\.json")
# A proposal contains a memory and its diff, at worst both versions in full.
_BYTES = 8 * MOST_BYTES + 4_096


class Decision(msgspec.Struct, frozen=True):
    """A decided proposal. `file` is the memory it changed, `after` the digest that it left there. `accepted` is false if it was refused
    or withdrawn, `edited` true if the user accepted another text."""

    proposal: Proposal
    accepted: bool
    file: str
    after: str
    time: float
    edited: bool = False


def keep_decision(root: RootDir, decision: Decision) -> None:
    root.replace(_path(decision.proposal.id), msgspec.json.encode(decision, enc_hook=encodable), durability="process")
    for old in read_decisions(root)[MOST_DECIDED:]:
        drop_decision(root, old.proposal.id)


def read_decisions(root: RootDir) -> list[Decision]:
    """Return the decisions that are kept, newest first; files that hold none are skipped."""
    names = [entry.name for entry in root.listdir(DECIDED) if not entry.is_dir and _FILE.fullmatch(entry.name)]
    found = (_read(root, name) for name in names[: 4 * MOST_DECIDED])
    return sorted((one for one in found if one is not None), key=lambda one: (-one.time, one.proposal.id))


def drop_decision(root: RootDir, proposal_id: str) -> bool:
    return root.unlink(_path(proposal_id))


def _read(root: RootDir, name: str) -> Decision | None:
    data = root.read_bytes(f"{DECIDED}/{name}", _BYTES)
    try:
        return msgspec.json.decode(data, type=Decision) if data is not None else None
    except UNDECODABLE:
        return None


def _path(proposal_id: str) -> str:
    return f"{DECIDED}/{proposal_id}.json"

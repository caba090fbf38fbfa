"""The journal and the inbox of a memory directory as they lie there: what can be read, what cannot, and what the journal knows of a file.

Owns nothing and writes nothing. Invariants: only plain files are opened and only so much of each is read, so a planted file costs little;
a line that is none is counted with its place. `History` passes such lines over, this names them (Z12).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from .history import DIRECTORY, SEGMENTS
from .inbox import DIRECTORY as INBOX
from .inbox import MOST_PROPOSALS, Proposal
from .journal import Line
from .scan import CACHE

# A segment is closed at 2 MiB; one memory of the largest size may follow, twice.
MOST_SEGMENT = 8 << 20
# A proposal holds a memory and its diff.
MOST_PROPOSAL = 4 << 20
_CACHE_BYTES = 64 << 20
_SEGMENT = re.compile(r"journal-(\d{6})\.jsonl")
_PROPOSAL = re.compile(r"[0-9a-f]{12}\.json")


class Damage(NamedTuple):
    """`file` is relative to the memory directory; `lines` are numbers from 1, empty where the whole file is meant."""

    file: str
    problem: str
    lines: tuple[int, ...] = ()


class Moment(NamedTuple):
    """`told`: somebody said it then, in a session or on the command line; not found, brought back, imported or merged."""

    time: float
    digest: str
    before: str
    told: bool


class Journal(NamedTuple):
    """For each file its last line, the newest one last, and all its versions, oldest first; contents by digest."""

    last: dict[str, Line]
    versions: dict[str, list[Moment]]
    contents: dict[str, str]
    damage: tuple[Damage, ...]


def read_journal(root: RootDir) -> Journal:
    """What the journal says; without a journal nothing."""
    journal = Journal({}, {}, {}, ())
    damage: list[Damage] = []
    for name in _segments(root):
        file = f"{DIRECTORY}/{name}"
        data = _bytes(root, file, MOST_SEGMENT, damage)
        if len(data) > MOST_SEGMENT:
            damage.append(Damage(file, f"is larger than {MOST_SEGMENT >> 20} MiB; its first part was read"))
            data = data[: data.rfind(b"\n") + 1]
        _take(journal, file, data, damage)
    return journal._replace(damage=tuple(damage))


def _segments(root: RootDir) -> list[str]:
    names = sorted(entry.name for entry in root.listdir(DIRECTORY) if _SEGMENT.fullmatch(entry.name) and not entry.is_dir)
    return names[-2 * SEGMENTS :]


def _bytes(root: RootDir, file: str, most: int, damage: list[Damage]) -> bytes:
    try:
        return root.read_bytes(file, most + 1) or b""
    except DiskError as error:
        damage.append(Damage(file, error.problem))
        return b""


def _take(journal: Journal, file: str, data: bytes, damage: list[Damage]) -> None:
    bad: list[int] = []
    for number, row in enumerate(data.split(b"\n"), 1):
        if not row.strip():
            continue
        try:
            line = msgspec.json.decode(row, type=Line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            bad.append(number)
            continue
        if line.content is not None:
            journal.contents[line.digest] = line.content
        journal.versions.setdefault(line.file, []).append(Moment(line.time, line.digest, line.before, _told(line)))
        journal.last.pop(line.file, None)
        journal.last[line.file] = msgspec.structs.replace(line, content=None)
    if bad:
        damage.append(Damage(file, "cannot be read; the changes there are not known", tuple(bad)))


def _told(line: Line) -> bool:
    """An import and a merge give a reason, and what they bring in is older than they are; a dream moves what others said."""
    why = line.why
    return (
        line.action == "save" and why is not None and (why.who in ("agent", "extraction") or (why.who == "user" and not why.why))
    )


def said_since(journal: Journal, file: str, digest: str, text: str) -> float | None:
    """When this text came into a file that is still as the journal knows it; None where nobody can tell."""
    versions = journal.versions.get(file, [])
    if not versions or versions[-1].digest != digest:
        return None
    first = next((moment for moment in versions if text in journal.contents.get(moment.digest, "")), None)
    if first is None or not first.told:
        return None
    # What stood there before must be known not to have held it.
    known = not first.before or first.before in journal.contents
    return first.time if known and text not in journal.contents.get(first.before, "") else None


class Waiting(NamedTuple):
    proposals: tuple[Proposal, ...]
    damage: tuple[Damage, ...]


def read_inbox(root: RootDir) -> Waiting:
    """The proposals that wait, and what lies beside them and is none."""
    proposals: list[Proposal] = []
    damage: list[Damage] = []
    listed = [entry for entry in root.listdir(INBOX) if not entry.is_dir]
    for entry in listed[: 2 * MOST_PROPOSALS]:
        file = f"{INBOX}/{entry.name}"
        if not _PROPOSAL.fullmatch(entry.name):
            damage.append(Damage(file, "is no proposal; it is passed over"))
            continue
        data = _bytes(root, file, MOST_PROPOSAL, damage)
        try:
            proposals.append(msgspec.json.decode(data, type=Proposal))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damage.append(Damage(file, "is no proposal that can be read; it is passed over"))
    return Waiting(tuple(sorted(proposals, key=lambda each: each.time)), tuple(damage))


def cache_damage(root: RootDir) -> Damage | None:
    """The cache of heads is made again when it cannot be read; that is no loss, and it is said."""
    damage: list[Damage] = []
    data = _bytes(root, CACHE, _CACHE_BYTES, damage)
    if damage:
        return damage[0]
    try:
        if data:
            msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Damage(CACHE, "cannot be read; it is made again at the next look")
    return None

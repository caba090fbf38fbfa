"""Check of the journal and the inbox of a memory directory: what can be read, what cannot, and the journal's view of a file.

It writes nothing. Invariants: only plain files are opened and reads are bounded, so a planted file costs little. An invalid
line is counted with its line number. `MemoryHistory` skips such lines; this module reports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from .history import HISTORY_DIRECTORY, SEGMENT_NAME, SEGMENTS
from .journal import JournalLine
from .modes import MOST_PROPOSALS, Proposal
from .scopes import INBOX
from .topic import INDEX
from .topic_files import CACHE, CACHE_BYTES, is_whole_cache

# A segment is closed at 2 MiB; one memory of the largest size may follow, twice.
MOST_SEGMENT = 8 << 20
# A proposal contains a memory and its diff.
MOST_PROPOSAL = 4 << 20
_PROPOSAL = re.compile(r"[0-9a-f]{12}\.json")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Damage(NamedTuple):
    """Damage in a file. `file` is relative to the memory directory; `lines` are numbered from 1, empty if the whole file is
    damaged."""

    file: str
    problem: str
    lines: tuple[int, ...] = ()


class JournalContents(NamedTuple):
    """The journal's lines by file (oldest first, without contents, the newest file last), the last line of each, and
    contents by digest."""

    versions: dict[str, list[JournalLine]]
    last: dict[str, JournalLine]
    contents: dict[str, str]
    damage: tuple[Damage, ...]


def read_journal(root: RootDir) -> JournalContents:
    """Read the journal; a missing one is empty."""
    versions, contents, damage = dict[str, list[JournalLine]](), dict[str, str](), list[Damage]()
    names = (entry.name for entry in root.listdir(HISTORY_DIRECTORY) if not entry.is_dir)
    for name in sorted(filter(SEGMENT_NAME.fullmatch, names))[-2 * SEGMENTS :]:
        file = f"{HISTORY_DIRECTORY}/{name}"
        data = _bytes(root, file, MOST_SEGMENT, damage)
        if len(data) > MOST_SEGMENT:
            damage.append(Damage(file, f"is larger than {MOST_SEGMENT >> 20} MiB; its first part was read"))
            data = data[: data.rfind(b"\n") + 1]
        for line in _lines(file, data, damage):
            if line.file == INDEX:  # of a change set
                continue
            if line.content is not None:
                contents[line.digest] = line.content
            versions[line.file] = versions.pop(line.was if line.action == "rename" else line.file, [])
            versions[line.file].append(msgspec.structs.replace(line, content=None))
    return JournalContents(versions, {file: lines[-1] for file, lines in versions.items()}, contents, tuple(damage))


def _bytes(root: RootDir, file: str, most: int, damage: list[Damage]) -> bytes:
    try:
        return root.read_bytes(file, most + 1) or b""
    except DiskError as error:
        damage.append(Damage(file, error.problem))
        return b""


def _lines(file: str, data: bytes, damage: list[Damage]) -> Iterator[JournalLine]:
    bad: list[int] = []
    for number, row in enumerate(data.split(b"\n"), 1):
        try:
            if row.strip():
                yield msgspec.json.decode(row, type=JournalLine)
        except _UNREADABLE:
            bad.append(number)
    if bad:
        damage.append(Damage(file, "cannot be read; the changes recorded there are unknown", tuple(bad)))


def _is_stated(line: JournalLine) -> bool:
    """Tell whether someone stated this content at that time, in a session or on the command line.

    Content that was found, restored, imported or merged does not count. An import and a merge give a reason, and their
    content is older than they are; a dream moves what others stated."""
    if line.action != "save" or line.why is None:
        return False
    return line.why.who in ("agent", "extraction") or (line.why.who == "user" and not line.why.why)


def said_since(journal: JournalContents, file: str, digest: str, text: str) -> float | None:
    """Return when this text came into a file that is still as the journal knows it; None if unknown."""
    versions = journal.versions.get(file, [])
    if not versions or versions[-1].digest != digest:
        return None
    first = next((line for line in versions if text in journal.contents.get(line.digest, "")), None)
    if first is None or not _is_stated(first):
        return None
    # The previous content must be known not to contain the text.
    has_before = not first.before or first.before in journal.contents
    return first.time if has_before and text not in journal.contents.get(first.before, "") else None


class InboxContents(NamedTuple):
    proposals: tuple[Proposal, ...]
    damage: tuple[Damage, ...]


def read_inbox(root: RootDir) -> InboxContents:
    """Read the pending proposals, and report other files in the inbox."""
    proposals: list[Proposal] = []
    damage: list[Damage] = []
    listed = [entry for entry in root.listdir(INBOX) if not entry.is_dir]
    for entry in listed[: 2 * MOST_PROPOSALS]:
        file = f"{INBOX}/{entry.name}"
        if not _PROPOSAL.fullmatch(entry.name):
            damage.append(Damage(file, "is not a proposal and is ignored"))
            continue
        data = _bytes(root, file, MOST_PROPOSAL, damage)
        try:
            proposals.append(msgspec.json.decode(data, type=Proposal))
        except _UNREADABLE:
            damage.append(Damage(file, "is an unreadable proposal and is ignored"))
    return InboxContents(tuple(sorted(proposals, key=lambda proposal: proposal.time)), tuple(damage))


def cache_damage(root: RootDir) -> Damage | None:
    """Report a damaged cache of heads. Nothing is lost, because the cache is rebuilt."""
    damage: list[Damage] = []
    data = _bytes(root, CACHE, CACHE_BYTES, damage)
    if damage:
        return damage[0]
    return Damage(CACHE, "cannot be read; it is rebuilt at the next scan") if data and not is_whole_cache(data) else None

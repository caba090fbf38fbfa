"""Mailboxes of a team's sessions: `<home>/teams/<team>/<name>/inbox.jsonl`, a line a message, from any number of processes.

Owns these directories. A message is appended under the mailbox's guard and waits until its reader, the one session that holds
`.owner.lock`, has it in its transcript. Invariants: a message that was acknowledged is read once; those of one sender in the order
they were sent; a mailbox holds at most MOST_UNREAD bytes.

Reading is three steps: `take` notes in `claim.json` which messages are being taken, by which transcript, and how long that is; the
reader appends them to it; `done` removes them here. A crash before the transcript has them leaves them unread; a crash after it leaves a
claim whose messages stand in the transcript, and the next reader, whichever session it is, removes them without showing them again.
A crash while a message is appended leaves it unsent, or sent though nobody was told so. With durability "process" a loss of power may
take what was sent last.

Private to one user: directories 0700, files 0600. Weaker where there are no kernel locks, see `kernel_lock`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError, InputError
from ..append import Appender
from ..dirfd import Dir, descend
from ..faults import AbsentIsFine
from ..files import guard_name, read_at, remove_at, replace_at
from ..locks.lock_file import LifeLock, guard_at
from ..temp_files import Durability
from ..transcripts.jsonl import UNDECODABLE

DIRECTORY = "teams"
INBOX, CLAIM, OWNER = "inbox.jsonl", "claim.json", ".owner.lock"
# Some fifty of the longest messages, or thousands of short ones: nobody is reading.
MOST_UNREAD = 1 << 20
# Of messages that are taken at once, and of their bytes unless the first alone has more: the reader's window is for other things too.
MOST_TAKEN = 20
MOST_TAKEN_BYTES = 100_000
# Names of a team that are looked at; a team of more is no team.
MOST_MEMBERS = 200
# A claim names a transcript and MOST_TAKEN ids.
MOST_CLAIM = 64 << 10
CHUNK = 1 << 20
NEWLINE = b"\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# These mean somebody else already.
_TAKEN_NAMES = frozenset({"main", "all", "agent"})
DEFAULT_TEAM = "default"


class MailboxFull(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "holds as many unread messages as it may", "wait until they are read")


class MailboxAddress(NamedTuple):
    name: str
    team: str


class TakenMessages(NamedTuple):
    """Messages as they were sent, oldest first, each with its id."""

    lines: tuple[tuple[str, bytes], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.lines)


class _MessageLine(msgspec.Struct):
    id: str


class _Claim(msgspec.Struct):
    ids: list[str] = []
    transcript: str = ""
    size: int = 0  # of the transcript at that moment: ids before it were only spoken of


def read_address(text: str) -> MailboxAddress:
    """`NAME` or `NAME@TEAM`; InputError where it is neither."""
    name, at, team = text.strip().partition("@")
    team = team if at else DEFAULT_TEAM
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(team) or name in _TAKEN_NAMES:
        raise InputError(
            "mailbox",
            f"{text[:80]!r} is no name for a mailbox",
            "use NAME or NAME@TEAM, of letters, digits, - and _, but not main, all or agent",
        )
    return MailboxAddress(name, team)


def members(home: Path, team: str) -> list[str]:
    """List the names that have a mailbox, in order."""
    found: list[str] = []
    with AbsentIsFine(), suppress(OSError), Dir.open(home / DIRECTORY / team) as where:
        for entry in where.entries():
            if len(found) < MOST_MEMBERS and _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                found.append(entry.name)
    return sorted(found)


def deliver(home: Path, to: MailboxAddress, line: bytes, *, durability: Durability = "full") -> None:
    """Appends one message, whole or not at all. `line` is a JSON object with an id, on one line; the mailbox must be there."""
    with _place(home, to) as where, guard_at(where, guard_name(INBOX)):
        there = where.stat(INBOX)
        if there is not None and there.st_size + len(line) > MOST_UNREAD:
            raise MailboxFull(where.full(INBOX))
        with Appender(where, INBOX) as inbox:
            inbox.append([line])
            if durability == "full":
                inbox.sync()


def _place(home: Path, address: MailboxAddress, *, create: bool = False) -> Dir:
    """A mailbox's directory; a link on the way to it is refused."""
    return descend(Dir.open(home, create=create), (DIRECTORY, address.team, address.name), create=create)


class Mailbox:
    """One's own. Not for two threads at once."""

    def __init__(self, home: Path, address: MailboxAddress, lock: LifeLock, durability: Durability) -> None:
        self.address = address
        self.path = home / DIRECTORY / address.team / address.name
        self._home = home
        self._lock = lock
        self._durability = durability

    @classmethod
    def open(cls, home: Path, address: MailboxAddress, *, durability: Durability = "full") -> Mailbox | None:
        """Makes it if it is not there; None while another session has it."""
        with _place(home, address, create=True) as where:
            lock = LifeLock.acquire(where.full(OWNER))
        return cls(home, address, lock, durability) if lock is not None else None

    def waits(self) -> bool:
        """Whether there may be anything to take: one look at a size."""
        try:
            return os.stat(self.path / INBOX).st_size > 0
        except OSError:
            return False

    def take(self, transcript: Path) -> TakenMessages:
        """The oldest messages, which `transcript` is about to get; `done` when it has them."""
        with _place(self._home, self.address) as where, guard_at(where, guard_name(INBOX)):
            self._settle(where)
            taken = TakenMessages(tuple(_oldest(_rows(read_at(where, INBOX, 2 * MOST_UNREAD) or b""))))
            if not taken.lines:
                self._drop(where, ())
            else:
                size = transcript.stat().st_size if transcript.exists() else 0
                claim = msgspec.json.encode(_Claim(list(taken.ids), str(transcript), size))
                replace_at(where, CLAIM, claim, durability=self._durability)
            return taken

    def done(self, taken: TakenMessages) -> None:
        with _place(self._home, self.address) as where, guard_at(where, guard_name(INBOX)):
            self._drop(where, taken.ids)

    def _settle(self, where: Dir) -> None:
        """A claim that was left: its messages are gone if its transcript has them, and still to be read if not."""
        data = read_at(where, CLAIM, MOST_CLAIM)
        if data is None:
            return
        claim = _Claim()
        with suppress(*UNDECODABLE):
            claim = msgspec.json.decode(data, type=_Claim)
        self._drop(where, _standing_in(Path(claim.transcript), claim.ids, claim.size) if claim.transcript else ())

    def _drop(self, where: Dir, ids: Collection[str]) -> None:
        """The messages first, then the claim: a crash in between has this done again."""
        data = read_at(where, INBOX, 2 * MOST_UNREAD) or b""
        rest = b"".join(row + NEWLINE for name, row in _rows(data).items() if name not in ids)
        if rest != data:
            replace_at(where, INBOX, rest, durability=self._durability)
        remove_at(where, CLAIM, durability=self._durability)

    def close(self) -> None:
        self._lock.close()


def _rows(data: bytes) -> dict[str, bytes]:
    """By id, in order; what is no message, or half of one, is passed over."""
    rows: dict[str, bytes] = {}
    for row in data.split(NEWLINE):
        with suppress(*UNDECODABLE):
            rows.setdefault(msgspec.json.decode(row, type=_MessageLine).id, row)
    return rows


def _oldest(rows: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    size = 0
    for count, (name, row) in enumerate(rows.items()):
        size += len(row)
        if count >= MOST_TAKEN or (count and size > MOST_TAKEN_BYTES):
            return
        yield name, row


def _standing_in(transcript: Path, ids: Collection[str], start: int) -> set[str]:
    """Which of the ids stand on whole lines of the file, from `start` on: a line without its end was never acknowledged."""
    found: set[str] = set()
    if not transcript.is_file():  # nor anything that would block us
        return found
    with suppress(OSError), open(transcript, "rb") as file:
        file.seek(max(0, start))
        held = b""
        while part := file.read(CHUNK):
            whole, end, held = (held + part).rpartition(NEWLINE)
            if end:
                found |= {name for name in ids if name.encode() in whole}
    return found

"""Mailboxes of a team's sessions: `<home>/teams/<team>/<name>/inbox.jsonl`, one line per message, from any number of processes.

Owns these directories. A message is appended under the mailbox's guard. It stays until its reader, the one session that holds
`.owner.lock`, has it in its transcript. Invariants: an acknowledged message is read exactly once. Messages of one sender are read
in the order they were sent. A mailbox holds at most MOST_UNREAD bytes.

Reading takes three steps. `take` records in `claim.json` which messages are taken, the transcript they go to, and its current
size. The reader appends them to the transcript. `done` removes them from the mailbox. A crash before the transcript has them
leaves them unread. A crash after that leaves a claim whose messages are in the transcript; the next reader, whichever session it
is, removes them without showing them again. A crash while a message is appended leaves it unsent, or sent without confirmation.
With durability "process", a power loss may lose the last messages.

Mailboxes are private to one user: directories 0700, files 0600. The guarantees are weaker without kernel locks, see
`kernel_lock`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError, InputError
from ..append import Appender
from ..dirfd import Dir, descend
from ..faults import AbsentIsFine
from ..files import guard_name, read_at, remove_at, replace_at
from ..locks.lock_file import LifeLock, guard_at
from ..regular_file import open_regular, stamp_of
from ..temp_files import Durability

DIRECTORY = "teams"
INBOX, CLAIM, OWNER = "inbox.jsonl", "claim.json", ".owner.lock"
# About fifty of the longest messages, or thousands of short ones; beyond that, no session is reading.
MOST_UNREAD = 1 << 20
# Messages taken at once, and their bytes unless the first message alone has more: the reader's window is for other things too.
MOST_TAKEN = 20
MOST_TAKEN_BYTES = 100_000
# Maximum number of members that are listed.
MOST_MEMBERS = 200
# Maximum size of a claim: it names a transcript and MOST_TAKEN ids.
MOST_CLAIM = 64 << 10
CHUNK = 1 << 20
NEWLINE = b"\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# Names that have another meaning as an address.
_TAKEN_NAMES = frozenset({"main", "all", "agent"})
DEFAULT_TEAM = "default"


class MailboxFull(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "the mailbox is full of unread messages", "wait until they are read")


class MailboxAddress(NamedTuple):
    name: str
    team: str


class TakenMessages(NamedTuple):
    """Messages as they were sent, oldest first, as pairs of id and line. `invalid` counts lines that are not messages."""

    lines: tuple[tuple[str, bytes], ...]
    invalid: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.lines)


class _MessageLine(msgspec.Struct):
    id: str


class _Claim(msgspec.Struct):
    ids: list[str] = []
    transcript: str = ""
    size: int = 0  # of the transcript at that moment; ids before this offset are only mentions


def read_address(text: str) -> MailboxAddress:
    """Parse `NAME` or `NAME@TEAM`; raises InputError if the text is neither."""
    name, sign, team = text.strip().partition("@")
    team = team if sign else DEFAULT_TEAM
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(team) or name in _TAKEN_NAMES:
        raise InputError(
            "mailbox",
            f"invalid mailbox name {text[:80]!r}",
            "use NAME or NAME@TEAM with letters, digits, - and _ (the names main, all and agent are reserved)",
        )
    return MailboxAddress(name, team)


def is_name(text: str) -> bool:
    """Return whether the text can name a team or a member."""
    return _NAME.fullmatch(text) is not None


def members(home: Path, team: str) -> list[str]:
    """List the names that have a mailbox, sorted."""
    names: list[str] = []
    with AbsentIsFine(), suppress(OSError), Dir.open(home / DIRECTORY / team) as where:
        for entry in where.entries():
            if len(names) < MOST_MEMBERS and _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
    return sorted(names)


def deliver(home: Path, to: MailboxAddress, line: bytes, *, durability: Durability = "full") -> None:
    """Append one message, whole or not at all. `line` is a JSON object with an id, on one line. The mailbox must exist."""
    with open_place(home, to) as where, guard_at(where, guard_name(INBOX)):
        info = where.stat(INBOX)
        if info is not None and info.st_size + len(line) > MOST_UNREAD:
            raise MailboxFull(where.full(INBOX))
        with Appender(where, INBOX) as inbox:
            inbox.append([line])
            if durability == "full":
                inbox.sync()


def open_place(home: Path, address: MailboxAddress, *, create: bool = False) -> Dir:
    """Open a mailbox's directory. Links on the way to it are refused."""
    return descend(Dir.open(home, create=create), (DIRECTORY, address.team, address.name), create=create)


class Mailbox:
    """The session's own mailbox, for reading. Not thread-safe."""

    def __init__(self, home: Path, address: MailboxAddress, lock: LifeLock, durability: Durability) -> None:
        self.address = address
        self.path = home / DIRECTORY / address.team / address.name
        self._home = home
        self._lock = lock
        self._durability = durability

    @classmethod
    def open(cls, home: Path, address: MailboxAddress, *, durability: Durability = "full") -> Mailbox | None:
        """Open a mailbox, creating it if necessary. Returns None while another session owns it."""
        with open_place(home, address, create=True) as where:
            lock = LifeLock.acquire(where.full(OWNER))
        return cls(home, address, lock, durability) if lock is not None else None

    def waits(self) -> bool:
        """Return whether there may be messages, judging by the file size alone."""
        try:
            return os.stat(self.path / INBOX).st_size > 0
        except OSError:
            return False

    def take(self, transcript: Path) -> TakenMessages:
        """Claim the oldest messages for `transcript`. Call `done` once the transcript has them."""
        with open_place(self._home, self.address) as where, guard_at(where, guard_name(INBOX)):
            _, invalid = _rows(read_at(where, INBOX, 2 * MOST_UNREAD) or b"")
            self._settle(where)
            rows, _ = _rows(read_at(where, INBOX, 2 * MOST_UNREAD) or b"")
            lines, size = list[tuple[str, bytes]](), 0
            for name, row in rows.items():
                size += len(row)
                if len(lines) >= MOST_TAKEN or (lines and size > MOST_TAKEN_BYTES):
                    break
                lines.append((name, row))
            messages = TakenMessages(tuple(lines), invalid)
            if not messages.lines:
                self._drop(where, ())
            else:
                stamp = stamp_of(transcript)
                claim = msgspec.json.encode(_Claim(list(messages.ids), str(transcript), stamp.size if stamp is not None else 0))
                replace_at(where, CLAIM, claim, durability=self._durability)
            return messages

    def done(self, taken: TakenMessages) -> None:
        """Remove messages that are now in the transcript."""
        with open_place(self._home, self.address) as where, guard_at(where, guard_name(INBOX)):
            self._drop(where, taken.ids)

    def _settle(self, where: Dir) -> None:
        """Resolve a claim left by a crash: drop the messages that its transcript has; the others are still unread."""
        data = read_at(where, CLAIM, MOST_CLAIM)
        if data is None:
            return
        claim = _Claim()
        with suppress(*UNDECODABLE):
            claim = msgspec.json.decode(data, type=_Claim)
        # An incomplete line of the transcript was never acknowledged.
        standing, unfinished = set[str](), b""
        if claim.transcript:
            with suppress(OSError), open_regular(claim.transcript) as file:
                file.seek(max(0, claim.size))
                while part := file.read(CHUNK):
                    whole, end, unfinished = (unfinished + part).rpartition(NEWLINE)
                    if end:
                        standing |= {name for name in claim.ids if name.encode() in whole}
        self._drop(where, standing)

    def _drop(self, where: Dir, ids: Collection[str]) -> None:
        """Remove the messages first, then the claim, so that a crash in between repeats the removal."""
        data = read_at(where, INBOX, 2 * MOST_UNREAD) or b""
        unread = b"".join(row + NEWLINE for name, row in _rows(data)[0].items() if name not in ids)
        if unread != data:
            replace_at(where, INBOX, unread, durability=self._durability)
        remove_at(where, CLAIM, durability=self._durability)

    def close(self) -> None:
        self._lock.close()


def _rows(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the messages by id, in order, and the number of invalid and incomplete lines."""
    rows: dict[str, bytes] = {}
    invalid = 0
    for row in filter(bytes.strip, data.split(NEWLINE)):
        try:
            rows.setdefault(msgspec.json.decode(row, type=_MessageLine).id, row)
        except UNDECODABLE:
            invalid += 1
    return rows, invalid

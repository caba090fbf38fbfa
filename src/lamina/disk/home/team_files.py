"""Teams: `<home>/teams/<team>/team.json` names the members, and `member.json` in each member's mailbox directory says how it is.

Owns both files, replaced as a whole, and `output.log`, which holds the errors of a member's process. A member's process writes its own
`member.json`; the commands that start or end the process write it too, under its guard. Invariants: a member is alive while it holds its
mailbox's lock, which the kernel releases however it dies, so a state left by a killed process is never taken for a running one. A reader
sees one state or the next. Nothing here is synced: no process survives a power loss.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError, InputError
from ..crash_points import point
from ..dirfd import OPEN_OR_CREATE, Dir, open_plain
from ..faults import AbsentIsFine, reporting
from ..files import guard_name, read, read_at, replace, replace_at
from ..locks.dream_lock_owner import process_lives
from ..locks.lock_file import guard_at, live_process
from ..transcripts.jsonl import decode_object
from .mailbox import DIRECTORY, INBOX, MOST_UNREAD, OWNER, MailboxAddress, is_name, open_place

TEAM, MEMBER, OUTPUT = "team.json", "member.json", "output.log"
# Each member is a process with a model of its own; more than this is a runaway script.
MOST_MEMBERS = 16
MOST_TEAMS = 200
MOST_BYTES = 1 << 20
MOST_OUTPUT = 64 << 10

# dead: its process ended without saying so. joined: another process, a chat of the user, has its mailbox.
MemberStatus: TypeAlias = Literal["starting", "working", "waiting", "stopped", "ended", "failed", "dead", "joined", "new"]
_RUNNING = ("starting", "working", "waiting")


class MemberPlan(msgspec.Struct, frozen=True):
    """A member as it was asked for."""

    name: str
    prompt: str = ""
    type: str = ""  # the agent type; empty for none


class Team(msgspec.Struct, frozen=True):
    name: str
    cwd: str
    created: str
    members: tuple[MemberPlan, ...]
    model: str = ""
    mode: str = ""
    turns: int = 0

    def find(self, name: str) -> MemberPlan:
        for member in self.members:
            if member.name == name:
                return member
        raise InputError("member", f"{name!r} is not in team {self.name}", f"its members are {self.names}")

    @property
    def names(self) -> str:
        return ", ".join(member.name for member in self.members)


class MemberState(msgspec.Struct, frozen=True):
    """The last recorded state of a member's process. `pid` and `start` identify the process; `start` is 0 where the system cannot tell."""

    pid: int = 0
    start: int = 0
    status: MemberStatus = "new"
    since: str = ""
    doing: str = ""
    why: str = ""  # the reason of a failure or of an end
    turns: int = 0
    transcript: str = ""


class Seen(NamedTuple):
    """A member's state as it is now, and the process that has its mailbox; 0 if none has."""

    state: MemberState
    owner: int

    @property
    def running(self) -> bool:
        """Whether the member's own process runs."""
        return self.owner != 0 and self.owner == self.state.pid


class Unread(NamedTuple):
    lines: tuple[bytes, ...]
    invalid: int  # lines that are no messages


def _directory(home: Path, team: str) -> Path:
    if not is_name(team):
        raise InputError("team", f"invalid team name {team[:80]!r}", "use letters, digits, - and _")
    return home / DIRECTORY / team


def write_team(home: Path, team: Team) -> None:
    replace(_directory(home, team.name) / TEAM, msgspec.json.encode(team), durability="process")


def find_team(home: Path, name: str) -> Team | None:
    path = _directory(home, name) / TEAM
    data = read(path, MOST_BYTES)
    if data is None:
        return None
    with suppress(*UNDECODABLE):
        team = msgspec.json.decode(data, type=Team)
        if all(is_name(member.name) for member in team.members):
            return msgspec.structs.replace(team, name=name)
    raise DiskError(str(path), "is not a valid team file", "remove it, then start the team again")


def read_team(home: Path, name: str) -> Team:
    if (team := find_team(home, name)) is None:
        names = ", ".join(list_teams(home))
        hint = f"the teams are {names}" if names else "run `lamina team start NAME --member NAME=PROMPT` to start one"
        raise InputError("team", f"{name!r} not found", hint)
    return team


def list_teams(home: Path) -> list[str]:
    """Return the names of the teams, sorted. Directories without a team file only hold mailboxes."""
    names: list[str] = []
    with AbsentIsFine(), Dir.open(home / DIRECTORY) as where:
        for entry in where.entries():
            if len(names) < MOST_TEAMS and is_name(entry.name) and (home / DIRECTORY / entry.name / TEAM).is_file():
                names.append(entry.name)
    return sorted(names)


def write_member(home: Path, member: MailboxAddress, state: MemberState, *, first: bool = False) -> None:
    """Record a state. With `first`, only if the process has not recorded one itself."""
    with open_place(home, member, create=True) as where, guard_at(where, guard_name(MEMBER)):
        if not first or _read_state(where).pid != state.pid:
            replace_at(where, MEMBER, msgspec.json.encode(state), durability="process")


def _read_state(where: Dir) -> MemberState:
    with suppress(*UNDECODABLE):
        return msgspec.json.decode(read_at(where, MEMBER, MOST_BYTES) or b"{}", type=MemberState)
    return MemberState()


def see_member(home: Path, member: MailboxAddress) -> Seen:
    """Return the member's state, corrected by the kernel's answer whether its process is alive."""
    state, owner = MemberState(), 0
    with AbsentIsFine(), open_place(home, member) as where:
        state = _read_state(where)
        owner = live_process(where.full(OWNER))
    if not owner and state.status == "starting" and state.start and process_lives(state.pid, state.start):
        owner = state.pid  # it has not opened its mailbox yet
    if owner and owner != state.pid:
        state = msgspec.structs.replace(state, status="joined", doing="", why="")
    elif not owner and state.status in _RUNNING:
        state = msgspec.structs.replace(state, status="dead", why="its process ended without warning")
    return Seen(state, owner)


def read_unread(home: Path, member: MailboxAddress) -> Unread:
    """Return the messages in the mailbox, oldest first, without taking them."""
    data = b""
    with AbsentIsFine(), open_place(home, member) as where:
        data = read_at(where, INBOX, 2 * MOST_UNREAD) or b""
    rows = [row for row in data.split(b"\n") if row.strip()]
    good = tuple(row for row in rows if decode_object(row) is not None)
    return Unread(good, len(rows) - len(good))


def open_output(home: Path, member: MailboxAddress) -> int:
    """Return a descriptor for the errors of a new process of the member. Those of the last one are removed."""
    with open_place(home, member, create=True) as where, reporting(where.full(OUTPUT)):
        fd = open_plain(where, OUTPUT, OPEN_OR_CREATE)
        point("team.truncate")
        os.ftruncate(fd, 0)
        return fd


def last_output(home: Path, member: MailboxAddress) -> str:
    """Return the last line that the member's process wrote."""
    with AbsentIsFine(), open_place(home, member) as where:
        lines = (read_at(where, OUTPUT, MOST_OUTPUT) or b"").decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ""

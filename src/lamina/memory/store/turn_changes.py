"""The changes that a turn made to memory, one act of the user or an MCP client, found in the journal and taken back on request.

Invariants: a memory goes back to the version it had before the change, byte for byte, or to the trash if the change created it.
A memory that was changed since is left alone and reported. A proposal of the turn is withdrawn. Nothing else is touched.

A crash at any line leaves each memory as the turn left it or as it was before; the same call finishes the work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import LaminaError
from .contract import ChangeReason
from .history import MemoryHistory
from .journal import JournalLine
from .modes import GatedStore

Did: TypeAlias = Literal["saved", "changed", "removed", "proposed"]
SINCE = "was changed since"
LOST = "has no earlier version in the journal any more"


class TurnChange(NamedTuple):
    """The change that a turn made to one memory. `version` is the id of the version before the turn, empty if the turn
    created the memory; for a proposal it is the proposal's id. `problem` is why the change can't be taken back, or empty."""

    name: str
    file: str
    did: Did
    version: str = ""
    problem: str = ""


class ClientChange(NamedTuple):
    """What an MCP client last changed in a memory, without approval. `id` is that of the newest version."""

    id: str
    time: float
    client: str
    change: TurnChange


class TakenBack(NamedTuple):
    """The result: the names of the memories taken back, and a sentence for each that was left."""

    back: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def find_turn_changes(gated: GatedStore, session: str, messages: Collection[str]) -> list[TurnChange]:
    """Return what was changed for these messages of a session, in order, and what waits for approval."""
    if not gated.readable:
        return []
    waiting = [each for each in gated.inbox.waiting() if _is_for(each.why, session, messages)]
    return [
        *_changes(gated.store.history, lambda why: _is_for(why, session, messages)),
        *(TurnChange(each.name, each.file, "proposed", each.id) for each in waiting),
    ]


def find_act_changes(gated: GatedStore, act: str) -> list[TurnChange]:
    """Return the changes of one act, such as a merge, in order."""
    return _changes(gated.store.history, lambda why: why is not None and why.act == act) if gated.readable and act else []


def find_client_changes(gated: GatedStore, since: float) -> list[ClientChange]:
    """Return the memories that are as an MCP client left them without approval, newest first. Taking one back undoes all that the client
    changed in a row."""
    memories = _by_memory(gated.store.history) if gated.readable else []
    found = [(lines, _client_of(lines[-1])) for lines in memories if lines[-1].time >= since]
    changes = [
        ClientChange(lines[-1].id, lines[-1].time, client, _change(lines, _start_of_run(lines, client), len(lines) - 1))
        for lines, client in found
        if client and lines[-1].digest
    ]
    return sorted(changes, key=lambda each: -each.time)


def _client_of(line: JournalLine) -> str:
    return line.why.client if line.why is not None and not line.why.approved else ""


def _start_of_run(lines: list[JournalLine], client: str) -> int:
    others = [index for index, line in enumerate(lines) if _client_of(line) != client or not line.digest]
    return others[-1] + 1 if others else 0


def _by_memory(history: MemoryHistory) -> list[list[JournalLine]]:
    memories: dict[str, list[JournalLine]] = {}
    for line in history.lines():
        memories.setdefault(line.memory, []).append(line)
    return list(memories.values())


def _changes(history: MemoryHistory, is_own: Callable[[ChangeReason | None], bool]) -> list[TurnChange]:
    found = []
    for lines in _by_memory(history):
        own = [index for index, line in enumerate(lines) if is_own(line.why)]
        if own:
            found.append(_change(lines, own[0], own[-1]))
    return [change for change in found if change.did != "removed" or change.version]


def _change(lines: list[JournalLine], first: int, last: int) -> TurnChange:
    line, before = lines[last], lines[first - 1] if first else None
    version = before.id if before is not None and before.digest else ""
    problem = SINCE if last < len(lines) - 1 else LOST if not version and lines[first].before else ""
    did: Did = "removed" if not line.digest else "changed" if version else "saved"
    return TurnChange(line.name, line.file, did, version, problem)


def _is_for(why: ChangeReason | None, session: str, messages: Collection[str]) -> bool:
    return why is not None and why.session == session and why.message in messages


def take_back(gated: GatedStore, change: TurnChange, *, why: ChangeReason) -> str:
    """Take back one change. Return why it was left, or an empty string."""
    if change.problem:
        return f"{change.name} {change.problem}."
    try:
        if change.did == "proposed":
            gated.inbox.reject(change.version)
        elif change.version:
            gated.restore(change.file, change.version, why=why)
        else:
            gated.remove(change.file, why=why)
    except LaminaError as error:
        return str(error)
    return ""

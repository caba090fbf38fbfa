"""Proposals: changes to memory that wait for a yes, as diffs (B5).

Owns `.inbox/*.json` in the memory directory. Invariants: nothing is written to a memory before a person says yes; a yes counts for
the content the person saw, so a proposal whose memory changed meanwhile is shown anew first; secrets are taken out before anything
waits here; at most 200 wait.

A crash at any line leaves a proposal waiting, done and waiting (a second yes changes nothing), or gone.
"""

from __future__ import annotations

import os
import re
from typing import Literal

import msgspec

from ...core.errors import InputError
from ...core.settings import Scope
from ...disk.trees.rootdir import RootDir
from .contract import Proposed, Saved, Why
from .directory import DirectoryStore
from .draft import MOST_BYTES, Draft
from .journal import digest_of, unified
from .lookup import shown
from .topic import Kind

DIRECTORY = ".inbox"
# More than anybody reads; what proposes that much is broken.
MOST_PROPOSALS = 200
# A proposal holds a memory and its diff, at worst both versions in full.
_FILE_BYTES = 8 * MOST_BYTES
_ID = re.compile(r"[0-9a-f]{12}")


class Proposal(msgspec.Struct, frozen=True):
    """`base` is the digest of the file the diff starts from; empty for a new memory."""

    id: str
    time: float
    scope: Scope
    action: Literal["save", "remove"]
    name: str
    file: str
    why: Why
    base: str
    diff: str
    type: Kind | None = None
    description: str = ""
    body: str = ""
    evidence: tuple[str, ...] = ()
    modified: float | None = None

    @property
    def draft(self) -> Draft:
        return Draft(self.name, self.type, self.description, self.body, self.evidence, self.modified)


class Inbox:
    """The proposals for one store."""

    __slots__ = ("_root", "store")

    def __init__(self, store: DirectoryStore) -> None:
        self.store = store
        self._root: RootDir = store.root

    def propose_save(self, draft: Draft, *, why: Why) -> Proposed:
        planned = self.store.plan(draft)
        wish, file = planned.wish.draft, planned.topic.file
        diff = unified(file, shown(planned.before), shown(planned.after))
        return self._add(
            Proposal(
                id=os.urandom(6).hex(),
                time=self.store.clock(),
                scope=self.store.scope,
                action="save",
                file=file,
                why=why,
                base=digest_of(planned.before),
                diff=diff,
                **msgspec.structs.asdict(wish),
            )
        )

    def propose_removal(self, name: str, *, why: Why) -> Proposed | None:
        """None when there is no such memory."""
        found = self.store.raw(name)
        if found is None:
            return None
        diff = unified(found.file, shown(found.data), "")
        proposal = Proposal(
            os.urandom(6).hex(),
            self.store.clock(),
            self.store.scope,
            "remove",
            name,
            found.file,
            why,
            digest_of(found.data),
            diff,
        )
        return self._add(proposal)

    def _add(self, proposal: Proposal) -> Proposed:
        waiting = self.waiting()
        for other in waiting:
            if (other.action, other.file, other.base, other.diff) == (
                proposal.action,
                proposal.file,
                proposal.base,
                proposal.diff,
            ):
                return Proposed(other.id)
        if len(waiting) >= MOST_PROPOSALS:
            raise InputError("inbox", f"{MOST_PROPOSALS} proposals wait already", "`lamina inbox` shows them")
        self._put(proposal)
        return Proposed(proposal.id)

    def _put(self, proposal: Proposal) -> None:
        self._root.replace(_path(proposal.id), msgspec.json.encode(proposal))

    def waiting(self) -> list[Proposal]:
        """Oldest first; a file that is no proposal is passed over."""
        names = [entry.name.removesuffix(".json") for entry in self._root.listdir(DIRECTORY) if entry.name.endswith(".json")]
        found = (self._read(name) for name in names if _ID.fullmatch(name))
        return sorted((proposal for proposal in found if proposal is not None), key=lambda each: (each.time, each.id))

    def get(self, proposal_id: str) -> Proposal:
        proposal = self._read(proposal_id) if _ID.fullmatch(proposal_id) else None
        if proposal is None:
            raise InputError(f"proposal {proposal_id!r}", "does not wait any more", "`lamina inbox` lists those that do")
        return proposal

    def _read(self, proposal_id: str) -> Proposal | None:
        data = self._root.read_bytes(_path(proposal_id), _FILE_BYTES)
        try:
            return msgspec.json.decode(data, type=Proposal) if data is not None else None
        except msgspec.DecodeError:
            return None

    def accept(self, proposal_id: str) -> Saved | bool:
        """Does what was proposed. InputError when the memory changed since: the proposal then holds the new diff."""
        proposal = self.get(proposal_id)
        there = self.store.raw(proposal.file)
        if digest_of(there.data if there else None) != proposal.base:
            self._renew(proposal)
            raise InputError(proposal.name, "has changed since this was proposed", "look at the new diff, then say yes again")
        done: Saved | bool
        if proposal.action == "save":
            done = self.store.save(proposal.draft, why=proposal.why, base=proposal.base)
        else:
            done = self.store.remove(proposal.file, why=proposal.why, expected=there.data if there else None)
        self._root.unlink(_path(proposal_id))
        return done

    def _renew(self, old: Proposal) -> None:
        if old.action == "save":
            new = self.propose_save(old.draft, why=old.why)
        else:
            new = self.propose_removal(old.file, why=old.why) or Proposed(old.id)
        if new.id != old.id:
            # Under the id the person knows.
            self._put(msgspec.structs.replace(self.get(new.id), id=old.id, time=old.time))
            self._root.unlink(_path(new.id))

    def reject(self, proposal_id: str) -> bool:
        """False when it did not wait any more."""
        return bool(_ID.fullmatch(proposal_id)) and self._root.unlink(_path(proposal_id))


def _path(proposal_id: str) -> str:
    return f"{DIRECTORY}/{proposal_id}.json"

"""Modes for each scope, and proposals: memory changes that wait for approval, as diffs.

`off`: memory is empty and accepts nothing. `read-only`: it can be read but not changed. `confirm`: the user's saves are
written; all other changes and the user's imports wait in the inbox. `auto`: everyone writes what the user said. A change
whose content has another origin waits in the inbox, and is marked with that origin.
`guard.admission` names the changes that wait in every mode, such as those of MCP clients to memories that they did not write.

It owns `.inbox/*.json` in the memory directory. Invariants: no memory is changed before the user approves. An approval
covers the content the user saw, so a proposal whose memory changed in the meantime is shown again first. Secrets are removed
before a proposal is stored. At most 200 wait. A crash at any line leaves a proposal waiting, applied and still waiting (a
second approval changes nothing), or removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import InputError, SettingError
from ...core.settings import Mode, Scope
from ...language.text import Text, encodable
from .change_sets import SetChange, UndoneSet, acts_of, find_changes, new_act, undo
from .contract import DEFAULT_RULES, ChangeAuthor, ChangeReason, MemoryVersion, Proposed, Saved, WriteRules
from .daily_logs import append_bullets
from .directory import DirectoryStore
from .draft import MOST_BYTES, Draft
from .history import MemoryHistory
from .index import INDEX, RewrittenIndex
from .journal import digest_of, unified_diff
from .scopes import INBOX
from .topic import Kind, Topic, evidence_of, origin_of, read_topic, with_origin
from .topic_files import decode_text

if TYPE_CHECKING:
    from ..guard.admission import ClientKnowledge

# More than anyone reads; a program that proposes this much is broken.
MOST_PROPOSALS = 200
# A proposal contains a memory and its diff, at worst both versions in full.
_PROPOSAL_BYTES = 8 * MOST_BYTES + 4_096
# Decided proposals, for an undo of the decision.
DECIDED = f"{INBOX}/decided"
MOST_DECIDED = 50
T = TypeVar("T")
_ID = re.compile(r"[0-9a-f]{12}")
_STAMP = re.compile(r"[+-]\s*modified:")
WriteVerdict: TypeAlias = Literal["write", "propose", "refuse"]


def plan_write(mode: Mode, who: ChangeAuthor, origin: str = "") -> WriteVerdict:
    if mode in ("read-only", "off"):
        return "refuse"
    if mode == "auto":
        return "propose" if origin and who != "user" else "write"
    return "write" if who == "user" and not origin else "propose"


class Proposal(msgspec.Struct, frozen=True):
    """A proposed change. `base` is the digest of the file the diff starts from; empty for a new memory. `waits` is why it needs approval,
    if the mode alone does not ask for it."""

    id: str
    time: float
    scope: Scope
    action: Literal["save", "remove"]
    name: str
    file: str
    why: ChangeReason
    base: str
    diff: str
    type: Kind | None = None
    description: str = ""
    body: str = ""
    evidence: tuple[str, ...] = ()
    modified: float | None = None
    origin: str = ""
    waits: str = ""

    @property
    def draft(self) -> Draft:
        return Draft(self.name, self.type, self.description, self.body, self.evidence, self.modified, self.origin)


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decided proposal, kept so that it can wait again. `accepted` is false if it was refused, or withdrawn by the undo with the act
    `undo`. `edited`: the user accepted another text.

    Earlier versions kept the file that an approval changed, and the digest that it left there.
    """

    proposal: Proposal
    accepted: bool
    time: float
    edited: bool = False
    undo: str = ""
    file: str = ""
    after: str = ""

    def acts(self, history: MemoryHistory) -> list[str]:
        """Return the acts of the approval."""
        if not self.after:
            return [self.proposal.id]
        file = self.file.removeprefix("team/")
        return [line.id for line in history.lines() if (line.file, line.digest) == (file, self.after)][-1:]


class Inbox:
    """The proposals for one store."""

    __slots__ = ("_root", "store")

    def __init__(self, store: DirectoryStore) -> None:
        self.store = store
        self._root = store.root

    def propose_save(self, draft: Draft, *, why: ChangeReason, waits: str = "") -> Proposed:
        planned = self.store.plan(draft)
        return self._add("save", planned.wish.draft, planned.topic.file, planned.before, planned.after, why, waits)

    def propose_removal(self, name: str, *, why: ChangeReason, waits: str = "") -> Proposed | None:
        """Propose a removal; None if the memory does not exist."""
        raw = self.store.raw(name)
        if raw is None:
            return None
        topic = read_topic(raw.file, decode_text(raw.data), 0)
        return self._add("remove", Draft(topic.name), raw.file, raw.data, b"", why, waits)

    def _add(
        self,
        action: Literal["save", "remove"],
        draft: Draft,
        file: str,
        before: bytes | None,
        after: bytes,
        why: ChangeReason,
        waits: str,
    ) -> Proposed:
        proposal = Proposal(
            id=os.urandom(6).hex(),
            time=self.store.clock(),
            scope=self.store.scope,
            action=action,
            file=file,
            why=why,
            base=digest_of(before),
            diff=unified_diff(file, decode_text(before), decode_text(after)),
            waits=waits,
            **msgspec.structs.asdict(draft),
        )
        waiting = self.waiting()
        for other in waiting:
            if all(getattr(other, key) == getattr(proposal, key) for key in ("action", "file", "base", "diff")):
                return Proposed(other.id)
        if len(waiting) >= MOST_PROPOSALS:
            raise InputError(
                "inbox", Text("it is full ({limit} proposals)", limit=MOST_PROPOSALS), "run `lamina inbox` to review them"
            )
        self._put(proposal)
        return Proposed(proposal.id)

    def _put(self, proposal: Proposal) -> None:
        self._root.replace(_path(proposal.id), msgspec.json.encode(proposal, enc_hook=encodable))

    def waiting(self) -> list[Proposal]:
        """Return the proposals, oldest first; files that are not proposals are skipped."""
        proposals = (self._read(name, Proposal) for name in self._names(INBOX))
        return sorted(filter(None, proposals), key=lambda proposal: (proposal.time, proposal.id))

    def _names(self, directory: str) -> list[str]:
        names = (entry.name.removesuffix(".json") for entry in self._root.listdir(directory) if entry.name.endswith(".json"))
        return [name for name in names if _ID.fullmatch(name)]

    def get(self, proposal_id: str) -> Proposal:
        proposal = self._read(proposal_id, Proposal) if _ID.fullmatch(proposal_id) else None
        if proposal is None:
            raise InputError(
                f"proposal {proposal_id!r}", "was not found or is already decided", "run `lamina inbox` to list the pending ones"
            )
        return proposal

    def _read(self, proposal_id: str, type: type[T], directory: str = INBOX) -> T | None:
        data = self._root.read_bytes(_path(proposal_id, directory), _PROPOSAL_BYTES)
        try:
            return msgspec.json.decode(data, type=type) if data is not None else None
        except UNDECODABLE:
            return None

    def accept(self, proposal_id: str) -> Saved | bool:
        """Apply a proposal. Raises InputError if the memory has changed since; the proposal then has the new diff."""
        proposal = self.get(proposal_id)
        raw = self.store.raw(proposal.file)
        data = raw.data if raw is not None else None
        if digest_of(data) != proposal.base or not self._shows_all(proposal, data):
            self._renew(proposal)
            raise InputError(proposal.name, "has changed since this was proposed", "review the new diff, then accept again")
        result: Saved | bool
        why = msgspec.structs.replace(proposal.why, approved=True, act=proposal.id)
        if proposal.action == "save":
            result = self.store.save(proposal.draft, why=why, base=proposal.base)
        else:
            result = self.store.remove(proposal.file, why=why, expected=data)
        self.decide(proposal, accepted=True)
        return result

    def decide(self, proposal: Proposal, *, accepted: bool, edited: bool = False, undo: str = "") -> None:
        """Keep a proposal as decided: it no longer waits. The oldest decisions are dropped."""
        decision = Decision(proposal, accepted, self.store.clock(), edited, undo)
        self._root.replace(_path(proposal.id, DECIDED), msgspec.json.encode(decision, enc_hook=encodable), durability="process")
        self._root.unlink(_path(proposal.id))
        for old in self.decided()[MOST_DECIDED:]:
            self._root.unlink(_path(old.proposal.id, DECIDED))

    def decided(self) -> list[Decision]:
        """Return the decisions that are kept, newest first; files that hold none are skipped."""
        decisions = (self._read(name, Decision, DECIDED) for name in self._names(DECIDED)[: 4 * MOST_DECIDED])
        return sorted(filter(None, decisions), key=lambda decision: (-decision.time, decision.proposal.id))

    def undecide(self, proposal: Proposal) -> None:
        """Let a decided proposal wait again, under its id."""
        if self._read(proposal.id, Proposal) is None:
            self._put(proposal)
        self._root.unlink(_path(proposal.id, DECIDED))

    def _shows_all(self, proposal: Proposal, before: bytes | None) -> bool:
        """Whether the difference of a proposal is that of its content: others may write the directory of a team."""
        after = self.store.plan(proposal.draft).after if proposal.action == "save" else b""
        diff = unified_diff(proposal.file, decode_text(before), decode_text(after))
        return _changed_lines(diff) == _changed_lines(proposal.diff)

    def _renew(self, old: Proposal) -> None:
        if old.action == "save":
            new = self.propose_save(old.draft, why=old.why, waits=old.waits)
        else:
            new = self.propose_removal(old.file, why=old.why, waits=old.waits) or Proposed(old.id)
        if new.id != old.id:
            # Keep the id the user knows.
            self._put(msgspec.structs.replace(self.get(new.id), id=old.id, time=old.time))
            self._root.unlink(_path(new.id))

    def reject(self, proposal_id: str, *, undo: str = "") -> bool:
        """Refuse a proposal; False if it no longer waits."""
        proposal = self._read(proposal_id, Proposal) if _ID.fullmatch(proposal_id) else None
        if proposal is not None:
            self.decide(proposal, accepted=False, undo=undo)
        return proposal is not None


class GatedStore:
    """A store under its scope's mode, with the same contract as the store itself."""

    __slots__ = ("_rules", "inbox", "mode", "store")

    def __init__(self, store: DirectoryStore, mode: Mode, rules: WriteRules = DEFAULT_RULES) -> None:
        self.store = store
        self.mode: Mode = mode
        self._rules = rules
        self.inbox = Inbox(store)

    @property
    def readable(self) -> bool:
        return self.mode != "off"

    def topics(self) -> list[Topic]:
        return self.store.topics() if self.readable else []

    def get(self, name: str) -> Topic | None:
        return self.store.get(name) if self.readable else None

    def index(self) -> str:
        return self.store.index() if self.readable else ""

    def log(self, name: str | None = None) -> list[MemoryVersion]:
        return self.store.log(name) if self.readable else []

    def content(self, version_id: str) -> str | None:
        return self.store.content(version_id) if self.readable else None

    def save(self, draft: Draft, *, why: ChangeReason, base: str | None = None) -> Saved | Proposed:
        """Save a memory. With `base`, only if its file still has that digest; the empty one means that there is no file."""
        draft = msgspec.structs.replace(draft, origin=why.origin or draft.origin or client_origin(why.client))
        may = self._may(why)
        if why.who == "user" and not why.origin:
            return self.store.save(draft, why=why, base=base)
        planned = self.store.plan(draft)
        waits = self._waits(why, planned.topic, planned.topic.file, planned.before)
        if not may or waits:
            return self.inbox.propose_save(draft, why=why, waits=waits)
        # A client may only change the memory that was looked at here.
        judged = digest_of(planned.before) if why.client else None
        return self.store.save(draft, why=why, base=base if base is not None else judged)

    def put(self, file: str, text: str, *, expected: bytes | None, why: ChangeReason) -> Saved | Proposed:
        """Write a whole topic file. A proposal keeps the memory's current name."""
        old = self.store.get(file)
        if why.who != "user":  # a model neither sets nor removes the origin
            text = with_origin(file, text, why.origin or (origin_of(old) if old is not None else ""))
        may = self._may(why)
        if may and why.who == "user":
            return self.store.put(file, text, expected=expected, why=why)
        planned = self.store.plan_text(file, text)
        waits = self._waits(why, planned.topic, file, planned.before)
        if may and not waits:
            return self.store.put(file, text, expected=expected, why=why)
        wish = msgspec.structs.replace(planned.wish.draft, evidence=evidence_of(planned.topic), origin=origin_of(planned.topic))
        wish = wish if old is None else msgspec.structs.replace(wish, name=old.name)
        return self.inbox.propose_save(wish, why=why, waits=waits)

    def note(self, file: str, bullets: Sequence[str], *, why: ChangeReason) -> bytes:
        """Add to a daily log, in confirm mode too: logs become memories only through a dream, and those changes wait."""
        self._may(why)
        return append_bullets(self.store.root, file, bullets, durability=self.store.durability)

    def put_index(self, text: str, *, expected: bytes | None, why: ChangeReason) -> RewrittenIndex:
        if not self._may(why):
            problem = f"is built from accepted memories, because {self.store.scope} memory is in mode confirm"
            raise InputError(INDEX, problem, "no change is needed here")
        return self.store.put_index(text, expected=expected)

    def remove(self, name: str, *, why: ChangeReason) -> bool:
        """Remove a memory; False if it does not exist or the removal waits for approval."""
        return self.drop(name, why=why) is True

    def drop(self, name: str, *, why: ChangeReason, expected: bytes | None = None) -> bool | Proposed:
        """Remove a memory like `remove`, but return the proposal if the removal waits for approval."""
        may, raw = self._may(why), self.store.raw(name)
        waits = self._waits(why, None, raw.file, raw.data) if raw is not None else ""
        if not may or waits:
            return self.inbox.propose_removal(name, why=why, waits=waits) or False
        judged = raw.data if why.client and raw is not None else None
        return self.store.remove(name, why=why, expected=expected if expected is not None else judged)

    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason, base: str | None = None) -> Topic:
        if not self._may(why):
            raise InputError(name, "only the user can restore memories here", self._change_mode())
        return self.store.restore(name, version_id, why=why, base=base)

    def merge(self, draft: Draft, gone: str, *, why: ChangeReason, base: tuple[str, str] | None = None) -> Saved:
        if not self._may(why):
            raise InputError(draft.name, "only the user can merge memories here", self._change_mode())
        return self.store.merge(draft, gone, why=why, base=base)

    def undo(
        self, acts: Collection[str], *, why: ChangeReason, files: Collection[str] | None = None, whole: bool = False
    ) -> UndoneSet:
        """Undo change sets, and withdraw their pending proposals. Proposals that they had withdrawn or approved wait again.

        With `files`, only what they did to these; with `whole`, nothing is done unless all can be.
        """
        if plan_write(self.mode, "user") != "write":
            problem = f"stays, because {self.store.scope} memory is {self.mode}"
            return UndoneSet(left=tuple(change._replace(problem=problem) for change in self.changes(acts)))
        why = msgspec.structs.replace(why, act=why.act or new_act(), undoes=why.undoes or next(iter(acts), ""))
        undone = undo(self.store, acts, why=why, files=files, whole=whole)
        if whole and undone.left:
            return undone
        withdrawn = [proposal for proposal in self._proposed(acts) if files is None or proposal.file in files]
        for proposal in withdrawn:
            self.inbox.reject(proposal.id, undo=why.act)
        decisions = self.inbox.decided()
        approved = {decision.proposal.id for decision in decisions if decision.accepted and not undone.left} & {*acts}
        again = [
            decision.proposal
            for decision in decisions
            if (decision.undo and decision.undo in acts) or decision.proposal.id in approved
        ]
        for proposal in again:
            self.inbox.undecide(proposal)
        return undone._replace(act=why.act if withdrawn or again else undone.act, withdrawn=len(withdrawn), waiting=len(again))

    def take_back(self, proposal: str, *, why: ChangeReason) -> UndoneSet:
        """Undo the decision on a proposal: what an approval changed is undone, and the proposal waits again."""
        decision = next((decision for decision in self.inbox.decided() if decision.proposal.id == proposal), None)
        if decision is None:
            raise InputError(
                f"proposal {proposal!r}", "was not found or is already decided", "run `lamina memory log` to list all changes"
            )
        undone = UndoneSet()
        if decision.accepted:
            undone = self.undo(decision.acts(self.store.history), why=why, whole=True)
        if not undone.left:
            self.inbox.undecide(decision.proposal)
        return undone

    def changes(self, acts: Collection[str]) -> list[SetChange]:
        """Return what the acts changed in memory, without what is undone, and what they proposed."""
        if not self.readable:
            return []
        proposals = self._proposed(acts)
        return [*find_changes(self.store, acts), *(SetChange(wish.name, wish.file, "proposed") for wish in proposals)]

    def _proposed(self, acts: Collection[str]) -> list[Proposal]:
        return [proposal for proposal in self.inbox.waiting() if not acts_of(proposal.why).isdisjoint(acts)]

    def _change_mode(self) -> Text:
        return Text("change the mode of {scope} memory, which is {mode}", scope=Text.whole(self.store.scope), mode=self.mode)

    def check(self, who: ChangeAuthor) -> None:
        """Raise SettingError if nothing by this writer would be accepted, not even as a proposal."""
        self._may(ChangeReason(who))

    def accept(self, proposal_id: str) -> Saved | bool:
        """Apply a proposal. This counts as the user's action, so the mode must allow writing."""
        self._may(ChangeReason("user"))
        return self.inbox.accept(proposal_id)

    def _waits(self, why: ChangeReason, new: Topic | None, file: str, before: bytes | None) -> str:
        """Return why a change waits in every mode; empty if it does not."""
        if why.who == "user" and not why.origin:
            return ""
        from ..guard.admission import why_it_waits  # it compiles many patterns, which reading memories does not need

        old = read_topic(file, decode_text(before), 0) if before is not None else None
        return why_it_waits(why, new, old, self._rules, self._known_of(why.client, file, before) if why.client else None)

    def _known_of(self, client: str, file: str, before: bytes | None) -> ClientKnowledge:
        from ..guard.admission import ClientKnowledge, files_of_client

        lines = list(self.store.history.lines())
        own = files_of_client(lines, client)
        last = next((line for line in reversed(lines) if line.file == file), None)
        by_another = last is not None and last.action == "remove" and (last.why is None or last.why.client != client)
        unchanged = {name for name, digest in own.items() if digest_of(self.store.topic_files.whole(name)) == digest}
        others = [topic for topic in self.store.topics() if topic.file != file and topic.file not in unchanged]
        owns = before is not None and own.get(file) == digest_of(before)
        return ClientKnowledge(owns, before is None and by_another, others)

    def _may(self, why: ChangeReason) -> bool:
        verdict = plan_write(self.mode, why.who, why.origin)
        if verdict == "refuse":
            raise not_allowed(self.store.scope, self.mode, "changed")
        return verdict == "write"


def _changed_lines(diff: str) -> list[str]:
    """Return the lines that a difference adds and removes, without the time of the change."""
    return [line for line in diff.splitlines()[2:] if line.startswith(("+", "-")) and not _STAMP.match(line)]


def client_origin(client: str) -> str:
    """Return what the file of a memory says if an MCP client wrote it."""
    return f"{client} over MCP" if client else ""


def not_allowed(scope: str, mode: Mode, what: str) -> SettingError:
    """Return the error for memory that cannot be read or changed. Memory is also off if `autoMemoryEnabled` is false."""
    remedy = Text("set it to auto or confirm, and autoMemoryEnabled to true" if mode == "off" else "set it to auto or confirm")
    problem = Text("{scope} memory is {mode}, so it cannot be {verb}", scope=Text.whole(scope), mode=mode, verb=Text.whole(what))
    return SettingError("lamina.memoryMode", scope, problem, remedy)


def _path(proposal_id: str, directory: str = INBOX) -> str:
    return f"{directory}/{proposal_id}.json"

"""The changes of a dream as a user checks them: each file before and after, whether it is still so, and what became of each fact.

The texts come from the journal, so they are there for as long as the dream can be undone. Reads only. A fact that the dream moved to
another memory names that memory; one that is found nowhere is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ...memory.guard.facts import FactIndex, is_said, sentences_of
from ...memory.store.change_sets import find_runs
from ...memory.store.contract import MOST_READ
from ...memory.store.directory import DirectoryStore
from ...memory.store.journal import JournalLine, digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.topic_files import decode_text
from .record import DreamRecord

State: TypeAlias = Literal["applied", "undone", "changed", "waiting", "refused"]


class DreamedFile(msgspec.Struct, frozen=True):
    """One file. `before` and `after` are None if there was no such file. `known` is false if a text is no longer kept.

    `state`: as the dream left it, undone, changed by someone since then, waiting for approval, or refused. A refused or withdrawn
    proposal changed nothing.
    """

    file: str
    before: str | None
    after: str | None
    state: State
    known: bool = True


class DreamFact(msgspec.Struct, frozen=True):
    """A fact of a memory before the dream. `now_in` is the file that states it after the dream, empty if none does."""

    number: int
    text: str
    file: str
    now_in: str


def list_dreamed_files(gated: GatedStore, record: DreamRecord) -> list[DreamedFile]:
    """Return the files that the dream changed, then those that it proposed to change."""
    store = gated.store
    runs = find_runs(store.history.lines(), [record.id])
    contents = store.history.contents({digest for run in runs for digest in (run[0].before, run[-1].digest)})
    files = {run[-1].file: _changed(store, run, contents) for run in runs}
    for proposal in gated.inbox.waiting():
        if proposal.why.dream == record.id and proposal.file not in files:
            now = _text(store, proposal.file)
            after = decode_text(store.plan(proposal.draft).after) if proposal.action == "save" else None
            files[proposal.file] = DreamedFile(proposal.file, now, after, "waiting")
    for decision in gated.inbox.decided():
        if decision.proposal.why.dream == record.id and decision.proposal.file not in files:
            now = _text(store, decision.proposal.file)
            files[decision.proposal.file] = DreamedFile(decision.proposal.file, now, now, "refused")
    return [files[file] for file in sorted(files)]


def _changed(store: DirectoryStore, run: list[JournalLine], contents: Mapping[str, str]) -> DreamedFile:
    before, after, file = run[0].before, run[-1].digest, run[-1].file
    digest = digest_of(store.root.read_bytes(file, MOST_READ))
    state: State = "undone" if digest == before else "applied" if digest in {line.digest for line in run} else "changed"
    is_kept = {before, after} - {""} <= contents.keys()
    return DreamedFile(file, contents.get(before), contents.get(after), state, is_kept)


def _text(store: DirectoryStore, file: str) -> str | None:
    data = store.root.read_bytes(file, MOST_READ)
    return None if data is None else decode_text(data)


def list_dream_facts(files: Sequence[DreamedFile], others: Mapping[str, str] | None = None) -> list[DreamFact]:
    """Return all facts of the changed files as they were before the dream, numbered, each with the file that states it now.

    `others` are the texts of memories that the dream did not change: one of them may state what a removed memory stated.
    """
    changed = {memory.file for memory in files}
    after = {memory.file: memory.after for memory in files if memory.after is not None}
    index = FactIndex(after | {file: text for file, text in (others or {}).items() if file not in changed})
    facts: list[DreamFact] = []
    for memory in files:
        for fact, text in sentences_of(memory.before).items() if memory.before is not None else ():
            own = memory.after is not None and is_said(fact, memory.after)
            facts.append(DreamFact(len(facts) + 1, text, memory.file, memory.file if own else index.of(fact) or ""))
    return facts

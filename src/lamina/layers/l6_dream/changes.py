"""The changes of a dream as a user checks them: each file before and after, whether it is still so, and what became of each fact.

The texts come from the copies that the dream's record keeps, and from the journal, so they are there for as long as the dream can be
undone. Reads only. A fact that the dream moved to another memory names that memory; one that is found nowhere is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ...memory.guard.facts import FactIndex, is_said, sentences_of
from ...memory.store.contract import MOST_READ
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore, Proposal
from ...memory.store.topic_files import decode_text
from .record import ChangedFile, DreamRecord, kept_copy
from .undo import dream_digests

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
    digests = dream_digests(gated.store, record)
    waiting = {one.file: one for one in gated.inbox.waiting() if one.why.dream == record.id}
    return [_dreamed(gated, record, change, digests[change.file], waiting.get(change.file)) for change in record.changes]


def _dreamed(
    gated: GatedStore, record: DreamRecord, change: ChangedFile, digests: set[str], waiting: Proposal | None
) -> DreamedFile:
    store = gated.store
    kept = store.root.read_bytes(kept_copy(record, change.file), MOST_READ) if change.before else None
    there = store.root.read_bytes(change.file, MOST_READ)
    digest = digest_of(there)
    before = None if kept is None else decode_text(kept)
    left = change.after if change.after is not None or not digests else digest if digest in digests else min(digests)
    if left is not None:
        state: State = "undone" if digest == change.before else "applied" if digest == left else "changed"
        after = decode_text(there) if there is not None and digest == left else store.history.content_of(left) if left else None
    elif waiting is not None:
        state, after = "waiting", decode_text(store.plan(waiting.draft).after) if waiting.action == "save" else None
    else:
        state, after = "refused", before
    known = digest_of(kept) == change.before and (after is not None or not left)
    return DreamedFile(change.file, before, after, state, known)


def list_dream_facts(files: Sequence[DreamedFile], others: Mapping[str, str] | None = None) -> list[DreamFact]:
    """Return all facts of the changed files as they were before the dream, numbered, each with the file that states it now.

    `others` are the texts of memories that the dream did not change: one of them may state what a removed memory stated.
    """
    changed = {one.file for one in files}
    after = {one.file: one.after for one in files if one.after is not None}
    index = FactIndex(after | {file: text for file, text in (others or {}).items() if file not in changed})
    found: list[DreamFact] = []
    for one in files:
        for fact, text in sentences_of(one.before).items() if one.before is not None else ():
            own = one.after is not None and is_said(fact, one.after)
            found.append(DreamFact(len(found) + 1, text, one.file, one.file if own else index.of(fact) or ""))
    return found

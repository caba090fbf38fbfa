"""Applies a dream's plan to memory as one change set of the store, inside the lock's fence.

Owns the order. First come all checks that need no writing, then the record "applying". The change set has new texts, removals, texts that
take over another memory's name, and the index; its act is the dream's id. Then come changes that need approval, and the record "applied".
Invariants: every change goes through the store with who="dream" and the dream's id, so the journal, redaction, modes and index rules apply
as for anyone else; a file that someone else changed is left alone; a change is never made without the changes it depends on.

After a crash at any line memory is as it was, or as the dream left it: the store undoes an unfinished set, and `recover` undoes the set of
a record that still says "applying". A dream that lost its lock writes nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ...core.errors import DiskError, Fenced, InputError, LaminaError, clause
from ...disk.locks.dream_lock import HeldDreamLock
from ...disk.paths.memory_paths import check_child
from ...language.text import CLAUSES, Text, joined
from ...memory.guard.contradictions import MOST as MOST_QUESTIONS
from ...memory.guard.contradictions import find_contradictions, without_sentence
from ...memory.store.contract import MOST_READ, ChangeReason, Proposed
from ...memory.store.daily_logs import is_found, list_logs, read_log
from ...memory.store.distinct import are_distinct, read_distinct
from ...memory.store.draft import read_draft
from ...memory.store.index import MOST_INDEX, read_entries
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore, plan_write
from ...memory.store.topic import INDEX, PERSONAL, fold_name, origin_of, read_topic
from .directive import MOST_LOGS
from .index_merge import finish_index, index_text, keep_prose, merge_edits, only_added
from .novelty import MOVED, ORIGIN, UNHEARD, KnownWords
from .plan import (
    MOST_WAITING,
    NEW_BEYOND_REMOVED,
    THEIRS,
    TOO_MANY,
    DreamChange,
    DreamPlan,
    find_authors,
    plan_dream,
    propagate_approval,
    require_approval,
    without,
)
from .record import DreamRecord, SkippedChange, is_kill_requested, read_records, write_record
from .stage import DreamStage, read_copy, read_topics
from .undo import take_back

# Limit for the record. A dream that skips more changes than this has gone wrong as a whole.
MOST_SKIPPED = 100
DAY_SECONDS = 24 * 3_600.0
NOT_DUPLICATE = "you said that it is not a duplicate"


def plan_changes(
    gated: GatedStore, stage: DreamStage, *, now: float, new: int = NEW_BEYOND_REMOVED, by_rules: bool = False
) -> DreamPlan:
    """Return the changes of the copy that would be applied now, without applying them. `new` limits the memories added beyond removals.
    `by_rules`: no model has looked at contradictions, so the user is asked about them."""
    work, real = read_copy(stage), read_topics(gated)
    digests = {file: digest_of(text.encode()) for file, text in real.items()}
    authors = find_authors(gated.store.history.lines(), digests)
    # Many small dreams in a row count as one large one.
    day = [one for one in read_records(gated.store.root) if one.status == "completed" and abs(now - one.started) < DAY_SECONDS]
    lately = sum(len(one.removed) for one in day)
    texts = {file: _keep_unchanged(gated, file, text, real.get(file)) for file, text in work.texts.items()}
    judged = plan_dream(stage.base, real, texts, authors=authors, ignored=work.ignored, new=new, lately=lately)
    judged = _hold_back_new(judged, real, _read_logs(gated))
    judged = _hold_back_distinct(gated, judged)
    listing = work.listing if work.listing is not None and work.listing.encode() != stage.listing else None
    if by_rules:
        judged = _ask_about_contradictions(gated, judged)
    skipped = (*judged.skipped, *(SkippedChange(file, why) for file, why in work.ignored.items()))
    return _drop_invalid(gated, judged._replace(listing=listing, skipped=skipped))


def _keep_unchanged(gated: GatedStore, file: str, text: str, real: str | None) -> str:
    """Return a text of the copy, or the real one if the memory would say the same: the store would not write it."""
    if real is None or text == real or not text.strip():
        return text
    try:
        return text if gated.store.plan_text(file, text).differs else real
    except (InputError, DiskError):
        return text  # refused later, with the reason


def _ask_about_contradictions(gated: GatedStore, plan: DreamPlan) -> DreamPlan:
    """Propose to drop the older side of each contradiction, once. An answered question is not asked again until a sentence changes."""
    busy = {change.file for change in plan.changes}
    opposed = find_contradictions(gated.store.topics(), lambda old, new: are_distinct(gated.store, old.file, new.file))
    found = [each for each in opposed if busy.isdisjoint(side.topic.file for side in each)]
    before = next((one.asked for one in read_records(gated.store.root) if one.status == "completed"), ())
    fresh = {each.old.topic.file: each for each in found if each.id not in before}
    asked = list(fresh.values())[:MOST_QUESTIONS]
    texts = ((one, without_sentence(one.old)) for one in asked)
    changes = (DreamChange(one.old.topic.file, text, counts=True, waits=one.why, asks=True) for one, text in texts)
    known = (*(each.id for each in found if each.id in before), *(each.id for each in asked))
    return plan._replace(changes=(*plan.changes, *changes), asked=known)


def _hold_back_new(plan: DreamPlan, real: Mapping[str, str], logs: Sequence[str]) -> DreamPlan:
    """Require approval for memories that say something new, and for what depends on them.

    What a memory about the user says must come from memories about the user, and what came from elsewhere stays marked with its origin.
    """
    known = KnownWords([*real.values(), *logs])
    topics = {file: read_topic(file, text, 0) for file, text in real.items()}
    likes, reasons = dict[tuple[bool, str], KnownWords](), dict[str, str]()
    for change in plan.changes:
        if change.text is None:
            continue
        if known.new_statement(change.text) is not None:
            reasons[change.file] = UNHEARD
            continue
        origin = origin_of(topics[change.file]) if change.file in topics else ""
        key = (_is_personal(change), origin)
        if key not in likes:
            fitting = (file for file, topic in topics.items() if topic.type in PERSONAL or not key[0])
            likes[key] = KnownWords([*(real[file] for file in fitting if origin_of(topics[file]) in ("", origin)), *logs])
        if likes[key].new_statement(change.text) is not None:
            reasons[change.file] = MOVED
    held = (change._replace(waits=change.waits or reasons.get(change.file, "")) for change in plan.changes)
    return propagate_approval(plan._replace(changes=tuple(held))) if reasons else plan


def _hold_back_distinct(gated: GatedStore, plan: DreamPlan) -> DreamPlan:
    """Require approval for removing a memory that the user called distinct from a similar one."""
    apart = {memory for pair in read_distinct(gated.store.root) for memory in pair}
    gone = {change.file for change in plan.changes if apart and change.text is None}
    held = {file for file in gone if gated.store.identity(file) in apart}
    return propagate_approval(require_approval(plan, NOT_DUPLICATE, lambda change: change.file in held)) if held else plan


def _read_logs(gated: GatedStore) -> list[str]:
    """Return the newest daily logs, without the bullets that name another origin."""
    root = gated.store.root
    logs = [read_log(root, each.day) or "" for each in list_logs(root)[:MOST_LOGS]]
    return [line for text in logs for line in text.splitlines() if not is_found(line)]


def _drop_invalid(gated: GatedStore, wanted: DreamPlan) -> DreamPlan:
    """Drop changes that the store would refuse: no front matter, a forbidden path, too long."""
    refused = dict[str, str]()
    for change in wanted.changes:
        if change.text is None:
            continue
        try:
            check_child(gated.store.root.path, change.file)
            read_draft(change.file, change.text, gated.store.get(change.file))
        except (InputError, DiskError) as error:
            refused[change.file] = clause(error, change.file)
    return without(wanted, refused)


def apply_dream(
    gated: GatedStore,
    stage: DreamStage,
    record: DreamRecord,
    hold: HeldDreamLock,
    *,
    now: float,
    new: int = NEW_BEYOND_REMOVED,
    by_rules: bool = False,
) -> DreamRecord:
    """Plan the copy's changes and apply them to memory. The returned record tells the outcome."""
    wanted = plan_changes(gated, stage, now=now, new=new, by_rules=by_rules)
    record = msgspec.structs.replace(record, asked=wanted.asked)
    gated.check("dream")
    if is_kill_requested(gated.store.root, record.id):
        return msgspec.structs.replace(record, status="killed", ended=now)
    record = msgspec.structs.replace(record, phase="applying", files=())
    with hold.fence():
        write_record(gated.store.root, record)
    application = _Application(gated, stage, record, hold)
    try:
        application.apply(wanted)
        return application.applied(now)
    except Fenced:
        raise  # another dream holds the lock, and recovers this one before it begins
    except LaminaError as error:
        with hold.fence():
            take_back(gated, record, now=now, why=str(error))
        raise


class _Application:
    """Applies one plan and collects the results."""

    def __init__(self, gated: GatedStore, stage: DreamStage, record: DreamRecord, hold: HeldDreamLock) -> None:
        self._gated = gated
        # Changes that need approval need it in every mode.
        self._asking = GatedStore(gated.store, "confirm")
        self._writes = plan_write(gated.mode, "dream") == "write"
        self._root = gated.store.root
        self._stage = stage
        self._record = record
        self._hold = hold
        self._before: dict[str, bytes | None] = {}
        self._index: bytes | None = None  # before the change set
        self._done: dict[str, DreamChange] = {}
        self._waiting: list[str] = []
        self._skipped: list[SkippedChange] = []
        self._reordered = False

    def apply(self, wanted: DreamPlan) -> None:
        """Make the changes as one set, then propose those that need approval."""
        self._skipped += wanted.skipped
        with self._hold.fence(), self._gated.store.change_set(ChangeReason("dream", act=self._record.id)):
            self._before = {change.file: self._root.read_bytes(change.file, MOST_READ) for change in wanted.changes}
            self._index = self._root.read_bytes(INDEX, MOST_INDEX)
            theirs = {file for file, data in self._before.items() if digest_of(data) != self._stage.base.get(file, "")}
            known = len(wanted.skipped)
            wanted = without(wanted, dict.fromkeys(theirs, THEIRS))
            self._skipped += wanted.skipped[known:]
            self._needed = {file for change in wanted.changes for file in change.needs}
            later = [change for change in wanted.done if self._has_other_owner(change)]
            for change in (*(change for change in wanted.done if change not in later), *later):
                self._apply_change(change)
            if self._writes and wanted.listing is not None:
                self._apply_index(wanted.listing)
        for change in wanted.waiting:
            with self._hold.fence():
                self._apply_change(change)

    def _has_other_owner(self, change: DreamChange) -> bool:
        """Whether the name still belongs to another memory, which is removed first."""
        if change.text is None:
            return False
        owner = self._gated.store.named(read_topic(change.file, change.text, 0).name)
        return owner is not None and fold_name(owner.file) != fold_name(change.file)

    def _apply_change(self, change: DreamChange) -> None:
        asks = bool(change.waits) or not self._writes
        if asks and len(self._waiting) >= MOST_WAITING:
            self._skip(change.file, TOO_MANY)
            return
        data = self._before[change.file]
        origin = ORIGIN if change.waits == UNHEARD and not _is_personal(change) else ""
        why = ChangeReason("dream", _reason(change), self._record.session, dream=self._record.id, origin=origin)
        gated = self._asking if asks else self._gated
        try:
            put, file = change.text, change.file
            done = gated.drop(file, why=why, expected=data) if put is None else gated.put(file, put, expected=data, why=why)
        except InputError as error:
            self._skip_or_fail(change, clause(error, change.file))
        except DiskError:
            if not self._was_changed(change.file, data):
                raise
            self._skip_or_fail(change, THEIRS)
        else:
            if isinstance(done, Proposed):
                self._waiting.append(done.id)
            elif done is False:
                self._skip(change.file, "was already removed")
            else:
                self._done[change.file] = change

    def _was_changed(self, file: str, data: bytes | None) -> bool:
        """Whether a file has another content than the one before and the one that the dream gave it."""
        history = self._gated.store.history
        try:
            history.catch_up()
            last = history.last(file)
            known = {digest_of(data), last.digest if last is not None else ""}
            return digest_of(self._root.read_bytes(file, MOST_READ)) not in known
        except DiskError:
            return False

    def _skip_or_fail(self, change: DreamChange, why: str) -> None:
        """Skip a change, unless changes that may already be applied depend on it."""
        if change.file in self._needed and not change.waits:
            raise DiskError(change.file, "could not be changed, but other changes of the dream depend on it", why)
        self._skip(change.file, why)

    def _skip(self, file: str, why: str) -> None:
        self._skipped.append(SkippedChange(file, why))

    def _apply_index(self, work: str) -> None:
        base, before = index_text(self._stage.listing), index_text(self._index)
        texts = [change.text for change in self._done.values() if change.text is not None]
        if not only_added(base, before):
            work, both = merge_edits(work, base=base, now=before)
            removed = {fold_name(file) for file, change in self._done.items() if change.text is None}
            for file in (file for file in both if file not in removed):
                self._skip(INDEX, Text("its line for {file} {problem}", file=file, problem=Text.whole(THEIRS)))
        work, lost = keep_prose(before, work, texts)
        for row in lost:
            self._skip(INDEX, Text("keeps its line {row!r}, which no memory contains", row=row[:60]))
        now = self._root.read_bytes(INDEX, MOST_INDEX)
        files = [found.file for found in self._gated.store.topic_files.files()]
        text = finish_index(work, base=base, now=index_text(now), files=files, changed=list(self._done))
        why = ChangeReason("dream", "tidied the index", self._record.session, dream=self._record.id)
        self._gated.put_index(text, expected=now, why=why)
        self._reordered = self._root.read_bytes(INDEX, MOST_INDEX) != now

    def applied(self, now: float) -> DreamRecord:
        removed = [change for change in self._done.values() if change.text is None]
        record = msgspec.structs.replace(
            self._record,
            status="completed",
            phase="applied",
            ended=now,
            files=(*self._done, *((INDEX,) if self._reordered else ())),
            removed=tuple(change.file for change in removed if not change.merged),
            merged=tuple(change.file for change in removed if change.merged),
            added=tuple(file for file in self._done if self._before[file] is None),
            waiting=tuple(self._waiting),
            skipped=_truncate(self._skipped),
            index_lines=(_count_entries(self._index), _count_entries(self._root.read_bytes(INDEX, MOST_INDEX))),
        )
        with self._hold.fence():
            write_record(self._root, record)
        return record


def _count_entries(index: bytes | None) -> int:
    return len(read_entries(index_text(index)))


def _truncate(skipped: list[SkippedChange]) -> tuple[SkippedChange, ...]:
    more = len(skipped) - MOST_SKIPPED
    return (*skipped[:MOST_SKIPPED], *((SkippedChange("", Text("and {more} more", more=more)),) if more > 0 else ()))


def _is_personal(change: DreamChange) -> bool:
    return change.text is not None and read_topic(change.file, change.text, 0).type in PERSONAL


def _reason(change: DreamChange) -> str:
    if change.asks:
        return change.waits
    if change.text is not None:
        said = Text("added" if change.new else "tidied")
    elif change.needs:
        said = Text("merged into {needs}", needs=", ".join(change.needs))
    else:
        said = Text("already covered by another memory" if change.merged else "removed")
    return joined((said, change.waits), CLAUSES) if change.waits else said

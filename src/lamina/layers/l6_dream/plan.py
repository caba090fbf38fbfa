"""Decides which changes of a dream's copy are applied, which need approval, and which are skipped. Pure: texts in, one frozen value out.

The rules, in the order they are checked:
- A file that someone else changed since the copy was made is theirs: the dream's version is skipped.
- A file that is missing or empty in the copy is a removal. If another memory contains all of its facts afterwards, it is a merge.
  A memory that grows beyond a few pages cannot take over facts.
- Removals that are not merges count, and so do rewrites that keep less than half of a memory. If more count than a tenth of the topic
  files (at least two), including removals by dreams of the last day, all of them need approval. The same holds if a file of the copy
  cannot be read.
- Rewrites that each keep more than half may together drop a tenth of all facts (at least ten). Beyond that they need approval too.
- A memory written by the user, and changed only by dreams since, is never removed or emptied without approval.
- Memories about the user (types user and feedback) stay that way. A fact moved to a memory of another type counts as lost, and changing
  such a memory's type needs approval.
- If a change is not made, neither are the changes that depend on it, such as a merge on the text that takes over the facts.
- A dream may add as many files as it removes, plus five, and more for pending daily logs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from ...language.text import Text
from ...memory.guard.facts import FactIndex, dropped, exact_words, facts_of, is_emptied, is_said
from ...memory.store.contract import ChangeAuthor
from ...memory.store.journal import JournalLine, digest_of
from ...memory.store.topic import PERSONAL, fold_name, name_key, read_topic
from .record import SkippedChange

Author: TypeAlias = ChangeAuthor | Literal["outside"]

# A tenth of the topic files, or two if there are few.
SHARE = 10
LEAST = 2
# Wrong facts must be removable even from the smallest memory: this many at once.
LEAST_FACTS = 10
# At least five sessions lie between two dreams: one new memory for each.
NEW_BEYOND_REMOVED = 5
# The most that one daily log adds. A day with more is chatter.
NEW_A_LOG = 10
# A few pages. Recall shows only the beginning of a longer memory, so text added beyond that is as good as lost.
MOST_CHARS = 16_000
# More than anyone reviews for one dream. The rest is reported and skipped.
MOST_WAITING = 40

TOO_MANY = Text("exceeds the limit of {limit} changes that may wait for approval", limit=MOST_WAITING)
RETYPED = "would no longer be a memory about you or your preferences"
THEIRS = "was changed by someone else while the dream ran; their version stays"


class DreamChange(NamedTuple):
    """A change to one file. `text` None removes it. `needs` are the changed files that take over its facts. `counts`: it counts against
    the cap. `drops` is the number of facts a rewrite leaves out. `waits` is the reason for an approval, empty if none is needed.
    `asks`: that reason is a question to the user, with the change as one of its answers."""

    file: str
    text: str | None
    new: bool = False
    needs: tuple[str, ...] = ()
    counts: bool = False
    drops: int = 0
    waits: str = ""
    asks: bool = False

    @property
    def merged(self) -> bool:
        return self.text is None and not self.counts


class DreamPlan(NamedTuple):
    """The changes in order: texts, then removals. `listing` is the index the dream wants, None to keep it."""

    changes: tuple[DreamChange, ...] = ()
    skipped: tuple[SkippedChange, ...] = ()
    listing: str | None = None
    asked: tuple[str, ...] = ()  # the contradictions that this dream knows

    @property
    def done(self) -> tuple[DreamChange, ...]:
        return tuple(change for change in self.changes if not change.waits)

    @property
    def waiting(self) -> tuple[DreamChange, ...]:
        return tuple(change for change in self.changes if change.waits)


def removal_cap(topics: int) -> int:
    """Return how many counted removals a dream may make without approval."""
    return max(LEAST, topics // SHARE)


def plan_dream(
    base: Mapping[str, str],
    there: Mapping[str, str],
    work: Mapping[str, str],
    *,
    authors: Mapping[str, Author],
    ignored: Collection[str] = (),
    new: int = NEW_BEYOND_REMOVED,
    lately: int = 0,
) -> DreamPlan:
    """Plan the changes. `base`: the copied files with their original digests; `there`: the texts of all topic files now; `work`: the
    texts of the copy now. `ignored` are entries of the copy that do not count; they are not taken for removals. `new`: how many files may
    be added beyond those removed; daily logs raise it. `lately`: how many memories dreams have removed within a day."""
    ignored = frozenset(ignored)
    wanted, refused = _find_changes(base, there, work, ignored)
    ordered = sorted(_judge_changes(wanted, there, authors), key=lambda change: (change.text is None, change.file))
    whole = not any(file.endswith(".md") for file in ignored) and not any(_is_covered(file, ignored) for file in base)
    done = _apply_cap(without(DreamPlan(tuple(ordered)), refused), len(base), lately, whole=whole)
    done = _limit_counts(propagate_approval(_limit_drops(done, there)), new)
    return without(done, _find_name_clashes(done, there))


def _apply_cap(plan: DreamPlan, topics: int, lately: int, *, whole: bool) -> DreamPlan:
    """Require approval for everything that counts if it is too much, or if parts of the copy could not be read (not `whole`)."""
    counts = sum(change.counts for change in plan.changes)
    if counts + lately <= removal_cap(topics) and whole:
        return plan
    besides = Text(" (dreams of the last day removed {lately})", lately=lately) if lately else ""
    cap = Text("the limit without approval is {limit}", limit=removal_cap(topics))
    why = Text(
        "the dream would remove or empty {counts} of {n} memory{besides}; {cap}|the dream would remove or "
        "empty {counts} of {n} memories{besides}; {cap}",
        counts=counts,
        n=topics,
        besides=besides,
        cap=cap,
    )
    why = why if whole else Text("part of what the dream wrote could not be read")
    return require_approval(plan, why, lambda change: change.counts)


def _limit_drops(plan: DreamPlan, there: Mapping[str, str]) -> DreamPlan:
    """Require approval if many small rewrites together drop as much as one large removal."""
    drops, said = sum(change.drops for change in plan.changes), 0
    if drops <= LEAST_FACTS:
        return plan
    for text in there.values():
        said += len(facts_of(text).each)
        if said >= SHARE * drops:
            return plan  # a large memory need not be counted completely
    why = Text(
        "the dream would drop {drops} of {n} fact; the limit without approval is a tenth|the dream would "
        "drop {drops} of {n} facts; the limit without approval is a tenth",
        drops=drops,
        n=said,
    )
    return require_approval(plan, why, lambda change: change.drops > 0)


def require_approval(plan: DreamPlan, why: str, which: Callable[[DreamChange], bool]) -> DreamPlan:
    changes = (change._replace(waits=change.waits or why) if which(change) else change for change in plan.changes)
    return plan._replace(changes=tuple(changes))


def _find_changes(
    base: Mapping[str, str], there: Mapping[str, str], work: Mapping[str, str], ignored: Collection[str]
) -> tuple[list[DreamChange], dict[str, str]]:
    """Return all differences, and the refused files with reasons. A merge into a refused file is judged as a merge, but not made."""
    wanted, refused = list[DreamChange](), dict[str, str]()
    for file, digest in base.items():
        text = work.get(file)
        if _is_covered(file, ignored) or (text is not None and digest_of(text.encode()) == digest):
            continue
        wanted.append(DreamChange(file, text if text is not None and text.strip() else None))
        if file not in there or digest_of(there[file].encode()) != digest:
            refused[file] = THEIRS
    taken = {fold_name(file) for file in there}
    for file, text in work.items():
        if file in base or not text.strip():
            continue
        wanted.append(DreamChange(file, text, new=True))
        if fold_name(file) in taken:
            refused[file] = "is the file of another memory, which stays"
        taken.add(fold_name(file))
    return wanted, refused


def _is_covered(file: str, ignored: Collection[str]) -> bool:
    """Whether an ignored entry stands in place of this file or of a directory above it."""
    parts = file.split("/")
    return any("/".join(parts[:depth]) in ignored for depth in range(1, len(parts) + 1))


def _judge_changes(wanted: list[DreamChange], there: Mapping[str, str], authors: Mapping[str, Author]) -> list[DreamChange]:
    """Add to each change what it depends on, whether it counts, and whether the user wrote the file."""
    texts = {change.file: change.text for change in wanted if change.text is not None}
    gone = {change.file for change in wanted if change.text is None}
    others = FactIndex({file: text for file, text in there.items() if file not in texts and file not in gone})
    pages = {file: text for file, text in texts.items() if len(text) <= max(MOST_CHARS, len(there.get(file, "")))}
    return [_judge_change(change, there, pages, others, authors) for change in wanted]


def _judge_change(
    change: DreamChange,
    there: Mapping[str, str],
    texts: Mapping[str, str],
    others: FactIndex,
    authors: Mapping[str, Author],
) -> DreamChange:
    if change.new or change.file not in there:
        return change
    old = there[change.file]
    own, fits = () if change.text is None else (change.text,), _fits(old)
    needs, told, lost = dict[str, None](), set[str](), False
    for fact in facts_of(old).each:
        if any(is_said(fact, text) for text in own):
            continue
        # Changed texts first: that is where the facts of a merge go.
        tellers = (file for file, text in texts.items() if file != change.file and is_said(fact, text) and fits(text))
        teller = next(tellers, None)
        if teller is not None:
            needs[teller] = None
        elif not lost and (elsewhere := others.of(fact, fits)) is not None:
            told.add(elsewhere)
        else:
            lost = True
    moved = [texts[file] for file in needs]
    spelled = {word for text in (*own, *moved, *(there[file] for file in told)) for word in exact_words(text)}
    lost = lost or not exact_words(old) <= spelled
    counts = lost and (change.text is None or is_emptied(old, [*own, *moved]))
    drops = dropped(old, [*own, *moved]) if lost and not counts else 0
    by_person = authors.get(change.file, "outside") in ("user", "outside") and (change.text is None or counts)
    waits = "you wrote it" if by_person else "" if all(map(fits, own)) else RETYPED
    return change._replace(needs=tuple(needs), counts=counts, drops=drops, waits=waits)


def _fits(old: str) -> Callable[[str], bool]:
    """Return which texts may take over this one's facts: for memories about the user, only memories of that kind."""
    return _is_personal if _is_personal(old) else lambda _: True


def _is_personal(text: str) -> bool:
    return read_topic("", text, 0).type in PERSONAL


def propagate_approval(plan: DreamPlan) -> DreamPlan:
    """Require approval for changes that depend on a change that needs it."""
    waiting = {change.file for change in plan.waiting}
    changes = plan.changes
    while more := {change.file for change in changes if not change.waits and not waiting.isdisjoint(change.needs)}:
        why = "depends on a change that needs approval"
        changes = tuple(change._replace(waits=why) if change.file in more else change for change in changes)
        waiting |= more
    return plan._replace(changes=changes)


def _limit_counts(plan: DreamPlan, most: int) -> DreamPlan:
    """Limit new files, keeping those that others depend on, and limit approvals to what someone would read."""
    needed = {file for change in plan.changes for file in change.needs}
    new = sorted((change.file for change in plan.done if change.new), key=lambda file: (file not in needed, file))
    room = sum(change.text is None for change in plan.done) + most
    why = Text(
        "exceeds the limit: this dream may add at most {n} memory more than it removes|exceeds the limit: "
        "this dream may add at most {n} memories more than it removes",
        n=most,
    )
    many = [change.file for change in plan.waiting][MOST_WAITING:]
    return without(plan, dict.fromkeys(new[room:], why) | dict.fromkeys(many, TOO_MANY))


def _find_name_clashes(plan: DreamPlan, there: Mapping[str, str]) -> dict[str, str]:
    """Find files whose name will belong to another memory: one that stays, or an earlier one."""
    changed = {change.file: _topic_name(change.file, change.text) for change in plan.done if change.text is not None}
    if all(file in there and name_key(_topic_name(file, there[file])) == name_key(name) for file, name in changed.items()):
        return {}  # no name changes
    gone = {change.file for change in plan.done}
    owners = {name_key(_topic_name(file, text)): file for file, text in there.items() if file not in gone}
    found = dict[str, str]()
    for file, name in changed.items():
        owner = owners.setdefault(name_key(name), file)
        if owner != file:
            found[file] = Text("has the name {name!r}, which the memory in {owner} already has", name=name, owner=owner)
    return found


def _topic_name(file: str, text: str) -> str:
    return read_topic(file, text, 0).name


def without(plan: DreamPlan, refused: Mapping[str, str]) -> DreamPlan:
    """Return the plan without these changes (file → reason) and without the changes that depend on them."""
    gone = dict(refused)
    while more := {
        change.file: Text("depends on {file}, which was not changed", file=next(file for file in change.needs if file in gone))
        for change in plan.changes
        if change.file not in gone and any(file in gone for file in change.needs)
    }:
        gone |= more
    here = {change.file for change in plan.changes}
    return DreamPlan(
        tuple(change for change in plan.changes if change.file not in gone),
        (*plan.skipped, *(SkippedChange(file, why) for file, why in gone.items() if file in here)),
        plan.listing,
        plan.asked,
    )


def find_authors(lines: Iterable[JournalLine], digests: Mapping[str, str]) -> dict[str, Author]:
    """Return the author of each file (file → digest) in its current state; "outside" if the journal has no line for it. Reverted changes
    have no author. A file that a dream tidied keeps its author, or a second dream could remove it without approval."""
    wrote = dict[tuple[str, str], Author]()
    for line in lines:
        if line.action == "rename":
            wrote[line.file, line.digest] = wrote.get((line.was, line.digest), "outside")
            continue
        if not line.digest or _has_no_author(line):
            continue
        who: Author = line.why.who if line.why is not None else "outside"
        own = who != "dream" or not line.before
        wrote[line.file, line.digest] = who if own else wrote.get((line.file, line.before), "outside")
    return {file: wrote.get((file, digest), "outside") for file, digest in digests.items()}


def _has_no_author(line: JournalLine) -> bool:
    put_back = line.action == "restore" and line.why is not None and line.why.dream is not None
    return put_back or line.action in ("undone", "keep")

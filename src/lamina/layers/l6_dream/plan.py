"""What of a dream's copy becomes real, what waits for a yes, and what is left (B4). Pure: texts in, one frozen value out.

The rules, in the order in which they decide:
- A file that somebody else changed since the copy was made is theirs: the dream's version of it is left.
- A file that is gone from the copy, or empty there, is a removal. A removal whose every fact another memory says afterwards is a merge;
  a memory that grows beyond a few pages takes over nothing.
- A removal that is no merge counts, and so does a rewrite that leaves less than half of what a memory said. If more count than a
  tenth of the topic files (at least two), those that dreams of the last day removed included, all of them wait; so they do where a
  file of the copy cannot be read.
- Rewrites that each leave more than half may together take out a tenth of all facts (at least ten); beyond that they wait too.
- What a person wrote, and only dreams changed since, is never removed or emptied without a yes.
- What is known of the person (user, feedback) stays that: moved to a memory of another type it counts as gone, and a memory of theirs
  changes to another type only with a yes.
- A change that rests on another one (a merge on the text that took the facts over) has that one's fate, if it is not made.
- New files: as many as go, and five; more where daily logs wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from ...memory.store.contract import ChangeAuthor
from ...memory.store.journal import JournalLine, digest_of
from ...memory.store.topic import PERSONAL, fold_name, name_key, read_topic
from .facts import FactIndex, dropped, exact_words, facts_of, is_emptied, is_said
from .record import SkippedChange

Author: TypeAlias = ChangeAuthor | Literal["outside"]

# B4: a tenth of the topic files, and two where there are few.
SHARE = 10
LEAST = 2
# What turned out to be wrong is to be taken out: in the smallest memory, so many facts at once.
LEAST_FACTS = 10
# Five sessions lie between two dreams (D1): a new memory for each.
NEW_BEYOND_REMOVED = 5
# What one day's log adds at most: a day of more is a day of chatter.
NEW_A_LOG = 10
# Some pages: of a longer memory only the beginning is recalled, so what is put behind that is as good as gone.
MOST_CHARS = 16_000
# More than anybody looks through for one dream; the rest is said and left.
MOST_WAITING = 40

TOO_MANY = f"at most {MOST_WAITING} changes of a dream wait for a yes"
RETYPED = "it would not be a memory about you or your wishes any more"
THEIRS = "was changed by somebody else while the dream ran; theirs stays"


class DreamChange(NamedTuple):
    """What happens to one file. `text` None: it is removed. `needs`: the changed files that take over what it said. `counts`: against
    the cap. `drops`: how many facts a rewrite leaves out. `waits`: why a person is asked first; empty: it is just done."""

    file: str
    text: str | None
    new: bool = False
    needs: tuple[str, ...] = ()
    counts: bool = False
    drops: int = 0
    waits: str = ""

    @property
    def merged(self) -> bool:
        return self.text is None and not self.counts


class DreamPlan(NamedTuple):
    """In the order of doing: texts, then removals. `listing`: the index as the dream wants it; None: as it is."""

    changes: tuple[DreamChange, ...] = ()
    skipped: tuple[SkippedChange, ...] = ()
    listing: str | None = None

    @property
    def done(self) -> tuple[DreamChange, ...]:
        return tuple(change for change in self.changes if not change.waits)

    @property
    def waiting(self) -> tuple[DreamChange, ...]:
        return tuple(change for change in self.changes if change.waits)


def removal_cap(topics: int) -> int:
    """How many removals that count a dream may make by itself."""
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
    """`base`: the copied files with their digests then; `there`: the texts of all topic files now; `work`: those of the copy now.
    `ignored` are entries of the copy that count for nothing: no removal is read into them. `new`: how many files may be added beyond
    those that go; daily logs make it more. `lately`: how many memories dreams have removed within a day already."""
    ignored = frozenset(ignored)
    wanted, refused = _wanted(base, there, work, ignored)
    ordered = sorted(_judged(wanted, there, authors), key=lambda change: (change.text is None, change.file))
    whole = not any(file.endswith(".md") for file in ignored) and not any(_covered(file, ignored) for file in base)
    done = _capped(without(DreamPlan(tuple(ordered)), refused), len(base), lately, whole=whole)
    done = _bounded(_settled(_thinned(done, there)), new)
    return without(done, _clashes(done, there))


def _capped(plan: DreamPlan, topics: int, lately: int, *, whole: bool) -> DreamPlan:
    """Everything that counts waits where it is too much, or where what could not be read (`whole`) may hold what is to go."""
    counted = sum(change.counts for change in plan.changes)
    if counted + lately <= removal_cap(topics) and whole:
        return plan
    besides = f" (dreams of the last day removed {lately})" if lately else ""
    why = f"the dream would remove or empty {counted} of {topics} memories{besides}; more than {removal_cap(topics)} need a yes"
    why = why if whole else "a part of what the dream wrote could not be read"
    return _waiting(plan, why, lambda change: change.counts)


def _thinned(plan: DreamPlan, there: Mapping[str, str]) -> DreamPlan:
    """Many rewrites that each leave something out are together what one removal of many memories is."""
    drops, said = sum(change.drops for change in plan.changes), 0
    if drops <= LEAST_FACTS:
        return plan
    for text in there.values():
        said += len(facts_of(text).each)
        if said >= SHARE * drops:
            return plan  # a large memory need not be counted to its end
    why = f"the dream would take {drops} of {said} facts out of memories; more than a tenth need a yes"
    return _waiting(plan, why, lambda change: change.drops > 0)


def _waiting(plan: DreamPlan, why: str, which: Callable[[DreamChange], bool]) -> DreamPlan:
    changes = (change._replace(waits=change.waits or why) if which(change) else change for change in plan.changes)
    return plan._replace(changes=tuple(changes))


def _wanted(
    base: Mapping[str, str], there: Mapping[str, str], work: Mapping[str, str], ignored: Collection[str]
) -> tuple[list[DreamChange], dict[str, str]]:
    """All that differs; and what of it is not to be, with the reason: a merge into such a file is judged as one, and not made."""
    wanted, refused = list[DreamChange](), dict[str, str]()
    for file, digest in base.items():
        text = work.get(file)
        if _covered(file, ignored) or (text is not None and digest_of(text.encode()) == digest):
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
            refused[file] = "is the file of another memory; that one stays"
        taken.add(fold_name(file))
    return wanted, refused


def _covered(file: str, ignored: Collection[str]) -> bool:
    """Whether something that counts for nothing stands in the place of a file, or of a directory above it."""
    parts = file.split("/")
    return any("/".join(parts[:depth]) in ignored for depth in range(1, len(parts) + 1))


def _judged(wanted: list[DreamChange], there: Mapping[str, str], authors: Mapping[str, Author]) -> list[DreamChange]:
    """Each with what it rests on, whether it counts and whether a person wrote it."""
    texts = {change.file: change.text for change in wanted if change.text is not None}
    gone = {change.file for change in wanted if change.text is None}
    others = FactIndex({file: text for file, text in there.items() if file not in texts and file not in gone})
    pages = {file: text for file, text in texts.items() if len(text) <= max(MOST_CHARS, len(there.get(file, "")))}
    return [_one(change, there, pages, others, authors) for change in wanted]


def _one(
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
        # Changed texts first: there the facts of a merge went.
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
    waits = "a person wrote it" if by_person else "" if all(map(fits, own)) else RETYPED
    return change._replace(needs=tuple(needs), counts=counts, drops=drops, waits=waits)


def _fits(old: str) -> Callable[[str], bool]:
    """Whether another text may say what this one says: of the person only what is about them."""
    return _is_personal if _is_personal(old) else lambda _: True


def _is_personal(text: str) -> bool:
    return read_topic("", text, 0).type in PERSONAL


def _settled(plan: DreamPlan) -> DreamPlan:
    """What rests on a change that waits, waits too."""
    waiting = {change.file for change in plan.waiting}
    changes = plan.changes
    while more := {change.file for change in changes if not change.waits and not waiting.isdisjoint(change.needs)}:
        why = "it rests on a change that waits for a yes"
        changes = tuple(change._replace(waits=why) if change.file in more else change for change in changes)
        waiting |= more
    return plan._replace(changes=changes)


def _bounded(plan: DreamPlan, most: int) -> DreamPlan:
    """No more new files than may be, those that others rest on first; and no more waiting than anybody reads."""
    needed = {file for change in plan.changes for file in change.needs}
    new = sorted((change.file for change in plan.done if change.new), key=lambda file: (file not in needed, file))
    room = sum(change.text is None for change in plan.done) + most
    why = f"this dream may add at most {most} memories more than it removes"
    many = [change.file for change in plan.waiting][MOST_WAITING:]
    return without(plan, dict.fromkeys(new[room:], why) | dict.fromkeys(many, TOO_MANY))


def _clashes(plan: DreamPlan, there: Mapping[str, str]) -> dict[str, str]:
    """Files whose name another memory will have: one that stays, or one that comes first."""
    changed = {change.file: _name(change.file, change.text) for change in plan.done if change.text is not None}
    if all(file in there and name_key(_name(file, there[file])) == name_key(name) for file, name in changed.items()):
        return {}  # nobody has another name than before
    gone = {change.file for change in plan.done}
    owners = {name_key(_name(file, text)): file for file, text in there.items() if file not in gone}
    found = dict[str, str]()
    for file, name in changed.items():
        owner = owners.setdefault(name_key(name), file)
        if owner != file:
            found[file] = f"{name!r} is the name of the memory in {owner} already"
    return found


def _name(file: str, text: str) -> str:
    return read_topic(file, text, 0).name


def without(plan: DreamPlan, refused: Mapping[str, str]) -> DreamPlan:
    """The plan without these changes (file → why), and without what rests on them."""
    gone = dict(refused)
    while more := {
        change.file: f"it rests on {next(file for file in change.needs if file in gone)}, which was not changed"
        for change in plan.changes
        if change.file not in gone and any(file in gone for file in change.needs)
    }:
        gone |= more
    here = {change.file for change in plan.changes}
    return DreamPlan(
        tuple(change for change in plan.changes if change.file not in gone),
        (*plan.skipped, *(SkippedChange(file, why) for file, why in gone.items() if file in here)),
        plan.listing,
    )


def find_authors(lines: Iterable[JournalLine], digests: Mapping[str, str]) -> dict[str, Author]:
    """Who wrote each file (file → digest) as it is now. What no line of the journal tells was written outside. A change that was
    taken back is nobody's, and what a dream brought in order is still whose it was: else a second dream could remove it unasked."""
    wrote = dict[tuple[str, str], Author]()
    for line in lines:
        if line.file not in digests or not line.digest or _tells_nothing(line):
            continue
        who: Author = line.why.who if line.why is not None else "outside"
        own = who != "dream" or not line.before
        wrote[line.file, line.digest] = who if own else wrote.get((line.file, line.before), "outside")
    return {file: wrote.get((file, digest), "outside") for file, digest in digests.items()}


def _tells_nothing(line: JournalLine) -> bool:
    put_back = line.action == "restore" and line.why is not None and line.why.dream is not None
    return put_back or line.action in ("undone", "keep")

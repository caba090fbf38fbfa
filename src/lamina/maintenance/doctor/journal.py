"""What the journal, the inbox and the records of dreams show: damage, changes nobody made through us, proposals that wait, dreams
that were stopped or hang (B4, B5, Z5, Z12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.wording import counted
from ...disk.locks.dream_lock import DreamLock
from ...disk.trees.rootdir import RootDir
from ...layers.l6_dream.record import DIRECTORY, dream_home, dream_ids, is_open, read_records
from ...memory.store.journal_check import Damage, cache_damage
from .finding import Finding, PathFix
from .memory_snapshot import MemorySnapshot, day_of

# A proposal that was not looked at for two weeks is forgotten.
LONG_WAIT_SECONDS = 14 * 86_400.0
# A dream ends itself after 55 minutes; one that runs after an hour hangs.
LONG_DREAM_SECONDS = 3_600.0
_NAMED = 5


def check_journal(memory: MemorySnapshot) -> Iterator[Finding]:
    for damage in memory.journal.damage:
        yield _damage(memory, "journal-damage", damage)
    for damage in memory.waiting.damage:
        yield _damage(memory, "inbox-damage", damage)
    with RootDir.open(memory.where.path, create=False, shared=memory.where.shared) as root:
        if (cache := cache_damage(root)) is not None:
            yield _damage(memory, "cache-damage", cache)
    yield from _outside(memory)
    for proposal in memory.waiting.proposals:
        if memory.now - proposal.time > LONG_WAIT_SECONDS:
            day = day_of(proposal.time)
            text = f"A proposal about {proposal.name} waits for a yes since {day.isoformat() if day else 'long ago'}."
            advice = f"lamina inbox shows it; lamina inbox accept {proposal.id} says yes."
            yield Finding("memory", "waiting-long", text, advice=advice)


def _damage(memory: MemorySnapshot, kind: str, damage: Damage) -> Finding:
    lines = f"{counted(len(damage.lines), 'line', 'lines')} of " if damage.lines else ""
    line = damage.lines[0] if damage.lines else None
    return memory.finding(kind, f"{lines}{damage.file} {damage.problem}.", damage.file, line=line)


def _outside(memory: MemorySnapshot) -> Iterator[Finding]:
    """Who wrote what is there: memory can come from a hand, another program, or somebody who should not have written it."""
    last, there = memory.journal.last, memory.files
    digests = {page.topic.file: page.digest for page in memory.pages}
    changed = [file for file, digest in digests.items() if file in last and digest != last[file].digest]
    unknown = [file for file in digests if file not in last]
    for files, text in ((changed, "changed since Lamina wrote them"), (unknown, "there that Lamina did not write")):
        if files:
            yield memory.finding("changed-outside", _named(files, text), files[0] if len(files) == 1 else "")
    gone = [file for file, line in last.items() if line.digest and file not in there]
    if gone:
        # The newest change of all may be a save that was stopped before its file was there.
        newest = next(reversed(last.values()))
        never = ", or was never there because its save did not finish" if gone == [newest.file] and not newest.before else ""
        text = _named(gone, f"gone, and not through Lamina{never}")
        yield memory.finding("gone-outside", text, advice=f"To bring one back: lamina memory restore {gone[0]}")


def _named(files: list[str], what: str) -> str:
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return f"{counted(len(files), 'memory is', 'memories are')} {what}: {', '.join(files[:_NAMED])}{more}."


def check_dreams(memory: MemorySnapshot) -> Iterator[Finding]:
    if memory.where.shared or not any(seen.path == DIRECTORY for seen in memory.found.entries):
        return
    with RootDir.open(memory.where.path, create=False) as root:
        known = read_records(root)
        holder = DreamLock(root).holder()
        lost = sorted(set(dream_ids(root)) - {record.id for record in known})
    running, fix = holder is not None and holder.alive, PathFix("put-right", str(memory.where.path))
    for record in filter(is_open, known):
        if not running:
            changing = record.phase in ("applying", "undoing")
            text = f"Dream {record.id} was stopped {'while it changed memories' if changing else 'before it changed anything'}."
            yield memory.finding("dream-stopped", text, dream_home(record.id), fix=fix)
        elif memory.now - record.started > LONG_DREAM_SECONDS:
            text = f"Dream {record.id} runs for {(memory.now - record.started) / 60:,.0f} minutes."
            yield memory.finding("dream-long", text, dream_home(record.id))
    if lost and not running:
        text = f"{counted(len(lost), 'dream has', 'dreams have')} no record that can be read: {', '.join(lost[:3])}."
        place, advice = memory.full(dream_home(lost[0])), "What is left of it is removed."
        yield Finding("memory", "dream-stopped", text, place, fix=fix, advice=advice)

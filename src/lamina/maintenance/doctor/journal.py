"""Check the journal, the inbox and dream records: damage, changes made outside Lamina, old pending changes, interrupted or
hanging dreams (B4, B5, Z5, Z12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...disk.locks.dream_lock import DreamLock
from ...disk.trees.rootdir import RootDir
from ...language.wording import counted
from ...layers.l6_dream.record import DIRECTORY, dream_home, dream_ids, is_open, read_records
from ...memory.store.journal_check import Damage, cache_damage
from .finding import Finding, PathFix
from .memory_snapshot import MemorySnapshot, day_of

# A change pending for two weeks was probably overlooked.
LONG_WAIT_SECONDS = 14 * 86_400.0
# A dream stops itself after 55 minutes; one that runs for an hour hangs.
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
            since = f"since {day.isoformat()}" if day else "for a long time"
            text = f"A change to {proposal.name} has been pending {since}."
            advice = f"Run `lamina inbox` to review it, or `lamina inbox accept {proposal.id}` to accept it."
            yield Finding("memory", "waiting-long", text, advice=advice)


def _damage(memory: MemorySnapshot, kind: str, damage: Damage) -> Finding:
    lines = f"{counted(len(damage.lines), 'line', 'lines')} of " if damage.lines else ""
    line = damage.lines[0] if damage.lines else None
    return memory.finding(kind, f"{lines}{damage.file} {damage.problem}.", damage.file, line=line)


def _outside(memory: MemorySnapshot) -> Iterator[Finding]:
    """Report files that Lamina did not write: they may come from the user, another program or an attacker."""
    last, there = memory.journal.last, memory.files
    digests = {page.topic.file: page.digest for page in memory.pages}
    changed = [file for file, digest in digests.items() if file in last and digest != last[file].digest]
    unknown = [file for file in digests if file not in last]
    for files, verb in ((changed, "changed"), (unknown, "added")):
        if files:
            yield memory.finding("changed-outside", _named(files, f"{verb} outside Lamina"), files[0] if len(files) == 1 else "")
    gone = [file for file, line in last.items() if line.digest and file not in there]
    if gone:
        # The newest change may be a save that was interrupted before its file was written.
        newest = next(reversed(last.values()))
        never = " (or never written, if its save was interrupted)" if gone == [newest.file] and not newest.before else ""
        text = _named(gone, f"removed outside Lamina{never}")
        yield memory.finding("gone-outside", text, advice=f"Run `lamina memory restore {gone[0]}` to bring it back.")


def _named(files: list[str], what: str) -> str:
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return f"{counted(len(files), 'memory was', 'memories were')} {what}: {', '.join(files[:_NAMED])}{more}."


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
            text = f"Dream {record.id} was interrupted {'while changing memories' if changing else 'before it changed anything'}."
            yield memory.finding("dream-stopped", text, dream_home(record.id), fix=fix)
        elif memory.now - record.started > LONG_DREAM_SECONDS:
            text = f"Dream {record.id} has been running for {(memory.now - record.started) / 60:,.0f} minutes."
            yield memory.finding("dream-long", text, dream_home(record.id))
    if lost and not running:
        text = f"{counted(len(lost), 'dream has', 'dreams have')} no readable record: {', '.join(lost[:3])}."
        place, advice = memory.full(dream_home(lost[0])), "Run `lamina doctor --fix` to remove what is left of it."
        yield Finding("memory", "dream-stopped", text, place, fix=fix, advice=advice)

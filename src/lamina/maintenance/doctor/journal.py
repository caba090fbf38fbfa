"""What the journal and the inbox show: damage, changes nobody made through us, proposals that wait (B4, B5, Z12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...disk.trees.rootdir import RootDir
from ...memory.store.journal_check import Damage, cache_damage
from .finding import Finding
from .memory_snapshot import Reading, day_of

# A proposal that was not looked at for two weeks is forgotten.
LONG_SECONDS = 14 * 86_400.0
_NAMED = 5


def check_trail(reading: Reading) -> Iterator[Finding]:
    for damage in reading.journal.damage:
        yield _damage(reading, "journal-damage", damage, "Nothing to do: later changes are recorded as before.")
    for damage in reading.waiting.damage:
        yield _damage(reading, "inbox-damage", damage, "Remove it.")
    with RootDir.open(reading.where.path, create=False, shared=reading.where.shared) as root:
        if (cache := cache_damage(root)) is not None:
            yield _damage(reading, "cache-damage", cache, "Nothing to do.")
    yield from _outside(reading)
    yield from _waiting(reading)


def _damage(reading: Reading, kind: str, damage: Damage, remedy: str) -> Finding:
    lines = damage.lines
    text = f"{damage.file} {damage.problem}."
    if lines:
        text = f"{len(lines):,} {'line' if len(lines) == 1 else 'lines'} of {damage.file} {damage.problem}."
    return Finding("memory", kind, text, remedy, reading.full(damage.file), lines[0] if lines else None)


def _outside(reading: Reading) -> Iterator[Finding]:
    """Who wrote what is there: memory can come from a hand, another program, or somebody who should not have written it."""
    last = reading.journal.last
    changed = [
        page.topic.file for page in reading.pages if page.topic.file in last and page.digest != last[page.topic.file].digest
    ]
    unknown = [page.topic.file for page in reading.pages if page.topic.file not in last]
    remedy = "Look at them; the next change through Lamina records them as they are."
    for files, text in ((changed, "changed since Lamina wrote them"), (unknown, "there that Lamina did not write")):
        if files:
            are = "memory is" if len(files) == 1 else "memories are"
            file = reading.full(files[0] if len(files) == 1 else "")
            yield Finding("memory", "changed-outside", f"{len(files):,} {are} {text}: {_some(files)}.", remedy, file)
    there = reading.files
    gone = [file for file, line in last.items() if line.digest and file not in there]
    if gone:
        are = "memory is" if len(gone) == 1 else "memories are"
        # The newest change of all may be a save that was stopped before its file was there.
        newest = next(reversed(last.values()))
        never = ", or was never there because its save did not finish" if gone == [newest.file] and not newest.before else ""
        text = f"{len(gone):,} {are} gone, and not through Lamina{never}: {_some(gone)}."
        yield Finding("memory", "gone-outside", text, f"To bring one back: lamina memory restore {gone[0]}", reading.full(""))


def _some(files: list[str]) -> str:
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return ", ".join(files[:_NAMED]) + more


def _waiting(reading: Reading) -> Iterator[Finding]:
    for proposal in reading.waiting.proposals:
        if reading.now - proposal.time > LONG_SECONDS:
            day = day_of(proposal.time)
            text = f"A proposal about {proposal.name} waits for a yes since {day.isoformat() if day else 'long ago'}."
            yield Finding("memory", "waiting-long", text, f"lamina inbox shows it; lamina inbox accept {proposal.id} says yes.")

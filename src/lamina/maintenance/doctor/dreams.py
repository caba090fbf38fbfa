"""What dreams left behind: stopped half way, or running for longer than a dream may (Z5, Z12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...disk.locks.dream_lock import DreamLock
from ...disk.trees.rootdir import RootDir
from ...layers.l6_dream.record import DIRECTORY, DreamRecord, dream_home, dream_ids, is_open, read_records
from .finding import Finding, PutRight
from .memory_snapshot import Reading

# A dream ends itself after 55 minutes; one that runs after an hour hangs.
LONG_SECONDS = 3_600.0


def check_dreams(reading: Reading) -> Iterator[Finding]:
    if reading.where.shared or not any(seen.path == DIRECTORY for seen in reading.found.entries):
        return
    with RootDir.open(reading.where.path, create=False) as root:
        known = read_records(root)
        holder = DreamLock(root).holder()
        lost = sorted(set(dream_ids(root)) - {record.id for record in known})
    for record in known:
        if not is_open(record):
            continue
        if holder is None or not holder.alive:
            yield _stopped(reading, record)
        elif reading.now - record.started > LONG_SECONDS:
            text = f"Dream {record.id} runs for {(reading.now - record.started) / 60:,.0f} minutes."
            yield Finding("memory", "dream-long", text, "lamina dream --kill ends it.", reading.full(dream_home(record.id)))
    if lost and (holder is None or not holder.alive):
        text = (
            f"{len(lost):,} {'dream has' if len(lost) == 1 else 'dreams have'} no record that can be read: {', '.join(lost[:3])}."
        )
        fix = PutRight(str(reading.where.path))
        yield Finding(
            "memory", "dream-stopped", text, "What is left of it is removed.", reading.full(dream_home(lost[0])), fix=fix
        )


def _stopped(reading: Reading, record: DreamRecord) -> Finding:
    changing = record.phase in ("applying", "undoing")
    when = "while it changed memories" if changing else "before it changed anything"
    remedy = "The next session, or lamina doctor --fix, puts everything back as it was."
    return Finding(
        "memory",
        "dream-stopped",
        f"Dream {record.id} was stopped {when}.",
        remedy,
        reading.full(dream_home(record.id)),
        fix=PutRight(str(reading.where.path)) if reading.where.writable else None,
    )

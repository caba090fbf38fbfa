"""What is wrong with the index of a memory directory (S3, S4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...disk.trees.survey import look_at
from ...memory.store.index import INDEX, LINE_CHARS, MOST_BYTES, MOST_LINES, Entry
from ...memory.store.index_file import MOST_INDEX
from ...memory.store.index_lint import IndexPlan, LineFault, plan_index
from ...memory.store.topic import folded
from .finding import Finding, PathFix
from .memory_snapshot import MemorySnapshot


def check_index(memory: MemorySnapshot) -> Iterator[Finding]:
    if not memory.has_index and not memory.pages:
        return
    if memory.index_size >= MOST_INDEX:
        text = f"{INDEX} has {memory.index_size:,} bytes, which no index needs; it is never changed."
        yield memory.finding("index-full", text, INDEX, advice="Move it away: it is made again from the memories.")
        return
    plan = _planned(memory)
    for fault in plan.faults:
        yield _about_line(memory, fault)
    for file in plan.added:
        text = f"{file} has no line in {INDEX}, so a session does not know of it."
        yield memory.finding("orphan", text, file, fix=PathFix("mend-index", str(memory.where.path)))
    if plan.no_room:
        text = (
            f"{len(plan.no_room):,} memories have no line in {INDEX}, and there is room for no more, such as {plan.no_room[0]}."
        )
        advice = "Merge or remove memories; what is not listed is still found by recall."
        yield memory.finding("index-full", text, INDEX, advice=advice)
    yield from _size(memory)


def _planned(memory: MemorySnapshot) -> IndexPlan:
    files = frozenset(map(folded, memory.files))
    topics = [Entry(topic.name, topic.file, topic.description) for topic in memory.topics]

    def exists(file: str) -> bool:
        # Where not everything was listed, or it is no file, the disk itself is asked.
        return folded(file) in files or look_at(memory.full(file)) is not None

    return plan_index(memory.index_text, exists=exists, topics=topics)


def _about_line(memory: MemorySnapshot, fault: LineFault) -> Finding:
    at, file = f"Line {fault.line:,} of {INDEX}", fault.file
    advice = None
    fix: PathFix | None = PathFix("mend-index", str(memory.where.path))
    match fault.fault:
        case "dead":
            kind, text = "dead-pointer", f"{at} points at {file}, which is not there."
            if file in memory.journal.last:
                advice = f"Remove the line, or bring the memory back: lamina memory restore {file}"
        case "double":
            kind, text = "double-line", f"{at} is the second for {file}."
        case "outside":
            kind, text, fix = "leads-out", f"{at} leads out of the memory directory ({file}); it is not followed.", None
        case "long" | "long and fixed":
            kind, text = "long-line", f"{at} has {fault.chars:,} characters; {LINE_CHARS} are enough."
            fix = fix if fault.fault == "long and fixed" else None
        case "content":
            kind, text, fix = "index-content", f"{at} has {fault.chars:,} characters and points at no memory.", None
        case _:
            assert_never(fault.fault)
    return memory.finding(kind, text, INDEX, line=fault.line, fix=fix, advice=advice)


def _size(memory: MemorySnapshot) -> Iterator[Finding]:
    lines, size = len(memory.index_text.rstrip("\n").split("\n")), memory.index_size
    over = [f"{lines:,} lines (the limit is {MOST_LINES})"] if lines > MOST_LINES else []
    over += [f"{size:,} bytes (the limit is {MOST_BYTES:,})"] if size > MOST_BYTES else []
    if over:
        text = f"{INDEX} has {' and '.join(over)}; a session is sent its beginning only."
        yield memory.finding("index-full", text, INDEX, advice="Shorten lines, and merge memories that belong together.")

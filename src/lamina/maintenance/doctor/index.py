"""Check the index of a memory directory (S3, S4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...disk.trees.survey import look_at
from ...language.wording import counted
from ...memory.store.index import INDEX, LINE_CHARS, MOST_BYTES, MOST_INDEX, MOST_LINES
from ...memory.store.lint import IndexPlan, LineFault, plan_index
from ...memory.store.topic import fold_name
from .finding import Finding, PathFix
from .memory_snapshot import MemorySnapshot


def check_index(memory: MemorySnapshot) -> Iterator[Finding]:
    if not memory.has_index and not memory.pages:
        return
    if memory.index_size >= MOST_INDEX:
        text = f"{INDEX} has {memory.index_size:,} bytes. An index of this size is never changed."
        yield memory.finding("index-full", text, INDEX, advice="Move it elsewhere: it is rebuilt from the memories.")
        return
    plan = _planned(memory)
    for fault in plan.faults:
        yield _about_line(memory, fault)
    if plan.no_room:  # the index lists the memories used most, and the others are left out on purpose
        have = counted(len(plan.unlisted), "memory has", "memories have")
        text = f"{INDEX} has no room for all memories: {have} no line in it, for example {plan.no_room[0]}."
        yield memory.finding("unlisted", text, INDEX, fix=PathFix("mend-index", str(memory.where.path)) if plan.added else None)
    for file in () if plan.no_room else plan.added:
        text = f"{file} has no line in {INDEX}, so sessions do not see it."
        yield memory.finding("orphan", text, file, fix=PathFix("mend-index", str(memory.where.path)))
    yield from _size(memory)


def _planned(memory: MemorySnapshot) -> IndexPlan:
    files = frozenset(map(fold_name, memory.files))

    def exists(file: str) -> bool:
        # Ask the disk for entries that the survey did not list as files.
        return fold_name(file) in files or look_at(memory.full(file)) is not None

    return plan_index(memory.index_text, exists=exists, topics=memory.topics)


def _about_line(memory: MemorySnapshot, fault: LineFault) -> Finding:
    at, file = f"Line {fault.line:,} of {INDEX}", fault.file
    advice = None
    fix: PathFix | None = PathFix("mend-index", str(memory.where.path))
    match fault.fault:
        case "dead":
            kind, text = "dead-pointer", f"{at} points to {file}, which does not exist."
            if file in memory.journal.last:
                advice = f"Remove the line, or run `lamina memory restore {file}` to bring the memory back."
        case "double":
            kind, text = "double-line", f"{at} is a duplicate for {file}."
        case "outside":
            kind, text, fix = "leads-out", f"{at} points outside the memory directory ({file}) and is not followed.", None
        case "long" | "long and fixed":
            kind, text = "long-line", f"{at} has {fault.chars:,} characters; the limit is {LINE_CHARS}."
            fix = fix if fault.fault == "long and fixed" else None
        case "content":
            kind, text, fix = "index-content", f"{at} has {fault.chars:,} characters and does not point to a memory.", None
        case _:
            assert_never(fault.fault)
    return memory.finding(kind, text, INDEX, line=fault.line, fix=fix, advice=advice)


def _size(memory: MemorySnapshot) -> Iterator[Finding]:
    lines, size = len(memory.index_text.rstrip("\n").split("\n")), memory.index_size
    over = [f"{lines:,} lines (the limit is {MOST_LINES})"] if lines > MOST_LINES else []
    over += [f"{size:,} bytes (the limit is {MOST_BYTES:,})"] if size > MOST_BYTES else []
    if over:
        text = f"{INDEX} has {' and '.join(over)}; sessions receive only its beginning."
        yield memory.finding("index-full", text, INDEX, advice="Shorten lines, and merge related memories.")

"""What is wrong with the index of a memory directory (S3, S4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...disk.trees.survey import look_at
from ...memory.store.index import INDEX, LINE_CHARS, MOST_BYTES, MOST_LINES, Entry
from ...memory.store.index_file import MOST_INDEX
from ...memory.store.index_lint import IndexPlan, LineFault, plan_index
from ...memory.store.topic import folded
from .finding import Finding, Fix, MendIndex
from .memory_snapshot import Reading


def check_index(reading: Reading) -> Iterator[Finding]:
    if not reading.has_index and not reading.pages:
        return
    if reading.index_size >= MOST_INDEX:
        text = f"{INDEX} has {reading.index_size:,} bytes, which no index needs; it is never changed."
        yield _finding(reading, "index-full", text, "Move it away: it is made again from the memories.")
        return
    plan = planned(reading)
    fix = MendIndex(str(reading.where.path)) if reading.where.writable else None
    for fault in plan.faults:
        yield _about_line(reading, fault, fix)
    yield from _orphans(reading, plan, fix)
    yield from _size(reading)


def planned(reading: Reading) -> IndexPlan:
    files = frozenset(map(folded, reading.files))
    topics = [Entry(topic.name, topic.file, topic.description) for topic in reading.topics]

    def exists(file: str) -> bool:
        # Where not everything was listed, or it is no file, the disk itself is asked.
        return folded(file) in files or look_at(reading.full(file)) is not None

    return plan_index(reading.index_text, exists=exists, topics=topics)


def _finding(reading: Reading, kind: str, problem: str, remedy: str, line: int | None = None, fix: Fix | None = None) -> Finding:
    return Finding("memory", kind, problem, remedy, reading.full(INDEX), line, fix)


def _about_line(reading: Reading, fault: LineFault, fix: Fix | None) -> Finding:
    at = f"Line {fault.line:,} of {INDEX}"
    match fault.fault:
        case "dead":
            known = fault.file in reading.journal.last
            remedy = (
                f"Remove the line, or bring the memory back: lamina memory restore {fault.file}" if known else "Remove the line."
            )
            return _finding(reading, "dead-pointer", f"{at} points at {fault.file}, which is not there.", remedy, fault.line, fix)
        case "double":
            return _finding(reading, "double-line", f"{at} is the second for {fault.file}.", "One is enough.", fault.line, fix)
        case "outside":
            text = f"{at} leads out of the memory directory ({fault.file}); it is not followed."
            return _finding(reading, "leads-out", text, "Copy the file into memory, or remove the line.", fault.line)
        case "long" | "long and fixed":
            text = f"{at} has {fault.chars:,} characters; {LINE_CHARS} are enough."
            mends = fix if fault.fault == "long and fixed" else None
            return _finding(reading, "long-line", text, "Shorten it: detail belongs into the memory.", fault.line, mends)
        case "content":
            text = f"{at} has {fault.chars:,} characters and points at no memory."
            return _finding(
                reading, "index-content", text, "Make a memory of it: the index is sent with every session.", fault.line
            )
        case _:
            assert_never(fault.fault)


def _orphans(reading: Reading, plan: IndexPlan, fix: Fix | None) -> Iterator[Finding]:
    for file in plan.added:
        text = f"{file} has no line in {INDEX}, so a session does not know of it."
        yield Finding("memory", "orphan", text, "Add its line.", reading.full(file), fix=fix)
    if plan.no_room:
        text = (
            f"{len(plan.no_room):,} memories have no line in {INDEX}, and there is room for no more, such as {plan.no_room[0]}."
        )
        yield _finding(reading, "index-full", text, "Merge or remove memories; what is not listed is still found by recall.")


def _size(reading: Reading) -> Iterator[Finding]:
    lines, size = len(reading.index_text.rstrip("\n").split("\n")), reading.index_size
    over = [f"{lines:,} lines (the limit is {MOST_LINES})"] if lines > MOST_LINES else []
    over += [f"{size:,} bytes (the limit is {MOST_BYTES:,})"] if size > MOST_BYTES else []
    if over:
        text = f"{INDEX} has {' and '.join(over)}; a session is sent its beginning only."
        yield _finding(reading, "index-full", text, "Shorten lines, and merge memories that belong together.")

"""Importing into a store and exporting from one: reads, asks `plan`, does what it says.

Owns the order of things. Invariants: memories are saved through the store and files are written through `disk`; nothing outside of the
target is written; a file or memory that is there with other content is kept unless `replace` was said, and reported either way.

A crash at any line leaves each memory and each file whole, old or new. Doing the same again finishes what is missing: what was done
counts as unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, assert_never

import msgspec

from ...core.errors import InputError
from ...disk.paths.memory_paths import check_child
from ...disk.user_files import FileContent, read_whole
from ...disk.user_files import replace as replace_file
from ...memory.store.contract import READ_IN_PART, MemoryStore, Proposed, Why
from ...memory.store.index import INDEX
from ...memory.store.topic import Topic, same_name
from .agents_md import write_agents_md
from .claude_code import merged_index, write_claude_code
from .codex import write_codex
from .footer import portable
from .formats import Format, Source, detect, read
from .mcp_memory import write_mcp_memory
from .mem0 import write_mem0
from .plan import MOST_TOPICS, Step, plan
from .source import MOST_BYTES, read_source
from .values import Imported, Portable, imported

Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "conflict", "refused", "proposed"]


class Item(msgspec.Struct, frozen=True):
    """What became of one memory or file; `redacted` names the kinds of secrets that were taken out of it."""

    name: str
    outcome: Outcome
    why: str = ""
    redacted: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """In a dry run, what would have become of them."""

    format: Format
    place: str
    dry_run: bool
    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()

    def named(self, outcome: Outcome) -> list[str]:
        return [item.name for item in self.items if item.outcome == outcome]


# Importing


def import_into(
    store: MemoryStore, source: Path, *, format: Format | None = None, dry_run: bool = False, replace: bool = False, why: Why
) -> Report:
    """Every memory of `source` into the store. InputError when the source can't be read as what it is said to be."""
    found, skipped = read_source(source)
    kind = format if format is not None else detect(found)
    taken = _readable(found, kind)
    steps, problems = plan(taken, _there(store.topics()), origin=kind, replace=replace)
    items = [_planned(step) if dry_run else _done(store, step, why) for step in steps]
    said = imported((), [*skipped, *problems]).problems
    return Report(kind, os.fspath(source), dry_run, tuple(items), said)


def _readable(source: Source, format: Format) -> Imported:
    taken = read(source, format)
    if len(taken.topics) > MOST_TOPICS:
        remedy = f"{MOST_TOPICS:,} are the most: import it in parts"
        raise InputError(source.name, f"holds {len(taken.topics):,} memories", remedy)
    if not taken.topics and taken.problems:
        raise InputError(
            source.name, f"holds no memories in the format {format}: {taken.problems[0]}", "name another with --format"
        )
    return taken


def _there(topics: Sequence[Topic]) -> Mapping[str, Topic]:
    """By name, as a save finds them; only what is spelled as a file may mean one."""
    return {same_name(topic.name): topic for topic in topics}


def _planned(step: Step) -> Item:
    redacted = step.wish.redacted if step.wish is not None else ()
    match step.action:
        case "create":
            return Item(step.name, "created", step.why, redacted)
        case "replace":
            return Item(step.name, "replaced", step.why, redacted)
        case "unchanged":
            return Item(step.name, "unchanged", step.why)
        case "conflict":
            return Item(step.name, "conflict", step.why)
        case "refuse":
            return Item(step.name, "refused", step.why)
        case _:
            assert_never(step.action)


def _done(store: MemoryStore, step: Step, why: Why) -> Item:
    wish = step.wish
    if wish is None or step.action not in ("create", "replace"):
        return _planned(step)
    try:
        saved = store.save(wish.draft, why=why)
    except InputError as error:
        return Item(step.name, "refused", error.problem)
    if isinstance(saved, Proposed):
        return Item(step.name, "proposed", f"waits for a yes as {saved.id}", wish.redacted)
    item = _planned(step)
    return msgspec.structs.replace(item, why=saved.unfinished) if saved.unfinished else item


# Exporting


class Write(NamedTuple):
    """One file of an export. `before` is the file as it is; None for a new one."""

    name: str
    path: Path
    data: bytes
    before: FileContent | None
    outcome: Outcome


def export_from(store: MemoryStore, target: Path, format: Format, *, replace: bool = False, dry_run: bool = False) -> Report:
    """Every memory of the store into `target`: a directory for claude-code and codex, a file for the others."""
    if "\0" in os.fspath(target):
        raise InputError(ascii(os.fspath(target)), "is no path")
    found = store.topics()
    # Half a memory would pass for a whole one where it is read.
    cut = tuple(f"{topic.file} is too long and was left out" for topic in found if READ_IN_PART in topic.problems)
    topics = [portable(topic) for topic in found if READ_IN_PART not in topic.problems]
    if not topics and cut:
        return Report(format, os.fspath(target), dry_run, (), cut)
    if not topics:
        return Report(format, os.fspath(target), dry_run, (), ("there are no memories to export",))
    match format:
        case "claude-code":
            writes = _in_directory(write_claude_code([_ended(topic) for topic in topics]), target, replace)
        case "codex":
            writes = _in_directory(write_codex(topics), target, replace)
        case "agents-md":
            writes = [_agents_md(topics, target, replace)]
        case "mcp-memory":
            writes = [_write(target.name, target, write_mcp_memory(topics), _before(target), replace=replace)]
        case "mem0":
            writes = [_write(target.name, target, write_mem0(topics), _before(target), replace=replace)]
        case _:
            assert_never(format)
    if not dry_run:
        for each in writes:
            _put(each)
    items = [
        Item(each.name, each.outcome, "is there with other content" if each.outcome == "conflict" else "") for each in writes
    ]
    return Report(format, os.fspath(target), dry_run, tuple(items), cut)


def _ended(topic: Portable) -> Portable:
    """As a file of text: its last line has an end."""
    return msgspec.structs.replace(topic, body=topic.body + "\n") if topic.body and not topic.body.endswith("\n") else topic


def _agents_md(topics: Sequence[Portable], target: Path, replace: bool) -> Write:
    """What is only added to the file is no conflict."""
    before = _before(target)
    old = _text(before)
    made = write_agents_md(topics, before=old)
    return _write(target.name, target, made, before, replace=replace or made.startswith(old))


def _in_directory(files: Mapping[str, str], target: Path, replace: bool) -> list[Write]:
    """The files, and an index with the lines of those that are there as they go out."""
    if target.exists() and not target.is_dir():
        raise InputError(os.fspath(target), "is a file", "name a directory")
    root = Path(os.path.realpath(target))
    paths = {file: root / check_child(root, file) for file in files}
    writes = [
        _write(file, paths[file], text, _before(paths[file]), replace=replace) for file, text in files.items() if file != INDEX
    ]
    if INDEX in files:
        kept = {each.name for each in writes if each.outcome == "conflict"}
        before = _before(paths[INDEX])
        index = merged_index(_text(before), files[INDEX], without=kept)
        writes.append(_write(INDEX, paths[INDEX], index, before, replace=True))
    return writes


def _before(path: Path) -> FileContent | None:
    if path.is_dir():
        raise InputError(os.fspath(path), "is a directory", "name a file")
    return read_whole(path, MOST_BYTES)


def _text(before: FileContent | None) -> str:
    """Bytes that are no UTF-8 pass through unchanged."""
    return "" if before is None else before.data.decode("utf-8", "surrogateescape")


def _write(name: str, path: Path, text: str, before: FileContent | None, *, replace: bool) -> Write:
    data = text.encode("utf-8", "surrogateescape")
    if before is None:
        return Write(name, path, data, before, "created")
    return Write(name, path, data, before, "unchanged" if before.data == data else "replaced" if replace else "conflict")


def _put(each: Write) -> None:
    if each.outcome in ("created", "replaced"):
        replace_file(each.path, each.data, expect=None if each.before is None else each.before.version)

"""Import into a store and export from one: read the source, make a `plan`, carry it out.

Invariants: memories are saved through the store and files are written through `disk`. Nothing outside the target is written. An
existing file or memory that differs is kept unless `replace` is set, and reported either way.

A crash at any point leaves each memory and each file complete, old or new. Running it again does the rest; what is done counts as
unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

import msgspec

from ...core.errors import InputError
from ...disk.paths.memory_paths import check_child
from ...disk.user_files import FileContent, read_whole
from ...disk.user_files import replace as replace_file
from ...language.wording import counted
from ...memory.store.contract import READ_IN_PART, ChangeReason, MemoryStore, Proposed
from ...memory.store.index import INDEX
from ...memory.store.topic import name_key
from .agents_md import write_agents_md
from .claude_code import merged_index, write_claude_code
from .codex import write_codex
from .formats import MOST_BYTES, Format, MemorySource, WrittenFormat, detect, read, read_source
from .mcp_memory import write_mcp_memory
from .mem0 import write_mem0
from .plan import IMPORTED, MOST_TOPICS, Outcome, TransferItem, plan, to_portable
from .portable_topic import Imported, PortableTopic
from .project_choice import ANY_PROJECT, ProjectChoice

# Problems listed in a report; the rest is counted.
MOST_PROBLEMS = 50

T = TypeVar("T")
# Called before each memory or file with the number done and the number of all.
Tell: TypeAlias = Callable[[int, int], None]


class TransferReport(msgspec.Struct, frozen=True):
    """The outcome of each item; in a dry run, what the outcome would be."""

    format: Format
    place: str
    dry_run: bool
    items: tuple[TransferItem, ...]
    problems: tuple[str, ...] = ()

    def named(self, outcome: Outcome) -> list[str]:
        return [item.name for item in self.items if item.outcome == outcome]


# Importing


def import_into(
    store: MemoryStore,
    source: Path,
    *,
    format: Format | None = None,
    dry_run: bool = False,
    replace: bool = False,
    trust: bool = False,
    choice: ProjectChoice = ANY_PROJECT,
    why: ChangeReason,
    tell: Tell = lambda done, of: None,
) -> TransferReport:
    """Import every memory of `source` into the store; InputError if the source is not in the given format.

    Memories about the user wait for approval unless the user trusts the source.
    """
    found, skipped = read_source(source, choice)
    kind = format if format is not None else detect(found)
    # Keyed by name, since a save finds existing memories by name.
    there = {name_key(topic.name): topic for topic in store.topics()}
    planned = plan(_readable(found, kind), there, origin=kind, replace=replace)
    origin = f"{IMPORTED}{kind}"
    why = why if trust else msgspec.structs.replace(why, origin=origin)
    items = planned.items if dry_run else tuple(_done(store, item, origin, why) for item in _counted(planned.items, tell))
    problems = list(dict.fromkeys((*skipped, *planned.problems)))
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"and {counted(len(problems) - MOST_PROBLEMS, 'more problem')}"]
    return TransferReport(kind, os.fspath(source), dry_run, items, tuple(problems))


def _counted(items: Sequence[T], tell: Tell) -> Iterator[T]:
    for at, item in enumerate(items):
        tell(at, len(items))
        yield item


def _readable(source: MemorySource, format: Format) -> Imported:
    taken = read(source, format)
    if len(taken.topics) > MOST_TOPICS:
        problem = f"contains {len(taken.topics):,} memories, and the limit is {MOST_TOPICS:,}"
        raise InputError(source.name, problem, "import it in parts")
    if not taken.topics and taken.problems:
        problem = f"contains no memories in the format {format}: {taken.problems[0]}"
        raise InputError(source.name, problem, "choose another format with --format")
    return taken


def _done(store: MemoryStore, item: TransferItem, origin: str, why: ChangeReason) -> TransferItem:
    if item.wish is None or item.outcome not in ("created", "replaced"):
        return item
    try:
        saved = store.save(msgspec.structs.replace(item.wish.draft, origin=origin), why=why)
    except InputError as error:
        return TransferItem(item.name, "refused", error.problem)
    if isinstance(saved, Proposed):
        return TransferItem(item.name, "proposed", f"pending approval as {saved.id}", item.wish)
    return msgspec.structs.replace(item, why=saved.unfinished) if saved.unfinished else item


# Exporting


class FileWrite(NamedTuple):
    """One file of an export. `before` is the existing file; None for a new one."""

    name: str
    path: Path
    data: bytes
    before: FileContent | None
    outcome: Outcome


def export_from(
    store: MemoryStore,
    target: Path,
    format: WrittenFormat,
    *,
    replace: bool = False,
    dry_run: bool = False,
    tell: Tell = lambda done, of: None,
) -> TransferReport:
    """Export every memory of the store to `target`: a directory for claude-code and codex, a file for the other formats."""
    if "\0" in os.fspath(target):
        raise InputError(ascii(os.fspath(target)), "is not a valid path")
    found = store.topics()
    # Skip truncated memories: elsewhere they would look complete.
    cut = tuple(f"{topic.file} is too long and was skipped" for topic in found if READ_IN_PART in topic.problems)
    topics = [to_portable(topic) for topic in found if READ_IN_PART not in topic.problems]
    if not topics:
        return TransferReport(format, os.fspath(target), dry_run, (), cut or ("No memories to export.",))
    writes = _writes(topics, target, format, replace)
    if not dry_run:
        for each in _counted(writes, tell):
            if each.outcome in ("created", "replaced"):
                replace_file(each.path, each.data, expect=None if each.before is None else each.before.stamp)
    kept = "exists with different content"
    items = tuple(TransferItem(each.name, each.outcome, kept if each.outcome == "conflict" else "") for each in writes)
    return TransferReport(format, os.fspath(target), dry_run, items, cut)


def _writes(topics: Sequence[PortableTopic], target: Path, format: WrittenFormat, replace: bool) -> list[FileWrite]:
    match format:
        case "claude-code":
            return _in_directory(write_claude_code([_ended(topic) for topic in topics]), target, replace)
        case "codex":
            return _in_directory(write_codex(topics), target, replace)
        case "agents-md":
            return [_write(target.name, target, lambda old: write_agents_md(topics, before=old), replace=replace, adds=True)]
        case "mcp-memory":
            return [_write(target.name, target, write_mcp_memory(topics), replace=replace)]
        case "mem0":
            return [_write(target.name, target, write_mem0(topics), replace=replace)]
        case _:
            assert_never(format)


def _ended(topic: PortableTopic) -> PortableTopic:
    """End the body with a newline, as a text file should."""
    return msgspec.structs.replace(topic, body=topic.body + "\n") if topic.body and not topic.body.endswith("\n") else topic


def _in_directory(files: Mapping[str, str], target: Path, replace: bool) -> list[FileWrite]:
    """Plan the writes of the files, and of an index without the lines of files in conflict."""
    if target.exists() and not target.is_dir():
        raise InputError(os.fspath(target), "is a file", "pass a directory")
    root = Path(os.path.realpath(target))
    paths = {file: root / check_child(root, file) for file in files}
    writes = [_write(file, paths[file], files[file], replace=replace) for file in files if file != INDEX]
    if INDEX in files:
        kept = {each.name for each in writes if each.outcome == "conflict"}
        writes.append(_write(INDEX, paths[INDEX], lambda old: merged_index(old, files[INDEX], without=kept), replace=True))
    return writes


def _write(name: str, path: Path, made: str | Callable[[str], str], *, replace: bool, adds: bool = False) -> FileWrite:
    """Plan one write. `made` is the new text or makes it from the old one. With `adds`, appending is not a conflict."""
    if path.is_dir():
        raise InputError(os.fspath(path), "is a directory", "pass a file")
    before = read_whole(path, MOST_BYTES)
    # Bytes that are not UTF-8 pass through unchanged.
    old = "" if before is None else before.data.decode("utf-8", "surrogateescape")
    text = made if isinstance(made, str) else made(old)
    data = text.encode("utf-8", "surrogateescape")
    if before is None:
        return FileWrite(name, path, data, before, "created")
    changed: Outcome = "replaced" if replace or (adds and text.startswith(old)) else "conflict"
    return FileWrite(name, path, data, before, "unchanged" if before.data == data else changed)

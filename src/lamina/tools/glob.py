"""Glob: files by name.

Does a walk of its own (see `walk`): no link is gone through and none that leads out is listed; version control's directories,
node_modules and __pycache__ are left out unless the pattern or the path names them, and .gitignore does not count, because a file
that is asked for by name is meant.
Invariants: at most 250 names and 50,000 characters, newest first; at most MAX_SEEN entries are looked at and SECONDS spent.

Facts: files (shown), more.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from ..core.blocks import Wire
from ..disk.paths.user_paths import missing, resolve, shown
from .globs import components, expand, matches
from .tool import MAX_RESULT, STOPPED, Builtin, Context, Output, failure, prompt
from .walk import SKIPPED, walk

# Enough to choose from; who needs all of them wants a narrower pattern or a command.
MAX_SHOWN = 250
# A tree with more files than this is looked at in parts.
MAX_SEEN = 200_000
SECONDS = 20.0
# Room for the note.
_NOTES = 300

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "Such as **/*.py or src/**/*.{ts,tsx}"},
        "path": {"type": "string", "description": "The directory to look in (default: the working directory)"},
    },
    "required": ["pattern"],
}


def tool() -> Builtin:
    return Builtin(name="Glob", description=prompt("glob"), schema=SCHEMA, read_only=True, act=_act)


class _Match(NamedTuple):
    age: int
    path: str


def _act(arguments: Wire, context: Context) -> Output:
    root = resolve(arguments.get("path") or ".", context.cwd)
    pattern = arguments["pattern"]
    if os.path.isabs(pattern):
        # What may be looked at is decided by `path`; a pattern that leads elsewhere would go round that.
        return failure(_relative(pattern))
    if not os.path.isdir(root):
        return failure(f"{root} is no directory: give one as path." if os.path.lexists(root) else missing(root, context.cwd))
    patterns = [components(text) for text in expand(pattern.replace(os.sep, "/"))]
    if any(".." in parts for parts in patterns):
        return failure("pattern: `..` is not understood: give the directory as path.")
    found, stopped = _find(root, patterns, context)
    if context.abort.is_set():
        return failure(STOPPED)
    found.sort()
    return _told([shown(root / match.path, context.cwd) for match in found], stopped)


def _relative(pattern: str) -> str:
    parts = pattern.replace(os.sep, "/").split("/")
    depth = next((index for index, part in enumerate(parts) if set("*?[{") & set(part)), len(parts) - 1)
    above, below = "/".join(parts[:depth]) or "/", "/".join(parts[depth:])
    return f"pattern must be relative to path: give path={above} and pattern={below} instead."


def _find(root: Path, patterns: list[tuple[str, ...]], context: Context) -> tuple[list[_Match], bool]:
    """What matches, and whether the walk was given up before its end."""
    matched, seen, deadline = list[_Match](), 0, time.monotonic() + SECONDS
    named = frozenset(SKIPPED).intersection(part for parts in patterns for part in parts)
    for found in walk(str(root), ignore=False, skipped=frozenset(SKIPPED) - named, links=True):
        seen += 1
        if seen > MAX_SEEN or (found is None and (context.abort.is_set() or time.monotonic() > deadline)):
            return matched, True
        if found is not None and any(matches(pattern, found.parts) for pattern in patterns):
            try:
                age = -found.entry.stat(follow_symlinks=False).st_mtime_ns
            except OSError:
                continue
            matched.append(_Match(age, "/".join(found.parts)))
    return matched, False


def _told(paths: list[str], stopped: bool) -> Output:
    room, kept = MAX_RESULT - _NOTES, list[str]()
    for path in paths[:MAX_SHOWN]:
        room -= len(path) + 1
        if room < 0:
            break
        kept.append(path)
    more = stopped or len(kept) < len(paths)
    notes = []
    if not paths:
        notes.append("No files match.")
    if len(kept) < len(paths):
        notes.append(f"[The {len(kept):,} newest of {len(paths):,}: use a narrower pattern or path to see others.]")
    if stopped:
        notes.append("[The tree is too large to be looked through: give a directory as path.]")
    return Output("\n".join([*kept, *notes]), facts={"files": len(kept), "more": more})

"""Glob: find files by name.

It walks the tree itself (see `search.walk`). Links are never followed, and a link that leads out of the tree is not listed.
Directories of version control, node_modules and __pycache__ are skipped unless the pattern or the path names them, and
Lamina's bookkeeping in a memory directory always. .gitignore does not count, because a pattern that names a file means it.
Invariants: at most 250 names and 50,000 characters, newest first; at most MAX_SEEN entries are visited in at most SECONDS.

Facts: files (shown), more.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from ..core.blocks import Wire
from ..core.globs import compile_path, expand_braces, match_path, split_path
from ..core.prompt_files import prompt_text
from ..disk.paths.memory_paths import is_internal
from .paths import missing, resolve, shown
from .search import SKIPPED, walk
from .tool import MAX_RESULT, STOPPED, Builtin, Context, ToolOutput, failure, fit_lines

# Enough to choose from; to get all of them, use a narrower pattern or a command.
MAX_SHOWN = 250
# A tree with more files than this must be searched in parts.
MAX_SEEN = 200_000
SECONDS = 20.0
# Room for the note.
_NOTES = 300

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "Such as **/*.py or src/**/*.{ts,tsx}"},
        "path": {"type": "string", "description": "The directory to search (default: the working directory)"},
    },
    "required": ["pattern"],
}


def tool() -> Builtin:
    return Builtin(name="Glob", description=prompt_text(__file__, "glob"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    root = resolve(arguments.get("path") or ".", context.cwd)
    pattern = arguments["pattern"]
    if os.path.isabs(pattern):
        # The permission check covers `path`; a pattern that leads elsewhere would bypass it.
        return failure(_relative(pattern))
    if root == context.memory_dir and not os.path.lexists(root):
        return _render([], stopped=False)
    if not os.path.isdir(root):
        return failure(
            f"{root} is not a directory. Give a directory as path." if os.path.lexists(root) else missing(root, context.cwd)
        )
    patterns = [split_path(text) for text in expand_braces(pattern.replace(os.sep, "/"))]
    if any(".." in parts for parts in patterns):
        return failure("pattern must not contain `..`. Give the directory as path.")
    matches, stopped = _find(root, patterns, context)
    if context.abort.is_set():
        return failure(STOPPED)
    return _render([shown(root / path, context.cwd) for _, path in sorted(matches)], stopped)


def _relative(pattern: str) -> str:
    parts = pattern.replace(os.sep, "/").split("/")
    depth = next((index for index, part in enumerate(parts) if set("*?[{") & set(part)), len(parts) - 1)
    above, below = "/".join(parts[:depth]) or "/", "/".join(parts[depth:])
    return f"pattern must be relative to path. Use path={above} and pattern={below} instead."


def _find(root: Path, patterns: list[tuple[str, ...]], context: Context) -> tuple[list[tuple[int, str]], bool]:
    """Return the matches as age and path, and whether the walk ended early."""
    matches, visited, deadline = list[tuple[int, str]](), 0, time.monotonic() + SECONDS
    named = frozenset(SKIPPED).intersection(part for parts in patterns for part in parts)
    globs = [compile_path(parts) for parts in patterns]
    start, inside = len(os.path.join(root, "")), os.path.join(os.path.realpath(root), "")
    for entry in walk(str(root), frozenset(SKIPPED) - named):
        visited += 1
        if visited > MAX_SEEN or (entry is None and (context.abort.is_set() or time.monotonic() > deadline)):
            return matches, True
        path = entry.path[start:].split(os.sep) if entry is not None else []
        if entry is None or not any(match_path(glob, path) for glob in globs) or is_internal(Path(entry.path), below=root):
            continue
        with suppress(OSError):
            # A link counts if it leads to a file below the root.
            if entry.is_file(follow_symlinks=False) or (
                os.path.isfile(entry.path) and os.path.realpath(entry.path).startswith(inside)
            ):
                matches.append((-entry.stat(follow_symlinks=False).st_mtime_ns, "/".join(path)))
    return matches, False


def _render(paths: list[str], stopped: bool) -> ToolOutput:
    listed = fit_lines(paths[:MAX_SHOWN], MAX_RESULT - _NOTES)
    more = stopped or len(listed) < len(paths)
    notes = []
    if not paths:
        notes.append("No files match.")
    if len(listed) < len(paths):
        notes.append(f"[The {len(listed):,} newest of {len(paths):,}. Use a narrower pattern or path to see others.]")
    if stopped:
        notes.append("[The tree is too large to search completely. Give a directory as path.]")
    return ToolOutput("\n".join([*listed, *notes]), facts={"files": len(listed), "more": more})

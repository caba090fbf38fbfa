"""Grep: which files hold a pattern, and where.

Does with ripgrep where there is one, else with a worker of ours (see `search`); both are processes, so a search can be stopped
whatever its pattern, and both print the same lines, so that what is shown does not depend on which one ran. A pattern that only
`re` understands (looking around, back references) goes to the worker.

Invariants: at most head_limit lines or files and 50,000 characters come back, within half a minute; results are in the order of
paths, files alone newest first.

Facts: files, lines (shown), more, engine (ripgrep, worker).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..core.blocks import Wire
from ..core.globs import compile_name
from ..core.prompt_files import prompt_text
from ..disk.paths.user_paths import missing, resolve, shown
from .engines import TYPES, find_ripgrep, find_worker, ripgrep_argv, worker_argv
from .process import ProcessEnd, child_environ, run_process
from .search import SearchSpec
from .tool import MAX_RESULT, STOPPED, Builtin, Context, ToolOutput, failure, fit_lines

# What people know.
DEFAULT_LIMIT = 250
# To be sorted by age all names have to be there; beyond this nobody looks at the order.
MAX_FILES = 10_000
# A tree that takes longer wants a narrower path.
SECONDS = 30.0
# A line of source fits; of minified code the beginning tells the file's kind.
LINE_CHARACTERS = 500
# One line of output is a path and a line cut by the worker; ripgrep does not cut.
_LINE_BYTES = 4 * LINE_CHARACTERS + 8_192
# Room for the notes below the results.
_NOTES = 500
_MESSAGE_BYTES = 2_000
# In ripgrep's words; what only `re` understands.
_ONLY_RE = re.compile(rb"look-around|backreferences")
_ROW = re.compile(rb"([^\0]*)\0(\d+)(?:([:-])(.*))?", re.DOTALL)

# Several globs may stand behind each other, with commas or spaces between them; in braces a comma means something else.
_GLOB = re.compile(r"(?:\{[^{}]*\}|[^\s,])+")

_COUNT = {"type": "integer", "minimum": 0, "maximum": 1_000}
SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 10_000, "description": "A regular expression"},
        "path": {"type": "string", "description": "A file or directory (default: the working directory)"},
        "glob": {"type": "string", "maxLength": 1_000, "description": "Only files like this, such as *.js or src/**/*.{ts,tsx}"},
        "type": {"type": "string", "maxLength": 50, "description": "Only files of this type, such as py, js, rust, go, java"},
        "output_mode": {
            "type": "string",
            "enum": ["files_with_matches", "content", "count"],
            "description": "Names of files (the default), matching lines, or how many lines match in each file",
        },
        "-i": {"type": "boolean", "description": "Upper and lower case are the same"},
        "-n": {"type": "boolean", "description": "Line numbers, for content (default true)"},
        "-A": {**_COUNT, "description": "Lines shown after each match, for content"},
        "-B": {**_COUNT, "description": "Lines shown before each match, for content"},
        "-C": {**_COUNT, "description": "Lines shown before and after each match, for content"},
        "head_limit": {
            "type": "integer",
            "minimum": 0,
            "description": f"At most so many lines or files (default {DEFAULT_LIMIT}; 0: as many as a result can hold)",
        },
        "multiline": {"type": "boolean", "description": "The pattern may match across lines, and . matches a line end"},
    },
    "required": ["pattern"],
}

FindRipgrep = Callable[[Mapping[str, str]], str | None]


def tool(find: FindRipgrep = find_ripgrep) -> Builtin:
    def act(arguments: Wire, context: Context) -> ToolOutput:
        return _act(arguments, context, find)

    return Builtin(name="Grep", description=prompt_text(__file__, "grep"), schema=SCHEMA, read_only=True, act=act)


class GrepRow(NamedTuple):
    path: str  # below the root
    number: int  # of the line, or how many lines match
    matches: bool  # False: a line of context
    text: str


def _act(arguments: Wire, context: Context, find: FindRipgrep) -> ToolOutput:
    root = resolve(arguments.get("path") or ".", context.cwd)
    if not os.path.exists(root):
        return failure(missing(root, context.cwd))
    if not os.path.isdir(root) and not os.path.isfile(root):
        return failure(f"{root} is neither a file nor a directory and can't be searched.")
    if "\0" in arguments["pattern"]:
        return failure("pattern holds a NUL character, which no text file has: leave it out.")
    kind = arguments.get("type", "")
    spec = _spec(arguments, root)
    ripgrep, worker = find(context.environ), find_worker()
    if ripgrep is not None:
        ended, rows = _run(ripgrep_argv(ripgrep, spec, kind), arguments, spec, context)
        if not (ended.code == 2 and _ONLY_RE.search(rows.message)) or worker is None:
            return _render(ended, rows, arguments, spec, context, "ripgrep")
    if worker is None:
        return failure("There is neither ripgrep nor a Python to search with: install ripgrep (rg).")
    if kind and kind not in TYPES:
        return failure(f"type {kind!r} is not known without ripgrep: use a glob, or one of {', '.join(TYPES)}.")
    return _render(*_run(worker_argv(worker, spec), arguments, spec, context), arguments, spec, context, "worker")


def _spec(arguments: Wire, root: Path) -> SearchSpec:
    modes = {"files_with_matches": "files", "count": "count", "content": "content"}
    mode = modes[arguments.get("output_mode", "files_with_matches")]
    around: int = arguments.get("-C", 0)
    before, after = (arguments.get(name, around) if mode == "content" else 0 for name in ("-B", "-A"))
    # A file has no directory below it, and globs are read from the directory that is searched.
    single = os.path.isfile(root)
    return SearchSpec(
        root=str(root.parent if single else root),
        name=root.name if single else "",
        pattern=arguments["pattern"],
        mode=mode,
        ignore_case=arguments.get("-i", False),
        multiline=arguments.get("multiline", False),
        before=before,
        after=after,
        globs=() if single else tuple(_GLOB.findall(arguments.get("glob", ""))),
        names=() if single else TYPES.get(arguments.get("type", ""), ()),
    )


class _RowCollector:
    """Takes what a search prints, line by line, until there is enough of it."""

    def __init__(self, most: int, names: tuple[str, ...], may_show: Callable[[str], bool]) -> None:
        self.rows = list[GrepRow]()
        self.message = b""
        self.more = False
        self._most = most
        self._may_show = cache(may_show)
        self._names = [compile_name(glob) for glob in names]
        self._room = MAX_RESULT
        self._rest = b""

    def take(self, part: bytes) -> bool:
        *lines, rest = (self._rest + part).split(b"\n")
        # A line without end is kept by its beginning; what is cut off here would not be shown.
        self._rest = rest[:_LINE_BYTES]
        return all(self._row(line[:_LINE_BYTES]) for line in lines)

    def _row(self, line: bytes) -> bool:
        # ripgrep ends its own lines as the files do.
        found = _ROW.fullmatch(line.removesuffix(b"\r"))
        if found is None:
            self.message = (self.message + line + b"\n")[:_MESSAGE_BYTES]
            return True
        path = os.fsdecode(found[1]).removeprefix("./").replace(os.sep, "/")
        if self._names and not any(name.match(path.rsplit("/", 1)[-1]) for name in self._names):
            return True
        # First of all, and without a word: to be told that there is a match is to be told what is in the file, guess by guess.
        if not self._may_show(path):
            return True
        if len(self.rows) >= self._most or self._room <= 0:
            self.more = True
            return False
        text = (found[4] or b"").decode("utf-8", "replace")
        text = text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]}…"
        self.rows.append(GrepRow(path, int(found[2]), found[3] != b"-", text))
        # Files alone are sorted before they are cut, so all their names are kept.
        self._room -= len(path) + len(text) if found[3] else 0
        return True


def _run(argv: list[str], arguments: Wire, spec: SearchSpec, context: Context) -> tuple[ProcessEnd, _RowCollector]:
    limit = arguments.get("head_limit", DEFAULT_LIMIT) or MAX_FILES
    allowed = context.may_read
    rows = _RowCollector(
        MAX_FILES if spec.mode == "files" else limit,
        spec.names,
        (lambda path: allowed(Path(spec.root) / path)) if allowed is not None else (lambda _: True),
    )
    ended = run_process(
        argv,
        cwd=Path(spec.root),
        environ=child_environ(context.environ),
        timeout=SECONDS,
        abort=context.abort,
        take=rows.take,
    )
    return ended, rows


def _render(
    ended: ProcessEnd, rows: _RowCollector, arguments: Wire, spec: SearchSpec, context: Context, engine: str
) -> ToolOutput:
    if ended.why == "abort":
        return failure(STOPPED)
    if ended.why == "exit" and ended.code not in (0, 1) and not rows.rows:
        return failure(f"Grep: {_reason(rows.message)}", engine=engine)
    base = Path(spec.root)
    lines = {"files": _newest, "count": _counted, "content": _content}[spec.mode](rows.rows, base, context.cwd, arguments)
    limit = arguments.get("head_limit", DEFAULT_LIMIT) or len(lines)
    kept = fit_lines(lines[:limit], MAX_RESULT - _NOTES)
    more = rows.more or len(kept) < len(lines)
    notes = []
    if not lines:
        notes.append("No matches.")
    if more:
        notes.append(f"[{len(kept):,} shown, there are more: narrow the search, or raise head_limit.]")
    if ended.why == "timeout":
        notes.append(f"[Stopped after {SECONDS:.0f} s: search a smaller part.]")
    facts: Wire = {"files": len({row.path for row in rows.rows}), "lines": len(kept), "more": more, "engine": engine}
    return ToolOutput("\n".join([*kept, *notes]), facts=facts)


def _newest(rows: list[GrepRow], base: Path, cwd: Path, _: Wire) -> list[str]:
    def age(path: str) -> tuple[int, str]:
        try:
            return -os.stat(base / path).st_mtime_ns, path
        except OSError:
            return 0, path

    return [shown(base / path, cwd) for path in sorted({row.path for row in rows}, key=age)]


def _counted(rows: list[GrepRow], base: Path, cwd: Path, _: Wire) -> list[str]:
    return [f"{shown(base / row.path, cwd)}:{row.number}" for row in rows]


def _content(rows: list[GrepRow], base: Path, cwd: Path, arguments: Wire) -> list[str]:
    numbers, apart = arguments.get("-n", True), any(arguments.get(name) for name in ("-A", "-B", "-C"))
    lines, last = list[str](), GrepRow("", 0, True, "")
    for row in rows:
        if apart and lines and (row.path != last.path or row.number != last.number + 1):
            lines.append("--")
        sign = ":" if row.matches else "-"
        number = f"{row.number}{sign}" if numbers else ""
        lines.append(f"{shown(base / row.path, cwd)}{sign}{number}{row.text}")
        last = row
    return lines


def _reason(message: bytes) -> str:
    """The sentence of an error that may show the pattern with a mark below it."""
    text = " ".join(message.decode("utf-8", "replace").split())
    if "literal" in text and "multiline" in text.lower():
        return "the pattern holds a line end: set multiline to search across lines."
    return text or "the search ended without saying why."

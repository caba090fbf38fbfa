"""Grep: find files that match a pattern, and the matching lines.

It uses ripgrep if installed, else a plain loop (see `search`), which knows no .gitignore. Both are processes, so a search can be
stopped whatever its pattern, and both print the same lines. A pattern that only `re` understands (look-around, back references)
goes to the loop.

Invariants: a result has at most head_limit lines or files and 50,000 characters, and comes within half a minute. Lines are
sorted by path, lists of files newest first.

Facts: files, lines (shown), more, engine (ripgrep, python).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.blocks import Wire
from ..core.globs import compile_name
from ..core.prompt_files import prompt_text
from ..disk.child import ChildEnd, ChildProgram, child_environ, run_child
from ..disk.paths.memory_paths import is_internal
from ..language.wording import shorten
from .paths import missing, resolve, shown
from .search import SKIPPED, SearchSpec
from .tool import MAX_RESULT, STOPPED, Builtin, Context, ToolOutput, failure, fit_lines

# The default that users of other agents know.
DEFAULT_LIMIT = 250
NOTHING = "No matches."
# Sorting by age needs all names; beyond this number the order does not matter.
MAX_FILES = 10_000
# A search that takes longer needs a narrower path.
SECONDS = 30.0
# A source line fits; for minified code the beginning is enough.
LINE_CHARACTERS = 500
# One line of output is a path and a line cut by the loop; ripgrep does not cut lines.
_LINE_BYTES = 4 * LINE_CHARACTERS + 8_192
# Room for the notes below the results.
_NOTES = 500
_MESSAGE_BYTES = 2_000
# ripgrep's error message for features that only `re` supports.
_ONLY_RE = re.compile(rb"look-around|backreferences")
_ROW = re.compile(rb"([^\0]*)\0(\d+)(?:([:-])(.*))?", re.DOTALL)

# Globs may be separated by commas or spaces; inside braces a comma separates alternatives.
_GLOB = re.compile(r"(?:\{[^{}]*\}|[^\s,])+")

# The directory that contains the package. It goes behind the standard library on the loop's path, so that it can't shadow any
# of it.
_PACKAGES = Path(__file__).parent.parent.parent
_LOOP = "import sys; sys.path.append(sys.argv[1]); from lamina.tools.search import main; main()"

_COUNT = {"type": "integer", "minimum": 0, "maximum": 1_000}
SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 10_000, "description": "A regular expression"},
        "path": {"type": "string", "description": "A file or directory (default: the working directory)"},
        "glob": {"type": "string", "maxLength": 1_000, "description": "Only files that match, such as *.js or src/**/*.{ts,tsx}"},
        "type": {"type": "string", "maxLength": 50, "description": "Only files of this type, such as py, js, rust, go, java"},
        "output_mode": {
            "type": "string",
            "enum": ["files_with_matches", "content", "count"],
            "description": "File names (the default), matching lines, or the number of matching lines in each file",
        },
        "-i": {"type": "boolean", "description": "Ignore case"},
        "-n": {"type": "boolean", "description": "Line numbers, for content (default true)"},
        "-A": {**_COUNT, "description": "Lines shown after each match, for content"},
        "-B": {**_COUNT, "description": "Lines shown before each match, for content"},
        "-C": {**_COUNT, "description": "Lines shown before and after each match, for content"},
        "head_limit": {
            "type": "integer",
            "minimum": 0,
            "description": f"Maximum number of lines or files (default {DEFAULT_LIMIT}; 0: as many as a result can hold)",
        },
        "multiline": {"type": "boolean", "description": "Let the pattern match across lines, and . match a line end"},
    },
    "required": ["pattern"],
}

FindRipgrep = Callable[[Mapping[str, str]], str | None]


def tool(find: FindRipgrep | None = None) -> Builtin:
    def act(arguments: Wire, context: Context) -> ToolOutput:
        return _act(arguments, context, find or find_ripgrep)

    return Builtin(name="Grep", description=prompt_text(__file__, "grep"), schema=SCHEMA, read_only=True, act=act)


class GrepRow(NamedTuple):
    path: str  # relative to the root
    number: int  # line number, or number of matching lines
    matches: bool  # False for a line of context
    text: str


def _act(arguments: Wire, context: Context, find: FindRipgrep) -> ToolOutput:
    root = resolve(arguments.get("path") or ".", context.cwd)
    if root == context.memory_dir and not os.path.lexists(root):
        return ToolOutput(NOTHING, facts={"files": 0, "lines": 0, "more": False})
    if not os.path.exists(root):
        return failure(missing(root, context.cwd))
    if not os.path.isdir(root) and not os.path.isfile(root):
        return failure(f"{root} is neither a file nor a directory and can't be searched.")
    if "\0" in arguments["pattern"]:
        return failure("pattern contains a NUL character, which no text file has. Remove it.")
    mode = arguments.get("output_mode", "files_with_matches")
    around: int = arguments.get("-C", 0)
    before, after = (arguments.get(name, around) if mode == "content" else 0 for name in ("-B", "-A"))
    # A single file has no directory below it, and globs are relative to the searched directory.
    single, kind = os.path.isfile(root), arguments.get("type", "")
    spec = SearchSpec(
        root=str(root.parent if single else root),
        name=root.name if single else "",
        pattern=arguments["pattern"],
        mode=mode,
        ignore_case=arguments.get("-i", False),
        multiline=arguments.get("multiline", False),
        before=before,
        after=after,
        globs=() if single else tuple(_GLOB.findall(arguments.get("glob", ""))),
        names=() if single else file_types().get(kind, ()),
    )
    ripgrep = find(context.environ)
    # A program packed into one file has no interpreter.
    python = None if getattr(sys, "frozen", False) else sys.executable or None
    if ripgrep is not None:
        search = _Search(spec, arguments, context)
        end = search.run(ripgrep_argv(ripgrep, spec, kind))
        if not (end.code == 2 and _ONLY_RE.search(search.message)) or python is None:
            return search.render(end, "ripgrep")
    if python is None:
        return failure("Neither ripgrep nor a Python interpreter was found. Install ripgrep (rg) to search.")
    if kind and kind not in file_types():
        return failure(f"Type {kind!r} is unknown without ripgrep. Use a glob, or one of {', '.join(file_types())}.")
    argv = [python, "-I", "-S", "-W", "ignore", "-c", _LOOP, str(_PACKAGES), json.dumps(spec._asdict())]
    search = _Search(spec, arguments, context)
    return search.render(search.run(argv), "python")


@cache
def file_types() -> Mapping[str, tuple[str, ...]]:
    """Return the file name patterns of each file type. ripgrep gets them too, so that a type means the same with and without it."""
    data = Path(__file__).with_name("file_types.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[str, ...]])


def find_ripgrep(environ: Mapping[str, str]) -> str | None:
    """Find ripgrep on the PATH or next to this Python. Only a full path counts, so a program in the working tree is never
    used."""
    beside = os.path.dirname(sys.executable) if sys.executable else ""
    programs = (shutil.which("rg", path=place) for place in (environ.get("PATH"), beside) if place)
    return next((program for program in programs if program is not None and os.path.isabs(program)), None)


def ripgrep_argv(program: str, spec: SearchSpec, kind: str) -> list[str]:
    """Build the command line. Only .gitignore counts, not the user's configuration, so that searches stay repeatable. A type
    that is not in our list is one of ripgrep's own."""
    options = ["--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--null", "--crlf", "--hidden"]
    options += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"]
    match spec.mode:
        case "files_with_matches":
            # A count of one is as quick as a list of names, and its lines have the same form as all others.
            options += ["--count", "--max-count=1"]
        case "count":
            options += ["--count", "--sort=path"]
        case _:
            options += ["--line-number", "--sort=path", f"--before-context={spec.before}", f"--after-context={spec.after}"]
    if spec.ignore_case:
        options.append("--ignore-case")
    if spec.multiline:
        options += ["--multiline", "--multiline-dotall"]
    # In ripgrep a glob that names a file wins over the type. If both are given, the caller checks the type.
    if kind and not spec.globs:
        own = file_types().get(kind)
        options += [f"--type-clear={kind}", *(f"--type-add={kind}:{glob}" for glob in own)] if own else []
        options.append(f"--type={kind}")
    options += [f"--glob={glob}" for glob in spec.globs]
    options += [f"--glob=!{name}/" for name in SKIPPED]
    return [program, *options, f"--regexp={spec.pattern}", "--", f"./{spec.name}"]


class _Search:
    """One search: its rows, collected line by line until there are enough, and its result."""

    def __init__(self, spec: SearchSpec, arguments: Wire, context: Context) -> None:
        self.message = b""
        self._spec = spec
        self._arguments = arguments
        self._context = context
        self._root = Path(spec.root)
        self._rows = list[GrepRow]()
        self._more = False
        self._room = MAX_RESULT
        # Lists of files are sorted before they are cut, so all names are kept.
        limit = arguments.get("head_limit", DEFAULT_LIMIT) or MAX_FILES
        self._most = MAX_FILES if spec.mode == "files_with_matches" else limit
        self._names = [compile_name(glob) for glob in spec.names]
        self._visible: dict[str, bool] = {}
        self._line = b""  # the last one, as far as it has come

    def run(self, argv: list[str]) -> ChildEnd:
        return run_child(
            ChildProgram(argv),
            cwd=self._root,
            environ=child_environ(self._context.environ),
            timeout=SECONDS,
            take=self._take,
            abort=self._context.abort.is_set,
        )

    def _take(self, part: bytes) -> bool:
        *lines, line = (self._line + part).split(b"\n")
        # Keep only the beginning of a line without end; the rest would not be shown anyway.
        self._line = line[:_LINE_BYTES]
        return all(self._row(line[:_LINE_BYTES]) for line in lines)

    def _row(self, line: bytes) -> bool:
        # ripgrep ends its lines the way the files do.
        row = _ROW.fullmatch(line.removesuffix(b"\r"))
        if row is None:
            self.message = (self.message + line + b"\n")[:_MESSAGE_BYTES]
            return True
        path = os.fsdecode(row[1]).removeprefix("./").replace(os.sep, "/")
        # Check this first and drop the row silently: reporting a match would reveal the file's content, guess by guess.
        if not self._may_show(path):
            return True
        if len(self._rows) >= self._most or self._room <= 0:
            self._more = True
            return False
        text = shorten((row[4] or b"").decode("utf-8", "replace"), LINE_CHARACTERS)
        self._rows.append(GrepRow(path, int(row[2]), row[3] != b"-", text))
        self._room -= len(path) + len(text) if row[3] else 0
        return True

    def _may_show(self, path: str) -> bool:
        if path not in self._visible:
            file, may_read = self._root / path, self._context.may_read
            wanted = not self._names or any(name.match(file.name) for name in self._names)
            self._visible[path] = wanted and not is_internal(file, below=self._root) and (may_read is None or may_read(file))
        return self._visible[path]

    def render(self, end: ChildEnd, engine: str) -> ToolOutput:
        if end.why == "abort":
            return failure(STOPPED)
        if end.why == "exit" and end.code not in (0, 1) and not self._rows:
            return failure(f"Grep: {_reason(self.message)}", engine=engine)
        match self._spec.mode:
            case "files_with_matches":
                lines = [self._shown(path) for path in sorted({row.path for row in self._rows}, key=self._age)]
            case "count":
                lines = [f"{self._shown(row.path)}:{row.number}" for row in self._rows]
            case _:
                lines = self._matching_lines()
        result = fit_lines(lines[: self._arguments.get("head_limit", DEFAULT_LIMIT) or len(lines)], MAX_RESULT - _NOTES)
        more = self._more or len(result) < len(lines)
        facts: Wire = {"files": len({row.path for row in self._rows}), "lines": len(result), "more": more, "engine": engine}
        if not lines:
            result.append(NOTHING)
        if more:
            result.append(f"[{facts['lines']:,} shown, more available. Narrow the search or raise head_limit.]")
        if end.why == "timeout":
            result.append(f"[Stopped after {SECONDS:.0f} s. Search a smaller part.]")
        return ToolOutput("\n".join(result), facts=facts)

    def _shown(self, path: str) -> str:
        return shown(self._root / path, self._context.cwd)

    def _age(self, path: str) -> tuple[int, str]:
        try:
            return -os.stat(self._root / path).st_mtime_ns, path
        except OSError:
            return 0, path

    def _matching_lines(self) -> list[str]:
        numbers, apart = self._arguments.get("-n", True), self._spec.before or self._spec.after
        lines, last = list[str](), GrepRow("", 0, True, "")
        for row in self._rows:
            if apart and lines and (row.path != last.path or row.number != last.number + 1):
                lines.append("--")
            sign = ":" if row.matches else "-"
            lines.append(f"{self._shown(row.path)}{sign}{f'{row.number}{sign}' if numbers else ''}{row.text}")
            last = row
        return lines


def _reason(message: bytes) -> str:
    """Turn the engine's error, which may quote the pattern with a mark below it, into one line."""
    text = " ".join(message.decode("utf-8", "replace").split())
    if "literal" in text and "multiline" in text.lower():
        return "the pattern contains a line end. Set multiline to search across lines."
    return text or "the search failed without an error message."

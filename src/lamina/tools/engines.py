"""The command lines of the two search programs: ripgrep, and our own worker. Both print the same lines; see `search`.

Pure, except for looking up ripgrep.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from .search import SearchSpec
from .walk import SKIPPED

# File types: a short name and its file name patterns. ripgrep gets these too, so that a type means the same with and without
# it. For any other type, ripgrep uses its built-in list.
TYPES: dict[str, tuple[str, ...]] = {
    "c": ("*.c", "*.h"),
    "cpp": ("*.C", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hh", "*.hpp", "*.hxx", "*.inl"),
    "cs": ("*.cs",),
    "css": ("*.css", "*.scss", "*.less"),
    "csv": ("*.csv",),
    "dart": ("*.dart",),
    "docker": ("*Dockerfile*",),
    "elixir": ("*.ex", "*.exs", "*.eex", "*.heex"),
    "go": ("*.go",),
    "haskell": ("*.hs", "*.lhs"),
    "html": ("*.html", "*.htm", "*.ejs"),
    "java": ("*.java", "*.jsp", "*.properties"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "json": ("*.json", "*.jsonl"),
    "kotlin": ("*.kt", "*.kts"),
    "lua": ("*.lua",),
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk", "*.mak"),
    "md": ("*.md", "*.markdown", "*.mdx"),
    "php": ("*.php", "*.phtml"),
    "protobuf": ("*.proto",),
    "py": ("*.py", "*.pyi"),
    "r": ("*.R", "*.r", "*.Rmd"),
    "rst": ("*.rst",),
    "ruby": ("*.rb", "*.rake", "*.gemspec", "Gemfile", "Rakefile"),
    "rust": ("*.rs",),
    "scala": ("*.scala", "*.sbt"),
    "sh": ("*.sh", "*.bash", "*.zsh", ".bashrc", ".zshrc", ".profile"),
    "sql": ("*.sql", "*.psql"),
    "swift": ("*.swift",),
    "tex": ("*.tex", "*.sty", "*.cls", "*.bib"),
    "toml": ("*.toml", "Cargo.lock"),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "txt": ("*.txt",),
    "xml": ("*.xml", "*.xsd", "*.xsl", "*.xslt", "*.xhtml"),
    "yaml": ("*.yaml", "*.yml"),
    "zig": ("*.zig",),
}


# The directory that contains the package. It goes behind the standard library on the worker's path, so that it can't shadow any
# of it.
_PACKAGES = Path(__file__).parent.parent.parent
_WORKER = "import sys; sys.path.append(sys.argv[1]); from lamina.tools.search import main; main()"


def find_ripgrep(environ: Mapping[str, str]) -> str | None:
    """Find ripgrep on the PATH or next to this Python. Only a full path counts, so a program in the working tree is never
    used."""
    beside = os.path.dirname(sys.executable) if sys.executable else ""
    for place in (environ.get("PATH"), beside):
        found = shutil.which("rg", path=place) if place else None
        if found is not None and os.path.isabs(found):
            return found
    return None


def find_worker() -> str | None:
    """Return the interpreter for our worker, or None in a program packed into one file."""
    return None if getattr(sys, "frozen", False) else sys.executable or None


def ripgrep_argv(program: str, spec: SearchSpec, kind: str) -> list[str]:
    """Build the command line. Only .gitignore counts, not the user's configuration: the worker knows nothing else, and
    searches stay repeatable."""
    options = ["--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--null", "--crlf", "--hidden"]
    options += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"]
    match spec.mode:
        case "files":
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
        options += [f"--type-clear={kind}", *(f"--type-add={kind}:{glob}" for glob in TYPES[kind])] if kind in TYPES else []
        options.append(f"--type={kind}")
    options += [f"--glob={glob}" for glob in spec.globs]
    options += [f"--glob=!{name}/" for name in SKIPPED]
    return [program, *options, f"--regexp={spec.pattern}", "--", f"./{spec.name}"]


def worker_argv(program: str, spec: SearchSpec) -> list[str]:
    return [program, "-I", "-S", "-W", "ignore", "-c", _WORKER, str(_PACKAGES), json.dumps(spec._asdict())]

"""The two programs that can search: ripgrep, and our own worker. Both print the same lines; see `search`.

Owns their command lines. Pure but for looking ripgrep up.
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

# Types of files: a short name and the names of the files it stands for. ripgrep is given these too, so that a type means the same with
# and without it; types that are not here are ripgrep's own business.
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


# The directory that holds the package; behind the standard library on the worker's path, so that it can't hide any of it.
_PACKAGES = Path(__file__).parent.parent.parent
_WORKER = "import sys; sys.path.append(sys.argv[1]); from lamina.tools.search import main; main()"


def find_ripgrep(environ: Mapping[str, str]) -> str | None:
    """ripgrep on the PATH, or installed beside this Python. Only a full path: a program that lies in the working tree is not meant."""
    beside = os.path.dirname(sys.executable) if sys.executable else ""
    for place in (environ.get("PATH"), beside):
        found = shutil.which("rg", path=place) if place else None
        if found is not None and os.path.isabs(found):
            return found
    return None


def find_worker() -> str | None:
    """The interpreter for our own worker; a program packed into one file has none."""
    return None if getattr(sys, "frozen", False) else sys.executable or None


def ripgrep_argv(program: str, spec: SearchSpec, kind: str) -> list[str]:
    """Only .gitignore counts, the person's own configuration does not: the worker knows nothing else, and a search is repeatable."""
    options = ["--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--null", "--crlf", "--hidden"]
    options += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"]
    match spec.mode:
        case "files":
            # A count of one is as quick as a list of names and comes in lines like all the rest.
            options += ["--count", "--max-count=1"]
        case "count":
            options += ["--count", "--sort=path"]
        case _:
            options += ["--line-number", "--sort=path", f"--before-context={spec.before}", f"--after-context={spec.after}"]
    if spec.ignore_case:
        options.append("--ignore-case")
    if spec.multiline:
        options += ["--multiline", "--multiline-dotall"]
    # A glob that names a file wins over the type there: with both, the caller looks at the type.
    if kind and not spec.globs:
        options += [f"--type-clear={kind}", *(f"--type-add={kind}:{glob}" for glob in TYPES[kind])] if kind in TYPES else []
        options.append(f"--type={kind}")
    options += [f"--glob={glob}" for glob in spec.globs]
    options += [f"--glob=!{name}/" for name in SKIPPED]
    return [program, *options, f"--regexp={spec.pattern}", "--", f"./{spec.name}"]


def worker_argv(program: str, spec: SearchSpec) -> list[str]:
    return [program, "-I", "-S", "-W", "ignore", "-c", _WORKER, str(_PACKAGES), json.dumps(spec._asdict())]

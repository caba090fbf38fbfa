"""Which file a path means: the same answer for the tool that opens it and for the function that permits it.

Owns the step from a model's text to a path. Invariant: the answer depends on the text and the working directory only, never on
the environment or the disk, so that what was permitted is what is opened.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from ...core.errors import PathRefused
from .file_names import shown as printable

# No system takes longer ones (PATH_MAX on Linux).
MAX_PATH = 4_096
# A directory is looked through for similar names so far; the rest would cost more than the hint is worth.
_MOST_NAMES = 5_000
_MOST_HINTS = 3


def resolve(text: str, cwd: str | os.PathLike[str]) -> Path:
    """The absolute path of `text`, `..` taken out by its spelling; PathRefused when it names no file."""
    if problem := _problem(text):
        raise PathRefused(printable(text), problem, "give the full path of a file or directory")
    return Path(os.path.abspath(os.path.join(cwd, text)))


def _problem(text: str) -> str | None:
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "holds a NUL character, which no file name can"
    if text.startswith("~"):
        return "begins with `~`, which is not expanded here"
    if len(text) > MAX_PATH:
        return f"is longer than {MAX_PATH:,} characters"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "holds a character that no file name can"
    return None


def shown(path: Path, cwd: Path) -> str:
    """Return the path, short inside the working directory, full outside; with `/` on every system."""
    return (path.relative_to(cwd) if path.is_relative_to(cwd) else path).as_posix()


def missing(path: Path, cwd: Path) -> str:
    """Return the sentence for a path that does not exist, with similar names."""
    hints = _similar(path, cwd)
    if hints:
        return f"{path} does not exist. Similar: {', '.join(hints)}."
    if not os.path.isdir(path.parent):
        above = next((str(parent) for parent in path.parents if os.path.isdir(parent)), "nothing")
        return f"{path} does not exist, and neither does its directory (what exists of it: {above})."
    return f"{path} does not exist; Glob finds files by name. The working directory is {cwd}."


def _similar(path: Path, cwd: Path) -> list[str]:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        names = []
    folded = {name.casefold(): name for name in names}
    close = [folded[name] for name in get_close_matches(path.name.casefold(), folded, n=_MOST_HINTS, cutoff=0.7)]
    stem = [name for name in names if Path(name).stem == path.stem and name not in close]
    found = [str(path.parent / name) for name in (*close, *sorted(stem))][:_MOST_HINTS]
    # A model often forgets or invents the directory.
    if not found and path.parent != cwd and os.path.isfile(cwd / path.name):
        return [str(cwd / path.name)]
    return found

"""Resolves a model's text to a path, the same way for the tool that opens it and the function that permits it.

Invariant: the answer depends on the text and the working directory only, never on the environment or the disk, so the file that
is opened is the one that was permitted.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from ..core.errors import PathRefused
from ..disk.paths.file_names import printable_path
from ..disk.regular_file import list_entries
from ..language.text import Text

# No system accepts longer paths (PATH_MAX on Linux).
MAX_PATH = 4_096
# Maximum number of names searched for similar ones; more would cost more than the hint is worth.
_MOST_NAMES = 5_000
_MOST_HINTS = 3


def resolve(text: str, cwd: str | os.PathLike[str]) -> Path:
    """Return the absolute path of `text`, with `..` removed textually. Raises PathRefused for an invalid path."""
    if problem := _problem(text):
        raise PathRefused(printable_path(text), problem, "give the full path of a file or directory")
    return Path(os.path.abspath(os.path.join(cwd, text)))


def _problem(text: str) -> str | None:
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "contains a NUL character, which is not allowed in a file name"
    if text.startswith("~"):
        return "starts with `~`, which is not expanded here"
    if len(text) > MAX_PATH:
        return f"is longer than {MAX_PATH:,} characters"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "contains a character that is not allowed in a file name"
    return None


def shown(path: Path, cwd: Path) -> str:
    """Return the path for display: relative inside the working directory, absolute outside, with `/` on every system."""
    return (path.relative_to(cwd) if path.is_relative_to(cwd) else path).as_posix()


def missing(path: Path, cwd: Path) -> str:
    """Return the message for a path that does not exist, with similar names."""
    hints = _similar(path, cwd)
    if hints:
        return Text("{path} does not exist. Similar: {hints}.", path=path, hints=", ".join(hints))
    if not os.path.isdir(path.parent):
        above = next((str(parent) for parent in path.parents if os.path.isdir(parent)), "none")
        return Text(
            "{path} does not exist, and neither does its directory (nearest existing directory: {above}).", path=path, above=above
        )
    return Text("{path} does not exist. Use Glob to find files by name. The working directory is {cwd}.", path=path, cwd=cwd)


def _similar(path: Path, cwd: Path) -> list[str]:
    names = [entry.name for entry in list_entries(path.parent, _MOST_NAMES)]
    folded = {name.casefold(): name for name in names}
    close = [folded[name] for name in get_close_matches(path.name.casefold(), folded, n=_MOST_HINTS, cutoff=0.7)]
    stem = [name for name in names if Path(name).stem == path.stem and name not in close]
    hints = [str(path.parent / name) for name in (*close, *sorted(stem))][:_MOST_HINTS]
    # A model often forgets or invents the directory.
    if not hints and path.parent != cwd and os.path.isfile(cwd / path.name):
        return [str(cwd / path.name)]
    return hints

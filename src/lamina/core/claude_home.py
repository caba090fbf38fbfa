"""Claude Code's home: how a path shows it, and how Claude Code names memory files there. Pure."""

from __future__ import annotations

import os
import re

HOME_NAME = ".claude"
_MEMORY = re.compile(r"[/\\]\.claude[/\\]projects[/\\][^/\\]+[/\\]memory(?:[/\\]|$)")
_TYPED = re.compile(r"(?:user|feedback|project|reference)_(?!\.md$)")


def new_memory_file(directory: str | os.PathLike[str], file: str, kind: str | None) -> str:
    """Return the name of a new memory file: `<type>_<subject>.md` in Claude Code's home, and `file` as it is elsewhere."""
    is_plain = kind and file and not _TYPED.match(file)
    return f"{kind}_{file}" if is_plain and _MEMORY.search(os.fspath(directory)) else file


def without_type(file: str) -> str:
    """Return a file name without the type that Claude Code puts before its subject."""
    return _TYPED.sub("", file, count=1)

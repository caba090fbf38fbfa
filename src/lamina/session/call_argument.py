"""The argument of a tool call that says what the call is about: a file, a command, a pattern. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

# The most telling first.
TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "path", "description", "prompt", "skill")
PATHS = ("file_path", "notebook_path", "path")


class CallArgument(NamedTuple):
    text: str
    is_path: bool = False


def argument_of(given: Any) -> CallArgument:
    """Return the most telling argument of a call, or all of them if none is known to tell more than others."""
    if not isinstance(given, dict):
        return CallArgument(str(given))
    key = next((key for key in TELLING if given.get(key)), None)
    if key is None:
        return CallArgument(", ".join(f"{name}: {value}" for name, value in given.items()))
    return CallArgument(str(given[key]), key in PATHS and isinstance(given[key], str))

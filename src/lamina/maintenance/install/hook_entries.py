"""Lamina's entries in a hooks file, which Claude Code and Codex write in the same form. Pure: bytes in, bytes out.

Everything else in the file is kept, in its order. An entry is Lamina's if it runs `lamina hook` or asks Lamina's server.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from ...core.errors import InputError

# Seconds that the user waits at most for a hook. A call of the server takes 5 to 100 ms, a command a few times as long: it starts Python.
CALL_SECONDS, COMMAND_SECONDS = 2, 3
_COMMAND = re.compile(r"-m lamina hook \w+")


def guarded_command(words: Sequence[str], first: str = "") -> str:
    """Return a line for /bin/sh that runs the words after `first`. It succeeds, silently, even if Lamina's environment was deleted."""
    return f"[ -x {shlex.quote(words[0])} ] || exit 0; {first}{shlex.join(words)} 2>/dev/null || :"


def with_entries(old: bytes | None, entries: dict[str, list[dict[str, Any]]], path: str) -> bytes:
    """Return the file with these entries at the end of each event, in place of Lamina's former ones."""
    document = read_object(old, path)
    before, hooks = document.get("hooks", {}), _without_ours(document, path).get("hooks", {})
    # An event keeps its place in the file, so that a second time changes nothing.
    order = dict.fromkeys([*before, *entries])
    merged = {event: [*hooks.get(event, []), *entries.get(event, [])] for event in order if event in hooks or event in entries}
    return write_object({**document, "hooks": merged}, old)


def without_entries(old: bytes | None, path: str) -> bytes | None:
    """Return the file without Lamina's entries, or None if nothing else is in it."""
    if old is None:
        return None
    before = read_object(old, path)
    document = _without_ours(before, path)
    if document == before:
        return old
    return write_object(document, old) if document.get("hooks") or document.keys() - {"hooks", "description"} else None


def holds_entries(old: bytes | None, path: str) -> bool:
    return old is not None and without_entries(old, path) != old


def _without_ours(document: dict[str, Any], path: str) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InputError(path, "its hooks are not lists by event", "correct the file, then try again")
    kept = {event: [left for group in groups if (left := _others(group)) is not None] for event, groups in hooks.items()}
    left = {event: groups for event, groups in kept.items() if groups or not hooks[event]}
    return {**document, "hooks": left} if "hooks" in document else dict(document)


def _others(group: Any) -> Any | None:
    """Return a group without Lamina's hooks; None if there were no others."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list):
        return group
    others = [hook for hook in hooks if not _is_ours(hook)]
    if len(others) == len(hooks):
        return group
    return {**group, "hooks": others} if others else None


def _is_ours(hook: Any) -> bool:
    if not isinstance(hook, dict):
        return False
    if str(hook.get("server", "")).startswith("plugin:lamina:"):
        return True
    arguments = hook.get("args")
    words = [str(hook.get("command", "")), *map(str, arguments if isinstance(arguments, list) else ())]
    return _COMMAND.search(" ".join(words)) is not None


def read_object(old: bytes | None, path: str) -> dict[str, Any]:
    """Read a JSON object, or refuse the file with one sentence."""
    try:
        text = (old or b"").decode("utf-8-sig")
        document: Any = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is not valid JSON ({error}), so nothing was changed", "correct it, then try again") from None
    if not isinstance(document, dict):
        raise InputError(path, "does not hold a JSON object, so nothing was changed", "correct it, then try again")
    return document


def write_object(document: dict[str, Any], old: bytes | None = None) -> bytes:
    """Write a JSON object with the indentation that the file had."""
    indent = re.search(rb"\n([ \t]+)\S", old or b"")
    return (json.dumps(document, indent=indent[1].decode() if indent else "  ", ensure_ascii=False) + "\n").encode()

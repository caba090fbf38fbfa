"""Kinds of settings that hold more than one value: lists, maps, memory modes, permissions, hooks and child environments.

Levels are merged instead of replaced, except for lists of names, where the highest list wins. A bad entry is skipped and the rest
is kept: one mistyped line must not discard every `deny` rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

from ...language.text import Text
from ..blocks import scrub
from ..policy import LARGEST
from .kinds import Kind, ReadValue, describe, printable, refuse

T = TypeVar("T")

# More entries than anyone writes by hand; a file with more is damaged or hostile.
MOST_ENTRIES = 1_000
LONGEST_NAME = 500

Mode: TypeAlias = Literal["off", "read-only", "confirm", "auto"]
Scope: TypeAlias = Literal["private", "team", "agentUser", "agentProject", "agentLocal"]
MODES: tuple[Mode, ...] = get_args(Mode)  # from the most to the least restrictive
SCOPES: tuple[Scope, ...] = get_args(Scope)

Hooks: TypeAlias = Mapping[str, tuple[Mapping[str, Any], ...]]


def frozen_map(entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(dict(entries))


NO_ENTRIES: Mapping[Any, Any] = frozen_map({})


def _freeze(value: Any) -> Any:
    """Convert plain JSON to immutable values."""
    if isinstance(value, Mapping):
        return frozen_map({scrub(str(key)): _freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_freeze(item) for item in value)
    return scrub(value)


def _kept(value: T, problems: tuple[str, ...]) -> ReadValue[T]:
    """Return the part that could be read, or None if there are only problems."""
    return ReadValue(value if value or not problems else None, problems)


def _is_name(raw: object) -> bool:
    return isinstance(raw, str) and 0 < len(raw) <= LONGEST_NAME and raw.isprintable()


def _entries(raw: object, says: str, good: Callable[[Any], bool]) -> ReadValue[Mapping[str, Any]]:
    """Return the valid entries of an object, and one problem for each invalid entry."""
    if not isinstance(raw, Mapping):
        return refuse(says, raw)
    if len(raw) > MOST_ENTRIES:
        return ReadValue(None, (Text("has more than {limit:,} entries", limit=MOST_ENTRIES),))
    kept = {name: item for name, item in raw.items() if _is_name(name) and good(item)}
    problems = tuple(
        Text("entry {name} is invalid, it must be part of {says}", name=describe(name), says=Text.whole(says))
        for name in raw
        if name not in kept
    )
    return _kept(frozen_map(kept), problems)


def _pairs(text: str) -> dict[str, str]:
    """Parse `Bash=20000,Grep=10000`. A part without `=` gets an empty value, which is rejected later."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


def _overlaid(higher: Mapping[Any, Any], lower: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return frozen_map({**lower, **higher})


def _united(higher: tuple[str, ...], lower: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*higher, *lower)))


def _read_names(raw: object, says: str = "a list of strings") -> ReadValue[tuple[str, ...]]:
    if not isinstance(raw, list | tuple | frozenset) or len(raw) > MOST_ENTRIES:
        return refuse(says, raw)
    kept = tuple(dict.fromkeys(item for item in raw if _is_name(item)))
    problems = tuple(Text("entry {item} must be a string", item=describe(item)) for item in raw if not _is_name(item))
    return _kept(tuple(sorted(kept)) if isinstance(raw, frozenset) else kept, problems)


# For NAMES the highest list replaces the others; for UNION every level adds entries.
NAMES: Kind[tuple[str, ...]] = Kind(
    says="a list of strings",
    reader=_read_names,
    from_text=lambda text: [part.strip() for part in text.split(",") if part.strip()],
    show=list,
)
UNION: Kind[tuple[str, ...]] = Kind(says="a list of strings", reader=_read_names, join=_united, show=list)


def _counts_in(text: str) -> object:
    pairs = _pairs(text).items()
    return {name: int(value) if value.isascii() and value.isdigit() else value for name, value in pairs} or text


# A whole number for each name; a higher level overrides a lower one name by name.
COUNTS: Kind[Mapping[str, int]] = Kind(
    says="an object that maps names to whole numbers of at least 1",
    reader=lambda raw, says: _entries(raw, says, lambda item: type(item) is int and 1 <= item <= LARGEST),
    from_text=_counts_in,
    join=_overlaid,
    show=dict,
)


def _read_modes(raw: object, says: str) -> ReadValue[Mapping[Scope, Mode]]:
    if isinstance(raw, str):
        return ReadValue(frozen_map(dict.fromkeys(SCOPES, raw))) if raw in MODES else refuse(says, raw)
    named, problems = _entries(raw, says, lambda item: item in MODES)
    named = named or NO_ENTRIES
    unknown = tuple(Text("unknown scope {name}", name=describe(name)) for name in named if name not in SCOPES)
    return ReadValue(frozen_map({scope: named[scope] for scope in SCOPES if scope in named}) or None, problems + unknown)


# One mode for all scopes, or an object with a mode for some of them.
MEMORY_MODES: Kind[Mapping[Scope, Mode]] = Kind(
    says=Text(
        "one of {modes}, or an object that maps any of {scopes} to one of them", modes=", ".join(MODES), scopes=", ".join(SCOPES)
    ),
    reader=_read_modes,
    from_text=lambda text: _pairs(text) if "=" in text else text.strip(),
    join=_overlaid,
    least=lambda value, base: frozen_map(
        {scope: min(value.get(scope, mode), mode, key=MODES.index) for scope, mode in base.items()}
    ),
    show=dict,
)


class Permissions(msgspec.Struct, frozen=True):
    """Permission rules in Claude Code's syntax. `deny` rules are checked first."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    mode: str | None = None


_LISTS = {"allow": "allow", "ask": "ask", "deny": "deny", "additionalDirectories": "directories"}


def _read_permissions(raw: object, says: str) -> ReadValue[Permissions]:
    if isinstance(raw, Permissions):
        return ReadValue(raw)
    if not isinstance(raw, Mapping):
        return refuse(says, raw)
    lists = {key: _read_names(raw[key]) for key in _LISTS if raw.get(key) is not None}
    problems = [Text("{key}: {problem}", key=key, problem=problem) for key, found in lists.items() for problem in found.problems]
    mode = raw.get("defaultMode")
    if mode is not None and not _is_name(mode):
        problems.append(Text("defaultMode must be a string, not {mode}", mode=describe(mode)))
        mode = None
    rules = Permissions(**{_LISTS[key]: found.value or () for key, found in lists.items()}, mode=mode)
    return ReadValue(None if problems and rules == Permissions() else rules, tuple(problems))


def _joined_permissions(higher: Permissions, lower: Permissions) -> Permissions:
    lists = {field: _united(getattr(higher, field), getattr(lower, field)) for field in _LISTS.values()}
    return Permissions(**lists, mode=higher.mode or lower.mode)


def _shown_permissions(value: Permissions) -> object:
    lists: dict[str, object] = {key: list(getattr(value, field)) for key, field in _LISTS.items() if getattr(value, field)}
    return {**lists, "defaultMode": value.mode} if value.mode else lists


PERMISSIONS: Kind[Permissions] = Kind(
    says="an object with the lists allow, ask and deny",
    reader=_read_permissions,
    join=_joined_permissions,
    show=_shown_permissions,
)


def _read_hooks(raw: object, says: str) -> ReadValue[Hooks]:
    events, problems = _entries(raw, says, lambda groups: isinstance(groups, list | tuple) and len(groups) <= MOST_ENTRIES)
    kept: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for event, groups in (events or NO_ENTRIES).items():
        good = [group for group in groups if isinstance(group, Mapping) and isinstance(group.get("hooks"), list | tuple)]
        if good:
            kept[event] = tuple(_freeze(group) for group in good)
        problems += (Text("{event}: each group must be an object with a list `hooks`", event=printable(event)),) * (
            len(groups) - len(good)
        )
    return _kept(frozen_map(kept), problems)


def _first_word(hook: object) -> str:
    command = hook.get("command") if isinstance(hook, Mapping) else None
    words = command.split() if isinstance(command, str) else []
    return f"{printable(words[0])} …" if len(words) > 1 else printable(words[0]) if words else "(no command)"


# Maps each event to groups of commands, those of the higher level first. The `hooks` package parses the groups.
# Only the first word of a command is shown, because the rest may contain a token.
HOOK_TABLE: Kind[Hooks] = Kind(
    says="an object that maps events to lists of groups, each with a list `hooks`",
    reader=_read_hooks,
    join=lambda higher, lower: frozen_map({event: higher.get(event, ()) + lower.get(event, ()) for event in (*higher, *lower)}),
    show=lambda value: {
        event: [_first_word(hook) for group in groups for hook in group["hooks"]] for event, groups in value.items()
    },
)


def _read_variables(raw: object, says: str) -> ReadValue[Mapping[str, str]]:
    found, problems = _entries(raw, says, lambda item: isinstance(item, str) and "\0" not in item)
    texts = {name: scrub(text) for name, text in (found or NO_ENTRIES).items()}
    unfit = tuple(Text("entry {name} is not a valid variable name", name=describe(name)) for name in texts if "=" in name)
    return ReadValue(frozen_map({name: text for name, text in texts.items() if "=" not in name}) or None, problems + unfit)


# Variables for the programs that hooks and tools start; they are never set in Lamina's own process.
CHILD_ENVIRONMENT: Kind[Mapping[str, str]] = Kind(
    says="an object that maps names to strings",
    reader=_read_variables,
    join=_overlaid,
    show=lambda value: dict.fromkeys(value, "set (hidden)"),
)

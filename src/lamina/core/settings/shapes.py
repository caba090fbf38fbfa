"""Kinds of settings that hold more than one value: lists, maps, memory modes, permissions, hooks and child environments.

They are joined across levels instead of replaced, except where a list says what all of it is. One bad entry costs that entry, not
the rest: a mistyped line must not take every `deny` rule with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from ..blocks import scrub
from .kinds import LARGEST, Kind, Read, bad, printable, seen

# More entries than a person writes; a file that has more is damaged or hostile.
MOST_ENTRIES = 1_000
LONGEST_NAME = 500

Mode: TypeAlias = Literal["off", "read-only", "confirm", "auto"]
Scope: TypeAlias = Literal["private", "team", "agentUser", "agentProject", "agentLocal"]
MODES: tuple[Mode, ...] = get_args(Mode)  # from the most careful to the least (B5)
SCOPES: tuple[Scope, ...] = get_args(Scope)

Hooks: TypeAlias = Mapping[str, tuple[Mapping[str, Any], ...]]


def frozen_map(entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(dict(entries))


NO_ENTRIES: Mapping[Any, Any] = frozen_map({})


def freeze(value: Any) -> Any:
    """Plain JSON as values nobody can change."""
    if isinstance(value, Mapping):
        return frozen_map({scrub(str(key)): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return scrub(value)


def _is_name(raw: object) -> bool:
    return isinstance(raw, str) and 0 < len(raw) <= LONGEST_NAME and raw.isprintable()


def _entries(raw: object, says: str, good: Callable[[Any], bool]) -> Read[Mapping[str, Any]]:
    """The entries of an object whose name and value are good; one problem for each of the others."""
    if not isinstance(raw, Mapping):
        return bad(f"must be {says}, not {seen(raw)}")
    if len(raw) > MOST_ENTRIES:
        return bad(f"has more than {MOST_ENTRIES:,} entries")
    kept = {name: item for name, item in raw.items() if _is_name(name) and good(item)}
    problems = tuple(f"entry {seen(name)} must be part of {says}" for name in raw if name not in kept)
    return Read(frozen_map(kept), problems) if kept or not problems else Read(None, problems)


def _pairs(text: str) -> dict[str, str]:
    """`Bash=20000,Grep=10000` as a map; a part without `=` keeps an empty value and is refused later."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


class Names(Kind[tuple[str, ...]], frozen=True):
    """`unite`: each level adds to the others; otherwise the highest list is the whole list."""

    unite: bool = False

    def says(self) -> str:
        return "a list of texts"

    def read(self, raw: object) -> Read[tuple[str, ...]]:
        if not isinstance(raw, list | tuple | frozenset) or len(raw) > MOST_ENTRIES:
            return self.refuse(raw)
        kept = tuple(dict.fromkeys(item for item in raw if _is_name(item)))
        problems = tuple(f"entry {seen(item)} must be a text" for item in raw if not _is_name(item))
        return Read(kept, problems) if kept or not problems else Read(None, problems)

    def parse(self, text: str) -> Read[tuple[str, ...]]:
        return self.read([part.strip() for part in text.split(",") if part.strip()])

    def join(self, higher: tuple[str, ...], lower: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*higher, *lower))) if self.unite else higher

    def show(self, value: tuple[str, ...]) -> object:
        return list(value)


class Counts(Kind[Mapping[str, int]], frozen=True):
    """A whole number for each name; levels are laid over each other name by name."""

    low: int = 1

    def says(self) -> str:
        return f"an object of names and whole numbers of at least {self.low}"

    def _good(self, item: object) -> bool:
        return isinstance(item, int) and not isinstance(item, bool) and self.low <= item <= LARGEST

    def read(self, raw: object) -> Read[Mapping[str, int]]:
        return _entries(raw, self.says(), self._good)

    def parse(self, text: str) -> Read[Mapping[str, int]]:
        pairs = {name: int(value) if value.isascii() and value.isdigit() else value for name, value in _pairs(text).items()}
        return self.read(pairs) if pairs else bad("must be written like Bash=20000,Grep=10000")

    def join(self, higher: Mapping[str, int], lower: Mapping[str, int]) -> Mapping[str, int]:
        return frozen_map({**lower, **higher})

    def show(self, value: Mapping[str, int]) -> object:
        return dict(value)


class Modes(Kind[Mapping[Scope, Mode]], frozen=True):
    """B5: one mode for all scopes, or an object with a mode for some."""

    def says(self) -> str:
        return f"one of {', '.join(MODES)}, or an object that gives one to some of {', '.join(SCOPES)}"

    def read(self, raw: object) -> Read[Mapping[Scope, Mode]]:
        if isinstance(raw, str):
            return Read(frozen_map(dict.fromkeys(SCOPES, raw))) if raw in MODES else self.refuse(raw)
        named = _entries(raw, self.says(), lambda item: item in MODES)
        unknown = tuple(f"has no scope {seen(name)}" for name in named.value or () if name not in SCOPES)
        kept = {scope: (named.value or {})[scope] for scope in SCOPES if scope in (named.value or {})}
        return Read(frozen_map(kept) if kept else None, named.problems + unknown)

    def parse(self, text: str) -> Read[Mapping[Scope, Mode]]:
        return self.read(_pairs(text) if "=" in text else text.strip())

    def join(self, higher: Mapping[Scope, Mode], lower: Mapping[Scope, Mode]) -> Mapping[Scope, Mode]:
        return frozen_map({**lower, **higher})

    def least(self, value: Mapping[Scope, Mode], base: Mapping[Scope, Mode]) -> Mapping[Scope, Mode]:
        return frozen_map({scope: min(value.get(scope, mode), mode, key=MODES.index) for scope, mode in base.items()})

    def show(self, value: Mapping[Scope, Mode]) -> object:
        return dict(value)


class Permissions(msgspec.Struct, frozen=True):
    """Rules as Claude Code writes them; `deny` is meant to be asked first."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    mode: str | None = None


_LISTS = {"allow": "allow", "ask": "ask", "deny": "deny", "additionalDirectories": "directories"}


class Rules(Kind[Permissions], frozen=True):
    def says(self) -> str:
        return "an object with lists allow, ask and deny"

    def read(self, raw: object) -> Read[Permissions]:
        if isinstance(raw, Permissions):
            return Read(raw)
        if not isinstance(raw, Mapping):
            return self.refuse(raw)
        lists: dict[str, tuple[str, ...]] = {}
        problems: list[str] = []
        for key, field in _LISTS.items():
            if raw.get(key) is not None:
                found = Names().read(raw[key])
                lists[field] = found.value or ()
                problems += [f"{key}: {problem}" for problem in found.problems]
        mode = raw.get("defaultMode")
        if mode is not None and not _is_name(mode):
            problems.append(f"defaultMode must be a text, not {seen(mode)}")
        rules = Permissions(**lists, mode=mode if _is_name(mode) else None)
        return Read(None if problems and rules == Permissions() else rules, tuple(problems))

    def join(self, higher: Permissions, lower: Permissions) -> Permissions:
        lists = {field: Names(unite=True).join(getattr(higher, field), getattr(lower, field)) for field in _LISTS.values()}
        return Permissions(**lists, mode=higher.mode or lower.mode)

    def show(self, value: Permissions) -> object:
        shown: dict[str, object] = {key: list(getattr(value, field)) for key, field in _LISTS.items() if getattr(value, field)}
        return {**shown, "defaultMode": value.mode} if value.mode else shown


class HookTable(Kind[Hooks], frozen=True):
    """Event → groups of commands, the higher level's first. The groups stay as written: the hooks' own room reads them."""

    def says(self) -> str:
        return "an object of events, each a list of groups with a list `hooks`"

    def read(self, raw: object) -> Read[Hooks]:
        events = _entries(raw, self.says(), lambda groups: isinstance(groups, list | tuple) and len(groups) <= MOST_ENTRIES)
        problems = list(events.problems)
        kept: dict[str, tuple[Mapping[str, Any], ...]] = {}
        for event, groups in (events.value or {}).items():
            good = [group for group in groups if isinstance(group, Mapping) and isinstance(group.get("hooks"), list | tuple)]
            if good:
                kept[event] = tuple(freeze(group) for group in good)
            problems += [f"{printable(event)}: a group must be an object with a list `hooks`"] * (len(groups) - len(good))
        return Read(frozen_map(kept) if kept or not problems else None, tuple(problems))

    def join(self, higher: Hooks, lower: Hooks) -> Hooks:
        events = dict.fromkeys((*higher, *lower))
        return frozen_map({event: higher.get(event, ()) + lower.get(event, ()) for event in events})

    def show(self, value: Hooks) -> object:
        """The first word of each command: the rest can hold a token."""
        return {event: [_first_word(hook) for group in groups for hook in group["hooks"]] for event, groups in value.items()}


def _first_word(hook: object) -> str:
    command = hook.get("command") if isinstance(hook, Mapping) else None
    words = command.split() if isinstance(command, str) else []
    return f"{printable(words[0])} …" if len(words) > 1 else printable(words[0]) if words else "(no command)"


class ChildEnvironment(Kind[Mapping[str, str]], frozen=True):
    """Variables for the programs that hooks and tools start; never put into Lamina's own process."""

    def says(self) -> str:
        return "an object of names and texts"

    def read(self, raw: object) -> Read[Mapping[str, str]]:
        found = _entries(raw, self.says(), lambda item: isinstance(item, str) and "\0" not in item)
        unfit = tuple(f"entry {seen(name)} can't be the name of a variable" for name in found.value or () if "=" in name)
        kept = {name: scrub(text) for name, text in (found.value or {}).items() if "=" not in name}
        return Read(frozen_map(kept) if kept else None, found.problems + unfit)

    def join(self, higher: Mapping[str, str], lower: Mapping[str, str]) -> Mapping[str, str]:
        return frozen_map({**lower, **higher})

    def show(self, value: Mapping[str, str]) -> object:
        return dict.fromkeys(value, "set, not shown")

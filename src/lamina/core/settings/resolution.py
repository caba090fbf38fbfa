"""`Settings`: one frozen value with every resolved setting, its source, and a finding for each ignored value.

The levels, from low to high: default, remote flag, user, project, local, environment, command line, managed, argument. There are
two exceptions. A remote `false` for a switch overrides every level; any other remote value overrides only the default. Settings
that a working tree may only lower are compared with the user's own value, so a repository can turn memory off but never on.

After the levels come the rules: memory and compaction on or off, bare mode, and layers that exclude each other. The rules change
the resolved values, so a layer checks one switch and never needs to know the reasons. A changed value has its rule as its source.

This module never reads a file, the environment or a clock. Layers get the settings with each call. When a flag changes during a
session, `with_remote` makes a new value, so "off" applies from the next decision on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from os import PathLike
from types import NoneType
from typing import Any

import msgspec

from ...language.text import Text
from ..errors import InputError, SettingError
from ..flags import Flags
from ..inputs import check_type
from ..policy import POLICIES, Policy, named_policy
from .collection_kinds import NO_ENTRIES
from .levels import TREE, Document, Finding, Judge, Level, LevelReader, finding
from .table import BY_KEY, SETTINGS, Resolved, Setting, Source, Table, defaults, find, policy_from

RISING: tuple[Source, ...] = ("user", "project", "local", "environment", "command line", "managed", "argument")
# Here the environment takes precedence over managed settings; arguments from the program still come first.
RISING_VARIABLE_FIRST: tuple[Source, ...] = ("user", "project", "local", "command line", "managed", "environment", "argument")
NOBODY: tuple[Source, ...] = ("default", "remote flag")

MEMORY, COMPACTION, AUTO_COMPACT = Table.memory, Table.compaction, Table.auto_compact
# The settings for which variables come first, and the levels whose variables count, highest first. Managed settings are included
# so that a shell cannot override an administrator's `env` object.
BY_VARIABLE: tuple[Setting[bool], ...] = (MEMORY, COMPACTION, AUTO_COMPACT)
VARIABLE_LEVELS: tuple[Source, ...] = ("managed", "environment")
# In bare mode a layer still runs if the user enabled it explicitly when starting Lamina.
NAMED_AT_START: tuple[Source, ...] = ("argument", "command line", "environment")

NO_FLAGS = Level("remote flag", {})

# Reads the files. By name: core imports nothing above it.
LOADER = "lamina.disk.settings_files"

Values = dict[str, Resolved]
Given = Document | Mapping[str, Any] | None


class Settings(Table):
    """All resolved settings. `Settings()` has the defaults, `Settings(recall=False)` sets one in code.

    Unlike in a settings file, an unknown name or a bad value in code raises SettingError.
    """

    __slots__ = ("_levels", "_refresh", "_remote", "findings", "policy", "trusted")

    findings: tuple[Finding, ...]
    policy: Policy  # the named policy with all configured numbers applied
    trusted: bool  # whether the user trusts the working tree that the settings were read for
    _levels: tuple[Level, ...]
    _remote: Level
    _refresh: Callable[[Settings], Settings] | None

    @classmethod
    def load(cls, cwd: str | PathLike[str] = ".", *, home: str | PathLike[str] | None = None, **arguments: Any) -> Settings:
        """Return the settings in force in `cwd`, as the command line reads them: files, environment variables and flags.

        `home` replaces `LAMINA_HOME`. Keyword arguments are settings that win over all of these. A session that is given the
        result follows the files while it runs."""
        check_type("cwd", cwd, str, PathLike)
        check_type("home", home, str, PathLike, NoneType)
        Settings(**arguments)  # a wrong name or value is an error here
        settings: Settings = import_module(LOADER).settings_in_force(cwd, home=home, arguments=arguments)
        return settings

    @classmethod
    def given_or_loaded(
        cls, settings: Settings | None, cwd: str | PathLike[str], *, home: str | PathLike[str] | None = None
    ) -> Settings:
        """Return the `settings` argument of a public function, or the settings in force in `cwd` if it was left out."""
        if settings is None:
            return cls.load(cwd, home=home)
        if not isinstance(settings, Settings):
            raise InputError("settings", f"must be a lamina.Settings, not {type(settings).__name__}", "use lamina.Settings(…)")
        return settings

    def refreshed(self) -> Settings:
        """Return these settings as their files and flags are now: the same value where nothing changed."""
        return self._refresh(self) if self._refresh is not None else self

    def __init__(self, **arguments: Any) -> None:
        levels: tuple[Level, ...] = ()
        if arguments:
            levels = (LevelReader("argument", names=True).document(arguments),)
            for found in levels[0].findings:
                wrong = Text.whole(found.problem)
                if found.meant:
                    wrong = Text("{problem} (did you mean {near}?)", problem=found.problem, near=found.meant)
                raise SettingError(found.key, "argument", wrong, "run `lamina config` to see all settings")
        _fill(self, levels, NO_FLAGS, trusted=False)

    def with_remote(self, flags: Flags | None) -> Settings:
        """Return these settings with other remote flags, or the same object if the flags have not changed."""
        remote = LevelReader("remote flag").flags(flags or {})
        if remote == self._remote:
            return self
        return _fill(object.__new__(Settings), self._levels, remote, trusted=self.trusted, refresh=self._refresh)

    def with_flags(self, policy: Policy | str) -> Policy:
        """Return a policy that was given in code, with the numbers that remote flags set. A switch that a flag turned off is off."""
        return policy_from(named_policy(policy) if isinstance(policy, str) else policy, self._remote.values)

    def with_arguments(self, **arguments: Any) -> Settings:
        """Return these settings with some set in code. None leaves a setting as it is. The result follows the same files."""
        chosen = {name: value for name, value in arguments.items() if value is not None}
        if not chosen:
            return self
        Settings(**chosen)  # a wrong name or value is an error here
        level = LevelReader("argument", names=True).document(chosen)
        before = next((other for other in self._levels if other.source == "argument"), level)
        merged = Level("argument", {**before.values, **level.values}, before.findings)

        def refresh(settings: Settings) -> Settings:
            now = self.refreshed()
            return settings if now is self else now.with_arguments(**chosen)

        levels = (merged, *(other for other in self._levels if other.source != "argument"))
        return _fill(object.__new__(Settings), levels, self._remote, trusted=self.trusted, refresh=refresh)

    def without(self, name: str, ignored: Callable[[Resolved], bool]) -> Settings:
        """Return these settings as if no level had set this one to a value that is `ignored`. The result follows the same files."""
        key = self._row(name).key

        def kept(level: Level) -> Level:
            if key not in level.values or not ignored(level.values[key]):
                return level
            values = {other: value for other, value in level.values.items() if other != key}
            return msgspec.structs.replace(level, values=values, by_variable=level.by_variable - {key})

        def refresh(settings: Settings) -> Settings:
            now = self.refreshed()
            return settings if now is self else now.without(name, ignored)

        levels = tuple(map(kept, self._levels))
        return _fill(object.__new__(Settings), levels, self._remote, trusted=self.trusted, refresh=refresh)

    def resolved(self, name: str) -> Resolved:
        """Return the value and source of a setting, found by its key, its Python name or the name of a variable."""
        return self._values[self._row(name).key]

    def _row(self, name: str) -> Setting[Any]:
        row = find(name)
        if row is None:
            raise SettingError(name, "requested", "there is no such setting", "run `lamina config` to see all settings")
        return row

    def __iter__(self) -> Iterator[tuple[Setting[Any], Resolved]]:
        return ((row, self._values[row.key]) for row in SETTINGS)

    def __setattr__(self, name: str, *value: object) -> None:
        raise AttributeError(f"Settings are frozen: cannot change {name}; create a new Settings object instead")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._values == other._values

    def __repr__(self) -> str:
        changed = (
            f"{row.name}={row.shown(resolved.value)!r}" for row, resolved in self if resolved.source not in ("default", "rule")
        )
        return f"Settings({', '.join(changed)})"


def resolve(
    *,
    arguments: Mapping[str, Any] | None = None,
    managed: Given = None,
    command_line: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    local: Given = None,
    project: Given = None,
    user: Given = None,
    remote: Flags | None = None,
    trusted: bool = False,
    judge: Judge | None = None,
    findings: tuple[Finding, ...] = (),
    refresh: Callable[[Settings], Settings] | None = None,
) -> Settings:
    """Resolve settings from sources that are passed in as values. Invalid content never raises; it becomes a finding.

    `trusted` tells whether the user trusts the working tree. `judge` returns the problem with a directory, and a directory with
    a problem is skipped. `findings` are those made while the sources were read; `refresh` checks the sources again.
    """
    levels = (
        Level("default", {}, findings),
        LevelReader("argument", names=True, judge=judge).document(arguments),
        LevelReader("managed", judge=judge).document(managed),
        LevelReader("command line", names=True, judge=judge).document(command_line),
        LevelReader("environment", judge=judge).environment(environ or {}),
        LevelReader("local", trusted=trusted).document(local),
        LevelReader("project", trusted=trusted).document(project),
        LevelReader("user", judge=judge).document(user),
    )
    flags = LevelReader("remote flag").flags(remote or {})
    return _fill(object.__new__(Settings), levels, flags, trusted=trusted, refresh=refresh)


def _fill(
    settings: Settings,
    levels: tuple[Level, ...],
    remote: Level,
    *,
    trusted: bool,
    refresh: Callable[[Settings], Settings] | None = None,
) -> Settings:
    every = (*levels, remote)
    decided = _decide(levels, remote, trusted=trusted) if any(level.values for level in every) else _default_decision()
    fields = {
        "_values": decided.values,
        "_levels": levels,
        "_remote": remote,
        "trusted": trusted,
        "findings": (*(finding for level in every for finding in level.findings), *decided.findings),
        "policy": decided.policy,
        "_refresh": refresh,
    }
    for name, value in fields.items():
        object.__setattr__(settings, name, value)
    return settings


class _Decided(msgspec.Struct, frozen=True):
    values: Values
    policy: Policy
    findings: tuple[Finding, ...]


@cache
def _default_decision() -> _Decided:
    return _decide((), NO_FLAGS, trusted=False)


def _decide(levels: Sequence[Level], remote: Level, *, trusted: bool) -> _Decided:
    """Resolve all settings; the cost grows with the number of settings that are set, not with the size of the table."""
    by_source = {level.source: level for level in levels}
    findings: list[Finding] = []
    name = Table.policy_name.key
    policy = _fold(Table.policy_name, by_source, remote, trusted, findings, base=Resolved(Table.policy_name.default, "default"))
    values = {**defaults(policy.value), name: policy}
    for key in dict.fromkeys(key for level in (*levels, remote) for key in level.values):
        if key != name:
            values[key] = _fold(BY_KEY[key], by_source, remote, trusted, findings, base=values[key])
    # The rules turn settings off, in the order in which they depend on each other.
    values[MEMORY.key] = _memory(values, _variable(by_source, MEMORY))
    values[COMPACTION.key] = _variable(by_source, COMPACTION) or values[COMPACTION.key]
    values[AUTO_COMPACT.key] = _variable(by_source, AUTO_COMPACT) or values[AUTO_COMPACT.key]
    if not values[COMPACTION.key].value:
        values[AUTO_COMPACT.key] = Resolved(False, "rule", "compaction is off")
    for row, reason in _turned_off(values):
        if values[row.key].value:
            values[row.key] = Resolved(NO_ENTRIES if row is Table.hooks else False, "rule", reason)
    return _Decided(values, policy_from(POLICIES[policy.value], values), tuple(findings))


def _fold(
    row: Setting[Any], by_source: Mapping[Source, Level], remote: Level, trusted: bool, findings: list[Finding], *, base: Resolved
) -> Resolved:
    resolved, tree = base, None
    if (flag := remote.values.get(row.key)) is not None:
        if row.kills and flag.value is False:
            return flag
        resolved = _over(row, flag, resolved)
    for source in RISING_VARIABLE_FIRST if row.variable_first else RISING:
        level = by_source.get(source)
        higher = level.values.get(row.key) if level else None
        by_variable = row in BY_VARIABLE and source in VARIABLE_LEVELS and level is not None and row.key in level.by_variable
        if higher is not None and not by_variable:
            if source in TREE and row.tree == "less":
                tree = higher if tree is None else _over(row, higher, tree)
            else:
                resolved = _over(row, higher, resolved)
        if source == "local" and tree is not None:
            resolved = _lowered(row, tree, resolved, trusted, findings)
    return resolved


def _over(row: Setting[Any], higher: Resolved, lower: Resolved) -> Resolved:
    return msgspec.structs.replace(higher, value=row.kind.join(higher.value, lower.value))


def _lowered(row: Setting[Any], tree: Resolved, own: Resolved, trusted: bool, findings: list[Finding]) -> Resolved:
    """Apply the working tree's value as far as allowed: only below the user's own value, or freely if trusted and unset."""
    if trusted and own.source in NOBODY:
        return _over(row, tree, own)
    allowed = row.kind.least(tree.value, own.value)
    if allowed != row.kind.join(tree.value, own.value):
        problem = Text("requests more than your own settings allow")
        if own.source in NOBODY:
            problem = Text("requests more than the default, which requires trusting this directory")
        findings.append(finding(row.key, tree.source, tree.detail, problem, "the lower value is used"))
    return own if allowed == own.value else msgspec.structs.replace(tree, value=allowed)


def _variable(by_source: Mapping[Source, Level], row: Setting[bool]) -> Resolved | None:
    levels = (by_source[source] for source in VARIABLE_LEVELS if source in by_source)
    return next((level.values[row.key] for level in levels if row.key in level.by_variable), None)


def _memory(values: Values, variable: Resolved | None) -> Resolved:
    """Decide whether memory is on. The first that applies wins.

    The order is: LAMINA_DISABLE_MEMORY (true or false), bare mode, an ephemeral machine without a memory directory, the setting.
    """
    setting = values[MEMORY.key]
    if setting.source == "argument" and not setting.value:
        return setting  # the embedding program turned memory off, and a variable must not override that
    if variable is not None:
        return variable
    if values[Table.bare.key].value:
        return Resolved(False, "rule", "bare mode")
    if values[Table.remote.key].value and not values[Table.remote_memory_directory.key].value:
        return Resolved(False, "rule", "LAMINA_REMOTE without LAMINA_REMOTE_MEMORY_DIR")
    return setting


def _turned_off(values: Values) -> Iterator[tuple[Setting[Any], str]]:
    """Yield the settings to turn off, with the reason. This is lazy, so that each rule sees the effect of the rules before it."""

    def on(row: Setting[Any]) -> bool:
        return bool(values[row.key].value)

    if on(Table.bare):
        yield from ((row, "bare mode") for row in SETTINGS if row.bare and values[row.key].source not in NAMED_AT_START)
    if on(Table.disable_all_hooks):
        yield Table.hooks, "disableAllHooks"
    if not on(MEMORY):
        yield from ((row, "memory is off") for row in SETTINGS if row.memory)
    if on(Table.remote):
        yield Table.extraction, "ephemeral machine"
        yield Table.extraction_non_interactive, "ephemeral machine"
    if on(Table.assistant):
        for row in (Table.extraction, Table.extraction_non_interactive, Table.index_in_prompt):
            yield row, "assistant mode writes daily logs"
    if on(Table.collapse):
        yield AUTO_COMPACT, "old turns are collapsed instead"
    if not on(COMPACTION):
        yield Table.notes_compaction, "compaction is off"

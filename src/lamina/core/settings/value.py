"""`Settings`: one frozen value with every resolved setting, where each came from, and what was ignored on the way.

It reads no file, no environment and no clock. Layers are handed the value at each call; a flag that changes while a session runs
gives a new value (`with_remote`), so "off" holds from the next decision on (F1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ..errors import SettingError
from ..flags import Flags
from ..policy import Policy
from .decide import Decided, decide
from .levels import Document, Judge, Level, read_arguments, read_document, read_environment
from .remote import read_flags
from .row import Finding, Resolved, Setting
from .table import SETTINGS, Table, find

NO_FLAGS = read_flags(None)

Given = Document | Mapping[str, Any] | None


class Settings(Table):
    """`Settings()` is the defaults; `Settings(recall=False)` says so in code, and a wrong name or value is an error there."""

    __slots__ = ("_levels", "_remote", "_trusted", "findings", "policy")

    findings: tuple[Finding, ...]
    policy: Policy  # the named policy with every number somebody set
    _levels: tuple[Level, ...]
    _remote: Level
    _trusted: bool

    def __init__(self, **arguments: Any) -> None:
        levels: tuple[Level, ...] = ()
        if arguments:
            levels = (read_arguments("argument", arguments),)
            for found in levels[0].findings:
                problem = found.text.partition("): ")[2].partition("; ")[0]
                raise SettingError(found.key, "argument", problem, "see `lamina config` for what there is")
        _fill(self, levels, NO_FLAGS, trusted=False)

    def with_remote(self, flags: Flags | None) -> Settings:
        """The same settings under other flags; the very same value where the flags say what they said before."""
        remote = read_flags(flags)
        if remote == self._remote:
            return self
        return _fill(object.__new__(Settings), self._levels, remote, trusted=self._trusted)

    @property
    def trusted(self) -> bool:
        """Whether the person trusts the working tree these were read for (F2)."""
        return self._trusted

    def resolved(self, name: str) -> Resolved:
        """Value, level and detail of a setting, by its key, its Python name or a variable's name."""
        row = find(name)
        if row is None:
            raise SettingError(name, "asked for", "there is no such setting", "`lamina config` lists them")
        return self._values[row.key]

    def __iter__(self) -> Iterator[tuple[Setting[Any], Resolved]]:
        return ((row, self._values[row.key]) for row in SETTINGS)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Settings are frozen: {name} can't be set; make a new value")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Settings are frozen: {name} can't be removed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._values == other._values

    def __repr__(self) -> str:
        said = (f"{row.name}={row.shown(found.value)!r}" for row, found in self if found.source not in ("default", "rule"))
        return f"Settings({', '.join(said)})"


@cache
def _default() -> Decided:
    return decide((), NO_FLAGS, trusted=False)


def _fill(settings: Settings, levels: tuple[Level, ...], remote: Level, *, trusted: bool) -> Settings:
    decided = decide(levels, remote, trusted=trusted) if any(level.values for level in (*levels, remote)) else _default()
    read = tuple(found for level in (*levels, remote) for found in level.findings)
    put = object.__setattr__
    put(settings, "_values", decided.values)
    put(settings, "_levels", levels)
    put(settings, "_remote", remote)
    put(settings, "_trusted", trusted)
    put(settings, "findings", (*read, *decided.findings))
    put(settings, "policy", decided.policy)
    return settings


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
) -> Settings:
    """Settings from sources that are given as values. Nothing raises for what stands in them: it becomes a finding.

    `trusted` says whether the person trusts the working tree. `judge` says what is wrong with a directory (G1), so that a bad one
    is passed over; `findings` are those made while the sources were read.
    """
    levels = (
        Level("default", {}, findings),
        read_arguments("argument", arguments, judge=judge),
        read_document("managed", managed, judge=judge),
        read_arguments("command line", command_line, judge=judge),
        read_environment(environ, judge=judge),
        read_document("local", local, trusted=trusted),
        read_document("project", project, trusted=trusted),
        read_document("user", user, judge=judge),
    )
    return _fill(object.__new__(Settings), levels, read_flags(remote), trusted=trusted)

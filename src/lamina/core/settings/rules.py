"""What follows from settings taken together: memory and compaction on or off (F3), bare mode, and layers that exclude each other.

`memory_enabled` and `compaction_enabled` are F3 word for word. `follow` applies them and the rest to resolved values, so that a
layer asks one switch and never has to know the reasons; each changed value names its reason as its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .levels import Level
from .row import Resolved, Setting, Source
from .shapes import NO_ENTRIES
from .switches import AUTO_COMPACT, COMPACTION, MEMORY
from .table import SETTINGS, Table

Values = dict[str, Resolved]

# Settings for which F3 puts the environment first; the levels whose variables count as environment, highest first. Managed
# settings are among them so that an administrator's `env` object can't be overruled by a shell.
BY_VARIABLE: frozenset[str] = frozenset({MEMORY.key, COMPACTION.key, AUTO_COMPACT.key})
VARIABLE_LEVELS: tuple[Source, ...] = ("managed", "environment")

# In bare mode a layer still runs where the one who started it named it in the same breath.
NAMED_AT_START: frozenset[Source] = frozenset({"argument", "command line", "environment"})


class MemoryVerdict(NamedTuple):
    on: bool
    why: str  # a variable, a mode or a setting; "default" where nobody spoke


class CompactionVerdict(NamedTuple):
    by_hand: bool
    automatic: bool
    why: str


def memory_enabled(
    *, disable: bool | None, bare: bool, remote: bool, remote_memory_directory: str | None, setting: bool | None
) -> MemoryVerdict:
    """F3, first that applies; None for what was not set. `disable=False` is LAMINA_DISABLE_MEMORY=0 and forces memory on."""
    if disable is not None:
        return MemoryVerdict(not disable, "LAMINA_DISABLE_MEMORY")
    if bare:
        return MemoryVerdict(False, "bare mode")
    if remote and not remote_memory_directory:
        return MemoryVerdict(False, "LAMINA_REMOTE without LAMINA_REMOTE_MEMORY_DIR")
    if setting is not None:
        return MemoryVerdict(setting, "autoMemoryEnabled")
    return MemoryVerdict(True, "default")


def compaction_enabled(*, disable: bool, disable_auto: bool, setting: bool | None) -> CompactionVerdict:
    """F3, first that applies."""
    if disable:
        return CompactionVerdict(False, False, "LAMINA_DISABLE_COMPACT")
    if disable_auto:
        return CompactionVerdict(True, False, "LAMINA_DISABLE_AUTO_COMPACT")
    if setting is not None:
        return CompactionVerdict(True, setting, "autoCompactEnabled")
    return CompactionVerdict(True, True, "default")


def follow(values: Values, said: Mapping[Source, Level]) -> Values:
    """The values that rules change, in the order in which the rules rest on each other."""
    changed: Values = {}

    def get(row: Setting[Any]) -> Resolved:
        return changed.get(row.key) or values[row.key]

    changed[MEMORY.key] = _memory(values, said)
    changed.update(_compaction(values, said))
    for row, reason in _turned_off(get):
        if get(row).value:
            changed[row.key] = Resolved(NO_ENTRIES if row is Table.hooks else False, "rule", reason)
    return changed


def _turned_off(get: Callable[[Setting[Any]], Resolved]) -> Iterator[tuple[Setting[Any], str]]:
    """Lazily: each rule sees what the rules before it turned off."""
    if get(Table.bare).value:
        yield from ((row, "bare mode") for row in SETTINGS if row.bare and get(row).source not in NAMED_AT_START)
    if not get(MEMORY).value:
        yield from ((row, "memory is off") for row in SETTINGS if row.memory)
    if get(Table.remote).value:
        yield Table.extraction, "no extraction on a machine that is thrown away"
        yield Table.extraction_non_interactive, "no extraction on a machine that is thrown away"
    if get(Table.assistant).value:
        yield Table.extraction, "assistant mode writes daily logs"
        yield Table.extraction_non_interactive, "assistant mode writes daily logs"
        yield Table.index_in_prompt, "assistant mode writes daily logs"
    if get(Table.collapse).value:
        yield AUTO_COMPACT, "old turns are folded instead"
    if not get(COMPACTION).value:
        yield Table.notes_compaction, "compaction is off"


def _variable(said: Mapping[Source, Level], row: Setting[bool]) -> Resolved | None:
    for source in VARIABLE_LEVELS:
        given = said[source].values.get(row.key) if source in said else None
        if given is not None and given.variable:
            return Resolved(given.value, source, given.detail)
    return None


def _memory(values: Values, said: Mapping[Source, Level]) -> Resolved:
    setting, variable = values[MEMORY.key], _variable(said, MEMORY)
    if setting.source == "argument" and not setting.value:
        return setting  # the program that runs us said no: a variable that forces memory on is not meant against it
    verdict = memory_enabled(
        disable=None if variable is None else not variable.value,
        bare=values[Table.bare.key].value,
        remote=values[Table.remote.key].value,
        remote_memory_directory=values[Table.remote_memory_directory.key].value,
        setting=None if setting.source == "default" else setting.value,
    )
    if variable is not None:
        return variable
    return setting if verdict.why in ("autoMemoryEnabled", "default") else Resolved(verdict.on, "rule", verdict.why)


def _compaction(values: Values, said: Mapping[Source, Level]) -> Values:
    all_of_it, by_itself = _variable(said, COMPACTION), _variable(said, AUTO_COMPACT)
    every, auto = all_of_it or values[COMPACTION.key], values[AUTO_COMPACT.key]
    verdict = compaction_enabled(disable=not every.value, disable_auto=by_itself is not None, setting=auto.value)
    if not verdict.by_hand:
        return {COMPACTION.key: every, AUTO_COMPACT.key: Resolved(False, "rule", "compaction is off")}
    return {COMPACTION.key: every, AUTO_COMPACT.key: by_itself or auto._replace(value=verdict.automatic)}

"""The table of settings: every setting there is, and how to find one by its key, its name or a variable.

Keys are those of Claude Code's settings files where it has one; all others stand in one object, `lamina`, so that both programs
can read the same file and a misspelt name of ours can be told from a setting that is none of our business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..policy import POLICIES
from .kinds import Choice, Key, Number, Place, Secret, Text, Url, Whole
from .numbers import ROWS
from .row import Resolved, Setting, Variable
from .shapes import (
    NO_ENTRIES,
    SCOPES,
    ChildEnvironment,
    Hooks,
    HookTable,
    Mode,
    Modes,
    Names,
    Permissions,
    Rules,
    Scope,
    frozen_map,
)
from .switches import Switches

DEFAULT_POLICY = "classic"

# Smaller windows hold no system prompt; larger ones than this no model has.
SMALLEST_WINDOW = 1_000
LARGEST_WINDOW = 100_000_000
# A window smaller than this would be compacted at every turn: a working tree could waste a person's money with it.
SMALLEST_COMPACT_WINDOW = 20_000
# A hundred years: enough to mean "for ever", small enough to add to a date.
LONGEST_DAYS = 36_500
LONGEST_NAME = 200

DURABILITIES = ("full", "process")
SELECTORS = ("local", "model")


class Table(Switches):
    __slots__ = ()

    policy_name: Setting[str] = Setting(
        DEFAULT_POLICY,
        Choice(tuple(POLICIES)),
        "The named set of numbers the layers decide with.",
        key="lamina.policy",
        spec="T5",
        tree="freely",
        variables=("LAMINA_POLICY",),
    )
    context_window: Setting[int | None] = Setting(
        None,
        Whole(SMALLEST_WINDOW, LARGEST_WINDOW, short=True),
        "The model's window in tokens, where it is not the known one.",
        spec="T4",
        tree="trusted",
    )
    auto_compact_window: Setting[int | None] = Setting(
        None,
        Whole(SMALLEST_COMPACT_WINDOW, LARGEST_WINDOW, short=True),
        "The window by which compaction starts, if smaller than the real one.",
        key="autoCompactWindow",
        spec="T4",
        tree="freely",
        variables=("LAMINA_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
    )
    autocompact_percent: Setting[float | None] = Setting(
        None,
        Number(0, 100, above_low=True),
        "Compaction starts at this share of the effective window, if that is earlier.",
        spec="T6",
        tree="trusted",
        variables=("LAMINA_AUTOCOMPACT_PCT", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
    )
    extraction_every: Setting[int] = Setting(
        1, Whole(1, 1_000), "Turns from one extraction to the next.", spec="X2", tree="trusted", remote=True
    )
    dream_hours: Setting[float] = Setting(
        24.0, Number(0, 10_000), "Hours between two dreams.", spec="D1", tree="trusted", remote=True
    )
    dream_sessions: Setting[int] = Setting(
        5, Whole(0, 10_000), "New sessions a dream waits for.", spec="D1", tree="trusted", remote=True
    )
    dream_scan_minutes: Setting[float] = Setting(
        10.0, Number(0, 10_000), "Minutes between two counts of new sessions.", spec="D1", tree="trusted", remote=True
    )

    recall_selector: Setting[str] = Setting(
        "local",
        Choice(SELECTORS),
        "Who chooses the memories for a message: the local ranker at once, or a model in the background (`lamina.smallModel`).",
        spec="Q4",
        tree="trusted",
    )
    memory_mode: Setting[Mapping[Scope, Mode]] = Setting(
        frozen_map(dict.fromkeys(SCOPES, "auto")),
        Modes(),
        "Who writes memories: nobody reads or writes, read only, proposals wait for a yes, or freely; for each scope.",
        spec="B5",
        tree="less",
    )
    budget_calls: Setting[int] = Setting(200, Whole(), "Background calls a day.", spec="B9", tree="less")
    budget_tokens: Setting[int] = Setting(
        2_000_000, Whole(short=True), "Background tokens a day; a cached one is a tenth.", spec="B9", tree="less"
    )
    budget_dollars: Setting[float] = Setting(2.0, Number(), "Background dollars a day.", spec="B9", tree="less")
    extra_guidelines: Setting[str | None] = Setting(
        None, Text(), "Text that is added to the memory instructions.", spec="F4", tree="trusted"
    )
    instruction_excludes: Setting[tuple[str, ...]] = Setting(
        (),
        Names(unite=True),
        "Instruction files that are not loaded, as glob patterns.",
        key="claudeMdExcludes",
        spec="I1",
        tree="trusted",
        variables=(),
    )

    memory_directory: Setting[str | None] = Setting(
        None,
        Place(),
        "The memory directory, as a full path.",
        key="autoMemoryDirectory",
        spec="S2",
        tree="never",
        variables=("LAMINA_MEMORY_DIR", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"),
        variable_first=True,
    )
    team_memory_directory: Setting[str | None] = Setting(
        None,
        Place(),
        "The team's memory directory, as a full path.",
        key="teamMemoryDirectory",
        spec="W1",
        tree="never",
        variables=("LAMINA_TEAM_MEMORY_DIR",),
        variable_first=True,
    )
    remote_memory_directory: Setting[str | None] = Setting(
        None,
        Place(below="/projects/slug/memory"),
        "Stands for the home directory as the place of memories, on a machine that is thrown away.",
        spec="F3",
        tree="never",
        variables=("LAMINA_REMOTE_MEMORY_DIR", "CLAUDE_CODE_REMOTE_MEMORY_DIR"),
    )
    durability: Setting[str] = Setting(
        "full",
        Choice(DURABILITIES),
        "Memories and locks survive loss of power (full) or a killed process.",
        spec="S6",
        tree="never",
    )
    transcript_durability: Setting[str] = Setting(
        "process", Choice(DURABILITIES), "The same for transcripts.", spec="S6", tree="never"
    )
    retention_days: Setting[int | None] = Setting(
        None,
        Whole(1, LONGEST_DAYS),
        "Days after which transcripts may be removed; without it they are kept.",
        key="cleanupPeriodDays",
        spec="B11",
        tree="never",
        variables=("LAMINA_RETENTION_DAYS",),
    )

    provider: Setting[str | None] = Setting(
        None, Text(LONGEST_NAME), "Provider, or provider:model; offline needs no key.", spec="O2", tree="never"
    )
    model: Setting[str | None] = Setting(
        None,
        Text(LONGEST_NAME),
        "The model of the conversation.",
        key="model",
        spec="T4",
        tree="never",
        variables=("LAMINA_MODEL", "ANTHROPIC_MODEL"),
    )
    small_model: Setting[str | None] = Setting(
        None,
        Text(LONGEST_NAME),
        "The model of selections and agent summaries.",
        spec="Q4",
        tree="never",
        variables=("LAMINA_SMALL_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"),
    )
    mailbox: Setting[str | None] = Setting(
        None,
        Text(LONGEST_NAME),
        "The name other sessions write to this one by, NAME or NAME@TEAM; without it there is no mailbox.",
        spec="A6",
        tree="never",
    )
    base_url: Setting[str | None] = Setting(None, Url(), "Address of the provider, whichever it is.", spec="F2", tree="never")
    anthropic_base_url: Setting[str | None] = Setting(
        None, Url(), "Address used for Anthropic's API.", spec="F2", tree="never", variables=("ANTHROPIC_BASE_URL",)
    )
    openai_base_url: Setting[str | None] = Setting(
        None, Url(), "Address used for OpenAI's API.", spec="F2", tree="never", variables=("OPENAI_BASE_URL",)
    )
    anthropic_api_key: Setting[Secret | None] = Setting(
        None, Key(), "Key for Anthropic's API.", spec="O1", tree="never", variables=("ANTHROPIC_API_KEY",)
    )
    openai_api_key: Setting[Secret | None] = Setting(
        None, Key(), "Key for OpenAI's API.", spec="O1", tree="never", variables=("OPENAI_API_KEY",)
    )

    permissions: Setting[Permissions] = Setting(
        Permissions(), Rules(), "Rules for tools.", key="permissions", spec="F2", tree="trusted", variables=()
    )
    hooks: Setting[Hooks] = Setting(
        NO_ENTRIES,
        HookTable(),
        "Commands run at events of the session.",
        key="hooks",
        spec="F2",
        tree="trusted",
        variables=(),
        bare=True,
    )
    env: Setting[Mapping[str, str]] = Setting(
        NO_ENTRIES,
        ChildEnvironment(),
        "Variables for the programs that hooks and tools start; one that names a setting counts as that setting.",
        key="env",
        spec="F2",
        tree="trusted",
        variables=(),
    )


def _declared(holder: type) -> list[Setting[Any]]:
    bases = [base for base in reversed(holder.__mro__) if issubclass(base, Switches)]
    return [row for base in bases for row in vars(base).values() if isinstance(row, Setting)]


SETTINGS: tuple[Setting[Any], ...] = (*_declared(Table), *ROWS.values())
BY_KEY: dict[str, Setting[Any]] = {row.key: row for row in SETTINGS}
BY_NAME: dict[str, Setting[Any]] = {row.name: row for row in SETTINGS}
VARIABLES: dict[str, tuple[Setting[Any], Variable]] = {
    variable.name: (row, variable) for row in SETTINGS for variable in row.variables
}

# Read by the program that starts Lamina, before there are settings.
START_VARIABLES = frozenset({"LAMINA_HOME", "LAMINA_FLAGS"})

DEFAULTS: dict[str, Resolved] = {row.key: Resolved(row.default, "default") for row in _declared(Table)}


def find(name: str) -> Setting[Any] | None:
    """A row by its key, the key without `lamina.`, its Python name or a variable's name."""
    by_variable = VARIABLES.get(name)
    return BY_KEY.get(name) or BY_KEY.get(f"lamina.{name}") or BY_NAME.get(name) or (by_variable and by_variable[0])

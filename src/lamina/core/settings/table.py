"""The table of all settings, and the lookup of a setting by its key, its Python name or an environment variable.

Settings that Claude Code also has use its keys. All others are in one object, `lamina`. Both programs can therefore read the same
file, and Lamina can tell its own misspelt keys from keys that belong to other programs. The numbers of the policy are settings
too: `lamina.notes.firstAt` is `policy.notes.first_at`, and its default comes from the active policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from ..policy import CLASSIC, POLICIES, Number, Policy
from . import collection_kinds as collection
from .collection_kinds import Hooks, Mode, Permissions, Scope
from .kinds import API_KEY, DIRECTORY, SWITCH, URL, Kind, free_text, one_of, real, whole

T = TypeVar("T")

Source: TypeAlias = Literal[
    "argument", "managed", "command line", "environment", "local", "project", "user", "remote flag", "default", "rule"
]

# How files in the working tree may change a setting. `less`: they may always turn it off or lower it. In a trusted directory they
# may also raise it, but never above the user's own setting.
Tree: TypeAlias = Literal["never", "trusted", "less", "freely"]

# How the text of a variable is read. `value`: as the setting's value. `not`: inverted, so a true word means false and vice versa.
# `off`: a true word means false, and a false word leaves the setting unset.
Means: TypeAlias = Literal["value", "not", "off"]

OURS = "lamina"
OWN_PREFIX = "LAMINA_"
DEFAULT_POLICY = "balanced"

# Keys and variables that are not derived from the setting's name, mostly those of Claude Code. The first variable that is set wins.
KEYS = {
    "memory": "autoMemoryEnabled",
    "auto_compact": "autoCompactEnabled",
    "dream": "autoDreamEnabled",
    "policy_name": "lamina.policy",
    "mcp_writes": "lamina.mcp.writes",
    "auto_compact_window": "autoCompactWindow",
    "instruction_excludes": "claudeMdExcludes",
    "memory_directory": "autoMemoryDirectory",
    "team_memory_directory": "teamMemoryDirectory",
    "retention_days": "cleanupPeriodDays",
    "disable_all_hooks": "disableAllHooks",
    **{name: name for name in ("model", "permissions", "hooks", "env")},
}
BASH_LENGTH = "BASH_MAX_OUTPUT_LENGTH"
VARIABLE_NAMES: dict[str, tuple[str, ...]] = {
    "memory": ("LAMINA_DISABLE_MEMORY", "CLAUDE_CODE_DISABLE_AUTO_MEMORY"),
    "compaction": ("LAMINA_DISABLE_COMPACT", "DISABLE_COMPACT"),
    "auto_compact": ("LAMINA_DISABLE_AUTO_COMPACT", "DISABLE_AUTO_COMPACT"),
    "remote": ("LAMINA_REMOTE", "CLAUDE_CODE_REMOTE"),
    "bare": ("LAMINA_BARE", "CLAUDE_CODE_SIMPLE"),
    "extra_guidelines": ("LAMINA_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"),
    "policy_name": ("LAMINA_POLICY",),
    "auto_compact_window": ("LAMINA_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
    "autocompact_percent": ("LAMINA_AUTOCOMPACT_PCT", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
    "memory_directory": ("LAMINA_MEMORY_DIR", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"),
    "team_memory_directory": ("LAMINA_TEAM_MEMORY_DIR",),
    "remote_memory_directory": ("LAMINA_REMOTE_MEMORY_DIR", "CLAUDE_CODE_REMOTE_MEMORY_DIR"),
    "model": ("LAMINA_MODEL", "ANTHROPIC_MODEL"),
    "small_model": ("LAMINA_SMALL_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"),
    "anthropic_base_url": ("ANTHROPIC_BASE_URL",),
    "openai_base_url": ("OPENAI_BASE_URL",),
    "anthropic_api_key": ("ANTHROPIC_API_KEY",),
    "openai_api_key": ("OPENAI_API_KEY",),
    "results_per_tool": ("LAMINA_RESULTS_PER_TOOL", BASH_LENGTH),
}

# A smaller window cannot hold a system prompt, and no model has a larger one.
SMALLEST_WINDOW = 1_000
LARGEST_WINDOW = 100_000_000
# A smaller window would be compacted on every turn, so a working tree could waste the user's money with it.
SMALLEST_COMPACT_WINDOW = 20_000
# A hundred years: long enough to mean "forever", and small enough to add to a date.
LONGEST_DAYS = 36_500
MODEL_NAME = free_text(200)
DURABILITY = one_of("full", "process")
Billing: TypeAlias = Literal["list", "subscription"]
BILLINGS: tuple[Billing, ...] = ("list", "subscription")
ClientWrites: TypeAlias = Literal["save", "wait"]
CLIENT_WRITES: tuple[ClientWrites, ...] = ("save", "wait")


class Resolved(msgspec.Struct, frozen=True):
    """A value with the level it came from, and the file, variable or rule at that level."""

    value: Any
    source: Source
    detail: str = ""


class Setting(msgspec.Struct, Generic[T], eq=False):
    """One row of the table, and a typed descriptor: `Settings.spill` is the row, `settings.spill` is the resolved value.

    Each setting is declared once, so its key, type, default, names and rights cannot drift apart.
    """

    default: T
    kind: Kind[Any]
    help: str
    spec: str
    tree: Tree
    means: Means = "value"
    remote: bool = False  # a remote flag with this key may set it
    variable_first: bool = False  # the environment takes precedence over managed settings
    bare: bool = False  # off in bare mode
    memory: bool = False  # off while memory is off
    below: str = ""  # for a directory: the subpath that will be opened, and that the path check applies to
    name: str = ""
    key: str = ""
    variables: tuple[str, ...] = ()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.key = self.key or KEYS.get(name) or f"{OURS}.{camel(name)}"
        own = (OWN_PREFIX + name.upper(),) if self.kind.from_text is not None else ()
        self.variables = VARIABLE_NAMES.get(name, own)

    @overload
    def __get__(self, holder: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, holder: Table, owner: type) -> T: ...
    def __get__(self, holder: Table | None, owner: type) -> Setting[T] | T:
        if holder is None:
            return self
        value: T = holder._values[self.key].value
        return value

    @property
    def kills(self) -> bool:
        """True if a remote `false` turns this setting off, regardless of all other levels."""
        return self.remote and self.kind is SWITCH

    def shown(self, value: Any) -> object:
        """Return the value as JSON that is safe to print."""
        return None if value is None else self.kind.show(value)

    def __repr__(self) -> str:
        return f"Setting({self.key})"


def camel(name: str) -> str:
    head, *others = name.split("_")
    return head + "".join(part.capitalize() for part in others)


def switch(default: bool, help: str, spec: str, tree: Tree, **options: Any) -> Setting[bool]:
    return Setting(default, SWITCH, help, spec, tree, **options)


def unset(kind: Kind[T], help: str, spec: str, tree: Tree, **options: Any) -> Setting[T | None]:
    return Setting(None, kind, help, spec, tree, **options)


class Table:
    """All settings that are not numbers of the policy.

    A layer that is off makes no new decisions; its earlier decisions stay in effect. A working tree may turn off features that
    remember or spend (`less`), since that is harmless to the user. Features that keep the window from filling up require trust.
    """

    __slots__ = ("_values",)
    _values: Mapping[str, Resolved]

    memory = switch(
        True, "Master switch for memory: instructions, index, recall, extraction and dreams.", "F3", "less", means="not"
    )
    compaction = switch(True, "Allow compaction, automatic and manual.", "F3", "trusted", means="off")
    auto_compact = switch(
        True, "Compact automatically when the context window is nearly full.", "F3", "freely", means="off", remote=True
    )
    bare = switch(False, "Bare mode: disable all optional features.", "F3", "never")
    remote = switch(
        False,
        "Ephemeral machine: disable extraction, and disable memory unless `lamina.remoteMemoryDirectory` is set.",
        "F3",
        "never",
    )
    spill = switch(True, "Spill large tool results to disk and keep a preview in the context.", "R1", "trusted", remote=True)
    size_clearing = switch(True, "Clear old tool results when they take up too many tokens.", "M2", "trusted", remote=True)
    idle_clearing = switch(
        False,
        "Clear old tool results after a pause, when the prompt cache has expired anyway.",
        "M3",
        "trusted",
        remote=True,
        bare=True,
    )
    cache_edits = switch(
        False,
        "Clear old tool results in the provider's cache, if the provider supports it.",
        "M4",
        "trusted",
        remote=True,
        bare=True,
    )
    api_clearing = switch(False, "Let the provider clear old tool results and thinking.", "M5", "trusted", remote=True, bare=True)
    session_notes = switch(True, "Keep running notes of the session.", "N3", "less", remote=True, bare=True)
    notes_compaction = switch(
        True, "Compact with the session notes instead of a model call when they suffice.", "N6", "less", remote=True, bare=True
    )
    collapse = switch(
        False,
        "Collapse old turns into placeholders; this disables automatic compaction.",
        "C10",
        "trusted",
        remote=True,
        bare=True,
    )
    compact_tool = switch(False, "Give the model a tool to ask for a compaction.", "P7", "trusted", bare=True)
    snip = switch(True, "Allow ranges of messages to be removed from the context.", "C10", "trusted", remote=True)
    recall = switch(True, "Add relevant memories to each message.", "Q1", "less", remote=True, memory=True)
    index_in_prompt = switch(
        True,
        "Send the memory index; if off, memories reach the model only through recall.",
        "Q8",
        "less",
        remote=True,
        memory=True,
    )
    past_search = switch(True, "Tell the model how to search memories and transcripts.", "S10", "less", remote=True, memory=True)
    sources = switch(True, "Include the sessions and memories of Claude Code, Codex and pi.", "U3", "less")
    search_all_projects = switch(False, "Let the model search the sessions and memories of all projects.", "U3", "never")
    extraction = switch(True, "Save new memories at the end of a turn.", "X1", "less", remote=True, memory=True, bare=True)
    extraction_non_interactive = switch(
        False, "Save new memories in non-interactive runs too.", "X2", "less", remote=True, memory=True, bare=True
    )
    dream = switch(True, "Consolidate memories in the background.", "D1", "less", remote=True, memory=True, bare=True)
    team = switch(False, "Share a second memory directory with a team.", "W1", "less", remote=True, memory=True, bare=True)
    assistant = switch(
        False, "Assistant mode: write daily logs instead of the live index.", "W2", "less", remote=True, memory=True, bare=True
    )
    agent_summaries = switch(
        True, "Summarize in a few words what each background agent is doing.", "A7", "less", remote=True, bare=True
    )
    message_socket = switch(
        False, "Listen on a Unix socket for messages from the same user's other sessions.", "A6", "never", bare=True
    )

    policy_name = Setting(
        DEFAULT_POLICY, one_of(*POLICIES), "Named set of thresholds and limits that the layers use.", "T5", "freely"
    )
    context_window = unset(
        whole(SMALLEST_WINDOW, LARGEST_WINDOW, short=True),
        "Context window of the model in tokens; overrides the built-in value.",
        "T4",
        "trusted",
    )
    auto_compact_window = unset(
        whole(SMALLEST_COMPACT_WINDOW, LARGEST_WINDOW, short=True),
        "Window size used to decide when compaction starts, if smaller than the real one.",
        "T4",
        "freely",
    )
    autocompact_percent = unset(
        real(0, 100, above_low=True),
        "Percentage of the effective window at which compaction starts, if that is earlier.",
        "T6",
        "trusted",
    )
    extraction_every = Setting(
        1, whole(1, 1_000), "Number of turns from one extraction to the next.", "X2", "trusted", remote=True
    )
    dream_hours = Setting(24.0, real(0, 10_000), "Minimum hours between two dreams.", "D1", "trusted", remote=True)
    dream_sessions = Setting(
        5, whole(0, 10_000), "Number of new sessions required to start a dream.", "D1", "trusted", remote=True
    )
    dream_scan_minutes = Setting(
        10.0, real(0, 10_000), "Minimum minutes between two counts of new sessions.", "D1", "trusted", remote=True
    )
    recall_selector = Setting(
        "auto",
        one_of("auto", "local", "model", "both"),
        "Selector of memories for a message: the local ranker at once, a model in the background, or both: the model adds what the "
        "ranker missed. `auto`: both if `lamina.smallModel` is set or a cheap model of the same maker is known, else local.",
        "Q4",
        "trusted",
    )
    recall_vectors = Setting(
        "none",
        one_of("none", "static", "encoder", "endpoint"),
        "Comparison by meaning in memory searches and in recall: none, word vectors, a sentence encoder, or a server.",
        "Q4",
        "trusted",
    )
    memory_mode: Setting[Mapping[Scope, Mode]] = Setting(
        collection.frozen_map(dict.fromkeys(collection.SCOPES, "auto")),
        collection.MEMORY_MODES,
        "Access to memory for each scope: none, read-only, changes need confirmation, or automatic.",
        "B5",
        "less",
    )
    mcp_writes: Setting[ClientWrites] = Setting(
        "save",
        one_of(*CLIENT_WRITES),
        "New project and reference memories of MCP clients: save them at once, or let all changes of clients wait in the inbox.",
        "U4",
        "never",
    )
    keep_architecture = switch(
        False, "Keep memories about the structure, the files and the conventions of the code without asking.", "S8", "trusted"
    )
    budget_calls = Setting(200, whole(), "Maximum number of background calls per day.", "B9", "less")
    budget_tokens = Setting(
        2_000_000, whole(short=True), "Maximum background tokens per day; a cached token counts as a tenth.", "B9", "less"
    )
    budget_dollars = Setting(2.0, real(), "Maximum background cost per day in US dollars.", "B9", "less")
    billing: Setting[Billing] = Setting(
        "list",
        one_of(*BILLINGS),
        "Show amounts in dollars at list price (list), or in tokens and shares if you pay a flat subscription (subscription).",
        "V4",
        "trusted",
    )
    extra_guidelines = unset(free_text(), "Text added to the memory instructions.", "F4", "trusted")
    instructions = switch(
        True, "Send instruction files, git status and the date at the start of a session.", "I4", "less", remote=True
    )
    instruction_excludes: Setting[tuple[str, ...]] = Setting(
        (), collection.UNION, "Glob patterns of instruction files to skip.", "I1", "trusted"
    )

    memory_directory = unset(DIRECTORY, "Absolute path of the memory directory.", "S2", "never", variable_first=True)
    team_memory_directory = unset(DIRECTORY, "Absolute path of the team's memory directory.", "W1", "never", variable_first=True)
    remote_memory_directory = unset(
        DIRECTORY,
        "Directory that replaces the home directory as the location of memories on an ephemeral machine.",
        "F3",
        "never",
        below="/projects/slug/memory",
    )
    durability = Setting(
        "full", DURABILITY, "Memories and locks survive a power loss (full) or only a killed process (process).", "S6", "never"
    )
    transcript_durability = Setting("process", DURABILITY, "The same guarantee for transcripts.", "S6", "never")
    retention_days = unset(
        whole(1, LONGEST_DAYS), "Days after which transcripts may be deleted; if unset, they are kept.", "B11", "never"
    )

    provider = unset(MODEL_NAME, "Provider, or provider:model; offline needs no API key.", "O2", "never")
    model = unset(MODEL_NAME, "Model used for the conversation.", "T4", "never")
    small_model = unset(
        MODEL_NAME, "Model used to select memories, to summarize agents, and to review turns of other agents.", "Q4", "never"
    )
    embeddings_url = unset(
        URL, "Base URL of the server for `lamina.recallVectors` endpoint; `/embeddings` is added.", "Q4", "never"
    )
    embeddings_model = unset(MODEL_NAME, "Model that this server uses.", "Q4", "never")
    mailbox = unset(
        MODEL_NAME,
        "Name that other sessions address this one by, NAME or NAME@TEAM; if unset, the session has no mailbox.",
        "A6",
        "never",
    )
    base_url = unset(URL, "Base URL of the provider, whichever one is used.", "F2", "never")
    anthropic_base_url = unset(URL, "Base URL of the Anthropic API.", "F2", "never")
    openai_base_url = unset(URL, "Base URL of the OpenAI API.", "F2", "never")
    anthropic_api_key = unset(API_KEY, "Key for the Anthropic API.", "O1", "never")
    openai_api_key = unset(API_KEY, "Key for the OpenAI API.", "O1", "never")

    permissions = Setting(Permissions(), collection.PERMISSIONS, "Permission rules for tools.", "F2", "trusted")
    hooks: Setting[Hooks] = Setting(
        collection.NO_ENTRIES, collection.HOOK_TABLE, "Commands that run on session events.", "F2", "trusted", bare=True
    )
    disable_all_hooks = switch(False, "Run no hooks, from any settings file.", "U6", "trusted")
    env: Setting[Mapping[str, str]] = Setting(
        collection.NO_ENTRIES,
        collection.CHILD_ENVIRONMENT,
        "Environment variables for programs that hooks and tools start; a variable that names a setting sets that setting.",
        "F2",
        "trusted",
    )


def _number_rows() -> dict[tuple[str, str], Setting[Any]]:
    """Return a setting for each number of the policy, by group and field."""
    rows: dict[tuple[str, str], Setting[Any]] = {}
    for group in CLASSIC.__struct_fields__[1:]:
        for field, annotation in type(getattr(CLASSIC, group)).__annotations__.items():
            number: Number = annotation.__metadata__[0]
            kinds: dict[Any, Kind[Any]] = {bool: SWITCH, dict[str, int]: collection.COUNTS, frozenset[str]: collection.NAMES}
            of_range = real if annotation.__origin__ is float else whole
            kind = one_of(*number.options) if number.options else kinds.get(annotation.__origin__)
            kind = kind or of_range(number.low, number.high)
            row: Setting[Any] = Setting(None, kind, number.help, number.spec, "trusted", remote=number.remote)
            row.key = f"{OURS}.{group}.{camel(field)}"
            row.__set_name__(Policy, f"{group}_{field}")
            rows[group, field] = row
    return rows


_ROWS: tuple[Setting[Any], ...] = tuple(row for row in vars(Table).values() if isinstance(row, Setting))
NUMBERS = _number_rows()
SETTINGS: tuple[Setting[Any], ...] = (*_ROWS, *NUMBERS.values())
BY_KEY: dict[str, Setting[Any]] = {row.key: row for row in SETTINGS}
BY_NAME: dict[str, Setting[Any]] = {row.name: row for row in SETTINGS}
VARIABLES: dict[str, Setting[Any]] = {name: row for row in SETTINGS for name in row.variables}


def find(name: str) -> Setting[Any] | None:
    """Find a row by its key (with or without `lamina.`), its Python name or the name of a variable."""
    return BY_KEY.get(name) or BY_KEY.get(f"{OURS}.{name}") or BY_NAME.get(name) or VARIABLES.get(name)


@cache
def defaults(policy: str = DEFAULT_POLICY) -> dict[str, Resolved]:
    """Return the default of each setting under the named policy. The result is cached: callers must not modify it."""
    resolved = {row.key: Resolved(row.default, "default") for row in _ROWS}
    for (group, field), row in NUMBERS.items():
        number = getattr(getattr(POLICIES[policy], group), field)
        resolved[row.key] = Resolved(row.kind.read(number).value, "default", f"policy {policy}")
    return resolved


def policy_from(policy: Policy, values: Mapping[str, Resolved]) -> Policy:
    """Return the policy with all configured numbers applied, or the same object if no number is configured."""
    for (group, field), row in NUMBERS.items():
        resolved = values.get(row.key)
        if resolved is not None and resolved.source != "default":
            numbers = getattr(policy, group)
            like = getattr(numbers, field)
            value = row.kind.join(resolved.value, like)
            value = type(like)(value) if isinstance(like, dict | frozenset) else value
            policy = msgspec.structs.replace(policy, **{group: msgspec.structs.replace(numbers, **{field: value})})
    return policy

"""The table of settings: every setting there is, and how to find one by its key, its name or a variable.

Keys are those of Claude Code's settings files where it has one; all others stand in one object, `lamina`, so that both programs
can read the same file and a misspelt name of ours can be told from a setting that is none of our business. The numbers of the
policy are settings too: `lamina.notes.firstAt` is `policy.notes.first_at`, and its default is that of the policy in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

import msgspec

from ..policy import CLASSIC, POLICIES, Number, Policy
from . import collection_kinds as collection
from .collection_kinds import Hooks, Mode, Permissions, Scope
from .kinds import API_KEY, DIRECTORY, SWITCH, URL, Kind, free_text, one_of, real, whole

T = TypeVar("T")

Source: TypeAlias = Literal[
    "argument", "managed", "command line", "environment", "local", "project", "user", "remote flag", "default", "rule"
]

# What files in the working tree may do to a setting. `less`: turn it off or lower it at any time; once trusted also raise it, but
# never above what the user's own settings say.
Tree: TypeAlias = Literal["never", "trusted", "less", "freely"]

# How the text of a variable is read. `value`: as the setting's own. `not`: a true word is false and the other way round. `off`: a
# true word is false, any other says nothing.
Means: TypeAlias = Literal["value", "not", "off"]

OURS = "lamina"
OWN_PREFIX = "LAMINA_"
DEFAULT_POLICY = "classic"

# Names that are not made from the setting's own: mostly those that Claude Code gave it. The first variable that is set counts.
KEYS = {
    "memory": "autoMemoryEnabled",
    "auto_compact": "autoCompactEnabled",
    "dream": "autoDreamEnabled",
    "policy_name": "lamina.policy",
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

# Smaller windows hold no system prompt; larger ones than this no model has.
SMALLEST_WINDOW = 1_000
LARGEST_WINDOW = 100_000_000
# A window smaller than this would be compacted at every turn: a working tree could waste a person's money with it.
SMALLEST_COMPACT_WINDOW = 20_000
# A hundred years: enough to mean "for ever", small enough to add to a date.
LONGEST_DAYS = 36_500
MODEL_NAME = free_text(200)
DURABILITY = one_of("full", "process")


class Resolved(NamedTuple):
    """A value, the level it came from, and the file, variable or rule at that level."""

    value: Any
    source: Source
    detail: str = ""


class Setting(msgspec.Struct, Generic[T], eq=False):
    """One row of the table, and the typed way to its value: `Settings.spill` is the row, `settings.spill` what was resolved.

    So a setting is declared once, and its key, type, default, names and rights cannot drift apart.
    """

    default: T
    kind: Kind[Any]
    help: str
    spec: str
    tree: Tree
    means: Means = "value"
    remote: bool = False  # a remote flag of this key may set it
    variable_first: bool = False  # the environment stands before managed settings (S2)
    bare: bool = False  # off in bare mode (F3)
    memory: bool = False  # off while memory is off
    below: str = ""  # of a directory: what will be opened lies this far below it, and is what G1 is asked about
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
        """A remote `false` turns this off whoever turned it on (F1)."""
        return self.remote and self.kind is SWITCH

    def shown(self, value: Any) -> object:
        """A JSON value that is safe to print."""
        return None if value is None else self.kind.show(value)

    def __repr__(self) -> str:
        return f"Setting({self.key})"


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def switch(default: bool, help: str, spec: str, tree: Tree, **options: Any) -> Setting[bool]:
    return Setting(default, SWITCH, help, spec, tree, **options)


def unset(kind: Kind[T], help: str, spec: str, tree: Tree, **options: Any) -> Setting[T | None]:
    return Setting(None, kind, help, spec, tree, **options)


class Table:
    """Off means that a layer takes no new decisions; what it decided before stays as it is.

    A working tree may turn off what remembers and what spends (`less`), since that costs a person nothing. What keeps the window
    from filling up waits for trust.
    """

    __slots__ = ("_values",)
    _values: Mapping[str, Resolved]

    memory = switch(True, "Memory as a whole: instructions, index, recall, extraction and dreams.", "F3", "less", means="not")
    compaction = switch(True, "Compaction of any kind, also by hand.", "F3", "trusted", means="off")
    auto_compact = switch(True, "Compaction when the window is nearly full.", "F3", "freely", means="off", remote=True)
    bare = switch(False, "Bare mode: everything optional is off.", "F3", "never")
    remote = switch(
        False,
        "This runs on a machine that is thrown away afterwards: memory only with a directory for it, no extraction.",
        "F3",
        "never",
    )
    spill = switch(True, "Spill big tool results to disk and keep a preview.", "R1", "trusted", remote=True)
    size_clearing = switch(True, "Clear old tool results when they grow too big.", "M2", "trusted", remote=True)
    idle_clearing = switch(
        False, "Clear old tool results after a pause, when the cache is cold anyway.", "M3", "trusted", remote=True, bare=True
    )
    cache_edits = switch(
        False, "Clear old tool results in the provider's cache, where it can.", "M4", "trusted", remote=True, bare=True
    )
    api_clearing = switch(False, "Let the provider clear old tool results and thinking.", "M5", "trusted", remote=True, bare=True)
    session_notes = switch(True, "Keep running notes of the session.", "N3", "less", remote=True, bare=True)
    notes_compaction = switch(
        True, "Compact with the notes, without a call, where they suffice.", "N6", "less", remote=True, bare=True
    )
    collapse = switch(
        False, "Fold old turns into placeholders; compaction by itself is then off.", "C10", "trusted", remote=True, bare=True
    )
    snip = switch(True, "Let a range of messages be taken out of the view.", "C10", "trusted", remote=True)
    recall = switch(True, "Bring memories that help to each message.", "Q1", "less", remote=True, memory=True)
    index_in_prompt = switch(
        True, "Send the memory index; without it only recall brings memories.", "Q8", "less", remote=True, memory=True
    )
    past_search = switch(True, "Tell the model how to search memories and transcripts.", "S10", "less", remote=True, memory=True)
    extraction = switch(True, "Write memories at the end of a turn.", "X1", "less", remote=True, memory=True, bare=True)
    extraction_non_interactive = switch(
        False, "Write memories in runs without a person too.", "X2", "less", remote=True, memory=True, bare=True
    )
    dream = switch(True, "Consolidate memories in the background.", "D1", "less", remote=True, memory=True, bare=True)
    team = switch(False, "Share a second memory with a team.", "W1", "less", remote=True, memory=True, bare=True)
    assistant = switch(
        False, "Assistant mode: daily logs in place of the live index.", "W2", "less", remote=True, memory=True, bare=True
    )
    history_git = switch(
        True,
        "Let git follow the changes of memory, in a repository of its own beside the journal.",
        "B4",
        "less",
        memory=True,
        bare=True,
    )
    agent_summaries = switch(True, "Say in a few words what a background agent is doing.", "A7", "less", remote=True, bare=True)
    message_socket = switch(
        False, "Listen on a Unix socket for messages of other sessions of the same person.", "A6", "never", bare=True
    )

    policy_name = Setting(DEFAULT_POLICY, one_of(*POLICIES), "The named set of numbers the layers decide with.", "T5", "freely")
    context_window = unset(
        whole(SMALLEST_WINDOW, LARGEST_WINDOW, short=True),
        "The model's window in tokens, where it is not the known one.",
        "T4",
        "trusted",
    )
    auto_compact_window = unset(
        whole(SMALLEST_COMPACT_WINDOW, LARGEST_WINDOW, short=True),
        "The window by which compaction starts, if smaller than the real one.",
        "T4",
        "freely",
    )
    autocompact_percent = unset(
        real(0, 100, above_low=True),
        "Compaction starts at this share of the effective window, if that is earlier.",
        "T6",
        "trusted",
    )
    extraction_every = Setting(1, whole(1, 1_000), "Turns from one extraction to the next.", "X2", "trusted", remote=True)
    dream_hours = Setting(24.0, real(0, 10_000), "Hours between two dreams.", "D1", "trusted", remote=True)
    dream_sessions = Setting(5, whole(0, 10_000), "New sessions a dream waits for.", "D1", "trusted", remote=True)
    dream_scan_minutes = Setting(
        10.0, real(0, 10_000), "Minutes between two counts of new sessions.", "D1", "trusted", remote=True
    )
    recall_selector = Setting(
        "local",
        one_of("local", "model"),
        "Who chooses the memories for a message: the local ranker at once, or a model in the background (`lamina.smallModel`).",
        "Q4",
        "trusted",
    )
    memory_mode: Setting[Mapping[Scope, Mode]] = Setting(
        collection.frozen_map(dict.fromkeys(collection.SCOPES, "auto")),
        collection.MEMORY_MODES,
        "Who writes memories: nobody reads or writes, read only, proposals wait for a yes, or freely; for each scope.",
        "B5",
        "less",
    )
    budget_calls = Setting(200, whole(), "Background calls a day.", "B9", "less")
    budget_tokens = Setting(2_000_000, whole(short=True), "Background tokens a day; a cached one is a tenth.", "B9", "less")
    budget_dollars = Setting(2.0, real(), "Background dollars a day.", "B9", "less")
    extra_guidelines = unset(free_text(), "Text that is added to the memory instructions.", "F4", "trusted")
    instruction_excludes: Setting[tuple[str, ...]] = Setting(
        (), collection.UNION, "Instruction files that are not loaded, as glob patterns.", "I1", "trusted"
    )

    memory_directory = unset(DIRECTORY, "The memory directory, as a full path.", "S2", "never", variable_first=True)
    team_memory_directory = unset(DIRECTORY, "The team's memory directory, as a full path.", "W1", "never", variable_first=True)
    remote_memory_directory = unset(
        DIRECTORY,
        "Stands for the home directory as the place of memories, on a machine that is thrown away.",
        "F3",
        "never",
        below="/projects/slug/memory",
    )
    durability = Setting(
        "full", DURABILITY, "Memories and locks survive loss of power (full) or a killed process.", "S6", "never"
    )
    transcript_durability = Setting("process", DURABILITY, "The same for transcripts.", "S6", "never")
    retention_days = unset(
        whole(1, LONGEST_DAYS), "Days after which transcripts may be removed; without it they are kept.", "B11", "never"
    )

    provider = unset(MODEL_NAME, "Provider, or provider:model; offline needs no key.", "O2", "never")
    model = unset(MODEL_NAME, "The model of the conversation.", "T4", "never")
    small_model = unset(MODEL_NAME, "The model of selections and agent summaries.", "Q4", "never")
    mailbox = unset(
        MODEL_NAME,
        "The name other sessions write to this one by, NAME or NAME@TEAM; without it there is no mailbox.",
        "A6",
        "never",
    )
    base_url = unset(URL, "Address of the provider, whichever it is.", "F2", "never")
    anthropic_base_url = unset(URL, "Address used for Anthropic's API.", "F2", "never")
    openai_base_url = unset(URL, "Address used for OpenAI's API.", "F2", "never")
    anthropic_api_key = unset(API_KEY, "Key for Anthropic's API.", "O1", "never")
    openai_api_key = unset(API_KEY, "Key for OpenAI's API.", "O1", "never")

    permissions = Setting(Permissions(), collection.PERMISSIONS, "Rules for tools.", "F2", "trusted")
    hooks: Setting[Hooks] = Setting(
        collection.NO_ENTRIES, collection.HOOK_TABLE, "Commands run at events of the session.", "F2", "trusted", bare=True
    )
    disable_all_hooks = switch(False, "No hooks are run, whoever configured them.", "U6", "trusted")
    env: Setting[Mapping[str, str]] = Setting(
        collection.NO_ENTRIES,
        collection.CHILD_ENVIRONMENT,
        "Variables for the programs that hooks and tools start; one that names a setting counts as that setting.",
        "F2",
        "trusted",
    )


def _kind_of_number(type: Any, low: int, high: int) -> Kind[Any]:
    kinds: dict[Any, Kind[Any]] = {bool: SWITCH, dict[str, int]: collection.COUNTS, frozenset[str]: collection.NAMES}
    return kinds.get(type) or (real if type is float else whole)(low, high)


def _number_rows() -> dict[tuple[str, str], Setting[Any]]:
    """A setting for each number of the policy, by group and field."""
    rows: dict[tuple[str, str], Setting[Any]] = {}
    for group in CLASSIC.__struct_fields__[1:]:
        for field, annotation in type(getattr(CLASSIC, group)).__annotations__.items():
            number: Number = annotation.__metadata__[0]
            kind = _kind_of_number(annotation.__origin__, number.low, number.high)
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
    """A row by its key, the key without `lamina.`, its Python name or a variable's name."""
    return BY_KEY.get(name) or BY_KEY.get(f"{OURS}.{name}") or BY_NAME.get(name) or VARIABLES.get(name)


@cache
def defaults(policy: str = DEFAULT_POLICY) -> dict[str, Resolved]:
    """What each setting is when nobody sets it, under the policy of that name. Not to be changed by the caller."""
    found = {row.key: Resolved(row.default, "default") for row in _ROWS}
    for (group, field), row in NUMBERS.items():
        number = getattr(getattr(POLICIES[policy], group), field)
        found[row.key] = Resolved(row.kind.read(number).value, "default", f"policy {policy}")
    return found


def policy_from(name: str, values: Mapping[str, Resolved]) -> Policy:
    """The named policy with the numbers somebody set; the very same object where nobody did."""
    policy = POLICIES[name]
    for (group, field), row in NUMBERS.items():
        found = values[row.key]
        if found.source != "default":
            numbers = getattr(policy, group)
            like = getattr(numbers, field)
            value = type(like)(found.value) if isinstance(like, dict | frozenset) else found.value
            policy = msgspec.structs.replace(policy, **{group: msgspec.structs.replace(numbers, **{field: value})})
    return policy

"""Settings for every number of the policy: `lamina.notes.firstAt` is `policy.notes.first_at`, and so on.

Their defaults are those of the policy in force, so they are not repeated here; what is said here is what a number means, who asks
for it and which may be set remotely (F1: those of R1, M3 and N3). A test fails when a number of the policy is missing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from ..policy import CLASSIC, POLICIES, Policy
from .kinds import LARGEST, Kind, Number, Switch, Whole
from .row import Resolved, Setting, Variable, camel
from .shapes import Counts, Names, frozen_map


class Entry(NamedTuple):
    """`low` is 1 where 0 would switch a guard off by accident; `high` keeps what is repeated or waited for bounded."""

    help: str
    spec: str
    remote: bool = False
    low: int = 0
    high: int = LARGEST


# Nobody needs more tries, turns or files than this, and each costs something.
MOST = 100
LONGEST_WAIT = 600

NUMBERS: dict[str, Entry] = {
    "window.default_window": Entry("Window of a model nothing is known about.", "T4", low=1_000),
    "window.reserve": Entry("Tokens kept free for the answer.", "T5"),
    "window.autocompact_offset": Entry("Compaction starts this many tokens before the effective window.", "T5"),
    "window.warning_offset": Entry("The warning shows this many tokens before the effective window.", "T5"),
    "window.error_offset": Entry("The error colour shows this many tokens before the effective window.", "T5"),
    "window.blocking_offset": Entry("No message is taken this many tokens before the effective window.", "T5"),
    "window.full_effective": Entry("Below this effective window offsets and budgets shrink in proportion.", "T9", low=1_000),
    "window.autocompact_at": Entry("Compaction starts at this many tokens, if that is earlier.", "T5", low=1),
    "results.per_tool": Entry("Characters of a result that stay in the context, by tool.", "R1", remote=True, low=1),
    "results.default": Entry("The same for every other tool.", "R1", remote=True, low=1),
    "results.per_message": Entry("Characters of all results of one message together.", "R1", remote=True, low=1),
    "results.preview": Entry("Characters of the preview that stands for a spilled result.", "R2", low=1),
    "micro.clearable": Entry("Tools whose old results may be cleared.", "M1"),
    "micro.keep_tokens": Entry("Tokens of clearable results that stay.", "M2"),
    "micro.keep_last": Entry("Newest clearable results that are never touched.", "M2"),
    "micro.save_at_least": Entry("Tokens a clearing must save.", "M2"),
    "micro.must_pay": Entry("Clear only where what it saves is worth the cache it breaks.", "M2"),
    "micro.idle_minutes": Entry("Minutes of pause after which old results are cleared.", "M3", remote=True, low=1),
    "micro.idle_keep": Entry("Newest results that stay after a pause.", "M3", remote=True, low=1),
    "micro.edits_over": Entry("Registered results above which cache edits begin.", "M4"),
    "micro.edits_keep": Entry("Newest results that cache edits leave alone.", "M4"),
    "micro.api_trigger": Entry("Input tokens at which the provider starts to clear.", "M5", low=1),
    "micro.api_clear_at_least": Entry("Tokens the provider clears at least.", "M5"),
    "micro.attachments_older_than": Entry("User messages after which a recalled memory is cleared.", "M6"),
    "notes.section_tokens": Entry("Tokens of one section of the notes.", "N2", low=1),
    "notes.total_tokens": Entry("Tokens of all notes.", "N2", low=1),
    "notes.first_at": Entry("Tokens of conversation at which notes begin.", "N3", remote=True),
    "notes.growth": Entry("Tokens of growth between two updates.", "N3", remote=True),
    "notes.tool_calls": Entry("Tool calls between two updates.", "N3", remote=True),
    "notes.keep_tokens": Entry("Tokens kept verbatim behind the notes.", "N6"),
    "notes.keep_messages": Entry("Messages with text kept verbatim behind the notes.", "N6"),
    "notes.keep_cap": Entry("Most tokens kept verbatim behind the notes.", "N6"),
    "notes.wait_seconds": Entry("Seconds a compaction waits for an update of the notes.", "N7", high=LONGEST_WAIT),
    "notes.stale_seconds": Entry("Age at which an update under way is ignored.", "N7"),
    "compact.tail_min": Entry("Fewest newest tokens kept verbatim behind a summary.", "C4"),
    "compact.tail_max": Entry("Most newest tokens kept verbatim behind a summary.", "C4"),
    "compact.users_tokens": Entry("Tokens of the person's own messages that a summary carries word for word.", "C3"),
    "compact.list_tokens": Entry("Tokens of the list of files that a summary carries.", "C3"),
    "compact.ahead_tokens": Entry("A summary is begun this many tokens before it is needed; 0 never.", "C1"),
    "compact.files": Entry("Files restored after a compaction.", "C4", high=MOST),
    "compact.file_tokens": Entry("Tokens of one restored file.", "C4"),
    "compact.files_tokens": Entry("Tokens of all restored files.", "C4"),
    "compact.skill_tokens": Entry("Tokens of one restored skill.", "C4"),
    "compact.skills_tokens": Entry("Tokens of all restored skills.", "C4"),
    "compact.too_long_tries": Entry("Tries to shorten a summary request that is too long.", "C7", high=MOST),
    "compact.too_long_drop_percent": Entry("Share of the rounds dropped where the gap is unknown.", "C7", low=1),
    "compact.summary_retries": Entry("Further tries of a summary that failed.", "C8", high=MOST),
    "compact.breaker": Entry("Failed compactions in a row that stop compaction.", "C8", low=1, high=MOST),
    "compact.thrash_turns": Entry("Turns within which a full window counts as thrashing.", "B3", low=1, high=MOST),
    "compact.thrash_times": Entry("Times in a row after which thrashing stops.", "B3", low=1, high=MOST),
    "compact.collapse_percent": Entry("Share of the effective window at which turns are folded.", "C10", low=1),
    "compact.collapse_to_percent": Entry("Share of the effective window that folding makes room down to.", "C10", low=1),
    "compact.collapse_keep": Entry("Newest tokens that are never folded.", "C10"),
    "surfacing.files": Entry("Memories brought to one message.", "Q1", low=1, high=MOST),
    "surfacing.lines": Entry("Lines of one recalled memory.", "Q6", low=1),
    "surfacing.file_bytes": Entry("Bytes of one recalled memory.", "Q6", low=1),
    "surfacing.total_bytes": Entry("Bytes of recalled memories after which no more are brought, until a compaction.", "Q2"),
    "surfacing.wait_seconds": Entry("Seconds after which the local ranker chooses in a model's place.", "Q4", high=LONGEST_WAIT),
    "agents.summary_seconds": Entry("Seconds between two summaries of what a background agent is doing.", "A7"),
    "agents.summary_messages": Entry(
        "Newest messages of the agent that another model is shown for that.", "A7", low=1, high=MOST
    ),
    "agents.summary_tokens": Entry("Tokens of these messages.", "A7", low=1),
}


def policy_number(policy: Policy, path: str) -> Any:
    group, _, field = path.partition(".")
    return getattr(getattr(policy, group), field)


def _kind(path: str, value: object, low: int, high: int) -> Kind[Any]:
    match value:
        case bool():
            return Switch()
        case int() if path.endswith("_percent"):
            return Whole(low, 100)
        case int() | None:
            return Whole(low, high)
        case float():
            return Number(low, high)
        case dict():
            return Counts(low)
        case frozenset():
            return Names()
        case _:
            raise TypeError(f"{path} of the policy has no kind of setting: {value!r}")


def _row(path: str, entry: Entry) -> Setting[Any]:
    group, _, field = path.partition(".")
    name = f"{group}_{field}"
    variables = [Variable("LAMINA_" + name.upper())]
    if path == "results.per_tool":
        variables.append(Variable("BASH_MAX_OUTPUT_LENGTH", "bash"))
    return Setting(
        None,
        _kind(path, policy_number(CLASSIC, path), entry.low, entry.high),
        entry.help,
        key=f"lamina.{group}.{camel(field)}",
        name=name,
        spec=entry.spec,
        tree="trusted",
        remote=entry.remote,
        variables=tuple(variables),
    )


ROWS: dict[str, Setting[Any]] = {path: _row(path, entry) for path, entry in NUMBERS.items()}


@cache
def policy_defaults(name: str) -> dict[str, Resolved]:
    """What each number is when nobody sets it, under the policy of that name. Not to be changed by the caller."""
    policy = POLICIES[name]
    return {
        row.key: Resolved(_as_setting(policy_number(policy, path)), "default", f"policy {name}") for path, row in ROWS.items()
    }


def _as_setting(value: Any) -> Any:
    match value:
        case dict():
            return frozen_map(value)
        case frozenset():
            return tuple(sorted(value))
        case _:
            return value


def _as_number(value: Any, like: Any) -> Any:
    match like:
        case dict():
            return dict(value)
        case frozenset():
            return frozenset(value)
        case _:
            return value


def policy_from(name: str, values: dict[str, Resolved]) -> Policy:
    """The named policy with the numbers somebody set; the very same object where nobody did."""
    policy = POLICIES[name]
    changed: dict[str, dict[str, Any]] = {}
    for path, row in ROWS.items():
        found = values[row.key]
        if found.source != "default":
            group, _, field = path.partition(".")
            changed.setdefault(group, {})[field] = _as_number(found.value, policy_number(policy, path))
    if not changed:
        return policy
    groups = {group: msgspec.structs.replace(getattr(policy, group), **fields) for group, fields in changed.items()}
    return msgspec.structs.replace(policy, **groups)

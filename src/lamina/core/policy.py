"""Policy: every number a layer decides with, in one frozen value.

Each `plan` takes the policy as an argument and no layer has a number of its own, so that two policies can be compared by running
the same code twice. Token offsets are written for an effective window of 180,000 and shrink with smaller windows (T9).
"""

from __future__ import annotations

import msgspec

from .errors import InputError


class WindowPolicy(msgspec.Struct, frozen=True):
    """T4–T9."""

    default_window: int = 200_000
    reserve: int = 20_000  # room for the answer; never more than the model's max output or a quarter of the window
    autocompact_offset: int = 13_000
    warning_offset: int = 20_000
    error_offset: int = 20_000
    blocking_offset: int = 3_000
    full_effective: int = 180_000  # T9: below this effective window offsets and budgets shrink in proportion
    autocompact_at: int | None = None  # an absolute trigger; never later than the offset's


class ResultPolicy(msgspec.Struct, frozen=True):
    """R1–R2, in characters."""

    per_tool: dict[str, int] = msgspec.field(default_factory=lambda: {"Bash": 30_000})
    default: int = 50_000
    per_message: int = 200_000
    preview: int = 2_000


class MicroPolicy(msgspec.Struct, frozen=True):
    """M1–M7."""

    clearable: frozenset[str] = frozenset({"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"})
    keep_tokens: int = 40_000
    keep_last: int = 3
    save_at_least: int = 20_000
    must_pay: bool = False  # lean: only when what it saves is worth the break it causes, or the cache is cold
    idle_minutes: int = 60
    idle_keep: int = 5
    edits_over: int = 20
    edits_keep: int = 5
    api_trigger: int = 180_000
    api_clear_at_least: int = 140_000
    attachments_older_than: int = 3  # user messages


class NotesPolicy(msgspec.Struct, frozen=True):
    """N2–N7."""

    section_tokens: int = 2_000
    total_tokens: int = 12_000
    first_at: int = 10_000
    growth: int = 5_000
    tool_calls: int = 3
    keep_tokens: int = 10_000
    keep_messages: int = 5
    keep_cap: int = 40_000
    wait_seconds: float = 15.0
    stale_seconds: float = 60.0


class CompactPolicy(msgspec.Struct, frozen=True):
    """C3–C10, B3."""

    tail_min: int = 0  # newest tokens kept verbatim behind a summary
    tail_max: int = 0
    users_tokens: int = 20_000  # the person's own messages inside a summary
    list_tokens: int = 1_500  # the names of the files used
    ahead_tokens: int = 0  # a summary is begun this many tokens before it is needed; 0: never
    files: int = 5
    file_tokens: int = 5_000
    files_tokens: int = 50_000
    skill_tokens: int = 5_000
    skills_tokens: int = 25_000
    too_long_tries: int = 3
    too_long_drop_percent: int = 20
    summary_retries: int = 2
    breaker: int = 3
    thrash_turns: int = 3
    thrash_times: int = 3
    collapse_percent: int = 80
    collapse_to_percent: int = 60  # far enough below that the next call does not fold again
    collapse_keep: int = 20_000  # newest tokens that are never folded


class SurfacingPolicy(msgspec.Struct, frozen=True):
    """Q2–Q6: memories that are brought to a message."""

    files: int = 5
    lines: int = 200  # of one memory
    file_bytes: int = 4_096
    total_bytes: int = 60_000  # in one conversation, until a compaction
    wait_seconds: float = 10.0  # for a model's choice


class AgentPolicy(msgspec.Struct, frozen=True):
    """A7."""

    summary_seconds: float = 30.0  # between two summaries of what a background agent is doing
    summary_messages: int = 20  # of its newest, that another model is shown
    summary_tokens: int = 8_000


class Policy(msgspec.Struct, frozen=True):
    name: str
    window: WindowPolicy = WindowPolicy()
    results: ResultPolicy = ResultPolicy()
    micro: MicroPolicy = MicroPolicy()
    notes: NotesPolicy = NotesPolicy()
    compact: CompactPolicy = CompactPolicy()
    surfacing: SurfacingPolicy = SurfacingPolicy()
    agents: AgentPolicy = AgentPolicy()


CLASSIC = Policy("classic")

# Reads cost a tenth of the context on every call, so a smaller mean context is what saves money: compact early, keep a verbatim
# tail so that little is asked for again, clear only where the break pays. Of 52 recorded windows 11 passed this trigger and none ended
# within 10,000 tokens before it, so a summary begun there is hardly ever made for nothing. It makes nobody wait, as notes do, and of two
# calls that save the same wait one is enough: notes begin behind the trigger, which is where a person moves it to who wants them.
LEAN = Policy(
    "lean",
    window=WindowPolicy(autocompact_at=100_000),
    micro=MicroPolicy(must_pay=True),
    notes=NotesPolicy(first_at=200_000, growth=40_000),
    compact=CompactPolicy(tail_min=25_000, tail_max=45_000, ahead_tokens=10_000),
)

POLICIES = {policy.name: policy for policy in (CLASSIC, LEAN)}


def named_policy(name: str) -> Policy:
    try:
        return POLICIES[name]
    except KeyError:
        raise InputError("policy", f"there is no policy {name!r}", f"use one of {', '.join(sorted(POLICIES))}") from None

"""Policy: every number a layer decides with, in one frozen value.

Each `plan` takes the policy as an argument and no layer has a number of its own, so that two policies can be compared by running
the same code twice. Token offsets are written for an effective window of 180,000 and shrink with smaller windows (T9).

Every number is also a setting: `policy.notes.first_at` is `lamina.notes.firstAt`. What the setting says and accepts stands in the
annotation, which is why annotations are evaluated in this module.
"""

from typing import Annotated, NamedTuple

import msgspec

from .errors import InputError

# Far above any window, budget or file size, and still exact in every JSON reader.
LARGEST = 1_000_000_000_000
# Nobody needs more tries, turns or files than this, and each costs something.
MOST = 100
LONGEST_WAIT = 600


class Number(NamedTuple):
    """The setting of a number. `low` is 1 where 0 would switch a guard off by accident; `high` bounds what is repeated or awaited."""

    help: str
    spec: str
    low: int = 0
    high: int = LARGEST
    remote: bool = False  # a remote flag may set it (F1: those of R1, M3 and N3)


class WindowPolicy(msgspec.Struct, frozen=True):
    """T4–T9."""

    default_window: Annotated[int, Number("Window of a model nothing is known about.", "T4", 1_000)] = 200_000
    # Never more than the model's max output or a quarter of the window.
    reserve: Annotated[int, Number("Tokens kept free for the answer.", "T5")] = 20_000
    autocompact_offset: Annotated[int, Number("Compaction starts this many tokens before the effective window.", "T5")] = 13_000
    warning_offset: Annotated[int, Number("The warning shows this many tokens before the effective window.", "T5")] = 20_000
    error_offset: Annotated[int, Number("The error colour shows this many tokens before the effective window.", "T5")] = 20_000
    blocking_offset: Annotated[int, Number("No message is taken this many tokens before the effective window.", "T5")] = 3_000
    full_effective: Annotated[
        int, Number("Below this effective window offsets and budgets shrink in proportion.", "T9", 1_000)
    ] = 180_000
    autocompact_at: Annotated[int | None, Number("Compaction starts at this many tokens, if that is earlier.", "T5", 1)] = None


class ResultPolicy(msgspec.Struct, frozen=True):
    """R1–R2, in characters."""

    per_tool: Annotated[
        dict[str, int], Number("Characters of a result that stay in the context, by tool.", "R1", 1, remote=True)
    ] = msgspec.field(default_factory=lambda: {"Bash": 30_000})
    default: Annotated[int, Number("The same for every other tool.", "R1", 1, remote=True)] = 50_000
    per_message: Annotated[int, Number("Characters of all results of one message together.", "R1", 1, remote=True)] = 200_000
    preview: Annotated[int, Number("Characters of the preview that stands for a spilled result.", "R2", 1)] = 2_000


class MicroPolicy(msgspec.Struct, frozen=True):
    """M1–M7."""

    clearable: Annotated[frozenset[str], Number("Tools whose old results may be cleared.", "M1")] = frozenset(
        {"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"}
    )
    keep_tokens: Annotated[int, Number("Tokens of clearable results that stay.", "M2")] = 40_000
    keep_last: Annotated[int, Number("Newest clearable results that are never touched.", "M2")] = 3
    save_at_least: Annotated[int, Number("Tokens a clearing must save.", "M2")] = 20_000
    # A cold cache has nothing to break: then it always pays.
    must_pay: Annotated[bool, Number("Clear only where what it saves is worth the cache it breaks.", "M2")] = False
    idle_minutes: Annotated[int, Number("Minutes of pause after which old results are cleared.", "M3", 1, remote=True)] = 60
    idle_keep: Annotated[int, Number("Newest results that stay after a pause.", "M3", 1, remote=True)] = 5
    edits_over: Annotated[int, Number("Registered results above which cache edits begin.", "M4")] = 20
    edits_keep: Annotated[int, Number("Newest results that cache edits leave alone.", "M4")] = 5
    api_trigger: Annotated[int, Number("Input tokens at which the provider starts to clear.", "M5", 1)] = 180_000
    api_clear_at_least: Annotated[int, Number("Tokens the provider clears at least.", "M5")] = 140_000
    attachments_older_than: Annotated[int, Number("User messages after which a recalled memory is cleared.", "M6")] = 3


class NotesPolicy(msgspec.Struct, frozen=True):
    """N2–N7."""

    section_tokens: Annotated[int, Number("Tokens of one section of the notes.", "N2", 1)] = 2_000
    total_tokens: Annotated[int, Number("Tokens of all notes.", "N2", 1)] = 12_000
    first_at: Annotated[int, Number("Tokens of conversation at which notes begin.", "N3", remote=True)] = 10_000
    growth: Annotated[int, Number("Tokens of growth between two updates.", "N3", remote=True)] = 5_000
    tool_calls: Annotated[int, Number("Tool calls between two updates.", "N3", remote=True)] = 3
    keep_tokens: Annotated[int, Number("Tokens kept verbatim behind the notes.", "N6")] = 10_000
    keep_messages: Annotated[int, Number("Messages with text kept verbatim behind the notes.", "N6")] = 5
    keep_cap: Annotated[int, Number("Most tokens kept verbatim behind the notes.", "N6")] = 40_000
    wait_seconds: Annotated[float, Number("Seconds a compaction waits for an update of the notes.", "N7", high=LONGEST_WAIT)] = (
        15.0
    )
    stale_seconds: Annotated[float, Number("Age at which an update under way is ignored.", "N7")] = 60.0


class CompactPolicy(msgspec.Struct, frozen=True):
    """C3–C10, B3."""

    tail_min: Annotated[int, Number("Fewest newest tokens kept verbatim behind a summary.", "C4")] = 0
    tail_max: Annotated[int, Number("Most newest tokens kept verbatim behind a summary.", "C4")] = 0
    users_tokens: Annotated[int, Number("Tokens of the person's own messages that a summary carries word for word.", "C3")] = (
        20_000
    )
    list_tokens: Annotated[int, Number("Tokens of the list of files that a summary carries.", "C3")] = 1_500
    ahead_tokens: Annotated[int, Number("A summary is begun this many tokens before it is needed; 0 never.", "C1")] = 0
    files: Annotated[int, Number("Files restored after a compaction.", "C4", high=MOST)] = 5
    file_tokens: Annotated[int, Number("Tokens of one restored file.", "C4")] = 5_000
    files_tokens: Annotated[int, Number("Tokens of all restored files.", "C4")] = 50_000
    skill_tokens: Annotated[int, Number("Tokens of one restored skill.", "C4")] = 5_000
    skills_tokens: Annotated[int, Number("Tokens of all restored skills.", "C4")] = 25_000
    too_long_tries: Annotated[int, Number("Tries to shorten a summary request that is too long.", "C7", high=MOST)] = 3
    too_long_drop_percent: Annotated[int, Number("Share of the rounds dropped where the gap is unknown.", "C7", 1, 100)] = 20
    summary_retries: Annotated[int, Number("Further tries of a summary that failed.", "C8", high=MOST)] = 2
    breaker: Annotated[int, Number("Failed compactions in a row that stop compaction.", "C8", 1, MOST)] = 3
    thrash_turns: Annotated[int, Number("Turns within which a full window counts as thrashing.", "B3", 1, MOST)] = 3
    thrash_times: Annotated[int, Number("Times in a row after which thrashing stops.", "B3", 1, MOST)] = 3
    collapse_percent: Annotated[int, Number("Share of the effective window at which turns are folded.", "C10", 1, 100)] = 80
    # Far enough below that the next call does not fold again.
    collapse_to_percent: Annotated[
        int, Number("Share of the effective window that folding makes room down to.", "C10", 1, 100)
    ] = 60
    collapse_keep: Annotated[int, Number("Newest tokens that are never folded.", "C10")] = 20_000


class SurfacingPolicy(msgspec.Struct, frozen=True):
    """Q2–Q6: memories that are brought to a message."""

    files: Annotated[int, Number("Memories brought to one message.", "Q1", 1, MOST)] = 5
    lines: Annotated[int, Number("Lines of one recalled memory.", "Q6", 1)] = 200
    file_bytes: Annotated[int, Number("Bytes of one recalled memory.", "Q6", 1)] = 4_096
    total_bytes: Annotated[
        int, Number("Bytes of recalled memories after which no more are brought, until a compaction.", "Q2")
    ] = 60_000
    wait_seconds: Annotated[
        float, Number("Seconds after which the local ranker chooses in a model's place.", "Q4", high=LONGEST_WAIT)
    ] = 10.0


class AgentPolicy(msgspec.Struct, frozen=True):
    """A7."""

    summary_seconds: Annotated[float, Number("Seconds between two summaries of what a background agent is doing.", "A7")] = 30.0
    summary_messages: Annotated[
        int, Number("Newest messages of the agent that another model is shown for that.", "A7", 1, MOST)
    ] = 20
    summary_tokens: Annotated[int, Number("Tokens of these messages.", "A7", 1)] = 8_000


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

"""Policy: every number that the layers use, in one frozen value.

Each `plan` takes the policy as an argument, and layers define no numbers themselves. Two policies can therefore be compared by
running the same code twice. Token offsets are written for an effective window of 180,000 and shrink with smaller windows.

Every number is also a setting: `policy.notes.first_at` is `lamina.notes.firstAt`. The annotation holds the setting's description
and bounds, which is why this module does not postpone the evaluation of annotations.
"""

from typing import Annotated

import msgspec

from ..language.text import Text
from .errors import InputError

# Far above any window, budget or file size, and still exact in every JSON reader.
LARGEST = 1_000_000_000_000
# An upper bound for retries, turns and files: each one costs something, and more are never needed.
MOST = 100
LONGEST_WAIT = 600


class Number(msgspec.Struct, frozen=True):
    """Describes the setting of a number.

    `low` is 1 if 0 would accidentally disable a guard. `high` limits numbers that control repetition or waiting.
    """

    help: str
    spec: str
    low: int = 0
    high: int = LARGEST
    remote: bool = False  # a remote flag may set it
    options: tuple[str, ...] = ()  # the accepted words, if it is a word and not a number


class WindowPolicy(msgspec.Struct, frozen=True):
    """Numbers for the context window (T4–T9)."""

    default_window: Annotated[int, Number("Context window assumed for an unknown model.", "T4", 1_000)] = 200_000
    # Never more than the model's maximum output or a quarter of the window.
    reserve: Annotated[int, Number("Tokens reserved for the response.", "T5")] = 20_000
    autocompact_offset: Annotated[
        int, Number("Automatic compaction starts this many tokens below the effective window.", "T5")
    ] = 13_000
    warning_offset: Annotated[int, Number("The warning appears this many tokens below the effective window.", "T5")] = 20_000
    error_offset: Annotated[int, Number("The error color appears this many tokens below the effective window.", "T5")] = 20_000
    blocking_offset: Annotated[int, Number("New messages are rejected this many tokens below the effective window.", "T5")] = (
        3_000
    )
    full_effective: Annotated[
        int, Number("Below this effective window, offsets and budgets shrink in proportion.", "T9", 1_000)
    ] = 180_000
    autocompact_at: Annotated[
        int | None,
        Number("Automatic compaction starts at this many tokens without the first request, if that is earlier.", "T5", 1),
    ] = None


class ResultPolicy(msgspec.Struct, frozen=True):
    """Limits of tool results in characters (R1–R2, R7)."""

    per_tool: Annotated[
        dict[str, int], Number("Maximum characters of a result kept in the context, by tool.", "R1", 1, remote=True)
    ] = msgspec.field(default_factory=lambda: {"Bash": 30_000})
    default: Annotated[int, Number("The same limit for all other tools.", "R1", 1, remote=True)] = 50_000
    per_message: Annotated[int, Number("Maximum characters of all results in one message.", "R1", 1, remote=True)] = 200_000
    preview: Annotated[int, Number("Characters of the preview that replaces a spilled result.", "R2", 1)] = 2_000
    # What failed stands at the end of a result.
    end_percent: Annotated[int, Number("Percentage of every preview that shows the end of its result.", "R7", 0, 100)] = 0


class OncePolicy(msgspec.Struct, frozen=True):
    """Which tool results are shown once: whole to the next answer, then as a preview (P3)."""

    from_chars: Annotated[int, Number("Show results of at least this many characters once; 0 disables this.", "P3")] = 0
    preview: Annotated[int, Number("Characters of the preview that replaces a result shown once.", "P3", 1)] = 2_000
    # What the model reads deliberately it works with for longer: files, originals that it opened again, instructions of a skill.
    kept_tools: Annotated[frozenset[str], Number("Tools whose results are never shown once.", "P3")] = frozenset(
        {"Read", "NotebookRead", "read_file", "Expand", "Skill"}
    )


class MicroPolicy(msgspec.Struct, frozen=True):
    """Numbers for clearing old tool results (M1–M8)."""

    clearable: Annotated[frozenset[str], Number("Tools whose old results may be cleared.", "M1")] = frozenset(
        {"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"}
    )
    # What these return the model works with for longer: reports, instructions of a skill, tasks, decisions of the user.
    kept_tools: Annotated[
        frozenset[str], Number("Tools whose results are never cleared, also under a loop with tools of its own.", "M8")
    ] = frozenset(
        {"Agent", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill", "Task", "TaskCreate", "TaskOutput", "TaskUpdate"}
        | {"TodoWrite"}
    )
    keep_tokens: Annotated[int, Number("Tokens of clearable results that are kept.", "M2")] = 40_000
    keep_last: Annotated[int, Number("Number of newest clearable results that are never cleared.", "M2")] = 3
    save_at_least: Annotated[int, Number("Minimum number of tokens a clearing must save.", "M2")] = 20_000
    # The warning of a larger window comes too late: at 1M tokens, 960,000 would be sent with every call. Requests above 200,000
    # tokens cost more at most providers, so clearing starts before that.
    clear_from: Annotated[
        int, Number("Number of tokens at which clearing starts, if the warning of the window is later.", "M2", 1)
    ] = 180_000
    # With a cold cache there is nothing to break, so clearing always pays.
    must_pay: Annotated[bool, Number("Clear only if the savings exceed the cost of the cache break.", "M2")] = False
    idle_minutes: Annotated[int, Number("Minutes of inactivity after which old results are cleared.", "M3", 1, remote=True)] = 60
    idle_keep: Annotated[int, Number("Number of newest results kept after a pause.", "M3", 1, remote=True)] = 5
    edits_over: Annotated[int, Number("Number of registered results above which cache edits begin.", "M4")] = 20
    edits_keep: Annotated[int, Number("Number of newest results that cache edits never delete.", "M4")] = 5
    api_trigger: Annotated[int, Number("Input tokens at which the provider starts clearing.", "M5", 1)] = 180_000
    api_clear_at_least: Annotated[int, Number("Minimum number of tokens the provider clears.", "M5")] = 140_000
    # Above the compaction threshold the provider would never get to clear anything.
    api_percent: Annotated[
        int, Number("The provider starts clearing at this percentage of the compaction threshold at the latest.", "M5", 1, 100)
    ] = 90
    attachments_older_than: Annotated[int, Number("Number of user messages after which a recalled memory is cleared.", "M6")] = 3


class ColdPolicy(msgspec.Struct, frozen=True):
    """The content cleared when the prompt cache has expired and everything is written again anyway (P2, P5)."""

    clear: Annotated[
        bool, Number("Clear old results, inputs and thinking when the prompt cache has expired.", "P2", remote=True)
    ] = False
    keep_results: Annotated[int, Number("Number of newest results kept when the cache has expired.", "P2")] = 5
    keep_reads: Annotated[int, Number("Number of newest model calls whose Reads are kept too.", "P2")] = 10
    keep_inputs: Annotated[int, Number("Number of newest inputs of Edit and Write kept when the cache has expired.", "P2")] = 8
    keep_thinking: Annotated[int, Number("Number of newest model calls whose thinking is kept.", "P2")] = 3
    repeated: Annotated[
        bool, Number("Clear results that a later one repeats when a compaction rewrites the prompt anyway.", "P5", remote=True)
    ] = False


class CachePolicy(msgspec.Struct, frozen=True):
    """The lifetime of prompt cache entries (P2, P6)."""

    ttl: Annotated[
        str, Number("Lifetime of cache entries; auto decides for each request.", "P6", options=("5m", "1h", "auto"))
    ] = "5m"
    # Providers of automatic caches guarantee no lifetime: an unused entry expires after an hour at the latest.
    automatic_seconds: Annotated[int, Number("Seconds after which an automatic cache counts as expired.", "P2", 1)] = 3_600
    keep_alive: Annotated[
        int, Number("Maximum number of requests in a pause that only keep the cache alive; 0 sends none.", "P6", high=2)
    ] = 0
    # Half a minute before an entry of five minutes expires.
    keep_alive_seconds: Annotated[
        int, Number("Seconds of a pause after which such a request is sent.", "P6", high=LONGEST_WAIT)
    ] = 270


class NotesPolicy(msgspec.Struct, frozen=True):
    """Numbers for the session notes (N2–N7)."""

    section_tokens: Annotated[int, Number("Maximum tokens of one section of the notes.", "N2", 1)] = 2_000
    total_tokens: Annotated[int, Number("Maximum tokens of all notes.", "N2", 1)] = 12_000
    first_at: Annotated[int, Number("Conversation size in tokens at which notes begin.", "N3", remote=True)] = 10_000
    growth: Annotated[int, Number("Growth in tokens between two updates of the notes.", "N3", remote=True)] = 5_000
    tool_calls: Annotated[int, Number("Number of tool calls between two updates of the notes.", "N3", remote=True)] = 3
    # Three tries in a row and five more as the conversation grows: by then it is not a passing fault.
    breaker: Annotated[
        int, Number("Number of consecutive failures that stop the notes until the next compaction.", "N3", 1, MOST)
    ] = 8
    keep_tokens: Annotated[int, Number("Minimum tokens kept verbatim after the notes.", "N6")] = 10_000
    keep_messages: Annotated[int, Number("Minimum messages with text kept verbatim after the notes.", "N6")] = 5
    keep_cap: Annotated[int, Number("Maximum tokens kept verbatim after the notes.", "N6")] = 40_000
    wait_seconds: Annotated[float, Number("Seconds a compaction waits for an update of the notes.", "N7", high=LONGEST_WAIT)] = (
        15.0
    )
    stale_seconds: Annotated[float, Number("Age in seconds after which an unfinished update of the notes is ignored.", "N7")] = (
        60.0
    )
    # One update costs as much as the summary that it replaces, so notes pay only if calls are free.
    must_pay: Annotated[bool, Number("Update the notes only if calls of the model cost nothing.", "P4")] = False


class CompactPolicy(msgspec.Struct, frozen=True):
    """Numbers for compaction (C3–C10, B3)."""

    tail_min: Annotated[int, Number("Minimum of newest tokens kept verbatim after a summary.", "C4")] = 0
    tail_max: Annotated[int, Number("Maximum of newest tokens kept verbatim after a summary.", "C4")] = 0
    users_tokens: Annotated[int, Number("Maximum tokens of user messages that a summary quotes verbatim.", "C3")] = 20_000
    list_tokens: Annotated[int, Number("Maximum tokens of the file list in a summary.", "C3")] = 1_500
    ahead_tokens: Annotated[
        int, Number("A summary starts in the background this many tokens before it is needed; 0 disables this.", "C1")
    ] = 0
    files: Annotated[int, Number("Maximum number of files restored after a compaction.", "C4", high=MOST)] = 5
    file_tokens: Annotated[int, Number("Maximum tokens of one restored file.", "C4")] = 5_000
    files_tokens: Annotated[int, Number("Maximum tokens of all restored files.", "C4")] = 50_000
    skill_tokens: Annotated[int, Number("Maximum tokens of one restored skill.", "C4")] = 5_000
    skills_tokens: Annotated[int, Number("Maximum tokens of all restored skills.", "C4")] = 25_000
    restored_tokens: Annotated[
        int, Number("Maximum tokens of all files, skills and texts restored after a compaction; 0 means no limit.", "P4")
    ] = 0
    too_long_tries: Annotated[
        int, Number("Number of attempts to shorten a summary request that is too long.", "C7", high=MOST)
    ] = 3
    too_long_drop_percent: Annotated[int, Number("Percentage of the rounds dropped if the excess is unknown.", "C7", 1, 100)] = 20
    summary_retries: Annotated[int, Number("Number of retries after a failed summary.", "C8", high=MOST)] = 2
    breaker: Annotated[int, Number("Number of consecutive failures that stop automatic compaction.", "C8", 1, MOST)] = 3
    thrash_turns: Annotated[int, Number("Turns within which a window that is full again counts as thrashing.", "B3", 1, MOST)] = 3
    thrash_times: Annotated[int, Number("Consecutive times after which thrashing stops automatic compaction.", "B3", 1, MOST)] = 3
    # With less, the window would be full again after a few answers.
    least_room: Annotated[
        int, Number("Minimum tokens beside the first request and the kept messages; with less, compaction starts last.", "B3")
    ] = 25_000
    collapse_percent: Annotated[
        int, Number("Percentage of the effective window at which turns are collapsed.", "C10", 1, 100)
    ] = 80
    # Low enough that the next call does not collapse turns again.
    collapse_to_percent: Annotated[
        int, Number("Percentage of the effective window that collapsing turns aims for.", "C10", 1, 100)
    ] = 60
    collapse_keep: Annotated[int, Number("Newest tokens that are never collapsed.", "C10")] = 20_000


class PricePolicy(msgspec.Struct, frozen=True):
    """When a compaction pays before the window is full (P4)."""

    factor: Annotated[
        float,
        Number("Compact once reading the older messages again cost this many compactions; 0 disables this.", "P4", high=MOST),
    ] = 0.0
    least_gain: Annotated[int, Number("Minimum tokens that a compaction by price must be able to summarise.", "P4")] = 25_000
    summary_tokens: Annotated[int, Number("Expected tokens of the first summary and the context restored after it.", "P4")] = (
        5_000
    )
    ahead_calls: Annotated[
        int, Number("A summary starts in the background this many calls before it pays; 0 disables this.", "P4", high=MOST)
    ] = 2


class SurfacingPolicy(msgspec.Struct, frozen=True):
    """Limits of recalled memories (Q2–Q6)."""

    files: Annotated[int, Number("Maximum number of memories added to one message.", "Q1", 1, MOST)] = 5
    lines: Annotated[int, Number("Maximum lines of one recalled memory.", "Q6", 1)] = 200
    file_bytes: Annotated[int, Number("Maximum bytes of one recalled memory.", "Q6", 1)] = 4_096
    total_bytes: Annotated[int, Number("Maximum bytes of recalled memories until the next compaction.", "Q2")] = 60_000
    wait_seconds: Annotated[
        float, Number("Seconds after which the local ranker replaces a model that has not answered.", "Q4", high=LONGEST_WAIT)
    ] = 10.0


class AgentPolicy(msgspec.Struct, frozen=True):
    """Numbers for the summaries of background agents (A7)."""

    summary_seconds: Annotated[float, Number("Seconds between two summaries of a background agent's work.", "A7")] = 30.0
    summary_messages: Annotated[
        int, Number("Number of the agent's newest messages that a different model gets to summarize.", "A7", 1, MOST)
    ] = 20
    summary_tokens: Annotated[int, Number("Maximum tokens of these messages.", "A7", 1)] = 8_000


class Policy(msgspec.Struct, frozen=True):
    """The thresholds and budgets of all layers, as one frozen value. `named_policy` returns the built-in ones."""

    name: str
    window: WindowPolicy = WindowPolicy()
    results: ResultPolicy = ResultPolicy()
    once: OncePolicy = OncePolicy()
    micro: MicroPolicy = MicroPolicy()
    cold: ColdPolicy = ColdPolicy()
    cache: CachePolicy = CachePolicy()
    notes: NotesPolicy = NotesPolicy()
    compact: CompactPolicy = CompactPolicy()
    price: PricePolicy = PricePolicy()
    surfacing: SurfacingPolicy = SurfacingPolicy()
    agents: AgentPolicy = AgentPolicy()


CLASSIC = Policy("classic")

# Cache reads cost a tenth of the context on every call, so a smaller average context saves the most money. Therefore this policy
# compacts early, keeps a verbatim tail so that little is requested again, and clears only if the cache break pays for itself.
# Of 52 recorded windows, 11 passed this trigger and none ended within 10,000 tokens before it, so a summary started there is rarely
# wasted. Like notes, it spares the user a wait, and one of the two is enough: notes start above the trigger. To use notes with
# this policy, raise the trigger.
LEAN = Policy(
    "lean",
    window=WindowPolicy(autocompact_at=100_000),
    micro=MicroPolicy(must_pay=True),
    notes=NotesPolicy(first_at=200_000, growth=40_000),
    compact=CompactPolicy(tail_min=25_000, tail_max=45_000, ahead_tokens=10_000),
)

# Most of the money goes into reading old messages again. This policy keeps count of that and compacts as soon as it has cost more
# than a compaction, whatever the size of the window: a session that ends soon is left alone, a long one is kept small.
BALANCED = Policy(
    "balanced",
    results=ResultPolicy(end_percent=30),
    once=OncePolicy(from_chars=20_000),
    micro=MicroPolicy(must_pay=True),
    cold=ColdPolicy(clear=True, repeated=True),
    cache=CachePolicy(ttl="auto"),
    notes=NotesPolicy(must_pay=True),
    # In a long session, 20,000 tokens of user messages in every summary cost a fifth of the bill.
    compact=CompactPolicy(tail_min=30_000, tail_max=30_000, users_tokens=5_000, ahead_tokens=10_000, restored_tokens=10_000),
    price=PricePolicy(factor=2.0),
)

# The same, and most tool results are shown once.
THRIFTY = msgspec.structs.replace(BALANCED, name="thrifty", once=OncePolicy(from_chars=1_500, preview=500))

POLICIES = {policy.name: policy for policy in (BALANCED, THRIFTY, CLASSIC, LEAN)}


def named_policy(name: str) -> Policy:
    """Return the built-in policy with this name: `balanced`, `thrifty`, `classic` or `lean`. Raises InputError for any other."""
    try:
        return POLICIES[name]
    except KeyError:
        raise InputError(
            "policy",
            Text("unknown policy {name!r}", name=name),
            Text("use one of {options}", options=", ".join(sorted(POLICIES))),
        ) from None

"""One thing that is wrong: what, where, how grave, what to do, and what would mend it.

Owns the table of kinds; a kind's id is what programs see in `--json`, so it is never reused for something else. Pure values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

Area: TypeAlias = Literal["memory", "instructions", "settings", "sessions", "machine"]
AREAS: tuple[Area, ...] = get_args(Area)
# error: something is lost or exposed. warning: something does not work as it should. info: good to know.
Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class FindingKind(NamedTuple):
    severity: Severity
    title: str  # heads the group of such findings
    remedy: str  # what a person does about it, where a finding says nothing else


# Severity, title, remedy. A finding of a kind without a remedy brings its own.
# fmt: off
_ROWS: dict[str, tuple[Severity, str, str]] = {
    # memory: the files
    "not-plain": ("warning", "Not plain files", ""),
    "not-private": ("error", "Other users of this machine can look in", "Files should have the mode 0600 and directories 0700."),
    "leftover": ("info", "Left by a writer that was killed", "They go at the next start, or now."),
    "twin": ("warning", "Names that are one file on some systems", "Rename one: on some systems they are one file."),
    "unreadable": ("warning", "Cannot be read", "Check its permissions."),
    "too-many": ("warning", "Too much to look at", ""),
    "stray-log": ("info", "Among the daily logs, and none", "Move it away, or into the memory directory itself."),
    # memory: topics
    "front-matter": ("warning", "Front matter that cannot be used", "Begin it with name, description and type."),
    "unknown-type": ("warning", "Unknown types", ""),
    "no-description": ("warning", "No description: never chosen", "Say in one line when it helps."),
    "vague-description": ("warning", "Descriptions that say nothing", "Say in one line what is in it and when it helps."),
    "same-description": ("warning", "Descriptions that cannot be told apart", "Say what tells them apart."),
    "same-name": ("warning", "Two memories of one name", "Rename one: only the first is found by its name."),
    "identical": ("warning", "The same memory twice", "One is enough; the other goes to the trash."),
    "same-body": ("warning", "The same text under another description", "Keep one, with the better description."),
    "near-duplicate": ("info", "Nearly the same text", "Merge them, if they mean the same."),
    "empty-body": ("info", "Memories without a text", "Write what it is about, or remove it."),
    "oversize": ("warning", "Too long to be useful", "Keep what matters, or split it into several memories."),
    "relative-date": ("warning", "Dates that lose their meaning", "Put the date there."),
    "secret": ("error", "Secrets", "Take it out, and change the secret: it has been on disk and may have been sent to a model."),
    "stale-evidence": ("warning", "What a memory rests on has changed", "Check whether it still holds."),
    "unverifiable-evidence": ("info", "Evidence that cannot be checked", "Name files of the project."),
    # memory: the index
    "dead-pointer": ("warning", "Index lines that lead nowhere", "Remove the line."),
    "leads-out": ("warning", "Index lines that lead out of memory", "Copy the file into memory, or remove the line."),
    "double-line": ("warning", "Index lines that stand there twice", "One is enough."),
    "long-line": ("warning", "Index lines that are too long", "Shorten it: detail belongs into the memory."),
    "index-content": ("info", "Content in the index", "Make a memory of it: the index is sent with every session."),
    "orphan": ("warning", "Memories that are not in the index", "Add its line."),
    "index-full": ("warning", "The index is full", ""),
    # memory: the journal and the inbox
    "journal-damage": ("warning", "The history has damaged places", "Nothing to do: later changes are recorded as before."),
    "inbox-damage": ("warning", "The inbox holds what is no proposal", "Remove it."),
    "cache-damage": ("info", "A cache that is made again", "Nothing to do."),
    "changed-outside": (
        "info", "Changed by another program or by hand", "Look at them; the next change through Lamina records them as they are."),
    "gone-outside": ("info", "Removed by another program or by hand", ""),
    "waiting-long": ("info", "Proposals that wait for a yes", ""),
    "dream-stopped": (
        "warning", "Dreams that were stopped half way", "The next session, or lamina doctor --fix, puts everything back as it was."),
    "dream-long": ("info", "A dream that runs for long", "lamina dream --kill ends it."),
    # instruction files
    "include": ("warning", "Includes that were left out", "Mend the path, or take the include out."),
    "waits-for-approval": ("info", "Includes that wait for your approval", "Start lamina in a terminal: it asks you once."),
    "include-cycle": ("info", "Includes that go round in a circle", "Take one of the includes out."),
    "too-long": ("warning", "Instruction files that are cut", "Shorten it, or split it into rules under .claude/rules/."),
    "instruction-file": ("warning", "Instruction files that are left out", "Mend it, or remove it."),
    "same-instructions": ("info", "Instruction files with the same text", "Keep one, or make one a link."),
    "hidden-instructions": ("info", "Instruction files that are not read", ""),
    # settings
    "setting": ("warning", "Settings that are ignored", "Mend or remove it; lamina config lists what there is."),
    "setting-of-tree": ("warning", "Settings a project may not make", "Set it in your own settings, if you want it."),
    "waits-for-trust": ("info", "Settings that wait for your trust", "Start lamina in a terminal there: it shows them and asks."),
    "permission-rule": ("warning", "Permission rules that cannot be read", "Mend the rule: Tool or Tool(specifier)."),
    "answers-damage": ("warning", "Answers of yours that cannot be read", "Remove the file; you are asked again."),
    # sessions
    "damaged-transcript": ("warning", "Transcripts with damaged lines", ""),
    "rescued-records": ("info", "Transcripts whose records had to be rescued", ""),
    "newer-format": ("info", "Written by a newer Lamina", "Upgrade to continue it."),
    "stale-fork": ("info", "Left by a fork that was killed", "Remove it."),
    "not-looked-at": ("info", "Not looked at", "lamina sessions show ID reads one, and says what is wrong with it."),
    # the machine
    "missing-tool": ("info", "Programs that are not installed", ""),
    "no-provider": ("info", "No model is configured", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to talk to a model."),
    "missing-package": ("warning", "Packages that are not installed", ""),
    # anywhere
    "unseen": ("error", "Could not be looked at", ""),
}
# fmt: on
KINDS = {kind: FindingKind(*row) for kind, row in _ROWS.items()}


# What would mend a finding. Each holds what it needs to look again before it acts: things change between a look and a fix.


class PathFix(NamedTuple):
    """Remove temporary files, put right what stopped dreams left, drop a fork that never began, repair a transcript, mend an index."""

    action: Literal["sweep", "put-right", "drop-fork", "repair", "mend-index"]
    path: str  # a file, a directory, or a memory directory


class ToTrash(NamedTuple):
    memory: str
    file: str
    twin: str


class DateIt(NamedTuple):
    memory: str
    file: str


class MakePrivate(NamedTuple):
    paths: tuple[str, ...]


Fix: TypeAlias = PathFix | ToTrash | DateIt | MakePrivate


class Finding(msgspec.Struct, frozen=True):
    """`problem` is one sentence; `line` counts from 1; `advice` stands in for the remedy of its kind."""

    area: Area
    kind: str
    problem: str
    file: str = ""
    line: int | None = None
    fix: Fix | None = None
    advice: str | None = None

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind].severity

    @property
    def remedy(self) -> str:
        return KINDS[self.kind].remedy if self.advice is None else self.advice

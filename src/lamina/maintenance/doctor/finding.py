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
    remedy: str = ""  # what a person does about it, where a finding says nothing else


# fmt: off
KINDS: dict[str, FindingKind] = {
    # memory: the files
    "not-plain": FindingKind("warning", "Not plain files"),
    "not-private": FindingKind(
        "error", "Other users of this machine can look in", "Files should have the mode 0600 and directories 0700."),
    "leftover": FindingKind("info", "Left by a writer that was killed", "They go at the next start, or now."),
    "twin": FindingKind("warning", "Names that are one file on some systems", "Rename one: on some systems they are one file."),
    "unreadable": FindingKind("warning", "Cannot be read", "Check its permissions."),
    "too-many": FindingKind("warning", "Too much to look at"),
    "stray-log": FindingKind("info", "Among the daily logs, and none", "Move it away, or into the memory directory itself."),
    # memory: topics
    "front-matter": FindingKind("warning", "Front matter that cannot be used", "Begin it with name, description and type."),
    "unknown-type": FindingKind("warning", "Unknown types"),
    "no-description": FindingKind("warning", "No description: never chosen", "Say in one line when it helps."),
    "vague-description": FindingKind(
        "warning", "Descriptions that say nothing", "Say in one line what is in it and when it helps."),
    "same-description": FindingKind("warning", "Descriptions that cannot be told apart", "Say what tells them apart."),
    "same-name": FindingKind("warning", "Two memories of one name", "Rename one: only the first is found by its name."),
    "identical": FindingKind("warning", "The same memory twice", "One is enough; the other goes to the trash."),
    "same-body": FindingKind("warning", "The same text under another description", "Keep one, with the better description."),
    "near-duplicate": FindingKind("info", "Nearly the same text", "Merge them, if they mean the same."),
    "empty-body": FindingKind("info", "Memories without a text", "Write what it is about, or remove it."),
    "oversize": FindingKind("warning", "Too long to be useful", "Keep what matters, or split it into several memories."),
    "relative-date": FindingKind("warning", "Dates that lose their meaning", "Put the date there."),
    "secret": FindingKind(
        "error", "Secrets", "Take it out, and change the secret: it has been on disk and may have been sent to a model."),
    "stale-evidence": FindingKind("warning", "What a memory rests on has changed", "Check whether it still holds."),
    "unverifiable-evidence": FindingKind("info", "Evidence that cannot be checked", "Name files of the project."),
    # memory: the index
    "dead-pointer": FindingKind("warning", "Index lines that lead nowhere", "Remove the line."),
    "leads-out": FindingKind("warning", "Index lines that lead out of memory", "Copy the file into memory, or remove the line."),
    "double-line": FindingKind("warning", "Index lines that stand there twice", "One is enough."),
    "long-line": FindingKind("warning", "Index lines that are too long", "Shorten it: detail belongs into the memory."),
    "index-content": FindingKind("info", "Content in the index", "Make a memory of it: the index is sent with every session."),
    "orphan": FindingKind("warning", "Memories that are not in the index", "Add its line."),
    "index-full": FindingKind("warning", "The index is full"),
    # memory: the journal and the inbox
    "journal-damage": FindingKind(
        "warning", "The history has damaged places", "Nothing to do: later changes are recorded as before."),
    "inbox-damage": FindingKind("warning", "The inbox holds what is no proposal", "Remove it."),
    "cache-damage": FindingKind("info", "A cache that is made again", "Nothing to do."),
    "changed-outside": FindingKind(
        "info", "Changed by another program or by hand", "Look at them; the next change through Lamina records them as they are."),
    "gone-outside": FindingKind("info", "Removed by another program or by hand"),
    "waiting-long": FindingKind("info", "Proposals that wait for a yes"),
    "dream-stopped": FindingKind(
        "warning", "Dreams that were stopped half way", "The next session, or lamina doctor --fix, puts everything back as it was."),
    "dream-long": FindingKind("info", "A dream that runs for long", "lamina dream --kill ends it."),
    # instruction files
    "include": FindingKind("warning", "Includes that were left out", "Mend the path, or take the include out."),
    "waits-for-approval": FindingKind(
        "info", "Includes that wait for your approval", "Start lamina in a terminal: it asks you once."),
    "include-cycle": FindingKind("info", "Includes that go round in a circle", "Take one of the includes out."),
    "too-long": FindingKind(
        "warning", "Instruction files that are cut", "Shorten it, or split it into rules under .claude/rules/."),
    "instruction-file": FindingKind("warning", "Instruction files that are left out", "Mend it, or remove it."),
    "same-instructions": FindingKind("info", "Instruction files with the same text", "Keep one, or make one a link."),
    "hidden-instructions": FindingKind("info", "Instruction files that are not read"),
    # settings
    "setting": FindingKind("warning", "Settings that are ignored", "Mend or remove it; lamina config lists what there is."),
    "setting-of-tree": FindingKind("warning", "Settings a project may not make", "Set it in your own settings, if you want it."),
    "waits-for-trust": FindingKind(
        "info", "Settings that wait for your trust", "Start lamina in a terminal there: it shows them and asks."),
    "permission-rule": FindingKind("warning", "Permission rules that cannot be read", "Mend the rule: Tool or Tool(specifier)."),
    "answers-damage": FindingKind("warning", "Answers of yours that cannot be read", "Remove the file; you are asked again."),
    # sessions
    "damaged-transcript": FindingKind("warning", "Transcripts with damaged lines"),
    "rescued-records": FindingKind("info", "Transcripts whose records had to be rescued"),
    "newer-format": FindingKind("info", "Written by a newer Lamina", "Upgrade to continue it."),
    "stale-fork": FindingKind("info", "Left by a fork that was killed", "Remove it."),
    "not-looked-at": FindingKind("info", "Not looked at", "lamina sessions show ID reads one, and says what is wrong with it."),
    # the machine
    "missing-tool": FindingKind("info", "Programs that are not installed"),
    "no-provider": FindingKind("info", "No model is configured", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to talk to a model."),
    "missing-package": FindingKind("warning", "Packages that are not installed"),
    # anywhere
    "unseen": FindingKind("error", "Could not be looked at"),
}
# fmt: on


# What would mend a finding. Each holds what it needs to look again before it acts: things change between a look and a fix.


class MendIndex(NamedTuple):
    memory: str


class ToTrash(NamedTuple):
    memory: str
    file: str
    twin: str


class DateIt(NamedTuple):
    memory: str
    file: str


class MakePrivate(NamedTuple):
    paths: tuple[str, ...]


class Sweep(NamedTuple):
    directory: str


class DropFork(NamedTuple):
    path: str


class Repair(NamedTuple):
    path: str


class PutRight(NamedTuple):
    """What dreams left that were stopped."""

    memory: str


Fix: TypeAlias = MendIndex | ToTrash | DateIt | MakePrivate | Sweep | DropFork | Repair | PutRight


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


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"

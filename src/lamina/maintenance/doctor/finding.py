"""One thing that is wrong: what, where, how grave, what to do, and what would mend it.

Owns the table of kinds; a kind's id is what programs see in `--json`, so it is never reused for something else. Pure values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

Area: TypeAlias = Literal["memory", "instructions", "settings", "sessions", "machine"]
AREAS: tuple[Area, ...] = ("memory", "instructions", "settings", "sessions", "machine")
# error: something is lost or exposed. warning: something does not work as it should. info: good to know.
Severity: TypeAlias = Literal["error", "warning", "info"]


class Kind(NamedTuple):
    severity: Severity
    title: str  # heads the group of such findings


# fmt: off
KINDS: dict[str, Kind] = {
    # memory: the files
    "not-plain": Kind("warning", "Not plain files"),
    "not-private": Kind("error", "Other users of this machine can look in"),
    "leftover": Kind("info", "Left by a writer that was killed"),
    "twin": Kind("warning", "Names that are one file on some systems"),
    "unreadable": Kind("warning", "Cannot be read"),
    "too-many": Kind("warning", "Too much to look at"),
    "stray-log": Kind("info", "Among the daily logs, and none"),
    # memory: topics
    "front-matter": Kind("warning", "Front matter that cannot be used"),
    "unknown-type": Kind("warning", "Unknown types"),
    "no-description": Kind("warning", "No description: never chosen"),
    "vague-description": Kind("warning", "Descriptions that say nothing"),
    "same-description": Kind("warning", "Descriptions that cannot be told apart"),
    "same-name": Kind("warning", "Two memories of one name"),
    "identical": Kind("warning", "The same memory twice"),
    "same-body": Kind("warning", "The same text under another description"),
    "near-duplicate": Kind("info", "Nearly the same text"),
    "empty-body": Kind("info", "Memories without a text"),
    "oversize": Kind("warning", "Too long to be useful"),
    "relative-date": Kind("warning", "Dates that lose their meaning"),
    "secret": Kind("error", "Secrets"),
    "stale-evidence": Kind("warning", "What a memory rests on has changed"),
    "unverifiable-evidence": Kind("info", "Evidence that cannot be checked"),
    # memory: the index
    "dead-pointer": Kind("warning", "Index lines that lead nowhere"),
    "leads-out": Kind("warning", "Index lines that lead out of memory"),
    "double-line": Kind("warning", "Index lines that stand there twice"),
    "long-line": Kind("warning", "Index lines that are too long"),
    "index-content": Kind("info", "Content in the index"),
    "orphan": Kind("warning", "Memories that are not in the index"),
    "index-full": Kind("warning", "The index is full"),
    # memory: the journal and the inbox
    "journal-damage": Kind("warning", "The history has damaged places"),
    "inbox-damage": Kind("warning", "The inbox holds what is no proposal"),
    "cache-damage": Kind("info", "A cache that is made again"),
    "changed-outside": Kind("info", "Changed by another program or by hand"),
    "gone-outside": Kind("info", "Removed by another program or by hand"),
    "waiting-long": Kind("info", "Proposals that wait for a yes"),
    "dream-stopped": Kind("warning", "Dreams that were stopped half way"),
    "dream-long": Kind("info", "A dream that runs for long"),
    # instruction files
    "include": Kind("warning", "Includes that were left out"),
    "waits-for-approval": Kind("info", "Includes that wait for your approval"),
    "include-cycle": Kind("info", "Includes that go round in a circle"),
    "too-long": Kind("warning", "Instruction files that are cut"),
    "instruction-file": Kind("warning", "Instruction files that are left out"),
    "same-instructions": Kind("info", "Instruction files with the same text"),
    "hidden-instructions": Kind("info", "Instruction files that are not read"),
    # settings
    "setting": Kind("warning", "Settings that are ignored"),
    "setting-of-tree": Kind("warning", "Settings a project may not make"),
    "waits-for-trust": Kind("info", "Settings that wait for your trust"),
    "permission-rule": Kind("warning", "Permission rules that cannot be read"),
    "answers-damage": Kind("warning", "Answers of yours that cannot be read"),
    # sessions
    "damaged-transcript": Kind("warning", "Transcripts with damaged lines"),
    "rescued-records": Kind("info", "Transcripts whose records had to be rescued"),
    "newer-format": Kind("info", "Written by a newer Lamina"),
    "stale-fork": Kind("info", "Left by a fork that was killed"),
    "not-looked-at": Kind("info", "Not looked at"),
    # the machine
    "missing-tool": Kind("info", "Programs that are not installed"),
    "no-provider": Kind("info", "No model is configured"),
    "missing-package": Kind("warning", "Packages that are not installed"),
    # anywhere
    "unseen": Kind("error", "Could not be looked at"),
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
    """`problem` is one sentence, `remedy` says what a person does about it; `line` counts from 1."""

    area: Area
    kind: str
    problem: str
    remedy: str = ""
    file: str = ""
    line: int | None = None
    fix: Fix | None = None

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind].severity

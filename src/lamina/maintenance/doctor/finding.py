"""A finding: the problem, its place and severity, what to do, and the fix if there is one.

Owns the table of kinds. A kind's id appears in `--json`, so it is never reused for something else. Pure values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

Area: TypeAlias = Literal["memory", "instructions", "settings", "sessions", "machine"]
AREAS: tuple[Area, ...] = get_args(Area)
# error: data is lost or exposed. warning: something does not work as it should. info: good to know.
Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class FindingKind(NamedTuple):
    severity: Severity
    title: str  # heading of the group
    remedy: str  # what to do, unless a finding has its own advice


# Severity, title, remedy. Kinds without a remedy have advice in each finding.
# fmt: off
_ROWS: dict[str, tuple[Severity, str, str]] = {
    # memory: the files
    "not-plain": ("warning", "Not regular files", ""),
    "not-private": ("error", "Accessible to other users of this machine", "Use mode 0600 for files and 0700 for directories."),
    "leftover": ("info", "Temporary files of a killed process", "They are removed at the next start, or now with --fix."),
    "twin": ("warning", "Names that clash on some systems", "Rename one: some file systems treat them as the same file."),
    "unreadable": ("warning", "Unreadable", "Check its permissions."),
    "too-many": ("warning", "Too many files to check", ""),
    "stray-log": ("info", "Not a daily log", "Move it elsewhere, or into the memory directory itself."),
    # memory: topics
    "hidden-text": ("warning", "Invisible characters", "Save the memory again to remove them."),
    "front-matter": ("warning", "Invalid front matter", "Start the file with name, description and type."),
    "unknown-type": ("warning", "Unknown types", ""),
    "no-description": ("warning", "No description", "Add one line that says when the memory is useful."),
    "vague-description": ("warning", "Vague descriptions", "Describe in one line what it contains and when it is useful."),
    "same-description": ("warning", "Identical descriptions", "Make the descriptions distinguishable."),
    "same-name": ("warning", "Duplicate names", "Rename one: only the first is found by its name."),
    "identical": ("warning", "Duplicate memories", "Keep one; --fix moves the other to the trash."),
    "same-body": ("warning", "Same text, different description", "Keep the one with the better description."),
    "near-duplicate": ("info", "Nearly the same text", "Merge them if they mean the same."),
    "contradiction": (
        "info", "Memories that contradict each other", "Correct or remove the wrong one. A dream without a model asks about it."),
    "empty-body": ("info", "Memories without text", "Add a text, or remove the memory."),
    "oversize": ("warning", "Too long to be useful", "Shorten it, or split it into several memories."),
    "relative-date": ("warning", "Relative dates", "Replace it with the date."),
    "secret": ("error", "Secrets", "Remove it and rotate the secret: it was stored on disk and may have been sent to a model."),
    "stale-evidence": ("warning", "Changed evidence", "Check whether the memory is still correct."),
    "unverifiable-evidence": ("info", "Evidence that cannot be checked", "Refer to files of the project."),
    # memory: the index
    "dead-pointer": ("warning", "Index lines to missing files", "Remove the line."),
    "leads-out": ("warning", "Index lines to files outside memory", "Copy the file into memory, or remove the line."),
    "double-line": ("warning", "Duplicate index lines", "Remove one."),
    "long-line": ("warning", "Index lines that are too long", "Shorten it: details belong in the memory."),
    "index-content": ("info", "Content in the index", "Move it to a memory: the index is sent with every session."),
    "orphan": ("warning", "Memories that are not in the index", "Add a line for it."),
    "unlisted": ("info", "Memories beyond the index", "Nothing to do: recall and search find them."),
    "index-full": ("warning", "The index is full", ""),
    # memory: the journal and the inbox
    "journal-damage": ("warning", "Damaged history", "Nothing to do: later changes are recorded as before."),
    "inbox-damage": ("warning", "Invalid files in the inbox", "Remove it."),
    "cache-damage": ("info", "Damaged cache", "Nothing to do: it is rebuilt."),
    "changed-outside": (
        "info", "Changed outside Lamina", "Review them; the next change through Lamina records their current content."),
    "gone-outside": ("info", "Removed outside Lamina", ""),
    "waiting-long": ("info", "Pending memory changes", ""),
    "dream-stopped": (
        "warning", "Interrupted dreams", "The next session, or `lamina doctor --fix`, restores the memories."),
    "dream-long": ("info", "Long-running dream", "Run `lamina dream --kill` to stop it."),
    # instruction files
    "include": ("warning", "Skipped includes", "Correct the path, or remove the include."),
    "waits-for-approval": ("info", "Includes that need your approval", "Start lamina in a terminal: it asks you once."),
    "include-cycle": ("info", "Circular includes", "Remove one of the includes."),
    "too-long": ("warning", "Truncated instruction files", "Shorten it, or split it into rules under .claude/rules/."),
    "instruction-file": ("warning", "Skipped instruction files", "Correct or remove it."),
    "same-instructions": ("info", "Instruction files with the same text", "Keep one, or replace one with a link."),
    "hidden-instructions": ("info", "Instruction files that are not read", ""),
    # settings
    "setting": ("warning", "Ignored settings", "Correct or remove it. Run `lamina config` to list the settings."),
    "setting-of-tree": ("warning", "Settings a project may not set", "Add it to your own settings if you want it."),
    "waits-for-trust": ("info", "Settings that need your trust", "Start lamina in a terminal there: it shows them and asks."),
    "permission-rule": ("warning", "Invalid permission rules", "Use the form Tool or Tool(specifier)."),
    "answers-damage": ("warning", "Unreadable approvals", "Remove the file; you will be asked again."),
    # sessions
    "damaged-transcript": ("warning", "Transcripts with damaged lines", ""),
    "rescued-records": ("info", "Damaged transcripts with all records recovered", ""),
    "odd-tree": ("info", "Transcripts with duplicate ids or cycles of parents", "Nothing to do: all records are read."),
    "newer-format": ("info", "Written by a newer Lamina", "Upgrade to continue it."),
    "stale-fork": ("info", "Left by a fork that was killed", "Remove it."),
    "unfinished-forget": (
        "error", "Unfinished forgets", "Close open sessions and run `lamina forget --resume`, or use --fix."),
    "not-looked-at": ("info", "Not checked", "Run `lamina sessions show ID` to check a session."),
    "source": ("info", "Sessions of other agents", "`lamina sessions list` shows them. Turn them off with LAMINA_SOURCES=0."),
    "source-unread": ("warning", "Directories of other agents that cannot be read", "Check the permissions of the directory."),
    "source-damaged": ("info", "Damaged sessions of other agents", "Nothing to do: Lamina reads the other lines and changes nothing."),
    # the machine
    "not-writable": (
        "error", "Directories that cannot be written", "Check its owner, permissions and mount, or set LAMINA_HOME to another directory."),
    "disk-full": ("error", "The disk is full or almost full", "Free some space: memories and sessions cannot be saved without it."),
    "missing-tool": ("info", "Programs that are not installed", ""),
    "no-provider": ("info", "No model is configured", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model."),
    "missing-package": ("warning", "Packages that are not installed", ""),
    "plugin": ("info", "Lamina in other agents", "`lamina uninstall AGENT` takes it out."),
    "plugin-outdated": ("warning", "Lamina in other agents that is out of date", ""),
    "plugin-hooks": (
        "warning", "Skipped or slow hooks of Lamina", "Memories were missing there. `lamina install claude-code` sets new time limits."),
    # anywhere
    "unseen": ("error", "Could not be checked", ""),
}
# fmt: on
KINDS = {kind: FindingKind(*row) for kind, row in _ROWS.items()}


# The fixes. Each has what it needs to check again before it acts, since files may change between the check and the fix.


class PathFix(NamedTuple):
    """Remove temporary files, recover interrupted dreams, finish a forget, drop a fork that never began, or repair a transcript or
    index."""

    action: Literal["sweep", "put-right", "finish-forget", "drop-fork", "repair", "mend-index"]
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
    """`problem` is one sentence; `line` counts from 1; `advice` replaces the remedy of its kind."""

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

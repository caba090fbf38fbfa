"""The instruction files of a session: each resolved path and each content once, followed by its includes, bounded in size.

`InstructionLoader` lives for one load. It reads and changes nothing on the disk. A file that cannot be used becomes one
sentence in `findings`, and the others still count: a broken file never keeps a session from starting. The same files give
the same result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

import msgspec

from ..core.fence import escape
from ..core.settings.kinds import printable
from ..language.invisible import remove_invisible
from .includes import (
    DEEPEST,
    ForbiddenInclude,
    IncludeReach,
    IncludeTarget,
    find_includes,
    judge_include,
    meant_as_file,
    resolve,
    target_of,
    without_comments,
)
from .rules import InstructionKind, ScopedRule, matches, read_scope
from .safe_read import UnusableFile, read_text

# True: load it. False: the user refused. None: not decided yet.
Approved: TypeAlias = Callable[[Path], bool | None] | Collection[Path]

# Models do not follow more than ten thousand tokens of instructions.
MOST_CHARACTERS = 40_000
# For all files together: half of the default window.
MOST_IN_ALL = 400_000
# Counts opened files, used or not: more than anyone can keep track of, and still read in a fraction of a second.
MOST_FILES = 200
MOST_FINDINGS = 100
LONGEST_PATH = 4_096


class InstructionFile(msgspec.Struct, frozen=True):
    path: Path  # where it was found
    real_path: Path
    kind: InstructionKind
    text: str
    included_from: Path | None = None
    truncated: bool = False


class PendingFile(msgspec.Struct, frozen=True):
    """A file outside the project that waits for the user's approval."""

    real_path: Path
    spelled: str
    included_from: Path | None  # None if an instruction file is itself a link


class Instructions(msgspec.Struct, frozen=True):
    files: tuple[InstructionFile, ...] = ()
    pending: tuple[PendingFile, ...] = ()
    scoped: tuple[ScopedRule, ...] = ()
    findings: tuple[str, ...] = ()


class InView(msgspec.Struct, frozen=True):
    """The instruction files in the model's view: their paths as shown, and digests of their texts as sent."""

    paths: frozenset[str] = frozenset()
    digests: frozenset[bytes] = frozenset()


NOTHING_IN_VIEW = InView()


class WantedFile(msgspec.Struct, frozen=True):
    """A file to load, with the context it is loaded in."""

    target: IncludeTarget
    kind: InstructionKind
    reach: IncludeReach
    spelled: str
    included_from: Path | None = None
    depth: int = 0
    base: Path | None = None  # a rule's globs are relative to this; None loads the file whatever its front matter says
    guarded: bool = False  # skip files that belong to other users


def shown(path: Path) -> str:
    """Format a path as one line that cannot close a fence."""
    return escape(printable(str(path), LONGEST_PATH))


def digest(text: str) -> bytes:
    return blake2b(escape(text).encode("utf-8", "replace"), digest_size=16).digest()


class InstructionLoader:
    def __init__(
        self,
        *,
        person: Path | None,
        excludes: Sequence[str],
        approved: Approved,
        already: InView = NOTHING_IN_VIEW,
        passed_over: Path | None = None,
    ) -> None:
        self._person = person
        self._excludes = [_anywhere(pattern, person) for pattern in excludes]
        self._approved: Callable[[Path], bool | None] = approved if callable(approved) else lambda real: real in approved or None
        self._already = already
        self._files: list[InstructionFile] = []
        self._pending: dict[Path, PendingFile] = {}
        self.scoped: list[ScopedRule] = []
        self._findings: dict[str, None] = {}
        self._taken = {passed_over}
        self._opened = 0
        self._digests: set[bytes] = set(already.digests)

    def result(self) -> Instructions:
        files = self._within_budget()
        return Instructions(files, tuple(self._pending.values()), tuple(self.scoped), tuple(self._findings))

    def add(
        self, path: Path, kind: InstructionKind, reach: IncludeReach, *, base: Path | None = None, guarded: bool = False
    ) -> bool:
        """Load the file at `path` and its includes. Return False if the file does not exist."""
        if not os.path.exists(path):
            return False
        self._take(WantedFile(target_of(path), kind, reach, str(path), base=base, guarded=guarded))
        return True

    def _take(self, wanted: WantedFile) -> None:
        path, real = wanted.target.path, wanted.target.real
        excludes = self._excludes if wanted.kind != "managed" else ()
        excluded = any(matches(pattern, place.as_posix()) for pattern in excludes for place in (path, real))
        if real in self._taken or excluded or not self._may_load(wanted):
            return
        if self._opened == MOST_FILES:
            self._find(f"More than {MOST_FILES} instruction files were found; the rest is left out. Remove or exclude some.")
            return
        content = read_text(real)
        self._opened += content is not None
        if content is None:
            self._complain(wanted, "does not exist")
        elif isinstance(content, UnusableFile):
            self._complain(wanted, content.problem)
        else:
            self._taken.add(real)
            # Above the project, for example in /tmp, anyone may have created the file, so only those of the current user and of the
            # system count.
            if wanted.guarded and hasattr(os, "getuid") and not _owners(path, content.owner) <= {os.getuid(), 0}:
                self._find(f"{shown(path)} belongs to another user and is above the project; it is left out.")
            else:
                self._keep(wanted, content.text)

    def _may_load(self, wanted: WantedFile) -> bool:
        real = wanted.target.real
        verdict = judge_include(real, wanted.reach)
        if isinstance(verdict, ForbiddenInclude):
            self._find(f"{shown(real)} {verdict.problem} and is never loaded for a project{_named_in(wanted)}.")
            return False
        answer = verdict == "load" or self._approved(real)
        # A missing file needs no approval: the finding reports it.
        if answer is None and os.path.isfile(real):
            self._pending.setdefault(real, PendingFile(real, wanted.spelled, wanted.included_from))
            self._find(f"{shown(real)} is outside the project and waits for approval{_named_in(wanted)}.")
        elif answer is None:
            self._complain(wanted, "does not exist")
        return answer is True

    def _complain(self, wanted: WantedFile, problem: str) -> None:
        """Report an unusable file. A word after @ may be a user name, so an include is reported only if it is meant as a
        file."""
        if wanted.included_from is None or meant_as_file(wanted.spelled):
            self._find(f"{shown(wanted.target.path)} {problem}; it is left out{_named_in(wanted)}.")

    def _find(self, sentence: str) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings[sentence] = None

    def _keep(self, wanted: WantedFile, raw: str) -> None:
        path, real = wanted.target.path, wanted.target.real
        scope = read_scope(raw)
        if scope.problem is not None and wanted.base is not None:
            self._find(f"{shown(path)}: its front matter {scope.problem}; the rule applies to all files.")
        if scope.globs and wanted.base is not None:
            self.scoped.append(ScopedRule(path, wanted.kind, wanted.base, scope.globs))
            self._taken.discard(real)
            return
        text, truncated = self._prepared(path, scope.text)
        file = InstructionFile(path, real, wanted.kind, text, wanted.included_from, truncated)
        in_view = bool(self._already.paths) and shown(path) in self._already.paths
        if text and not in_view and digest(text) not in self._digests:
            self._digests.add(digest(text))
            self._files.append(file)
        self._include(wanted, text)

    def _prepared(self, path: Path, raw: str) -> tuple[str, bool]:
        text = without_comments(raw).strip()
        if (plain := remove_invisible(text)) != text:
            text = plain
            self._find(f"{shown(path)} contains invisible characters; they are removed.")
        if len(text) <= MOST_CHARACTERS:
            return text, False
        head = text[:MOST_CHARACTERS]
        end = head.rfind("\n")
        # At a line end, unless that would lose most of the text: a long last line is cut inside.
        inside = end <= MOST_CHARACTERS // 2
        cut = (head if inside else head[:end]).rstrip()
        where = ", cut inside a line" if inside else ""
        self._find(
            f"{shown(path)} has {len(text):,} characters; only {len(cut):,} are sent{where}. Shorten it or split it into rules."
        )
        return f"{cut}\n\n[Cut here: {len(cut):,} of {len(text):,} characters. The rest is in the file.]", True

    def _include(self, wanted: WantedFile, text: str) -> None:
        """Load the includes of a file. The user's own file may include anything; once the chain enters the project, the
        project's limits apply."""
        path, real = wanted.target.path, wanted.target.real
        reach = wanted.reach
        if real.is_relative_to(reach.project) and wanted.included_from is not None:
            reach = IncludeReach(reach.project, (reach.project,))
        for spelled in find_includes(text):
            target = resolve(spelled, beside=path.parent, person=self._person)
            if target is None:
                self._find(f"{spelled}: the home directory is unknown; the file is left out (named in {shown(path)}).")
            elif wanted.depth == DEEPEST:
                if target.real not in self._taken and meant_as_file(spelled):
                    self._find(f"{shown(target.path)} is included more than {DEEPEST} levels deep; it is left out.")
            else:
                self._take(WantedFile(target, wanted.kind, reach, spelled, path, wanted.depth + 1))

    def _within_budget(self) -> tuple[InstructionFile, ...]:
        """Keep the files that count most: managed files, then the others from the last one back."""
        managed = [file for file in self._files if file.kind == "managed"]
        others = [file for file in self._files if file.kind != "managed"]
        room = MOST_IN_ALL
        fitting: set[Path] = set()
        for file in [*managed, *reversed(others)]:
            if len(file.text) <= room:
                room -= len(file.text)
                fitting.add(file.path)
            else:
                self._find(f"{shown(file.path)} is left out: all instruction files together exceed {MOST_IN_ALL:,} characters.")
        files = tuple(file for file in self._files if file.path in fitting)
        if (whole := MOST_IN_ALL - room) > MOST_CHARACTERS and len(files) > 1:
            largest = max(files, key=lambda file: len(file.text))
            self._find(
                f"The {len(files):,} instruction files have {whole:,} characters in all, more than {MOST_CHARACTERS:,}. "
                f"Models follow fewer better. The largest is {shown(largest.path)} ({len(largest.text):,} characters)."
            )
        return files


def _anywhere(pattern: str, person: Path | None) -> str:
    """Make a relative pattern match at any depth."""
    if pattern.startswith("~/") and person is not None:
        return f"{person.as_posix()}/{pattern[2:]}"
    return pattern if pattern.startswith(("/", "**/")) or re.match(r"[A-Za-z]:[/\\]", pattern) else f"**/{pattern}"


def _owners(path: Path, owner: int) -> set[int]:
    """Return the owners of the file and of the link that leads to it."""
    try:
        return {owner, os.lstat(path).st_uid}
    except OSError:
        return {owner}


def _named_in(wanted: WantedFile) -> str:
    return f" (named in {shown(wanted.included_from)})" if wanted.included_from is not None else ""

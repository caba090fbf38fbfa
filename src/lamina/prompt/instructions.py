"""Discovery of instruction files in order of precedence, and of the ones a Read brings in later.

From low to high: managed files, the user's files, the project's files from the file system root down to the working
directory, local files. The memory index follows in the reminder. Files are found by fixed names, so a load costs one lookup
per name and directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.claude_home import HOME_NAME
from .includes import IncludeReach
from .instruction_files import NOTHING_IN_VIEW, Approved, InstructionLoader, Instructions, InView
from .rules import InstructionKind, ScopedRule, rule_files, rules_for

MANAGED = Path("/etc/lamina")
CLAUDE_CODE = "claude-code"  # its directory beside MANAGED
NAMES = ("CLAUDE.md", "AGENTS.md")
LOCAL_NAMES = ("CLAUDE.local.md", "AGENTS.local.md")


def load_instructions(
    *,
    cwd: Path,
    home: Path | None,
    managed: Path = MANAGED,
    person: Path | None = None,
    excludes: Sequence[str] = (),
    approved: Approved = (),
) -> Instructions:
    """Load the instructions a session starts with. `home` is Lamina's directory and `person` the directory that `~` stands
    for. `excludes` are globs; they don't apply to managed files."""
    root = Path(os.path.realpath(cwd))
    project = project_of(root, person)
    loader = InstructionLoader(person=person, excludes=excludes, approved=approved)
    own = IncludeReach(project, (), exempt=True)
    if home is not None and home.name == HOME_NAME:
        loader.add(managed.with_name(CLAUDE_CODE) / NAMES[0], "managed", own)
    _add_first(loader, managed, "managed", own)
    if home is not None:
        _add_first(loader, home, "user", own)
        for rule in rule_files(home / "rules"):
            loader.add(rule, "user", own, base=root)
    _add_directories(loader, [*reversed(root.parents), root], project)
    return loader.result()


def nested_for(
    read_path: Path,
    *,
    cwd: Path,
    person: Path | None = None,
    excludes: Sequence[str] = (),
    approved: Approved = (),
    rules: Sequence[ScopedRule] = (),
    already: InView = NOTHING_IN_VIEW,
) -> Instructions:
    """Load what reading a file brings in: instruction files between the working directory and the file, and rules whose
    globs match it. `rules` come from the first load; `already` is what the model has in view."""
    root, real = Path(os.path.realpath(cwd)), Path(os.path.realpath(read_path))
    project = project_of(root, person)
    loader = InstructionLoader(person=person, excludes=excludes, approved=approved, already=already, passed_over=real)
    _add_directories(loader, list(_between(root, real.parent)), project)
    for rule in rules_for((*rules, *loader.scoped), real):
        own = IncludeReach(project, (), exempt=True)
        loader.add(rule.path, rule.kind, own if rule.kind == "user" else _reach(rule.base, project)[0])
    return loader.result()


def project_of(place: Path, person: Path | None) -> Path:
    """Return the top of the working tree that contains a resolved path, or the directory itself. A repository that contains
    the user's whole home directory does not count as a project, because every file of theirs would lie inside."""
    for directory in (place, *place.parents):
        if (directory / ".git").exists():
            holds_home = person is not None and Path(os.path.realpath(person)).is_relative_to(directory)
            return place if holds_home else directory
    return place


def _add_directories(loader: InstructionLoader, directories: Sequence[Path], project: Path) -> None:
    """Add the project files of all directories, then the local files."""
    for directory in directories:
        reach, guarded = _reach(directory, project)
        _add_first(loader, directory, "project", reach, guarded=guarded)
        if (directory / ".claude").is_dir():
            loader.add(directory / ".claude" / NAMES[0], "project", reach, guarded=guarded)
            for rule in rule_files(directory / ".claude" / "rules"):
                loader.add(rule, "project", reach, base=directory, guarded=guarded)
    for directory in directories:
        reach, guarded = _reach(directory, project)
        for name in LOCAL_NAMES:
            loader.add(directory / name, "local", reach, guarded=guarded)


def _reach(directory: Path, project: Path) -> tuple[IncludeReach, bool]:
    """Return what the files of a directory may include, and whether it is above the project. Such a directory may also
    load files beside and below it."""
    above = not directory.is_relative_to(project)
    return IncludeReach(project, (project, directory) if above else (project,)), above


def _add_first(
    loader: InstructionLoader, directory: Path, kind: InstructionKind, reach: IncludeReach, *, guarded: bool = False
) -> None:
    """Add the first of NAMES that exists."""
    any(loader.add(directory / name, kind, reach, guarded=guarded) for name in NAMES)


def _between(root: Path, directory: Path) -> Iterator[Path]:
    """Yield the directories from below `here` down to `directory`."""
    if directory.is_relative_to(root):
        for part in directory.relative_to(root).parts:
            root = root / part
            yield root

"""Check instruction files: skipped includes, truncated files, duplicates, circular includes (I1–I3).

The loader reports what it skipped. This check finds what it handles silently: a cycle it cut, a duplicate text it sends once, a
file that another one hides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.home.approvals import FILE_NAME, Approvals, load_approvals
from ...prompt.includes import find_includes, resolve, without_comments
from ...prompt.instruction_files import InstructionFile, Instructions, digest
from ...prompt.instructions import LOCAL_NAMES, NAMES, load_instructions, project_of
from ...prompt.safe_read import FileText, read_text
from .finding import Finding

_NAMED_IN = re.compile(r" \(named in (?P<file>.+)\)\.\Z")
# Marks the end of the path at the beginning of a loader message.
_BEHIND_PATH = re.compile(r" (?:is|does|has|lies|contains|holds|belongs|can't|may|exceeds)\b|: ")
# Part of a loader message → kind; any other message is about a skipped instruction file.
_KINDS = {
    "waits for approval": "waits-for-approval",
    "characters; ": "too-long",
    "levels deep": "include",
    "(named in ": "include",
}


def check_instructions(
    *, cwd: Path, home: Path | None, person: Path | None, settings: Settings, managed: Path
) -> Iterator[Finding]:
    approvals = Approvals()
    if home is not None:
        try:
            approvals = load_approvals(home, project_of(Path(os.path.realpath(cwd)), person))
        except DiskError as error:
            text = f"Your answers about included files cannot be read: {error.problem}."
            advice = "Correct or remove the file; you will be asked again."
            yield Finding("instructions", "answers-damage", text, str(home / FILE_NAME), advice=advice)
    found = load_instructions(
        cwd=cwd, home=home, managed=managed, person=person, excludes=settings.instruction_excludes, approved=approvals.answer
    )
    for sentence in found.findings:
        yield _told(sentence)
    yield from _circles(found, person)
    yield from _doubles(found, cwd)


def _told(sentence: str) -> Finding:
    part, kind = next(((part, kind) for part, kind in _KINDS.items() if part in sentence), ("", "instruction-file"))
    named, end = _NAMED_IN.search(sentence), _BEHIND_PATH.search(sentence)
    file = named["file"] if named else sentence[: end.start()] if end else ""
    advice = "Include it closer to the top level." if part == "levels deep" else None
    return Finding("instructions", kind, sentence, file if os.path.isabs(file) else "", advice=advice)


def _circles(found: Instructions, person: Path | None) -> Iterator[Finding]:
    by_path = {file.path: file for file in found.files}
    for file in found.files:
        above = dict(_includers(file, by_path))
        for spelled in find_includes(file.text):
            target = resolve(spelled, beside=file.path.parent, person=person)
            if target is not None and target.real in above:
                text = f"{file.path} includes {above[target.real]}, which includes it as well; each is sent once."
                text = f"{file.path} includes itself; it is sent once." if target.real == file.real_path else text
                yield Finding("instructions", "include-cycle", text, str(file.path))


def _includers(file: InstructionFile, by_path: Mapping[Path, InstructionFile]) -> Iterator[tuple[Path, Path]]:
    """Yield the file and the chain of files that include it; includes are at most five levels deep."""
    here: InstructionFile | None = file
    while here is not None:
        yield here.real_path, here.path
        here = by_path.get(here.included_from) if here.included_from is not None else None


def _doubles(found: Instructions, cwd: Path) -> Iterator[Finding]:
    sent = {digest(file.text): file for file in found.files}
    loaded = {file.real_path for file in found.files}
    here = Path(os.path.realpath(cwd))
    for directory in (here, *here.parents):
        for name in (*NAMES, f".claude/{NAMES[0]}", *LOCAL_NAMES):
            path, real = directory / name, Path(os.path.realpath(directory / name))
            text = read_text(real) if real not in loaded else None
            if not isinstance(text, FileText) or not text.text.strip():
                continue
            twin = sent.get(digest(without_comments(text.text).strip()))
            if twin is not None:
                problem = f"{path} has the same text as {twin.path}; it is sent only once."
                yield Finding("instructions", "same-instructions", problem, str(path))
            elif name == NAMES[1] and Path(os.path.realpath(directory / NAMES[0])) in loaded:
                problem = f"{path} is not read, because {NAMES[0]} in the same directory takes precedence."
                advice = f"Add @{name} to {NAMES[0]} to use both."
                yield Finding("instructions", "hidden-instructions", problem, str(path), advice=advice)

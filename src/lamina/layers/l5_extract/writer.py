"""The keeper that approves every Write and Edit of a review: guard first, then the store.

Owns what one run may write: memory files only, no index, no removals, at most MOST_FILES files and MOST_BYTES in total. Invariants: it
decides about every path, so the tools never write by themselves; every refusal is one sentence for the model, and is counted; what the
run itself looked up is data like everything before it; its reports contain no secrets. Crashes: the store writes each file completely
or not at all, and files saved by a killed run stay saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ...disk.paths.file_names import fold
from ...fork.tool_runner import CompletedCall
from ...memory.guard.judgement import AcceptedMemory, RefusedMemory, WantedMemory
from ...memory.guard.sources import ForeignText, Sources, strip_line_numbers
from ...memory.store.contract import ChangeReason
from ...memory.store.scopes import TEAM, MemoryLocation
from ...memory.store.secrets import redact
from ...memory.store.topic import INDEX
from ...memory.tool_writes import MemoryFile, WriteOutcome, find_memory_file
from ...tools.tool import FileChange, KeeperVerdict
from .guard import GONE, ExistingMemory, judge_review
from .trigger import EXTRACTION

# A turn contains one or two things worth keeping; a model that writes more files is copying.
MOST_FILES = 8
# Eight pages: a memory is a paragraph or two.
MOST_BYTES = 32 << 10
# A refused memory may be improved once or twice, but checking it costs too.
MOST_TRIES = 4

_WRITERS = frozenset({"Write", "Edit"})
ELSEWHERE = "A review may only write memory files: names that end in .md, in the memory directory."
NO_INDEX = f"A review cannot write {INDEX}: its lines are generated from each memory's name and description."
NO_REMOVAL = "A review cannot remove memories; only the user can. Correct the memory or leave it."
TOO_MANY = f"The limit of {MOST_FILES} files per review is reached."
TOO_OFTEN = "Too many changes were refused in this review. Stop here."
TOO_LARGE = f"A review may write at most {MOST_BYTES >> 10} KiB in total. Shorten the memory to a few sentences."

Store: TypeAlias = Callable[[FileChange, ChangeReason], WriteOutcome | None]


class MemoriesWritten(NamedTuple):
    """The result of a run: the saved memories' names by file, the number of pending changes, the refusals, and the notices."""

    saved: dict[str, str]
    waiting: int
    refused: tuple[str, ...]
    notices: tuple[str, ...]


class ReviewWriter:
    def __init__(
        self,
        place: MemoryLocation,
        store: Store,
        session: str,
        heard: Sources,
        there: Sequence[ExistingMemory],
        cwd: Path = Path(),
    ) -> None:
        self._place = place
        self._cwd = cwd
        self._found: list[ForeignText] = []
        self._known: list[str] = []
        self._first = frozenset(known.file for known in there)
        self._tried = 0
        self._store = store
        self._session = session
        self._heard = heard
        self._there = list(there)
        self._files: set[Path] = set()
        self._size = 0
        self._saved: dict[str, str] = {}
        self._refused: list[str] = []
        self._notices: list[str] = []
        self._waiting = 0

    def __call__(self, change: FileChange) -> KeeperVerdict:
        verdict = self._judge(change)
        if isinstance(verdict, RefusedMemory):
            why_not = redact(verdict.why).text
            self._refused.append(why_not)
            return KeeperVerdict(why_not, is_error=True)
        why = ChangeReason(EXTRACTION, redact(verdict.why).text, self._session, verdict.message, origin=verdict.origin)
        done = self._store(change._replace(data=verdict.text.encode("utf-8", "replace")), why)
        if done is None:
            return KeeperVerdict(ELSEWHERE, is_error=True)
        self._files.add(change.path)
        self._size += len(verdict.text.encode("utf-8", "replace"))
        self._record(change, verdict, done)
        return KeeperVerdict(done.said, done.data, done.is_error, done.beside, done.facts)

    def _judge(self, change: FileChange) -> AcceptedMemory | RefusedMemory:
        found = find_memory_file(self._place, change.path) if ".." not in change.path.parts else None
        if found is None:
            return RefusedMemory(ELSEWHERE)
        if (problem := self._check_limits(change, found)) is not None:
            return RefusedMemory(problem)
        file = _listed_name(found)
        if change.before is None and file in self._first:
            return RefusedMemory(GONE.format(file=file))
        self._tried += len(change.data)
        text = change.data.decode("utf-8", "replace")
        before = change.before.decode("utf-8", "replace") if change.before is not None else None
        heard = self._heard._replace(data=(*self._heard.data, *self._found), known=(*self._heard.known, *self._known))
        return judge_review(WantedMemory(file, text, before), heard, self._there, self._is_gone)

    def saw(self, ran: CompletedCall) -> None:
        """Note what the run looked up; callable from any thread. Only Read tells which file it showed. All other results may
        contain memories, so they count as known, like the memory files."""
        if ran.call.name in _WRITERS:
            return
        text = strip_line_numbers(ran.result.text)
        self._found.append(ForeignText(text, f"tool {ran.call.name}"))
        given = ran.call.input if isinstance(ran.call.input, dict) else {}
        path = given.get("file_path")
        if ran.call.name != "Read" or not isinstance(path, str) or find_memory_file(self._place, self._cwd / path) is not None:
            self._known.append(text)

    def _is_gone(self, file: str) -> bool:
        team = self._place.team
        inside = team is not None and file.startswith(f"{TEAM}/")
        path = team / file.removeprefix(f"{TEAM}/") if team is not None and inside else self._place.path / file
        return not path.exists()

    def _check_limits(self, change: FileChange, found: MemoryFile) -> str | None:
        if fold(found.file) == fold(INDEX):
            return NO_INDEX
        if not change.data.strip():
            return NO_REMOVAL
        if change.path not in self._files and len(self._files) >= MOST_FILES:
            return TOO_MANY
        if self._tried > MOST_TRIES * MOST_BYTES or len(self._refused) > MOST_TRIES * MOST_FILES:
            return TOO_OFTEN
        return TOO_LARGE if self._size + len(change.data) > MOST_BYTES else None

    def _record(self, change: FileChange, accepted: AcceptedMemory, done: WriteOutcome) -> None:
        if done.is_error:
            self._refused.append(redact(done.said).text)
        elif done.data is None:
            self._waiting += 1
            self._notices += [done.notice] if done.notice else []
        elif done.data != change.before:
            self._saved[redact(str(done.path or change.path)).text] = redact(accepted.topic.name).text
            self._there.append(ExistingMemory(accepted.topic.file, accepted.topic.description))

    @property
    def outcome(self) -> MemoriesWritten:
        return MemoriesWritten(dict(self._saved), self._waiting, tuple(self._refused), tuple(self._notices))


def _listed_name(found: MemoryFile) -> str:
    """Return the file's name as the list of memories shows it."""
    return f"{TEAM}/{found.file}" if found.scope == "team" else found.file

"""What a dream may look at and write (D3, D4), beyond what any fork may (X6): the keeper at its desk and the reader of transcripts.

Owns the limits of one run. Invariants: nothing is written before the index and a memory were seen in an answer before (orient); only
files of the copy are written, at most MOST_FILES and MOST_BYTES of them; nothing new is said about the person, nor in the index;
transcripts are searched and never read. Every refusal is one sentence for the model. Called from the threads that run the calls of an
answer, of which those that write come one by one.

What is written is the copy: a crash at any line leaves memory as it was.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...core.blocks import ToolUse, Wire
from ...core.errors import DiskError
from ...disk.file_names import fold
from ...disk.files import remove
from ...disk.user_files import read_whole
from ...fork.tool_runner import CompletedCall
from ...memory.store.contract import MOST_READ
from ...memory.store.index import INDEX
from ...permissions.decision import Allow, Deny
from ...permissions.readonly.places import within
from ...tools.tool import Change, Guarded, Kept, Output, Tool, failure
from . import index_lines
from .about_person import AboutPerson
from .transcripts import MOST_SEARCHES, problem, search

# Who changes more of a memory at once is not tidying it; the next dream goes on.
MOST_FILES = 100
# A hundred memories of a page each, and some pages more.
MOST_BYTES = 512 << 10

WRITERS = frozenset({"Write", "Edit"})
ELSEWHERE = "Only files of the copy that end in .md are written here: {work}"
FIRST = f"Nothing is written before you have looked: Read {INDEX} and the memories it is about first, in an answer of its own."
NO_INDEX = f"{INDEX} is the index of all memories and is not emptied; take out the lines that are wrong."
TOO_MANY = f"A dream writes at most {MOST_FILES} files; that was the last. Finish with the index."
TOO_LARGE = f"A dream writes at most {MOST_BYTES >> 10} KiB in all; leave the rest to the next one."
STOPPED = "The dream was stopped; nothing more is written."
ONLY_SEARCHED = "Transcripts are not read: Grep in their directory for a narrow word or phrase."
TOO_OFTEN = f"Transcripts were searched {MOST_SEARCHES} times, which is the most; go on with what is known."


class Copy(msgspec.Struct, frozen=True):
    """The copy a dream works on, and what lies around it."""

    work: Path
    memory: Path
    transcripts: tuple[Path, ...] = ()
    index: bool = True  # there is an index to read first
    topics: bool = True  # there is a memory to read first


class Bounds:
    def __init__(self, copy: Copy, cwd: Path, about: AboutPerson | None = None) -> None:
        """`about` None: nothing is known of the person, and nothing asked about it."""
        self._copy = copy
        self._about = about
        self._cwd = cwd
        self._work = os.path.realpath(copy.work)
        self._memory = os.path.realpath(copy.memory)
        self._places = tuple(os.path.realpath(place) for place in copy.transcripts)
        self._seen_index, self._seen_topic = not copy.index, not copy.topics
        self._oriented = self._seen_index and self._seen_topic
        self._size = 0
        self._searches = 0
        self.touched: dict[str, None] = {}  # files of the copy, in order

    # Looking

    def asked(self) -> None:
        """The next answer is asked for: what was looked up until now is in front of the model."""
        self._oriented = self._seen_index and self._seen_topic

    def judge(self, call: ToolUse, verdict: Allow | Deny) -> Allow | Deny:
        """What a fork may do, less what is a transcript."""
        if isinstance(verdict, Deny):
            return verdict
        if call.name == "Read" and self._is_past(_path(call.input, "file_path", self._cwd)):
            return Deny(ONLY_SEARCHED)
        if verdict.plan is not None and any(place.contents and self._is_past(place.path) for place in verdict.plan.reads):
            return Deny(ONLY_SEARCHED)
        return verdict

    def _is_past(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(within(real, place) for place in self._places) and not within(real, self._memory)

    def tools(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """The same tools; a Grep in transcripts is a narrow one."""
        return tuple(Guarded(tool, lambda given: self._grep(given) or given) if tool.name == "Grep" else tool for tool in tools)

    def _grep(self, arguments: Wire) -> Output | None:
        """None: it is about something else."""
        asked = os.path.realpath(_path(arguments, "path", self._cwd))
        if not self._is_past(asked):
            return None
        term = str(arguments.get("pattern", ""))
        if (wrong := problem(term)) is not None:
            return failure(wrong)
        if self._searches >= MOST_SEARCHES:
            return failure(TOO_OFTEN)
        self._searches += 1
        hits = search([Path(place) for place in self._places if within(asked, place)], term)
        rows = [f"{hit.session}:{hit.line}: {hit.text}" for hit in hits]
        return Output("\n".join(rows) or f"No transcript says {term!r}.", facts={"lines": len(rows)})

    def saw(self, ran: CompletedCall) -> bool:
        """A call was carried out; whether it changed the copy."""
        if ran.output.is_error:
            return False
        if ran.call.name in WRITERS:
            file = self._file(Path(_path(ran.call.input, "file_path", self._cwd)))
            if file is not None:
                self.touched[file] = None
            return file is not None
        if ran.call.name == "Read":
            file = self._file(Path(_path(ran.call.input, "file_path", self._cwd)))
            self._seen_index = self._seen_index or (file is not None and fold(file) == fold(INDEX))
            self._seen_topic = self._seen_topic or (file is not None and fold(file) != fold(INDEX))
        return False

    # Writing

    def keep(self, change: Change) -> Kept | None:
        """None: the tool may write it. A file without content is a memory removed."""
        file = self._file(change.path)
        refused = self._refusal(change, file)
        if refused is not None or file is None:
            return Kept(refused or ELSEWHERE.format(work=self._copy.work), is_error=True)
        self.touched.setdefault(file, None)
        self._size += len(change.data)
        if change.data.strip():
            return None
        try:
            remove(change.path, durability="process")
        except DiskError as error:
            return Kept(str(error), is_error=True)
        return Kept(f"Removed {file} from the copy.")

    def _refusal(self, change: Change, file: str | None) -> str | None:
        if file is None or change.path.suffix != ".md":
            return ELSEWHERE.format(work=self._copy.work)
        if not self._oriented:
            return FIRST
        if change.unread is not None:
            return change.unread
        if fold(file) == fold(INDEX) and not change.data.strip():
            return NO_INDEX
        if file not in self.touched and len(self.touched) >= MOST_FILES:
            return TOO_MANY
        if self._size + len(change.data) > MOST_BYTES:
            return TOO_LARGE
        text = change.data.decode("utf-8", "replace")
        if fold(file) == fold(INDEX):
            return index_lines.problem(text, (change.before or b"").decode("utf-8", "replace"), self._text_of)
        return self._about.problem(text) if self._about is not None and text.strip() else None

    def _text_of(self, file: str) -> str | None:
        """A memory of the copy."""
        path = self._copy.work / file
        try:
            found = read_whole(path, MOST_READ) if self._file(path) is not None else None
        except DiskError:
            return None
        return found.data.decode("utf-8", "replace") if found is not None else None

    def _file(self, path: Path) -> str | None:
        """A path as it is called in the copy; None where it is elsewhere."""
        real = os.path.realpath(path)
        return os.path.relpath(real, self._work).replace(os.sep, "/") if within(real, self._work) and real != self._work else None


def _path(given: object, name: str, cwd: Path) -> str:
    """The path a call names; the working directory where it names none."""
    path = given.get(name) if isinstance(given, dict) else None
    return os.path.join(cwd, os.path.expanduser(path)) if isinstance(path, str) and "\0" not in path else str(cwd)

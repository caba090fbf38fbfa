"""Limits what a dream may read, write and say, beyond the limits of every fork.

Owns the limits of one run. Invariants: nothing is written before an earlier answer has seen the index and a memory (orient); only
files of the copy are written, at most MOST_FILES files and MOST_BYTES in total. Transcripts are searched, never read. A search term is
literal, so no text can make a search slow. The newest files come first, with the last hits of each; hits, their length, files and bytes
are bounded. Every refusal is one sentence for the model. The threads that run an answer's tool calls call this; calls that write come
one at a time. Only the copy is written, so a crash at any line leaves memory unchanged.

A dream reads files, transcripts and memories of all types, and any of them may contain text planted to be remembered as the user's wish.
So a memory of type user or feedback may only say what such memories or daily logs said before. Most words of each sentence must occur in
one of them, and a "not" may be neither dropped nor added. This compares words, not meanings.

Every session is sent the index, so a line in it has more influence than any memory. An existing line may stay as it is. A new or changed
line must point at a memory of the copy, and most of its words must occur in that memory or in its old line. Any other text is the user's
own and must not grow; a heading is short.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.blocks import ToolUse, Wire
from ...core.errors import DiskError
from ...disk.files import remove
from ...disk.paths.file_names import fold
from ...disk.regular_file import open_regular
from ...disk.transcripts.search import list_transcripts
from ...disk.user_files import read_whole
from ...fork.tool_runner import CompletedCall
from ...memory.guard.facts import count_words, facts_of, folded_words, is_mostly_in, negates
from ...memory.store.contract import MOST_READ
from ...memory.store.daily_logs import is_found
from ...memory.store.index import read_entries
from ...memory.store.topic import INDEX, PERSONAL, read_topic
from ...tools.permissions.readonly.paths import within
from ...tools.permissions.request import WRITERS, Allow, Deny
from ...tools.tool import FileChange, KeeperVerdict, Tool, ToolOutput, failure, guard
from .plan import is_personal

# Matches are for checking a suspicion; more of them would be reading.
MOST_HITS = 50
# A dream with more searches than this is reading the past instead of checking something.
MOST_SEARCHES = 20
# Shorter terms occur in every line, and a longer phrase is not a search.
SHORTEST_TERM, LONGEST_TERM = 3, 200
# Characters around a hit, enough to see its subject.
AROUND = 160
# Hits in the newest sessions matter most. Searching 50 files and 64 MB takes about a second.
SEARCHED_FILES = 50
SEARCHED_BYTES = 64 << 20
# A dream that changes more than this is not tidying up. The next dream continues.
MOST_FILES = 100
# A hundred memories of one page, and a few pages more.
MOST_BYTES = 512 << 10

ELSEWHERE = "Only .md files in the copy can be written: {work}"
FIRST = f"Nothing can be written yet. First Read {INDEX} and the memories in question, in an answer of their own."
NO_INDEX = f"{INDEX} is the index of all memories and cannot be emptied. Remove only the wrong lines."
TOO_MANY = f"The limit of {MOST_FILES} files per dream is reached. Finish with the index."
TOO_LARGE = f"A dream may write at most {MOST_BYTES >> 10} KiB in total. Leave the rest to the next dream."
NO_TERM = f"A search in transcripts takes a literal word or phrase of {SHORTEST_TERM} to {LONGEST_TERM} characters."
ONLY_SEARCHED = "Transcripts cannot be read. Use Grep in their directory with a narrow word or phrase."
TOO_OFTEN = f"The limit of {MOST_SEARCHES} searches in transcripts is reached. Continue with what you know."
QUOTED_CHARS = 120
UNHEARD = (
    "{fact!r} is in no memory about the user and in no daily log, so a memory of type {kind} cannot say it. Leave it out, or keep the "
    "original wording."
)
# A heading names a subject.
HEADING_WORDS = 6
QUOTED_LINE_CHARS = 80
NO_SUCH = f"{INDEX}: {{line!r}} points at a memory that is not in the copy. Remove the line."
NOT_SAID = f"{INDEX}: {{line!r}} says more than its memory does. Use the memory's name and description."
NO_TEXT = f"{INDEX} is an index: {{line!r}} must be moved into a memory or removed."
_HEADING = re.compile(r"#{1,6}\s")


class DreamCopy(msgspec.Struct, frozen=True):
    """The copy a dream works on, and the directories around it."""

    work: Path
    memory: Path
    transcripts: tuple[Path, ...] = ()
    index: bool = True  # there is an index, which must be read first
    topics: bool = True  # there are memories, one of which must be read first


class DreamBounds:
    def __init__(self, copy: DreamCopy, cwd: Path, about: AboutPerson | None = None) -> None:
        """Without `about`, memories about the user are not checked."""
        self.copy = copy
        self._about = about
        self._cwd = cwd
        self._work = os.path.realpath(copy.work)
        self._memory = os.path.realpath(copy.memory)
        self._places = tuple(os.path.realpath(place) for place in copy.transcripts)
        self._unseen = {name for name, exists in (("index", copy.index), ("topic", copy.topics)) if exists}
        self._oriented = not self._unseen
        self._size = 0
        self._searches = 0
        self.touched: dict[str, None] = {}  # files of the copy, in order
        self.unwritten = ""  # the first disk error of a change to the copy

    # Reading

    def asked(self) -> None:
        """Note that the next answer is requested: the model has seen everything looked up so far."""
        self._oriented = not self._unseen

    def judge(self, call: ToolUse, verdict: Allow | Deny) -> Allow | Deny:
        """Deny reads of transcripts; keep every other verdict."""
        if isinstance(verdict, Deny):
            return verdict
        if call.name == "Read" and self._is_transcript(_argument_path(call.input, "file_path", self._cwd)):
            return Deny(ONLY_SEARCHED)
        if verdict.plan is not None and any(place.contents and self._is_transcript(place.path) for place in verdict.plan.reads):
            return Deny(ONLY_SEARCHED)
        return verdict

    def _is_transcript(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(within(real, place) for place in self._places) and not within(real, self._memory)

    def tools(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return the tools, with a Grep that searches transcripts only narrowly."""
        return tuple(
            guard(tool, lambda arguments: self._search(arguments) or arguments) if tool.name == "Grep" else tool for tool in tools
        )

    def _search(self, arguments: Wire) -> ToolOutput | None:
        """Search the transcripts. None if the call is about other files."""
        directory = os.path.realpath(_argument_path(arguments, "path", self._cwd))
        if not self._is_transcript(directory):
            return None
        term = str(arguments.get("pattern", ""))
        if not SHORTEST_TERM <= len(term.strip()) <= LONGEST_TERM:
            return failure(NO_TERM)
        if self._searches >= MOST_SEARCHES:
            return failure(TOO_OFTEN)
        self._searches += 1
        rows = search_transcripts([Path(place) for place in self._places if within(directory, place)], term)
        return ToolOutput("\n".join(rows) or f"No transcript contains {term!r}.", facts={"lines": len(rows)})

    def saw(self, ran: CompletedCall) -> None:
        """Note which files a completed call has shown."""
        file = self._copy_name(Path(_argument_path(ran.call.input, "file_path", self._cwd)))
        if ran.call.name == "Read" and file is not None and not ran.output.is_error:
            self._unseen.discard("index" if fold(file) == fold(INDEX) else "topic")
        if ran.call.name in WRITERS and file is not None and ran.output.facts.get("disk_error"):
            self.unwritten = self.unwritten or str(ran.output.content)

    # Writing

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        """Decide about a change. None lets the tool write it. Empty content removes a memory."""
        file = self._copy_name(change.path)
        refused = self._refusal(change, file)
        if refused is not None or file is None:
            return KeeperVerdict(refused or ELSEWHERE.format(work=self.copy.work), is_error=True)
        self.touched.setdefault(file, None)
        self._size += len(change.data)
        if change.data.strip():
            return None
        try:
            remove(change.path, durability="process")
        except DiskError as error:
            self.unwritten = self.unwritten or str(error)
            return KeeperVerdict(str(error), is_error=True)
        return KeeperVerdict(f"Removed {file} from the copy.")

    def _refusal(self, change: FileChange, file: str | None) -> str | None:
        if file is None or change.path.suffix != ".md":
            return ELSEWHERE.format(work=self.copy.work)
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
            return index_problem(text, (change.before or b"").decode("utf-8", "replace"), self._text_of)
        return self._about.problem(text) if self._about is not None and text.strip() else None

    def _text_of(self, file: str) -> str | None:
        """Return the text of a memory in the copy."""
        path = self.copy.work / file
        try:
            memory = read_whole(path, MOST_READ) if self._copy_name(path) is not None else None
        except DiskError:
            return None
        return memory.data.decode("utf-8", "replace") if memory is not None else None

    def _copy_name(self, path: Path) -> str | None:
        """Return the path relative to the copy, or None if it is outside."""
        real = os.path.realpath(path)
        return os.path.relpath(real, self._work).replace(os.sep, "/") if within(real, self._work) and real != self._work else None


def _argument_path(arguments: object, name: str, cwd: Path) -> str:
    """Return the path that a call names, or the working directory if it names none."""
    path = arguments.get(name) if isinstance(arguments, dict) else None
    return os.path.join(cwd, os.path.expanduser(path)) if isinstance(path, str) and "\0" not in path else str(cwd)


# Content


class _TextWords(NamedTuple):
    """The words of a text, split by whether their sentence is negated."""

    plain: frozenset[str]
    negated: frozenset[str]


class AboutPerson:
    def __init__(self, texts: Iterable[str] = (), bullets: Iterable[str] = ()) -> None:
        """`texts` are memory files of any type, of which only user and feedback count. `bullets` are lines of daily logs;
        those that name another origin do not count."""
        personal = [text for text in texts if is_personal(text)]
        self._sources = [_split_words(text) for text in (*personal, *(bullet for bullet in bullets if not is_found(bullet)))]

    def problem(self, text: str) -> str | None:
        """Return why a memory may not contain this text, or None if it may."""
        topic = read_topic("", text, 0)
        if topic.type not in PERSONAL:
            return None
        for fact in facts_of(text).each:
            if not any(_backs(source, fact) for source in self._sources):
                return UNHEARD.format(fact=fact[:QUOTED_CHARS], kind=topic.type)
        about = folded_words(topic.description)
        if not any(_backs(source, about) for source in (*self._sources, _split_words(topic.body))):
            return UNHEARD.format(fact=topic.description[:QUOTED_CHARS], kind=topic.type)
        return None


def _split_words(text: str) -> _TextWords:
    lines = [line for line in facts_of(text).lines.split("\n") if line.strip()]
    plain = frozenset(word for line in lines if not negates(line) for word in line.split())
    return _TextWords(plain, frozenset(word for line in lines if negates(line) for word in line.split()))


def _backs(source: _TextWords, fact: str) -> bool:
    return is_mostly_in(fact, source.negated if negates(fact) else source.plain)


def index_problem(new: str, old: str, text_of: Callable[[str], str | None]) -> str | None:
    """Return why the index may not become `new`, or None if it may. `text_of` returns a memory of the copy (None: it does not exist)."""
    old_lines = {line.strip() for line in old.splitlines()}
    before = {entry.file: f"{entry.title} {entry.hook}" for entry in read_entries(old)}
    for line in new.splitlines():
        if line.strip() and line.strip() not in old_lines and (why := _line_problem(line, text_of, before)) is not None:
            return why.format(line=line.strip()[:QUOTED_LINE_CHARS])
    return None


def _line_problem(line: str, text_of: Callable[[str], str | None], before: Mapping[str, str]) -> str | None:
    entries = read_entries(line)
    if not entries:
        heading = _HEADING.match(line) is not None and count_words(line) <= HEADING_WORDS
        return None if heading else NO_TEXT
    entry = entries[0]
    text = text_of(entry.file)
    if text is None:
        return NO_SUCH
    # A title spells the parts of a file name as words.
    words = folded_words(f"{entry.file.replace('_', ' ')} {text} {before.get(entry.file, '')}").split()
    return None if is_mostly_in(folded_words(f"{entry.title} {entry.hook}"), words) else NOT_SAID


# Transcripts


def search_transcripts(places: Iterable[Path], term: str) -> list[str]:
    """Return the last hits, oldest first: session, line number, and the surrounding text."""
    files = list[tuple[int, Path, int]]()
    for path in (path for place in places for path in list_transcripts(place)):
        with suppress(OSError):
            stat = os.stat(path, follow_symlinks=False)
            files.append((stat.st_mtime_ns, path, stat.st_size))
    wanted, hits, budget = term.strip().casefold(), list[str](), SEARCHED_BYTES
    for _, path, size in sorted(files, reverse=True)[:SEARCHED_FILES]:
        budget -= size
        if budget < 0 or len(hits) >= MOST_HITS:
            break
        hits = [*_search_file(path, wanted, MOST_HITS - len(hits)), *hits]
    return hits


def _search_file(path: Path, wanted: str, most: int) -> Sequence[str]:
    hits = deque[str](maxlen=most)
    with suppress(OSError), open_regular(path) as file:
        for number, line in enumerate(file, 1):
            text = line.decode("utf-8", "replace")
            position = text.casefold().find(wanted)
            if position >= 0:
                excerpt = text[max(0, position - AROUND) : position + len(wanted) + AROUND]
                hits.append(f"{path.stem}:{number}: {' '.join(excerpt.split())}")
    return hits

"""What a dream may look at, write and say (B6, D3, D4, S3), beyond what any fork may (X6).

Owns the limits of one run. Invariants: nothing is written before the index and a memory were seen in an answer before (orient); only
files of the copy are written, at most MOST_FILES and MOST_BYTES of them. Transcripts are searched and never read: a term is taken
literally, so no text can make a search long; the newest files come first, and of each its last hits; hits, their length, files and bytes
are bounded. Every refusal is one sentence for the model. Called from the threads that run the calls of an answer, of which those that
write come one by one. What is written is the copy: a crash at any line leaves memory as it was.

A dream reads files, transcripts and memories of all types, and any of them may hold what somebody wants remembered as the user's wish.
So a memory of type user or feedback says nothing that no memory of those types and no daily log said: most words of each sentence stand
in one of them, and a "not" is neither taken from it nor put to it. Words are compared, not meanings.

The index is sent with every session, so a line of it speaks louder than any memory. A line that was there may stay as it is. A new or
changed one points at a memory of the copy, and most of its words stand in that memory or in the line it had. Other text is the user's
own and is not added to; a heading is short.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.blocks import ToolUse, Wire
from ...core.errors import DiskError
from ...disk.files import remove
from ...disk.paths.file_names import fold
from ...disk.transcripts.search import list_transcripts
from ...disk.user_files import open_regular, read_whole
from ...fork.tool_runner import CompletedCall
from ...memory.store.contract import MOST_READ
from ...memory.store.index import read_entries
from ...memory.store.topic import INDEX, PERSONAL, read_topic
from ...permissions.readonly.paths import within
from ...permissions.request import Allow, Deny
from ...tools.tool import FileChange, KeeperVerdict, Tool, ToolOutput, failure, guard
from .facts import facts_of, folded_words, is_mostly_in, negates

# D3.
MOST_HITS = 50
# A dream that suspects more than this is reading the past, not checking something.
MOST_SEARCHES = 20
# Fewer characters are in every line; a longer phrase is no search.
SHORTEST_TERM, LONGEST_TERM = 3, 200
# Of what stands around a hit, enough to see what it is about.
AROUND = 160
# What the newest sessions hold of a term is what counts: 50 files, and 64 MB in all, take about a second.
SEARCHED_FILES = 50
SEARCHED_BYTES = 64 << 20
# Who changes more of a memory at once is not tidying it; the next dream goes on.
MOST_FILES = 100
# A hundred memories of a page each, and some pages more.
MOST_BYTES = 512 << 10

ELSEWHERE = "Only files of the copy that end in .md are written here: {work}"
FIRST = f"Nothing is written before you have looked: Read {INDEX} and the memories it is about first, in an answer of its own."
NO_INDEX = f"{INDEX} is the index of all memories and is not emptied; take out the lines that are wrong."
TOO_MANY = f"A dream writes at most {MOST_FILES} files; that was the last. Finish with the index."
TOO_LARGE = f"A dream writes at most {MOST_BYTES >> 10} KiB in all; leave the rest to the next one."
NO_TERM = (
    f"A search in transcripts takes a word or phrase of {SHORTEST_TERM} to {LONGEST_TERM} characters, as it is written there."
)
ONLY_SEARCHED = "Transcripts are not read: Grep in their directory for a narrow word or phrase."
TOO_OFTEN = f"Transcripts were searched {MOST_SEARCHES} times, which is the most; go on with what is known."
QUOTED_CHARS = 120
UNHEARD = (
    "{fact!r} stands in no memory about the person and in no daily log, so a memory of type {kind} does not say it. Leave it out, or word "
    "it as it was."
)
# A heading names a subject.
HEADING_WORDS = 6
QUOTED_LINE_CHARS = 80
NO_SUCH = f"{INDEX}: {{line!r}} points at no memory of the copy. Leave it out."
NOT_SAID = f"{INDEX}: {{line!r}} says what the memory does not say. Use its name and description."
NO_TEXT = f"{INDEX} is an index: {{line!r}} belongs in a memory, or nowhere."
_HEADING = re.compile(r"#{1,6}\s")


class DreamCopy(msgspec.Struct, frozen=True):
    """The copy a dream works on, and what lies around it."""

    work: Path
    memory: Path
    transcripts: tuple[Path, ...] = ()
    index: bool = True  # there is an index to read first
    topics: bool = True  # there is a memory to read first


class DreamBounds:
    def __init__(self, copy: DreamCopy, cwd: Path, about: AboutPerson | None = None) -> None:
        """`about` None: nothing is known of the person, and nothing asked about it."""
        self.copy = copy
        self._about = about
        self._cwd = cwd
        self._work = os.path.realpath(copy.work)
        self._memory = os.path.realpath(copy.memory)
        self._places = tuple(os.path.realpath(place) for place in copy.transcripts)
        self._unseen = {name for name, there in (("index", copy.index), ("topic", copy.topics)) if there}
        self._oriented = not self._unseen
        self._size = 0
        self._searches = 0
        self.touched: dict[str, None] = {}  # files of the copy, in order

    # Looking

    def asked(self) -> None:
        """The next answer is asked for: what was looked up until now is in front of the model."""
        self._oriented = not self._unseen

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
        return tuple(guard(tool, lambda given: self._grep(given) or given) if tool.name == "Grep" else tool for tool in tools)

    def _grep(self, arguments: Wire) -> ToolOutput | None:
        """None: it is about something else."""
        asked = os.path.realpath(_path(arguments, "path", self._cwd))
        if not self._is_past(asked):
            return None
        term = str(arguments.get("pattern", ""))
        if not SHORTEST_TERM <= len(term.strip()) <= LONGEST_TERM:
            return failure(NO_TERM)
        if self._searches >= MOST_SEARCHES:
            return failure(TOO_OFTEN)
        self._searches += 1
        rows = search_transcripts([Path(place) for place in self._places if within(asked, place)], term)
        return ToolOutput("\n".join(rows) or f"No transcript says {term!r}.", facts={"lines": len(rows)})

    def saw(self, ran: CompletedCall) -> None:
        """A call was carried out."""
        file = self._file(Path(_path(ran.call.input, "file_path", self._cwd)))
        if ran.call.name == "Read" and file is not None and not ran.output.is_error:
            self._unseen.discard("index" if fold(file) == fold(INDEX) else "topic")

    # Writing

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        """None: the tool may write it. A file without content is a memory removed."""
        file = self._file(change.path)
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
        """A memory of the copy."""
        path = self.copy.work / file
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


# What it may say


class _KnownWords(NamedTuple):
    """The words of one text: of its sentences that say what is, and of those that say what is not."""

    plain: frozenset[str]
    negated: frozenset[str]


class AboutPerson:
    def __init__(self, texts: Iterable[str] = (), bullets: Iterable[str] = ()) -> None:
        """`texts` are memory files of any type, of which those about the person count; `bullets` are lines of daily logs."""
        personal = [text for text in texts if read_topic("", text, 0).type in PERSONAL]
        self._known = [_words(text) for text in (*personal, *bullets)]

    def problem(self, text: str) -> str | None:
        """Why a memory may not say this, as a sentence; None where it may."""
        topic = read_topic("", text, 0)
        if topic.type not in PERSONAL:
            return None
        for fact in facts_of(text).each:
            if not any(_backs(known, fact) for known in self._known):
                return UNHEARD.format(fact=fact[:QUOTED_CHARS], kind=topic.type)
        about = folded_words(topic.description)
        if not any(_backs(known, about) for known in (*self._known, _words(topic.body))):
            return UNHEARD.format(fact=topic.description[:QUOTED_CHARS], kind=topic.type)
        return None


def _words(text: str) -> _KnownWords:
    said = [line for line in facts_of(text).lines.split("\n") if line.strip()]
    plain = frozenset(word for line in said if not negates(line) for word in line.split())
    return _KnownWords(plain, frozenset(word for line in said if negates(line) for word in line.split()))


def _backs(known: _KnownWords, fact: str) -> bool:
    return is_mostly_in(fact, known.negated if negates(fact) else known.plain)


def index_problem(new: str, old: str, text_of: Callable[[str], str | None]) -> str | None:
    """Why the index may not become this, as a sentence; None where it may. `text_of` is a memory of the copy, None where there is none."""
    there = {line.strip() for line in old.splitlines()}
    before = {entry.file: f"{entry.title} {entry.hook}" for entry in read_entries(old)}
    for line in new.splitlines():
        if line.strip() and line.strip() not in there and (why := _why_not(line, text_of, before)) is not None:
            return why.format(line=line.strip()[:QUOTED_LINE_CHARS])
    return None


def _why_not(line: str, text_of: Callable[[str], str | None], before: Mapping[str, str]) -> str | None:
    found = read_entries(line)
    if not found:
        heading = _HEADING.match(line) is not None and len(folded_words(line).split()) <= HEADING_WORDS
        return None if heading else NO_TEXT
    entry = found[0]
    text = text_of(entry.file)
    if text is None:
        return NO_SUCH
    # A title spells the parts of a file's name as words.
    known = folded_words(f"{entry.file.replace('_', ' ')} {text} {before.get(entry.file, '')}").split()
    return None if is_mostly_in(folded_words(f"{entry.title} {entry.hook}"), known) else NOT_SAID


# Transcripts


def search_transcripts(places: Iterable[Path], term: str) -> list[str]:
    """The last hits, oldest first: session, line, and what stands around it."""
    wanted, found, left = term.strip().casefold(), list[str](), SEARCHED_BYTES
    for path, size in _newest(places):
        left -= size
        if left < 0 or len(found) >= MOST_HITS:
            break
        found = [*_in_file(path, wanted, MOST_HITS - len(found)), *found]
    return found


def _newest(places: Iterable[Path]) -> list[tuple[Path, int]]:
    files = list[tuple[int, Path, int]]()
    for path in (path for place in places for path in list_transcripts(place)):
        with suppress(OSError):
            found = os.stat(path, follow_symlinks=False)
            files.append((found.st_mtime_ns, path, found.st_size))
    return [(path, size) for _, path, size in sorted(files, reverse=True)[:SEARCHED_FILES]]


def _in_file(path: Path, wanted: str, room: int) -> Sequence[str]:
    hits = deque[str](maxlen=room)
    for number, line in enumerate(_lines(path), 1):
        text = line.decode("utf-8", "replace")
        at = text.casefold().find(wanted)
        if at >= 0:
            shown = text[max(0, at - AROUND) : at + len(wanted) + AROUND]
            hits.append(f"{path.stem}:{number}: {' '.join(shown.split())}")
    return hits


def _lines(path: Path) -> Iterator[bytes]:
    with suppress(DiskError, OSError):
        fd = open_regular(path)
        if fd is not None:
            with open(fd, "rb") as file:
                yield from file

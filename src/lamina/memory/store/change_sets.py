"""Change sets: the changes of a dream, a merge, a turn or an approval, undone and redone as one, and recovery after a crash.

A set is found in the journal by the id of its act (`acts_of`). Invariants: a memory returns to its content before the set byte for byte,
with its time and its file, or to the trash if the set created it. A memory that was changed since is left alone and reported. A set of
several files stands between the journal's lines `begin` and `end`, and is made under the store's guard: an unfinished one is the tail of
the journal. docs/design/change-sets.md has the reasons.

A crash at any line of a set, an undo or a redo leaves an unfinished set, which the next writer undoes before it writes. A crash at
any line of a single change leaves at most the newest change of the journal half done, because every writer repairs before it writes,
under the store's guard; the next writer completes it. An index line that the user removed stays out, and one that the user worded
stays unchanged. A removal that did not reach its file did not happen. Every repair is reported.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import DiskError
from ...language.wording import counted
from .contract import MOST_READ, ChangeReason
from .history import MemoryHistory
from .index import entry_line, entry_of, merge_indexes, rows_of, with_row
from .journal import JournalHead, JournalLine, MemoryChange, digest_of, unescape_bytes
from .topic import INDEX, Topic, fold_name, name_key, read_topic
from .topic_files import decode_text

if TYPE_CHECKING:
    from .directory import DirectoryStore

Did: TypeAlias = Literal["saved", "changed", "removed", "proposed"]
SINCE = "was changed since"
LOST = "has no earlier version any more"
NAME_TAKEN = "has a name that another memory has now"
FILE_TAKEN = "was renamed, and its former file name is taken"


class SetChange(NamedTuple):
    """What a change set did to one memory. `problem` is why that cannot be undone, or empty."""

    name: str
    file: str
    did: Did
    problem: str = ""


class UndoneSet(NamedTuple):
    """The result of an undo. `act` is the id of the undo itself, which a redo undoes; empty if nothing was changed. `back` are the changes
    that were undone, `left` those that were not, each with its problem. `withdrawn` and `waiting` count proposals."""

    act: str = ""
    back: tuple[SetChange, ...] = ()
    left: tuple[SetChange, ...] = ()
    withdrawn: int = 0
    waiting: int = 0

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each memory that was left."""
        return tuple(f"{change.name} {change.problem}." for change in self.left)


class ClientChange(NamedTuple):
    """What an MCP client last changed in a memory, without approval. `acts` are its versions in a row; `id` is the newest."""

    id: str
    time: float
    client: str
    change: SetChange
    acts: tuple[str, ...]


def new_act() -> str:
    return os.urandom(6).hex()


def turn_act(session: str, message: str) -> str:
    """Return the act of what was saved for a message."""
    return f"{session}/{message}"


def acts_of(why: ChangeReason | None) -> set[str]:
    """Return the acts that a change or a proposal belongs to."""
    if why is None:
        return set()
    turn = turn_act(why.session, why.message) if why.session and why.message else ""
    return {why.act, turn, why.dream or "" if why.who == "dream" else ""} - {""}


def find_runs(lines: Iterable[JournalLine], acts: Collection[str]) -> list[list[JournalLine]]:
    """Return for each memory the last unbroken run of the changes of these acts: each begins where the one before ended."""
    runs: dict[str, list[JournalLine]] = {}
    for line in lines:
        if line.id in acts or not acts_of(line.why).isdisjoint(acts):
            run = runs.setdefault(line.memory, [])
            file, digest = _start(line)
            # A memory that was removed may come again in another file.
            if run and (digest != run[-1].digest or (digest and file != run[-1].file)):
                run.clear()
            run.append(line)
    return list(runs.values())


def _start(line: JournalLine) -> tuple[str, str]:
    """Return the file and the digest that a change began with."""
    return (line.was, line.digest) if line.action == "rename" else (line.file, line.before)


def find_changes(store: DirectoryStore, acts: Collection[str]) -> list[SetChange]:
    """Return what the acts did to each memory, in order, without what is undone already."""
    return [step.change for step in _steps(store, find_runs(store.history.lines(), acts))]


def find_client_changes(history: MemoryHistory, since: float) -> list[ClientChange]:
    """Return the memories that are as an MCP client left them without approval, newest first. Undoing one undoes all that the client
    changed in a row."""
    memories: dict[str, list[JournalLine]] = {}
    for line in history.lines():
        memories.setdefault(line.memory, []).append(line)
    changes = list[ClientChange]()
    for lines in memories.values():
        last, client = lines[-1], _client_of(lines[-1])
        if client and last.digest and last.time >= since:
            acts = [line.id for line in lines if _client_of(line) == client]
            run = find_runs(lines, acts)[0]
            change = SetChange(last.name, last.file, "changed" if _start(run[0])[1] else "saved")
            changes.append(ClientChange(last.id, last.time, client, change, tuple(line.id for line in run)))
    return sorted(changes, key=lambda change: -change.time)


def _client_of(line: JournalLine) -> str:
    return line.why.client if line.why is not None and not line.why.approved else ""


# Undo


class _Step(NamedTuple):
    """The way back for one memory: its content now, and its file, content and time before the set."""

    memory: str
    change: SetChange
    current: bytes | None
    home: str
    data: bytes | None
    mtime_ns: int

    @property
    def files(self) -> set[str]:
        return {fold_name(self.change.file), fold_name(self.home)}


def undo(
    store: DirectoryStore,
    acts: Collection[str],
    *,
    why: ChangeReason,
    files: Collection[str] | None = None,
    whole: bool = False,
) -> UndoneSet:
    """Undo change sets, or only what they did to `files`, as a change set of its own. With `whole`, nothing is done unless all can be."""
    with store.change_set(why):
        runs = [run for run in find_runs(store.history.lines(), acts) if files is None or run[-1].file in files]
        steps = _steps(store, runs)
        blocked = [step for step in steps if step.change.problem]
        back = [] if whole and blocked else [step for step in steps if not step.change.problem]
        if back or not steps:
            marks = [row for row in store.history.rows() if row.file == INDEX and not acts_of(row.why).isdisjoint(acts)]
            _go_back(store, back, blocked, _IndexMarks.of(store.history, marks), why=why, only=files is not None)
        act = why.act if store.history.has_begun else ""
    return UndoneSet(act, tuple(step.change for step in back), tuple(step.change for step in blocked))


def roll_back(store: DirectoryStore) -> tuple[str, ...]:
    """Undo the change set that the journal ends with, because it was not finished. The guard is held. Return the notices."""
    history = store.history
    history.catch_up()
    rows = history.unfinished()
    if not rows or rows[0].why is None:
        return ()
    begin, others, act = rows[0].why, rows[1:], rows[0].why.act
    # Lines of an earlier attempt to roll back are not the set's.
    lines = [row for row in others if row.file != INDEX and row.why is not None and row.why.undoes != act]
    why = msgspec.structs.replace(begin, why="undid an interrupted change", undoes=act)
    marks = _IndexMarks.of(history, [row for row in rows if row.file == INDEX and row.why is not None and row.why.undoes != act])
    runs = find_runs(lines, [act])
    steps = _steps(store, runs)
    back = [step for step in steps if not step.change.problem]
    blocked = [step for step in steps if step.change.problem]
    history.resume(why)
    try:
        # A removal that was stopped may have dropped the line of a file that is still there.
        touched = {fold_name(file) for run in runs for file in (run[-1].file, _start(run[0])[0])}
        _go_back(store, back, blocked, marks, why=why, touched=touched)
        history.end(store.index_file.data(), now=store.clock())
    finally:
        history.leave()
    return (f"An interrupted change of {store.root.path} was undone ({counted(len(back), 'memory')}).",)


def _steps(store: DirectoryStore, runs: Sequence[list[JournalLine]]) -> list[_Step]:
    """Return the way back for each memory that is not as before the set."""
    contents = store.history.contents({_start(run[0])[1] for run in runs})
    own = {file for run in runs for file in (run[-1].file, _start(run[0])[0])}
    return [step for run in runs if (step := _step(store, run, contents, own)) is not None]


def _step(store: DirectoryStore, run: list[JournalLine], contents: Mapping[str, str], own: Collection[str]) -> _Step | None:
    last, (home, before) = run[-1], _start(run[0])
    file, current = last.file, store.root.read_bytes(last.file, MOST_READ)
    if current is None and home != file:  # an interrupted undo may have renamed it already
        file, current = home, store.root.read_bytes(home, MOST_READ)
    digest = digest_of(current)
    if (file, digest) == (home, before):
        return None
    data, problem = None if not before else contents.get(before, "").encode("utf-8", "replace"), ""
    if digest not in {line.digest for line in run}:
        problem = SINCE
    elif before and before not in contents:
        problem = LOST
    elif current is not None and file != home and (store.root.stat(home) is not None or store.root.twin(home) is not None):
        problem = FILE_TAKEN
    elif data is not None and not _is_free(store, home, data, current, own):
        problem = NAME_TAKEN
    did: Did = "removed" if not last.digest else "changed" if before else "saved"
    return _Step(last.memory, SetChange(last.name, file, did, problem), current, home, data, run[0].mtime_ns)


def _is_free(store: DirectoryStore, home: str, data: bytes, current: bytes | None, own: Collection[str]) -> bool:
    """Return whether no memory outside the set has the name that comes back."""
    name = read_topic(home, decode_text(data), 0).name
    if current is not None and name_key(read_topic(home, decode_text(current), 0).name) == name_key(name):
        return True
    return (owner := store.topic_files.named(name)) is None or owner in own


def _go_back(
    store: DirectoryStore,
    back: list[_Step],
    blocked: list[_Step],
    marks: _IndexMarks | None,
    *,
    why: ChangeReason,
    only: bool = False,
    touched: Collection[str] = (),
) -> None:
    """Restore files, remove others, then restore the index: no line points at a missing file."""
    for step in sorted(back, key=lambda step: step.data is None):
        file, name = step.change.file, step.change.name
        if step.data is None:
            assert step.current is not None
            store.take_out(file, step.current, why)
            continue
        if step.current is not None and file != step.home:
            store.move(MemoryChange(step.home, name, "rename", None, step.current, why, step.memory, file))
        if step.current != step.data or file != step.home:  # a renamed file gets its time back, too
            name = read_topic(step.home, decode_text(step.data), 0).name
            change = MemoryChange(step.home, name, "restore", step.current, step.data, why, step.memory)
            store.write(change, mtime_ns=step.mtime_ns)
    if marks is not None:
        _restore_index(store, back, blocked, marks, only=only, touched=touched)
        return
    for step in back:
        if step.data is not None and (topic := store.topic_files.topic(step.home)) is not None:
            store.index_file.add(topic, was=step.change.file)


# The index


class _IndexMarks(NamedTuple):
    """The index before a set, and as the set left it, or was about to. `existed`: there was one."""

    before: str
    after: str
    existed: bool

    @classmethod
    def of(cls, history: MemoryHistory, marks: Sequence[JournalLine]) -> _IndexMarks | None:
        """Read the lines of one set about the index; None if there are none, or their contents are gone."""
        if not marks or [mark.action for mark in marks].count("begin") != 1 or marks[0].action != "begin":
            return None
        contents = history.contents({mark.digest for mark in marks}) | {"": ""}
        if any(mark.digest not in contents for mark in (marks[0], marks[-1])):
            return None
        before, after = (unescape_bytes(contents[mark.digest]) for mark in (marks[0], marks[-1]))
        return cls(before, after, bool(marks[0].digest))


def _restore_index(
    store: DirectoryStore, back: list[_Step], blocked: list[_Step], marks: _IndexMarks, *, only: bool, touched: Collection[str]
) -> None:
    restored = {file for step in back for file in step.files} | ({*touched} - {file for step in blocked for file in step.files})
    stay = {file for step in blocked for file in step.files} - restored

    def restore(now: str) -> str:
        if only:
            return _with_rows(now, marks.before, restored)
        reworded = _reworded(now, marks, back)
        return merge_indexes(marks.before, now, base=marks.after, our_rows=restored - reworded, their_rows=stay | reworded)

    data = store.index_file.data()
    text = restore((data or b"").decode("utf-8", "surrogateescape"))
    if not text and not marks.existed and not store.topic_files.files():
        store.root.unlink(INDEX)
    elif text.encode("utf-8", "surrogateescape") != data:
        store.history.rewrite_index(data, text.encode("utf-8", "surrogateescape"), now=store.clock())
        store.index_file.edit(restore)


def _reworded(now: str, marks: _IndexMarks, back: list[_Step]) -> set[str]:
    """Return the restored files whose line the user worded since: it is neither the set's nor that of the content so far."""
    rows, rows_after, rows_before = rows_of(now), rows_of(marks.after), rows_of(marks.before)
    reworded = set[str]()
    for step in back:
        file = fold_name(step.change.file)
        if file in rows and step.current is not None and step.data is not None:
            own = entry_line(entry_of(read_topic(step.change.file, decode_text(step.current), 0)))
            if rows[file].rstrip("\r") != own and rows[file] not in (rows_after.get(file), rows_before.get(file)):
                reworded.add(file)
    return reworded


def _with_rows(now: str, before: str, files: Collection[str]) -> str:
    """Return the index of now with the lines that these files had when the set began, each behind the line it followed."""
    rows_before = rows_of(before)
    for file in files:
        rows = rows_of(now)
        above = [other for other in takewhile(file.__ne__, rows_before) if other in rows]
        now = with_row(now, file, rows_before.get(file), above[-1] if above else "")
    return now


# Recovery of a single change

# The newest change, and its file's current content; None if the file is gone.
_Newest: TypeAlias = tuple[JournalHead, bytes | None]


def needs_repair(store: DirectoryStore) -> bool:
    if not store.index_file.exists():
        return bool(store.topic_files.files())
    head = store.history.newest()
    if head is not None and head.part:
        return True
    newest = _with_content(store, head) if not store.index_file.is_too_long() else None
    return newest is not None and _unlisted(store, newest) is not None


def repair(store: DirectoryStore) -> tuple[str, ...]:
    """Rebuild a missing index, add a missing line, and record a change that did not happen. Return the notices.

    The guard is held: until it is released, the journal cannot change any more.
    """
    index, history, path = store.index_file, store.history, store.root.path / INDEX
    notices: tuple[str, ...] = ()
    history.catch_up()
    newest = _with_content(store, history.latest)
    if not index.exists():
        if headers := store.topic_files.headers():
            index.rebuild(headers)
            notices = (f"{path} was missing and was rebuilt from {counted(len(headers), 'memory')}.",)
    elif newest is not None and not index.is_too_long() and (topic := _unlisted(store, newest)) is not None:
        index.add(topic, was=newest[0].was)
        notices = (f"{path} lacked the line of {topic.file} after an interrupted change; the line was added.",)
    # Do this last: the line above was found through the journal's newest change.
    if newest is not None:
        history.settle(newest[1], now=store.clock())
    return notices


def _with_content(store: DirectoryStore, newest: JournalHead | None) -> _Newest | None:
    """Read the file of the newest change; None if there is nothing to repair. A file replaced by a link must not block
    saving other memories."""
    if newest is None or newest.file == INDEX:
        return None
    try:
        return newest, store.root.read_bytes(newest.file, MOST_READ)
    except DiskError:
        return None


def _unlisted(store: DirectoryStore, newest: _Newest) -> Topic | None:
    """Return the memory whose save stopped between file and index line, or whose removal stopped between line and file."""
    change, data = newest
    if data is None or not _lacks_line(store, change):
        return None
    if digest_of(data) != (change.before if change.action == "remove" else change.digest):
        return None
    topic = read_topic(change.file, decode_text(data), 0)
    line = store.index_file.line(change.file)
    if line is None:
        return topic
    if line == entry_line(entry_of(topic)):
        return None
    # The line may be ours for the previous content. A line that the user worded is not ours.
    text = store.history.content_of(change.before)
    before = read_topic(change.file, text, 0) if text is not None else None
    return topic if before is not None and line == entry_line(entry_of(before)) else None


def _lacks_line(store: DirectoryStore, change: JournalHead) -> bool:
    """Tell whether the change may lack its index line. A line that the user removed later stays out: then the index is newer
    than the file."""
    if change.action == "rename":
        return store.index_file.line(change.was) is not None and store.root.stat(change.was) is None
    if change.action not in ("save", "restore"):
        return change.action == "remove"
    file, index = store.root.stat(change.file), store.root.stat(INDEX)
    return file is not None and index is not None and index.st_mtime_ns <= file.st_mtime_ns

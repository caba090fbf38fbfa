"""Stores return appended records in order, from file and memory alike, whatever the disk does; and transcripts are found."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.core.blocks import read_content
from lamina.core.errors import DiskError, InputError, NewerVersion, NoSuchSession
from lamina.core.record_lines import FORMAT, Envelope
from lamina.core.records import Boundary, Checkpoint, Event, Forked, Message, Record, Revoke, Rewind, Snapshot
from lamina.disk.crash_points import watched
from lamina.disk.locks.lock_file import LifeLock
from lamina.disk.transcripts import store as transcript
from lamina.disk.transcripts.jsonl import raw_lines_back
from lamina.disk.transcripts.resume import find_resume_point
from lamina.disk.transcripts.search import find_transcript, list_transcripts, newest_transcript
from lamina.disk.transcripts.store import (
    FORK_NAME,
    FileTranscript,
    ForkedTranscript,
    InMemoryTranscript,
    SourceTranscript,
    load_live,
    lock_path,
    read_origin,
    read_transcript,
    refuse_newer,
)

from ..processes import needs_fork, run_child

ENVELOPE = Envelope("s", "/cwd", "0")


def message(number: int, parent: int | None = None, **more: Any) -> Message:
    above = None if parent is None else f"m{parent}"
    return Message(f"m{number}", above, "2026-01-01T00:00:00.000Z", "user", read_content(f"words {number}"), **more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileTranscript]:
    opened = FileTranscript.open(tmp_path / "projects" / "p" / "s.jsonl", ENVELOPE)
    assert opened is not None
    yield opened
    opened.close()


def uuids(store: FileTranscript | InMemoryTranscript, start: int = 0) -> list[str | None]:
    return [record.uuid for record in store.read(start)]


def on_disk(store: FileTranscript) -> list[str]:
    assert store.path is not None
    return [json.loads(line)["uuid"] for line in store.path.read_bytes().splitlines() if line.startswith(b"{")]


KINDS: list[Record] = [
    message(1),
    message(2, 1, meta=True, synthetic=True),
    Boundary("b1", "m2", "t", "auto", 5, ("m2",)),
    message(3, 2, summary=True),
    Snapshot("p1", "m3", "t", [{"type": "text", "text": "s"}], [], {"a": 1}),
    Rewind("w1", "m3", "t", None),
    Revoke("k1", "m3", "t", "b1"),
    Checkpoint("c1", "m3", "t", "b1", 7, {"count": {}}),
    Forked("f1", None, "t", "from", "/a/path"),
    Event("e1", None, "t", "named", {"x": [1]}),
]


def test_both_stores_read_back_exactly_what_was_written(store: FileTranscript) -> None:
    memory = InMemoryTranscript(ENVELOPE)
    for kept in (store, memory):
        first = kept.append(KINDS[:4])
        later = kept.append(KINDS[4:])
        assert list(kept.read()) == KINDS
        assert list(kept.read(first)) == KINDS
        assert list(kept.read(later)) == KINDS[4:]
        assert kept.offset_of(["p1"]) == later
        assert kept.offset_of(["p1", "m1"]) == first == 0
        assert kept.offset_of(["p1", "none"]) == 0
    assert store.trouble is None


def full(name: str, _: int) -> int | None:
    if name in ("append.write", "append.seal"):
        raise OSError(errno.ENOSPC, "full")
    return None


def test_what_a_full_disk_does_not_take_waits_and_goes_out_in_order(store: FileTranscript) -> None:
    store.append([message(1)])
    with watched(full):
        store.append([message(2, 1)])
        store.append([message(3, 2), message(4, 3)])
        store.sync(force=True)
        assert (store.trouble or "").endswith(
            "s.jsonl: the disk is full or the quota is used up; free some space (no existing data was lost). "
            "The conversation continues; 3 records wait in memory for the next write."
        )
        assert uuids(store) == ["m1", "m2", "m3", "m4"]
        assert on_disk(store) == ["m1"]
    store.append([message(5, 4)])
    assert store.trouble is None
    assert on_disk(store) == uuids(store) == ["m1", "m2", "m3", "m4", "m5"]


def test_what_waits_goes_out_with_a_sync_or_the_end_too(store: FileTranscript) -> None:
    with watched(full):
        store.append([message(1)])
    store.sync()
    assert on_disk(store) == ["m1"]
    assert store.trouble is None
    with watched(full):
        store.append([message(2, 1)])
    store.close()
    assert on_disk(store) == ["m1", "m2"]


def test_what_never_went_out_is_told_at_the_end(store: FileTranscript) -> None:
    store.append([message(1)])
    with watched(full):
        store.append([message(2, 1)])
        store.close()
    assert "could not be written and " in (store.trouble or "")
    assert on_disk(store) == ["m1"]


def test_a_disk_that_takes_half_a_line_leaves_no_record_out(store: FileTranscript) -> None:
    sizes = iter([40, 0, 25])

    def short(name: str, size: int) -> int | None:
        if name != "append.write":
            return None
        part = next(sizes, None)
        if part == 0:
            raise OSError(errno.ENOSPC, "full")
        return part

    with watched(short):
        store.append([message(1)])
        store.append([message(2, 1)])
        store.append([message(3, 2)])
    assert list(dict.fromkeys(uuids(store))) == ["m1", "m2", "m3"]
    assert store.trouble is None
    assert store.path is not None
    assert [record.uuid for record in read_transcript(store.path)] == ["m1", "m2", "m3"]


def test_what_waits_is_bounded_and_the_sentence_says_so(store: FileTranscript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MAX_WAITING", 1_000)
    with watched(full):
        store.append([message(1)])
        store.append([message(2, 1)])
        for number in range(3, 9):
            store.append([message(number, number - 1)])
        assert "in memory for the next write" in (store.trouble or "")
        assert "later records are lost" in (store.trouble or "")
    store.append([message(9, 8)])
    assert on_disk(store)[:2] == ["m1", "m2"]
    assert on_disk(store)[-1] == "m9"


def test_a_record_no_reader_would_take_is_refused_before_anything_is_written(
    store: FileTranscript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MAX_LINE", 400)
    for kept in (store, InMemoryTranscript(ENVELOPE)):
        kept.append([message(1)])
        with pytest.raises(InputError, match="record: is larger than 0 MiB; pass a part of it"):
            kept.append([message(2, 1), Event("e", None, "t", "big", {"x": "y" * 400})])
        kept.append([message(3, 1)])
        assert uuids(kept) == ["m1", "m3"]


def test_a_sync_that_fails_is_told_and_never_tried_again_on_the_same_descriptor(store: FileTranscript) -> None:
    def broken(name: str, _: int) -> None:
        if name == "append.fsync":
            raise OSError(errno.EIO, "broken")

    store.append([message(1)])
    with watched(broken):
        store.sync(force=True)
    assert (store.trouble or "").endswith("s.jsonl: input/output error.")
    store.append([message(2, 1)])
    store.sync(force=True)
    assert store.trouble is None
    assert on_disk(store) == ["m1", "m2"]


def test_a_store_without_news_waits_for_nothing(store: FileTranscript) -> None:
    seen: list[str] = []
    store.append([message(1)])
    store.sync(force=True)
    with watched(lambda name, _: seen.append(name)):
        store.sync(force=True)
        store.sync()
    assert seen == []


def test_a_transcript_removed_under_its_writer_is_told_once_and_begun_anew(store: FileTranscript) -> None:
    assert store.path is not None
    store.append([message(1)])
    shutil.rmtree(store.path.parent)
    store.append([message(2, 1)])
    store.sync()
    assert "was removed while in use" in (store.trouble or "")
    with pytest.raises(DiskError, match="earlier messages are now only in memory"):
        list(store.read())
    store.append([message(3, 2)])
    assert store.trouble is None
    assert on_disk(store) == ["m3"]
    with pytest.raises(DiskError, match="only in memory"):
        list(store.read())


def test_one_transcript_has_one_writer(store: FileTranscript) -> None:
    assert store.path is not None
    assert FileTranscript.open(store.path, ENVELOPE) is None
    store.close()
    store.close()
    again = FileTranscript.open(store.path, ENVELOPE)
    assert again is not None
    again.append([message(1)])
    again.close()
    with pytest.raises(ValueError, match="closed"):
        again.append([message(2)])


@needs_fork
def test_a_forked_child_does_not_write_into_its_parents_transcript(store: FileTranscript) -> None:
    store.append([message(1)])

    def child() -> None:
        store.append([message(2, 1)])
        assert "is in use by the process this one was forked from" in (store.trouble or "")
        assert uuids(store) == ["m1", "m2"]
        store.close()

    assert os.waitstatus_to_exitcode(os.waitpid(run_child(child), 0)[1]) == 0
    store.append([message(3, 1)])
    assert on_disk(store) == ["m1", "m3"]
    assert store.path is not None
    assert FileTranscript.open(store.path, ENVELOPE) is None, "the parent still holds it"


@pytest.mark.spec("Z9")
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_everything_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        opened = FileTranscript.open(tmp_path / "home" / "projects" / "p" / "s.jsonl", ENVELOPE)
        assert opened is not None
        opened.append([message(1)])
        opened.close()
        assert opened.path is not None
        forked = Forked("f", None, "t", "s", "p")
        fork = ForkedTranscript(opened.path.with_name("f.jsonl"), ENVELOPE, SourceTranscript(opened.path), forked)
        fork.append([message(2, 1)])
        fork.close()
    finally:
        os.umask(before)
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in (tmp_path / "home").rglob("*")}
    assert modes == {(True, 0o700), (False, 0o600)}


def source_with(path: Path, rows: list[bytes]) -> Path:
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return path


def forked(path: Path, source: Path) -> ForkedTranscript:
    return ForkedTranscript(path, ENVELOPE, SourceTranscript(source), Forked("f", None, "t", "source", str(source)))


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1_203])
def test_a_fork_holds_every_line_and_then_says_where_it_came_from(tmp_path: Path, count: int) -> None:
    rows = [b'{"type":"user", "uuid":"m%d","n": %d}' % (number, number) for number in range(count)]
    source = source_with(tmp_path / "source.jsonl", rows)
    path = tmp_path / "p" / "fork.jsonl"
    store = forked(path, source)
    store.append([message(1)])
    lines = path.read_bytes().splitlines()
    assert lines[:-2] == rows
    assert [json.loads(line)["uuid"] for line in lines[-2:]] == ["f", "m1"]
    assert FileTranscript.open(path, ENVELOPE) is None, "a fork is locked from its first moment"
    store.close()
    assert [found.name for found in path.with_suffix("").iterdir()] == ["writer.lock"]


def test_a_fork_reads_the_same_before_and_after_its_source_is_copied(tmp_path: Path) -> None:
    opened = FileTranscript.open(tmp_path / "s" / "source.jsonl", ENVELOPE)
    assert opened is not None
    opened.append([message(1), message(2, 1)])
    start = opened.append(compacted("b1"))
    opened.append([Checkpoint("c", "m2", "t", "b1", start, {"count": {"fixed": 3}}), message(3, 2)])
    assert opened.path is not None
    store = forked(tmp_path / "p" / "fork.jsonl", opened.path)
    before, point = uuids(store), store.resume_point()
    assert not (tmp_path / "p").exists(), "nothing is written before the first append"
    opened.append([message(4, 3)])
    opened.close()
    store.append([message(5, 3)])
    assert uuids(store) == [*before, "m5"], "what the source got meanwhile is not ours"
    assert before[:2] == ["m1", "m2"], "what the compaction replaced comes along"
    assert store.resume_point() == point
    assert point[0] == start
    store.close()


def test_a_fork_that_is_only_looked_at_leaves_nothing(tmp_path: Path) -> None:
    source = source_with(tmp_path / "source.jsonl", [b'{"type":"user","uuid":"m1"}'])
    store = forked(tmp_path / "p" / "fork.jsonl", source)
    assert uuids(store) == ["m1", "f"]
    store.sync(force=True)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["source.jsonl"]
    with pytest.raises(ValueError, match="closed"):
        store.append([message(1)])


def test_a_fork_that_cannot_be_copied_keeps_its_lines_for_the_next_try(tmp_path: Path) -> None:
    source = source_with(tmp_path / "source.jsonl", [b'{"type":"user","uuid":"m1"}'])
    path = tmp_path / "p" / "fork.jsonl"
    store = forked(path, source)
    with watched(full):
        store.append([message(2)])
    assert "waits in memory" in str(store.trouble)
    assert list(list_transcripts(path.parent)) == []
    assert uuids(store) == ["m1", "f", "m2"]
    store.append([message(3)])
    assert str(store.trouble) == "None"
    assert uuids(store) == ["m1", "f", "m2", "m3"]
    store.close()
    assert [record.uuid for record in read_transcript(path)] == ["m1", "f", "m2", "m3"]


def test_a_fork_whose_source_was_replaced_says_so_and_reports_the_loss(tmp_path: Path) -> None:
    source = source_with(tmp_path / "source.jsonl", [b'{"type":"user","uuid":"m1"}'])
    store = forked(tmp_path / "p" / "fork.jsonl", source)
    os.replace(source_with(tmp_path / "other.jsonl", [b'{"type":"user","uuid":"x"}']), source)
    store.append([message(2)])
    assert "was replaced while in use" in (store.trouble or "")
    store.close()
    assert "lost" in (store.trouble or "")
    assert list(list_transcripts(tmp_path / "p")) == []


def test_a_copy_that_was_killed_is_removed_by_the_next_fork_and_a_live_one_is_not(tmp_path: Path) -> None:
    source = source_with(tmp_path / "source.jsonl", [b'{"type":"user","uuid":"m1"}'])
    left, live = (tmp_path / "p" / name / FORK_NAME for name in ("killed", "alive"))
    for path in (left, live):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half a copy")
    lock = LifeLock.acquire(live.with_name("writer.lock"))
    assert lock is not None
    with lock:
        store = forked(tmp_path / "p" / "fork.jsonl", source)
        store.append([message(1)])
        store.close()
    assert not left.exists()
    assert live.exists()


def compacted(boundary: str, *, kept: tuple[str, ...] = (), start: int = 0) -> list[Record]:
    summary = Message(f"{boundary}-summary", boundary, "t", "user", read_content(boundary), summary=True)
    return [Boundary(boundary, "m2", "t", "auto", 0, kept), summary, Checkpoint(f"{boundary}-c", "m2", "t", boundary, start)]


def both(records: list[Record], tmp_path: Path) -> tuple[FileTranscript, InMemoryTranscript]:
    store = FileTranscript.open(tmp_path / "s.jsonl", ENVELOPE)
    assert store is not None
    memory = InMemoryTranscript(ENVELOPE)
    for record in records:
        store.append([record])
        memory.append([record])
    return store, memory


@pytest.mark.parametrize(
    ("records", "first"),
    [
        ([], None),
        ([message(1), message(2, 1)], "m1"),
        ([message(1), message(2, 1), *compacted("b1")[:1]], "m1"),
        ([message(1), message(2, 1), *compacted("b1")[:2]], "b1"),
        ([message(1), message(2, 1), *compacted("b1", kept=("m2",))[:2]], "m2"),
        ([message(1), message(2, 1), *compacted("b1")[:2], message(3), *compacted("b2")[:2]], "b2"),
        ([message(1), message(2, 1), *compacted("b1")[:2], message(3), *compacted("b2")[:2], Revoke("k", None, "t", "b2")], "b1"),
        ([message(1), message(2, 1), *compacted("b1")[:2], Revoke("k", None, "t", "b1")], "m1"),
        ([message(1), message(2, 1), *compacted("b1")[:2], message(3), *compacted("b2")[:1]], "b1"),
    ],
)
def test_a_resume_begins_at_the_last_boundary_that_took_effect(tmp_path: Path, records: list[Record], first: str | None) -> None:
    for store in both(records, tmp_path):
        start, checkpoint = store.resume_point()
        assert checkpoint is None
        assert next((record.uuid for record in store.read(start)), None) == first
        store.close()


def test_a_checkpoint_says_where_unless_its_boundary_was_undone_or_it_points_ahead(tmp_path: Path) -> None:
    before: list[Record] = [message(1), message(2, 1)]
    for store in both([*before, *compacted("b1", start=1)], tmp_path):
        start, checkpoint = store.resume_point()
        assert (start, checkpoint and checkpoint.uuid) == (1, "b1-c")
        store.append([Checkpoint("ahead", "m2", "t", "b1", 10**9)])
        assert store.resume_point()[0] == 1
        store.append([Revoke("k", None, "t", "b1")])
        assert store.resume_point() == (0, None)
        assert load_live(store).start == 0
        store.close()


def test_a_boundary_inside_a_damaged_line_is_found(tmp_path: Path) -> None:
    store, _ = both([message(1), message(2, 1), *compacted("b1")[:2]], tmp_path)
    store.close()
    assert store.path is not None
    lines = store.path.read_bytes().splitlines()
    store.path.write_bytes(b"\n".join([lines[0], lines[1][:40] + lines[2], lines[3], b""]))
    start, _ = find_resume_point(raw_lines_back(store.path))
    assert [record.uuid for record in read_transcript(store.path, start=start)] == ["b1", "b1-summary"]


def test_a_session_in_memory_reads_its_source_as_a_file_would_and_its_own_lines_behind_it(tmp_path: Path) -> None:
    store, _ = both([message(1), message(2, 1)], tmp_path)
    start = store.append(compacted("b1"))
    store.append([Checkpoint("c", "m2", "t", "b1", start, {"count": {"fixed": 3}})])
    store.close()
    assert store.path is not None
    memory = InMemoryTranscript(ENVELOPE, SourceTranscript(store.path))
    point = memory.resume_point()
    assert point[0] == start
    assert point[1] is not None
    offset = memory.append([message(3, 2), message(4, 3)])
    assert uuids(memory) == ["m1", "m2", "b1", "b1-summary", "b1-c", "c", "m3", "m4"]
    assert [record.uuid for record in memory.read(offset)] == ["m3", "m4"]
    assert [record.uuid for record in memory.read(memory.offset_of(["m4"]))] == ["m4"]
    assert memory.resume_point() == point


OURS, THEIRS = b'{"type":"user","uuid":"m1","lamina":{"v":1}}', b'{"type":"user","uuid":"m2"}'
NEWER = b'{"type":"user","uuid":"m3","lamina":{"v":%d}}' % (FORMAT + 1)


@pytest.mark.parametrize(
    ("rows", "ours", "newer"),
    [
        ([], True, None),
        ([b"", b"garbage"], True, None),
        ([OURS], True, None),
        ([THEIRS], False, None),
        ([OURS, THEIRS], False, None),
        ([THEIRS, OURS, b"garbage"], True, None),
        ([THEIRS, OURS, THEIRS[:20]], True, None),
        ([OURS, THEIRS[:20] + b'{"type":"x","sessionId":"s","lamina":{"v":1}}'], True, None),
        ([OURS, NEWER], True, FORMAT + 1),
        ([NEWER, OURS], True, None),
    ],
)
def test_who_wrote_a_transcript_last_stands_at_its_end(tmp_path: Path, rows: list[bytes], ours: bool, newer: int | None) -> None:
    path = source_with(tmp_path / "x.jsonl", rows)
    assert (read_origin(path).ours, read_origin(path).newer) == (ours, newer)
    if newer is not None:
        sentence = f"written in format {newer} by a newer version of Lamina; this version writes format {FORMAT}"
        with pytest.raises(NewerVersion, match=sentence):
            refuse_newer(path)
    else:
        refuse_newer(path)


UUID = "0123abcd-0000-4000-8000-00000000000"


def test_a_transcript_is_found_by_its_name_first_here_and_then_elsewhere(tmp_path: Path) -> None:
    for project, name in (("here", UUID + "1"), ("there", UUID + "2"), ("there", "user-1"), ("here", "user-12")):
        (tmp_path / project).mkdir(exist_ok=True)
        (tmp_path / project / f"{name}.jsonl").touch()
    (tmp_path / "a-file").touch()
    assert find_transcript(tmp_path, "here", UUID + "2").parent.name == "there"
    assert find_transcript(tmp_path, "here", "0123").stem == UUID + "1"
    assert find_transcript(tmp_path, "there", "0123").stem == UUID + "2"
    assert find_transcript(tmp_path, "here", "user-1").parent.name == "there"
    for missing in ("user", "012", "0123abce", "*", "nobody"):
        with pytest.raises(NoSuchSession):
            find_transcript(tmp_path, "here", missing)
    (tmp_path / "here" / f"{UUID}3.jsonl").touch()
    with pytest.raises(InputError, match="'0123' matches 2 sessions; give more characters of the id"):
        find_transcript(tmp_path, "here", "0123")
    with pytest.raises(NoSuchSession):
        find_transcript(tmp_path / "nowhere", "here", UUID + "1")


def test_the_newest_is_the_one_written_last_that_has_begun(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    directory.mkdir()
    for seconds, name in enumerate(("old", "new", "empty")):
        path = directory / f"{name}.jsonl"
        path.write_bytes(b"" if name == "empty" else OURS)
        os.utime(path, (1_000 + seconds, 1_000 + seconds))
    (directory / "directory.jsonl").mkdir()
    (directory / "notes.txt").write_text("x")
    (directory / "link.jsonl").symlink_to(directory / "old.jsonl")
    assert newest_transcript(tmp_path, "p").stem == "new"
    with pytest.raises(NoSuchSession, match="sessions list"):
        newest_transcript(tmp_path, "q")


def test_the_lock_lies_beside_the_other_files_of_the_session(tmp_path: Path) -> None:
    assert lock_path(tmp_path / "p" / "abc.jsonl") == tmp_path / "p" / "abc" / "writer.lock"

"""A disk that is full, read-only or gone: one sentence, and the conversation goes on; nothing said is lost from memory."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.disk.crash.harness import Fail, Say, every
from tests.disk.processes import needs_fork, run_child
from tests.session.plain import Session

from lamina.core.errors import DiskError
from lamina.core.records import Message
from lamina.disk.crash_points import watched

from .play import turns
from .words import READ, answer, assistant, call, files_under, records, refused, said, user

TALK = ["a", "about a", "b", "about b"]


def ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@contextmanager
def failing(code: int) -> Iterator[None]:
    """Every write and every new file of this process fails."""

    def watch(name: str, _: int) -> None:
        if name in ("append.write", "append.seal", "append.fsync", "dir.make", "file.open"):
            raise OSError(code, os.strerror(code))

    with watched(watch):
        yield


@needs_fork
def test_a_session_on_a_disk_that_fills_up_goes_on_and_is_written_when_there_is_space(tmp_path: Path) -> None:
    def child() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Session("offline", home=tmp_path) as session:
            turns(session, "a")
            assert session.path is not None
            size = session.path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 700, resource.RLIM_INFINITY))
            request = turns(session, "b", "c" * 3_000)[-1]
            session.end_turn()
            assert refused(request) == []
            assert "in memory for the next write" in (session.status.write_error or "")
            assert "\n" not in (session.status.write_error or "")
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            session.end_turn()
            assert session.status.write_error is None
            (tmp_path / "id").write_text(session.id)

    assert ended_well(run_child(child))
    with Session("offline", home=tmp_path, resume=(tmp_path / "id").read_text()) as again:
        assert said(again.messages) == [*TALK, "c" * 3_000, "about " + "c" * 3_000]


@needs_fork
@pytest.mark.spec("Z4", "Z6")
@pytest.mark.parametrize("fault", [Fail(errno.ENOSPC), Fail(errno.ENOSPC, forever=True), Fail(errno.EIO)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_system_call_fails_the_turns_go_on(tmp_path: Path, fault: Fail) -> None:
    def act(directory: Path, say: Say) -> None:
        with Session("offline", home=directory / "home", system="s", tools=[READ]) as session:
            for request in turns(session, "a", "b"):
                assert refused(request) == []
            session.end_turn()
            assert said(session.messages) == TALK
            assert session.status.write_error is None or "\n" not in session.status.write_error
            say(" ".join(session.notices) or session.id)

    for run in every(tmp_path, Path.is_dir, act, fault):
        assert run.ended == "finished", run
        told = run.said[0]
        if " " in told:
            assert told.endswith("This session is kept in memory only and cannot be resumed."), run
        elif not fault.forever:
            with Session("offline", home=run.directory / "home", resume=told) as again:
                assert said(again.messages) == TALK, run
                assert len(again.notices) <= 1, run


def test_a_home_that_is_a_file_leaves_a_session_in_memory_that_says_so(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("not a directory")
    with Session("offline", home=home) as session:
        assert session.notices == [
            f"{home}: is a file, not a directory; move it, or set LAMINA_HOME to a directory. "
            "This session is kept in memory only and cannot be resumed."
        ]
        assert said(turns(session, "a", "b")[1]["messages"]) == ["a", "about a", "b"]
        assert session.path is None
    assert home.read_text() == "not a directory"


def test_without_a_home_a_session_lives_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE", "LAMINA_HOME"):
        monkeypatch.delenv(name)
    with Session("offline") as session:
        assert session.notices == [
            "No home directory found, so your user settings are not read. Set LAMINA_HOME.",
            "No home directory found, so this session is kept in memory only. Set LAMINA_HOME or HOME to save sessions.",
        ]
        turns(session, "a")


def test_a_session_whose_files_cannot_be_written_is_continued_in_memory(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
    before = {path: path.read_bytes() for path in files_under(tmp_path)}
    with failing(errno.EROFS), Session("offline", home=tmp_path, resume=session.id) as again:
        assert len(again.notices) == 1
        assert again.notices[0].endswith("The session continues in memory only: new messages will not be saved.")
        turns(again, "b")
        assert said(again.messages) == TALK
    assert {path: path.read_bytes() for path in files_under(tmp_path)} == before


def test_a_directory_replaced_by_a_file_under_a_live_session_stops_nothing(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home") as session:
        turns(session, "a")
        shutil.rmtree(tmp_path / "home")
        (tmp_path / "home").write_text("in the way")
        turns(session, "b")
        session.end_turn()
        assert "was removed while in use" in (session.status.write_error or "")
        turns(session, "c")
        assert "in memory for the next write" in (session.status.write_error or "")
        assert said(session.messages) == [*TALK, "c", "about c"]
        (tmp_path / "home").unlink()
        session.end_turn()
        assert session.status.write_error is None
        written = [record for record in records(session.path) if isinstance(record, Message)]
        assert [block.wire["text"] for record in written for block in record.blocks] == ["c", "about c"]


def test_a_home_removed_under_a_live_session_loses_nothing_from_memory(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home") as session:
        session.sync([user("a"), assistant("about a"), user("b", "and"), assistant("x")])
        shutil.rmtree(tmp_path / "home")
        session.sync([user("a"), assistant("about a"), user("b"), assistant("about b")])
        assert said(session.messages) == TALK
        session.end_turn()
        assert "was removed" in (session.status.write_error or "")
        turns(session, "c")
        session.sync([user("a"), assistant("about a"), user("b"), assistant("other")])
        assert said(session.messages) == ["a", "about a", "b", "other"]
        session.add_user("d")
        assert refused(session.before_call()) == []


def test_a_transcript_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
    assert session.path is not None
    data = session.path.read_bytes()
    session.path.unlink()
    session.path.mkdir()
    with pytest.raises(Exception, match="not found in") as told:
        Session("offline", home=tmp_path, resume=session.id)
    assert "\n" not in str(told.value)
    session.path.rmdir()
    session.path.write_bytes(data)
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == ["a", "about a"]


def test_an_answer_that_cannot_be_written_is_still_part_of_the_next_request(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        with failing(errno.ENOSPC):
            session.after_call(answer("m1", call("c1")))
            session.add_tool_result("c1", "r")
            request = session.before_call()
            session.sync([user("a")])
            assert said(session.messages) == ["a"]
        session.end_turn()
        assert refused(request) == []
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == ["a"]
        again.sync([user("a"), assistant(call("c1"))])
        assert again.status.open_calls == ("c1",)


def test_a_disk_error_names_the_file(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
        with failing(errno.EACCES):
            session.add_user("b")
            assert (session.status.write_error or "").startswith(f"{session.path}: is not writable; check its permissions")
        assert not isinstance(session.status.write_error, DiskError)

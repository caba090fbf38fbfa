"""One writer per transcript: however many processes and threads open a session at once, no file ever has two of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import groupby
from pathlib import Path

import pytest
from tests.disk.processes import needs_fork, run_child, together
from tests.session.plain import Session

from lamina.core.errors import InputError, SessionClosed
from lamina.core.records import Forked, Message
from lamina.disk.locks.lock_file import live_holder
from lamina.disk.transcripts.store import lock_path

from .play import turns
from .words import answer, records, refused, said

HOLD = """
import sys
from tests.session.plain import Session
session = Session("offline", home=sys.argv[1], resume=sys.argv[2])
session.add_user("from the other process")
print("held", flush=True)
sys.stdin.readline()
session.add_user("still here")
session.close()
"""


def test_a_session_open_in_another_process_is_continued_in_a_file_of_its_own(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), session.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with Session("offline", home=tmp_path, resume=session.id) as fork:
        assert fork.notices == [f"Session {session.id} continues as {fork.id}, because it is open in another process."]
        assert said(fork.messages) == ["a", "about a", "from the other process"]
        fork.add_user("mine")
        assert refused(fork.before_call()) == []
    assert holder.communicate("go\n")[0] == ""
    assert holder.returncode == 0
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.notices == []
        assert said(again.messages) == ["a", "about a", "from the other process", "still here"]
    with Session("offline", home=tmp_path, resume=fork.id) as again:
        assert said(again.messages)[-1] == "mine"


def test_a_session_open_twice_in_one_process_is_forked_too(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        with Session("offline", home=tmp_path, resume=session.id) as fork:
            assert fork.id != session.id
            fork.add_user("b")
            assert [record.from_session for record in records(fork.path) if isinstance(record, Forked)] == [session.id]
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.id == session.id


ROUNDS, PROCESSES, WORDS = 6, 4, 5


@pytest.mark.exhaustive
@needs_fork
@pytest.mark.spec("Z3")
def test_many_processes_that_resume_one_session_lose_no_record_and_share_no_file(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home", system="s") as session:
        turns(session, "a")

    for round_number in range(ROUNDS):

        def resume(number: int, round_number: int = round_number) -> None:
            with Session("offline", home=tmp_path / "home", resume=session.id) as mine:
                for word in range(WORDS):
                    mine.add_user(f"{round_number} {number} {word}")
                assert refused(mine.before_call()) == []
                mine.after_call(answer(f"m-{round_number}-{number}", "heard"))
                (tmp_path / f"{round_number}-{number}").write_text(str(mine.path))

        together(PROCESSES, resume)
        for number in range(PROCESSES):
            path = Path((tmp_path / f"{round_number}-{number}").read_text())
            writers = [words.rsplit(" ", 1)[0] for words in spoken(path) if words[0].isdigit()]
            assert writers.count(f"{round_number} {number}") == WORDS
            runs = [writer for writer, _ in groupby(writers)]
            assert len(runs) == len(set(runs)), f"two writers at once in {path}"
            with Session("offline", in_memory=True, resume=path) as seen:
                assert said(seen.messages)[:2] == ["a", "about a"]
                assert seen.notices == []


def spoken(path: Path) -> list[str]:
    rows = [record for record in records(path) if isinstance(record, Message) and record.role == "user"]
    return [block.wire["text"] for record in rows for block in record.blocks]


@needs_fork
def test_many_processes_that_want_one_new_id_agree_on_one(tmp_path: Path) -> None:
    def begin(number: int) -> None:
        try:
            with Session("offline", home=tmp_path / "home", session_id="the-one") as session:
                session.add_user(f"{number}")
                (tmp_path / f"won-{number}").touch()
        except InputError:
            (tmp_path / f"lost-{number}").touch()

    together(6, begin)
    assert len(list(tmp_path.glob("won-*"))) == 1
    assert len(list(tmp_path.glob("lost-*"))) == 5
    with Session("offline", home=tmp_path / "home", resume="the-one") as session:
        assert len(said(session.messages)) == 1


@needs_fork
def test_a_child_forked_from_a_server_neither_writes_nor_frees_its_parents_session(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "a")
        assert session.path is not None
        before = session.path.read_bytes()

        def child() -> None:
            turns(session, "b")
            assert "forked from" in (session.status.write_error or "")
            assert said(session.messages)[-1] == "about b"
            session.close()

        assert os.waitstatus_to_exitcode(os.waitpid(run_child(child), 0)[1]) == 0
        assert session.path.read_bytes() == before
        assert live_holder(lock_path(session.path)) is not None
        turns(session, "c")
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == ["a", "about a", "c", "about c"]


def test_threads_that_share_a_session_wait_for_each_other(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        failures: list[BaseException] = []

        def talk(number: int) -> None:
            try:
                for word in range(20):
                    session.add_user(f"{number} {word}")
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(said(session.messages)) == 160
        assert refused(session.before_call()) == []
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.messages == session.messages


def test_a_session_closed_by_another_thread_says_so_to_whoever_waited(tmp_path: Path) -> None:
    def talk(session: Session, heard: list[type[BaseException]]) -> None:
        try:
            while True:
                session.add_user("a")
        except (SessionClosed, ValueError) as error:
            heard.append(type(error))

    for number in range(20):
        session = Session("offline", in_memory=number % 2 == 0, home=tmp_path)
        heard: list[type[BaseException]] = []
        threads = [threading.Thread(target=talk, args=(session, heard)) for _ in range(4)]
        for thread in threads:
            thread.start()
        session.close()
        for thread in threads:
            thread.join()
        assert heard == [SessionClosed] * 4

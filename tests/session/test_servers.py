"""Many sessions in one process: nothing is shared, and nothing outside their homes is touched."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.session.plain import Session

from .play import turns
from .words import READ, files_under, refused, said, user

SESSIONS = 50


def in_threads(count: int, action: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            action(number)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("in_memory", [False, True])
def test_fifty_sessions_in_threads_share_nothing(tmp_path: Path, in_memory: bool) -> None:
    def talk(number: int) -> None:
        home = tmp_path / f"home-{number}"
        with Session(
            "offline", home=home, in_memory=in_memory, system=f"you serve {number}", tools=[READ | {"name": f"Tool{number}"}]
        ) as session:
            requests = turns(session, *(f"{number} {word}" for word in range(3)))
            session.sync([user(f"{number} anew")])
            requests.append(session.before_call())
            for request in requests:
                assert refused(request) == []
                assert request["system"][0]["text"] == f"you serve {number}"
                assert [tool["name"] for tool in request["tools"]] == [f"Tool{number}"]
                assert all(f"{number} " in words for words in said(request["messages"]))
            assert session.status.usage.output_tokens == 15
            assert session.status.cache_breaks == 1
            if not in_memory:
                assert session.path is not None
                assert session.path.is_relative_to(home)

    in_threads(SESSIONS, talk)
    homes = {path.relative_to(tmp_path).parts[0] for path in files_under(tmp_path)}
    assert homes == (set() if in_memory else {f"home-{number}" for number in range(SESSIONS)})
    assert not in_memory or list(tmp_path.iterdir()) == []


def test_two_tenants_with_the_same_id_do_not_meet(tmp_path: Path) -> None:
    for tenant in ("one", "two"):
        with Session("offline", home=tmp_path / tenant, session_id="main", cwd=tmp_path) as session:
            session.add_user(f"I am {tenant}")
    for tenant in ("one", "two"):
        with Session("offline", home=tmp_path / tenant, resume="main", cwd=tmp_path) as session:
            assert said(session.messages) == [f"I am {tenant}"]


def test_a_session_touches_nothing_but_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (work / "file").write_text("x")
    monkeypatch.chdir(work)
    environment, elsewhere = dict(os.environ), list(files_under(Path(os.environ["HOME"])))
    with Session("offline", home=home) as session:
        turns(session, "a", "b")
        session.end_turn()
        with Session("offline", home=home, resume=session.id) as fork:
            turns(fork, "c")
    with Session("offline", in_memory=True) as memory:
        turns(memory, "a")
    assert dict(os.environ) == environment
    assert Path.cwd() == work
    assert [path.name for path in work.iterdir()] == ["file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "work"]
    assert list(files_under(Path(os.environ["HOME"]))) == elsewhere


@pytest.mark.spec("Z9")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_a_session_writes_is_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Session("offline", home=tmp_path / "home") as session:
            turns(session, "a")
            with Session("offline", home=tmp_path / "home", resume=session.id) as fork:
                turns(fork, "b")
    finally:
        os.umask(before)
    found = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    assert len(found) > 5
    assert {(path.is_dir(), oct(path.stat().st_mode & 0o777)) for path in found} == {(True, "0o700"), (False, "0o600")}


def test_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    Session("offline", home=home).close()
    assert home.stat().st_mode & 0o777 == 0o755


def test_descriptors_and_threads_are_given_back(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("needs /proc")
    Session("offline", home=tmp_path).close()
    before, threads = len(list(descriptors.iterdir())), threading.active_count()
    for _ in range(30):
        with Session("offline", home=tmp_path) as session:
            session.add_user("a")
        with Session("offline", home=tmp_path, resume=session.id) as again, Session("offline", home=tmp_path, resume=session.id):
            again.add_user("b")
    assert len(list(descriptors.iterdir())) == before
    assert threading.active_count() == threads


def test_a_long_conversation_costs_what_is_new_in_it(tmp_path: Path) -> None:
    """Counted in calls, not in seconds: the work of a turn late in a session is that of an early one."""
    import sys

    def work(action: Callable[[], object]) -> int:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            action()
        finally:
            sys.setprofile(None)
        return calls

    with Session("offline", home=tmp_path, window=1_000_000) as session:
        messages = [user("hello")]
        session.sync(messages)

        def turn() -> None:
            session.sync(messages)
            session.before_call()

        costs = []
        for number in range(200):
            messages += [{"role": "assistant", "content": f"answer {number}"}, user(f"question {number}")]

            costs.append(work(turn))
        early, late = sum(costs[20:40]), sum(costs[180:200])
        # The list is looked through by identity, which costs a little for each message; everything else is paid once.
        assert late < early * 6, (early, late)

"""A session killed before every system call of a spill: resumed, it sends what was sent, and no preview lacks its file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.disk.crash.harness import Extent, Fail, Kill, Say, Short, every
from tests.disk.processes import needs_fork
from tests.session.plain import Session

from lamina.core.blocks import tool_result
from lamina.core.policy import CLASSIC, OncePolicy
from lamina.core.records import Message, Spill
from lamina.disk.temp_files import is_temp
from lamina.layers.l1_results.reopen import open_spill
from lamina.session.base import add_results, conversation_of

from .spills import LINES, asked, contents, directory, spills, use
from .words import Wire, answer, records, refused, unmarked

pytestmark = needs_fork


def prepare(home: Path) -> None:
    with Session("offline", home=home, session_id="s", cwd=home) as session:
        asked(session, use("before"))
        session.add_tool_result("before", LINES)
        session.before_call()
        session.after_call(answer("m2", use("a"), use("b"), use("c")))


def spill_two(home: Path, say: Say) -> None:
    """One by a batch, one by being judged together, then the request they leave in."""
    with Session("offline", home=home, resume="s", cwd=home) as session:
        add_results(session, [tool_result("a", "a" * 60_000), tool_result("b", "b" * 150_000)])
        say("results")
        session.add_tool_result("c", "c" * 100)
        session.before_call()
        session.end_turn()
        say("sent")


def next_request(home: Path) -> Wire:
    with Session("offline", home=home, resume="s", cwd=home) as session:
        for name in session.status.open_calls:
            session.add_tool_result(name, "again")
        request: Wire = unmarked(session.before_call())
        assert session.status.cache_breaks == 0
        return request


@pytest.mark.spec("R4", "B1")
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True)], ids=["killed", "torn"])
@pytest.mark.usefixtures("crash_points")
def test_killed_anywhere_every_preview_has_its_whole_file_and_the_resumed_request_is_the_same_twice(
    tmp_path: Path, fault: Kill
) -> None:
    met = set()
    for run in every(tmp_path, prepare, spill_two, fault):
        met.add(run.point)
        first, second = next_request(run.directory), next_request(run.directory)
        assert json.dumps(first) == json.dumps(second), run
        assert refused(first) == [], run
        with Session("offline", home=run.directory, resume="s", cwd=run.directory) as session:
            # What the process died behind without its message is taken back: the result that came then is the one that is shown.
            standing = [made for made in conversation_of(session).log.decisions.values() if isinstance(made, Spill)]
            assert all(isinstance(open_spill(spill), str) for spill in spills(session)), run
            assert all(contents(first)[spill.tool_use_id] == spill.preview for spill in standing), run
            shown = contents(first)
            assert all(shown[name].startswith("<persisted-output>") or shown[name] == "again" for name in ("a", "b")), run
            if "results" in run.said:
                assert {"before", "a", "b"} <= {spill.tool_use_id for spill in spills(session)}, run
            assert all(
                path.stat().st_size in (len(LINES), 60_000, 150_000)
                for path in directory(session).iterdir()
                if not is_temp(path.name)
            ), run
    # Torn writes are tried at every write and at a third of the other points.
    assert {"spill.write", "append.write", *(() if fault.torn else ("temp.create", "temp.rename"))} <= met or not Extent.every


ONCE = replace(CLASSIC, once=OncePolicy(from_chars=1_500, preview=500))
SEEN = "seen"


def show_once(home: Path, say: Say) -> None:
    with Session("offline", home=home, resume="s", cwd=home, policy=ONCE) as session:
        add_results(session, [tool_result("a", "a" * 6_000), tool_result("b", "b"), tool_result("c", "c")])
        session.before_call()
        session.after_call(answer(SEEN, "I see."))
        session.add_user("and now?")
        session.end_turn()


@pytest.mark.spec("P3", "R4")
@pytest.mark.usefixtures("crash_points")
def test_killed_anywhere_a_result_is_whole_exactly_until_its_answer_is_in_the_log(tmp_path: Path) -> None:
    for run in every(tmp_path, prepare, show_once, Kill(torn=True)):
        with Session("offline", home=run.directory, resume="s", cwd=run.directory, policy=ONCE) as session:
            seen = any(isinstance(one, Message) and one.message_id == SEEN for one in records(session.path))
            for name in session.status.open_calls:
                session.add_tool_result(name, "again")
            session.add_user("go on")
            request = session.before_call()
            shown = contents(request)["a"]
            made = [one for one in conversation_of(session).log.decisions.values() if isinstance(one, Spill) and one.once]
            assert refused(request) == [], run
            assert shown == "again" if not made else shown == (made[0].preview if seen else "a" * 6_000), run
            assert all(open_spill(one) == "a" * 6_000 for one in made), run
            assert session.status.cache_breaks == 0, run


@pytest.mark.parametrize("fault", [Fail(errno.ENOSPC), Fail(errno.EIO), Short()], ids=["full", "broken", "short"])
@pytest.mark.usefixtures("crash_points")
def test_one_failing_call_anywhere_loses_no_result(tmp_path: Path, fault: Fail | Short) -> None:
    # Each fault at every third call, each beginning at another: together they meet them all.
    start = {Fail(errno.ENOSPC): 1, Fail(errno.EIO): 2}.get(fault, 3) if isinstance(fault, Fail) else 3
    for run in every(tmp_path, prepare, spill_two, fault, step=3, start=start):
        if run.ended != "finished":
            assert run.error, run  # the session could not be opened
            continue
        shown = contents(next_request(run.directory))
        for name, size in (("a", 60_000), ("b", 150_000)):
            if not shown[name].startswith("<persisted-output>"):
                assert shown[name] in (name * size, "again"), run


def test_what_a_killed_writer_left_is_swept_by_the_next_spill(tmp_path: Path) -> None:
    left = None
    for run in every(tmp_path, prepare, spill_two, Kill(torn=True)):
        if run.point == "spill.write":
            left = run.directory
            break
    assert left is not None
    with Session("offline", home=left, resume="s", cwd=left) as session:
        assert any(is_temp(name) for name in os.listdir(directory(session)))
        session.add_tool_result("a", LINES)
        assert not any(is_temp(name) for name in os.listdir(directory(session)))


@pytest.mark.spec("R4")
def test_a_fork_of_a_live_session_shows_the_same_previews(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, session_id="s", cwd=tmp_path) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        before = contents(session.before_call())
        session.after_call(answer("m2", "seen"))
        with Session("offline", home=tmp_path, resume="s", cwd=tmp_path) as forked:
            assert forked.id != "s"
            forked.add_user("go on")
            assert contents(forked.before_call()) == before
            (spill,) = (made for made in conversation_of(forked).log.decisions.values() if isinstance(made, Spill))
            assert open_spill(spill) == LINES

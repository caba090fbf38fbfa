"""A clearing killed before every system call: the resumed session sends the same next request, and no marker points nowhere."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.disk.crash.harness import Extent, Fail, Fault, Kill, Run, Say, Short, every
from tests.disk.processes import needs_fork
from tests.session.plain import Session

from lamina.core.policy import CLASSIC

from .clearing import LONG, begun, called, cleared, clearings, numbered, opened, quiet, shown, work
from .words import Wire, reasons, refused

pytestmark = needs_fork

NAME = "the-session"
# An effective window of 9,000: from 6,000 on, 2,000 tokens of results stay and 1,000 must be saved.
SMALL = 12_000
EARLY = replace(CLASSIC, window=replace(CLASSIC.window, warning_offset=60_000))


def home(directory: Path) -> Path:
    return directory / "home"


def prepare(directory: Path) -> None:
    """A session that is over the warning and has cleared nothing yet."""
    home(directory).mkdir()
    off = quiet(size_clearing=False)
    with begun(opened(home(directory), policy=EARLY, window=SMALL, session_id=NAME, settings=off)) as session:
        number = 0
        while not session.window_state.above_warning:
            work(session, numbered(1, number))
            number += 1


def resumed(directory: Path) -> Session:
    return opened(home(directory), policy=EARLY, window=SMALL, resume=NAME)


def act(directory: Path, say: Say) -> None:
    with resumed(directory) as session:
        request = session.before_call()
        say(json.dumps(cleared(request)))
        called(session, "after")
        say("answered")


def plain(request: Wire, directory: Path) -> Wire:
    """Without what differs by the place a run is in: the path itself, and the slug it gives."""
    text = json.dumps({"messages": request["messages"]})
    slug = "-".join(part for part in str(directory).replace("_", "-").replace(".", "-").split("/"))
    found: Wire = json.loads(text.replace(str(directory), "HERE").replace(slug, "SLUG"))
    return found


def expected(base: Path) -> Wire:
    whole = base / "whole"
    whole.mkdir()
    prepare(whole)
    with resumed(whole) as session:
        return plain(session.before_call(), whole)


def check(run: Run, wanted: Wire) -> None:
    with resumed(run.directory) as session:
        if "after" in session.status.open_calls:
            session.add_tool_result("after", "short")
        request = session.before_call()
        assert refused(request) == []
        assert cleared(request) == cleared(wanted), run
        if "answered" not in run.said and not session.status.open_calls and len(request["messages"]) == len(wanted["messages"]):
            assert plain(request, run.directory) == wanted, run
        for name in cleared(request):
            path = shown(request)[name].split(" is in ")[1].split(" and can")[0]
            assert Path(path).read_text() == LONG, run
        assert set(reasons(session.path)) <= {"clearing"}
        assert len(clearings(session.path)) == 1


@pytest.mark.spec("M2", "Z4")
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True)], ids=["between calls", "in the middle of a write"])
@pytest.mark.usefixtures("crash_points")
def test_killed_anywhere(tmp_path: Path, fault: Fault) -> None:
    wanted = expected(tmp_path)
    seen = 0
    for run in every(tmp_path, prepare, act, fault):
        check(run, wanted)
        seen += 1
    assert seen > 10 or not Extent.every


@pytest.mark.parametrize("fault", [Fail(errno.ENOSPC), Fail(errno.EROFS), Short()], ids=["full", "read-only", "short writes"])
@pytest.mark.usefixtures("crash_points")
def test_failing_once_anywhere(tmp_path: Path, fault: Fault) -> None:
    # Each fault at every third call, each beginning at another: together they meet them all.
    start = {Fail(errno.ENOSPC): 1, Fail(errno.EROFS): 2}.get(fault, 3) if isinstance(fault, Fail) else 3
    for run in every(tmp_path, prepare, act, fault, step=3, start=start):
        if run.ended == "raised":
            continue
        with resumed(run.directory) as session:
            if "after" in session.status.open_calls:
                session.add_tool_result("after", "short")
            request = session.before_call()
            assert refused(request) == []
            gone = cleared(request)
            assert gone == numbered(len(gone)), "oldest first, also where a part of it came later"
            assert len(gone) >= 2, "what was saved in time is enough to be worth it"
            for name in cleared(request):
                path = shown(request)[name].split(" is in ")[1].split(" and can")[0]
                assert Path(path).read_text() == LONG, run

"""A compaction with notes, stopped before every system call: the old view or the new one, and the session goes on."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from tests.disk.crash.harness import Fail, Kill, Say, every
from tests.disk.processes import needs_fork
from tests.session.plain import Session

from lamina.core.settings import Settings
from lamina.session.base import conversation_of

from .noting import LONG, WINDOW, boundaries, notes_file
from .noting import fill as grow
from .words import refused, said

pytestmark = [pytest.mark.exhaustive, needs_fork]

# Notes are there and stay as they are; only compaction with them is looked at.
QUIET = Settings(session_notes=False)
CWD = Path("/")


def opened(home: Path, settings: Settings = QUIET) -> Session:
    return Session("offline", home=home, cwd=CWD, window=WINDOW, settings=settings, resume="noted")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a session that is one message away from its threshold."""
    home = tmp_path_factory.mktemp("full")
    with Session("offline", home=home, cwd=CWD, window=WINDOW, session_id="noted") as session:
        grow(session, conversation_of(session).limits.autocompact - 1_500)
        assert notes_file(session).exists()
        session.add_user(LONG * 3)
    return home


def compact(directory: Path, say: Say) -> None:
    with opened(directory / "home") as session:
        session.before_call()
        say("sent")


@pytest.mark.spec("N6", "Z1", "Z4")
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True), Fail(errno.ENOSPC)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_a_compaction_the_view_is_the_old_one_or_the_new_one(
    tmp_path: Path, full: Path, fault: Kill | Fail
) -> None:
    with opened(full) as before:
        old = before.messages
    seen = set()
    for run in every(tmp_path, lambda directory: shutil.copytree(full, directory / "home"), compact, fault):
        with opened(run.directory / "home") as session:
            new = "# Session Title" in said(session.messages)[0]
            assert new or session.messages == old, run
            assert len(boundaries(session)) <= 1, run
            assert notes_file(session).exists(), run
            request = session.before_call()
            assert refused(request) == [], run
            assert "# Session Title" in said(request["messages"])[0], run
            assert LONG * 3 in said(request["messages"]), run
            seen.add(new)
    assert seen == {True, False}

"""Spilled results through the public doors: streams by add_tool_result, lists that the caller owns, commands of an agent."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.session.plain import Session

from .spills import LINES, contents, directory, spills, use
from .words import Wire, answer, assistant, result, user

CALLS = assistant(use("a"), use("b"), use("c"))


def rows() -> list[Wire]:
    """The caller's own list, made anew each time."""
    return [user("look"), CALLS, user(result("a", LINES), result("b", ""), result("c", "short"), "and these words")]


@pytest.mark.spec("R1", "R2")
def test_an_open_file_is_handed_in_by_add_tool_result(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(LINES)
    with Session("offline") as session, (tmp_path / "out").open("rb") as stream:
        session.add_user("look")
        session.before_call()
        session.after_call(answer("m1", use("a"), use("b")))
        session.add_tool_result("a", stream)
        session.add_tool_result("b", io.BytesIO(b"short"))
        shown = contents(session.before_call())
        assert shown["b"] == "short"
        assert shown["a"].startswith("<persisted-output>")
        assert (directory(session) / "a.txt").read_text() == LINES


@pytest.mark.spec("R3", "R4")
def test_a_list_that_the_caller_owns_is_known_again_though_its_big_result_is_in_a_file() -> None:
    with Session("offline", session_id="s") as session:
        session.sync(rows())
        first = contents(session.before_call())
        assert first["a"].startswith("<persisted-output>")
        assert first["b"] == "(Grep completed with no output)"
        session.sync(rows())  # equal, and other objects
        assert contents(session.before_call()) == first
        assert session.status.cache_breaks == 0
        assert len(spills(session)) == 1
    with Session("offline", resume="s") as session:
        session.sync(rows())
        assert contents(session.before_call()) == first
        assert session.status.cache_breaks == 0


def test_a_big_result_that_the_caller_changed_is_another_branch() -> None:
    with Session("offline") as session:
        session.sync(rows())
        session.before_call()
        changed = rows()
        changed[2] = user(result("a", LINES.replace("line 7\n", "LINE 7\n")), result("b", ""), result("c", "short"))
        session.sync(changed)
        assert "LINE 7" in contents(session.before_call())["a"]

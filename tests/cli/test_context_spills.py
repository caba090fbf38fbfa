"""`lamina context` lists the results stored in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.session.spills import LINES, asked, directory, use

from lamina.session.session import Session

from .running import here


@pytest.mark.spec("B1")
def test_results_in_files_are_listed_newest_last(tmp_path: Path) -> None:
    with Session("offline", session_id="s", cwd=tmp_path) as session:
        names = [f"c{number}" for number in range(12)]
        asked(session, *(use(name) for name in names))
        for name in names:
            session.add_tool_result(name, LINES)
        place = directory(session)
    done = here("context", "s", cwd=tmp_path)
    assert f"Large results stored in files ({12 * len(LINES):,} bytes in total):" in done.stdout
    assert "c11.txt" in done.stdout
    assert "c1.txt" not in done.stdout
    assert "and 2 older" in done.stdout
    found = json.loads(here("context", "s", "--json", cwd=tmp_path).stdout)["spilled"]
    assert found == [{"tool_use_id": name, "path": str(place / f"{name}.txt"), "bytes": len(LINES)} for name in names]


def test_a_session_without_such_results_says_nothing_of_them(tmp_path: Path) -> None:
    with Session("offline", session_id="s", cwd=tmp_path) as session:
        asked(session, use("a"))
        session.add_tool_result("a", "short")
    assert "in files" not in here("context", "s", cwd=tmp_path).stdout

"""Searches skip the files that a deny rule hides from Read."""

from __future__ import annotations

from pathlib import Path

from lamina.agent.agent import Agent
from lamina.core.settings import Settings


def test_a_search_leaves_out_files_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("password: open\n")
    (tmp_path / "secret.txt").write_text("password: hidden\n")
    settings = Settings(permissions={"deny": ["Read(./secret.txt)"]})
    with Agent.open("offline", cwd=tmp_path, home=tmp_path / ".home", settings=settings) as agent:
        found = agent.run("search password").text
    assert "notes.txt:1:password: open" in found
    assert "hidden" not in found

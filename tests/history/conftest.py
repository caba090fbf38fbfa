"""A project with sessions of Claude Code, Codex and pi, each where its agent keeps it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from .agents import claude_home, codex_home, pi_home


class Agents(NamedTuple):
    project: Path
    claude: Path
    codex: Path
    pi: Path
    database: Path


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agents:
    project = tmp_path / "project"
    project.mkdir()
    person = Path(os.environ["HOME"])
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    found = (
        claude_home(person / ".claude", project),
        codex_home(tmp_path / "codex", project),
        pi_home(person / ".pi/agent", project),
    )
    for seconds, path in enumerate(found):
        os.utime(path, (1_800_000_000 + seconds, 1_800_000_000 + seconds))
    return Agents(project, *found, Path(os.environ["LAMINA_HOME"]) / "cache" / "sessions.sqlite")

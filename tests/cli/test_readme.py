"""Run the README's commands in order, in a separate home and without an API key."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.test_docs import shell_lines

from lamina.session.session import Session

from .running import here, lamina, one_line

# What the reader puts in is a session that was compacted, and the id of its compaction.
SESSION, NODE = "SESSION", "NODE"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def compacted(place: Path) -> tuple[str, str]:
    with Session(home=place / "home", cwd=place, window=12_000) as session:
        for number in range(30):
            session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 100)
            session.ask()
        done = session.compact("keep the ports")
    return session.id, done.boundary


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(place / "home"))


def commands() -> list[str]:
    """All but the chat, which needs a terminal, and the set-up, which needs a machine of its own."""
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    return [line for line in shell_lines(text) if line != "lamina" and not line.startswith("pip install")]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_readme_does_what_it_is_there_for(line: str, compacted: tuple[str, str]) -> None:
    session, node = compacted
    words = [{SESSION: session[:8], NODE: node[:8]}.get(word, word) for word in shlex.split(line)[1:]]
    if "undo" in words:  # the id of the compaction is opened further below
        words.append("no-such-decision")
        assert one_line(here(*words).stderr)
        return
    done = lamina(*words) if "-p" in words else here(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout or done.stderr
    assert "Traceback" not in done.stderr


def test_every_listing_and_report_of_the_readme_is_one_json_document_when_asked(compacted: tuple[str, str]) -> None:
    session, node = compacted
    for line in commands():
        words = [{SESSION: session[:8], NODE: node[:8]}.get(word, word) for word in shlex.split(line)[1:]]
        if "-p" in words or {"undo", "restore", "import", "export"} & set(words):
            continue
        done = here(*words, "--json")
        assert done.returncode == 0, (line, done.stderr)
        json.loads(done.stdout)

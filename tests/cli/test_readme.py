"""Run the README's commands in order, in a separate home and without an API key."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from tests.session.foreign import foreign_transcript
from tests.test_docs import shell_lines

from lamina.session.session import Session

from .running import here, lamina, one_line

# What the reader puts in is a session that was compacted.
SESSION = "SESSION"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def compacted(place: Path) -> str:
    with Session("offline", home=place / "home", cwd=place, window=12_000) as session:
        for number in range(30):
            session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 100)
            session.ask()
        session.compact("keep the ports")
    return session.id


@pytest.fixture(scope="module")
def claude(place: Path) -> None:
    """A home of Claude Code's with one session and one memory."""
    project = place / ".claude" / "projects" / "PROJECT"
    foreign_transcript(project)
    (project / "memory").mkdir()
    (project / "memory" / "MEMORY.md").write_text("- [Deploys](deploys.md) — on Thursdays\n")
    (project / "memory" / "deploys.md").write_text(
        "---\nname: deploys\ndescription: on Thursdays\ntype: project\n---\nOn Thursdays.\n"
    )


@pytest.fixture(autouse=True)
def _there(place: Path, claude: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("LAMINA_HOME", str(place / "home"))


def commands() -> list[str]:
    """All but the chat, which needs a terminal, and the set-up, which needs a machine of its own."""
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    return [line for line in shell_lines(text) if line != "lamina" and not line.startswith("pip install")]


def words_of(line: str, session: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of a command as the shell passes them; a variable before it is set."""
    words = shlex.split(line)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        monkeypatch.setenv(name, os.path.expanduser(value))
    return [session[:8] if word == SESSION else os.path.expanduser(word) for word in words[1:]]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_readme_does_what_it_is_there_for(line: str, compacted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(line, compacted, monkeypatch)
    if "undo" in words:  # the session is looked at by the commands after this one
        words.append("no-such-decision")
        assert one_line(here(*words).stderr)
        return
    done = lamina(*words) if "-p" in words else here(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout or done.stderr
    assert "Traceback" not in done.stderr


def test_every_listing_and_report_of_the_readme_is_one_json_document_when_asked(
    compacted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in commands():
        with monkeypatch.context() as changed:
            words = words_of(line, compacted, changed)
            if "-p" in words or {"undo", "save", "import", "--html"} & set(words):
                continue
            done = here(*words, "--json")
        assert done.returncode == 0, (line, done.stderr)
        json.loads(done.stdout)

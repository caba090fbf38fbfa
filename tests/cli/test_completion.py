"""Completion in a shell: commands, the options of the chat, sessions and memories of the directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.memory.memory import Memory
from lamina.session.session import Session

from .running import here, lamina


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


def offered(line: str) -> list[str]:
    """What bash would offer for the last word."""
    words = line.split(" ")
    done = lamina(_LAMINA_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert done.stderr == ""
    return [row.partition(",")[2] for row in done.stdout.splitlines() if row]


def test_the_first_word_may_become_a_command_or_an_option_of_the_chat(work: Path) -> None:
    assert offered("lamina mem") == ["memory"]
    assert {"chat", "sessions", "doctor"} <= set(offered("lamina "))
    assert offered("lamina --con") == ["--continue"]
    assert offered("lamina -p hello --max") == ["--max-turns"]


def test_sessions_and_memories_of_the_directory_are_offered(work: Path, tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home", cwd=work) as session:
        session.add_user("hello")
        session.ask()
    with Memory.open(work) as memory:
        memory.save("testing-db", type="feedback", description="Tests use a real database", body="No mocks.")
    short = session.id[:8]
    for line in (
        "lamina sessions show ",
        "lamina context ",
        "lamina stats ",
        "lamina --resume ",
        f"lamina sessions undo {short[:3]}",
    ):
        assert offered(line) == [short]
    assert offered("lamina memory show te") == ["testing-db"]


def test_what_can_be_brought_back_accepted_or_set_is_offered(work: Path) -> None:
    with Memory.open(work) as memory:
        memory.save("testing-db", type="feedback", description="Tests use a real database", body="No mocks.")
        memory.save("deploys", type="project", description="On Tuesdays", body="On Tuesdays.")
        memory.remove("deploys.md")
    assert offered("lamina memory restore ") == ["deploys", "testing-db"]
    assert offered("lamina config lamina.recallS") == ["lamina.recallSelector"]
    (work.parent / "home" / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}', "utf-8")
    here("-p", "Remember: the editor is vi")
    with Memory.open(work) as memory:
        [waiting] = memory.waiting()
    assert offered("lamina inbox accept ") == [waiting.id]


def test_a_home_that_cannot_be_read_offers_nothing_and_says_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "file").write_text("x", "utf-8")
    monkeypatch.setenv("LAMINA_HOME", str(work / "file"))
    assert offered("lamina memory show t") == []
    assert offered("lamina sessions show t") == ["t"]


@pytest.mark.parametrize("group", ["memory", "sessions", "inbox"])
def test_the_help_of_a_group_cuts_no_sentence_off(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    listed = here(group, "--help").stdout.partition("Commands:")[2]
    assert listed
    assert "..." not in listed

"""Memories saved by a chat are announced, even if the user leaves at once; a non-interactive run saves none unasked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.memory.memory import Memory

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal
from .running import here, lamina

WORDS = "I'm a data engineer and new to Rust."


def kept(project: Path) -> list[str]:
    with Memory.open(project) as memory:
        return [topic.description for topic in memory.topics()]


@pytest.mark.spec("X7", "X1")
def test_who_leaves_at_once_is_still_told(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as chat:
        chat.prompt()
        chat.say(WORDS)
        chat.prompt()
        chat.press("\x04")
        chat.expect("Remembered: ")
        assert chat.wait() == 0
    assert kept(tmp_path) == [WORDS]
    told = here("memory", "log", cwd=tmp_path).stdout
    assert "extraction" in told


@pytest.mark.spec("X2")
@pytest.mark.parametrize("asked_for", [False, True])
def test_without_a_person_only_where_it_was_asked_for(tmp_path: Path, asked_for: bool) -> None:
    wish = "1" if asked_for else "0"
    done = lamina("-p", WORDS, cwd=tmp_path, LAMINA_EXTRACTION_NON_INTERACTIVE=wish)
    assert done.returncode == 0
    assert kept(tmp_path) == ([WORDS] if asked_for else [])
    chat = lamina(cwd=tmp_path, stdin=f"{WORDS}\n".encode(), LAMINA_EXTRACTION_NON_INTERACTIVE=wish)
    assert chat.returncode == 0
    assert kept(tmp_path) == ([WORDS] if asked_for else [])

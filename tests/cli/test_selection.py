"""The editor's selection reaches the model from the environment of the chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.cli.selection import MOST_CHARACTERS, Selection, read_selection
from lamina.core.blocks import Text
from lamina.core.records import Attachment
from lamina.disk.transcripts.store import read_transcript

from .running import lamina


@pytest.mark.spec("I4")
@pytest.mark.parametrize("name", ["LAMINA_SELECTION", "ZED_SELECTED_TEXT", "TM_SELECTED_TEXT"])
def test_a_variable_holds_it(name: str) -> None:
    assert read_selection({name: "def add(a, b):"}) == Selection("def add(a, b):")
    assert read_selection({name: " \n"}) == Selection()


def test_our_own_variable_comes_first_and_a_file_last(tmp_path: Path) -> None:
    (tmp_path / "selected").write_text("from a file")
    environ = {"LAMINA_SELECTION_FILE": str(tmp_path / "selected")}
    assert read_selection(environ) == Selection("from a file")
    assert read_selection({**environ, "TM_SELECTED_TEXT": "b"}).text == "b"
    assert read_selection({**environ, "TM_SELECTED_TEXT": "b", "LAMINA_SELECTION": "a"}).text == "a"


@pytest.mark.parametrize("name", ["missing", "directory", "large"])
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "large").write_bytes(b"x" * (4 * MOST_CHARACTERS + 1))
    found = read_selection({"LAMINA_SELECTION_FILE": str(tmp_path / name)})
    assert found.text is None
    assert found.problem is not None
    assert found.problem.endswith("The selection is not sent.")


def test_a_long_selection_is_cut_and_says_so() -> None:
    found = read_selection({"LAMINA_SELECTION": "x" * (MOST_CHARACTERS + 1)})
    assert found.text is not None
    assert found.text.endswith("\n[Cut here: 40,000 of 40,001 characters.]")


@pytest.mark.spec("I4")
def test_the_chat_sends_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAMINA_SELECTION", "def add(a, b):")
    monkeypatch.chdir(tmp_path)
    done = lamina("-p", "What does this do?", "--model", "offline")
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "home").rglob("*.jsonl")
    said = [
        block.text
        for record in read_transcript(path)
        if isinstance(record, Attachment)
        for block in record.blocks
        if isinstance(block, Text)
    ]
    assert sum("<editor-selection>\ndef add(a, b):" in text for text in said) == 1

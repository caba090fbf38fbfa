"""Files that are not transcripts: every command names the file and the problem in one sentence, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.session.session import Session

from .running import failed, here, misused

COMMANDS = {
    "show": ("sessions", "show", "FILE"),
    "undo": ("sessions", "undo", "FILE"),
    "expand": ("sessions", "expand", "FILE", "a-node"),
    "pin": ("sessions", "pin", "FILE", "words"),
    "snip": ("sessions", "snip", "FILE"),
    "context": ("context", "FILE"),
    "turn": ("context", "FILE", "--turn", "1"),
}

CONTENTS = {
    "nothing": (b"", "is empty"),
    "blank lines": (b"\n\n \n", "it has only blank lines"),
    "binary": (b"\x00\x01\xff\xfe" * 2_000, "it is binary"),
    "prose": (b"Dear diary,\nall is well.\n", "none of its lines is a JSON object"),
    "another program's lines": (b'{"level": "info"}\n{"level": "warn"}\n', "it has 2 records but no messages"),
    "one object": (b'{"name": "package"}', "it has 1 record but no messages"),
    "no objects": (b"[1, 2]\n3\n", "none of its lines is a JSON object"),
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def asked(command: tuple[str, ...], file: str) -> list[str]:
    return [file if word == "FILE" else word for word in command]


@pytest.mark.parametrize(("content", "why"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_file_without_a_conversation_is_named_with_what_it_is(
    work: Path, command: tuple[str, ...], content: bytes, why: str
) -> None:
    (work / "file.jsonl").write_bytes(content)
    for form in ((), ("--json",)):
        done = here(*asked(command, "file.jsonl"), *form)
        assert misused(done), done
        assert str(work / "file.jsonl") in done.stderr
        assert why in done.stderr
    assert (work / "file.jsonl").read_bytes() == content
    assert not (work / "home" / "projects").exists()


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a directory": (Path.mkdir, "is a directory, not a transcript"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "nothing": (lambda path: None, "not found; run `lamina sessions list`"),
}


@pytest.mark.parametrize(("make", "why"), NO_FILES.values(), ids=NO_FILES)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_is_no_file_is_named(work: Path, command: tuple[str, ...], make: Callable[[Path], object], why: str) -> None:
    make(work / "file.jsonl")
    done = here(*asked(command, "file.jsonl"))
    assert misused(done), done
    assert f"{work / 'file.jsonl'}" in done.stderr
    assert why in done.stderr


def test_a_file_that_may_not_be_read_is_named(work: Path) -> None:
    file = work / "file.jsonl"
    file.write_text("{}\n")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything")
    for command in COMMANDS.values():
        done = here(*asked(command, "file.jsonl"))
        assert failed(done), done
        assert f"{file}: permission denied" in done.stderr


def test_a_file_of_any_name_is_taken_where_no_session_has_it(work: Path) -> None:
    with Session("offline", cwd=work, session_id="kept") as session:
        session.add_user("hello")
    assert session.path is not None
    (work / "copy.txt").write_bytes(session.path.read_bytes())
    (work / "kept").write_text("no transcript")
    assert "hello" in here("sessions", "show", "copy.txt").stdout
    assert "hello" in here("sessions", "show", "kept").stdout, "a session goes before a file of its name"

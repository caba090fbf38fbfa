"""`lamina sessions`: sessions of Lamina and other programs as tables and JSON; file contents are data, never control codes."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.session.foreign import SESSION, TEXTS, foreign_transcript
from tests.session.play import compact, turns

from lamina.cli.console import minute
from lamina.disk.paths.project import slug
from lamina.history.sessions import SourceSession
from lamina.session.session import Session

from .running import here, lamina, misused, on_a_terminal, one_line

FIELDS = {"session_id", "path", "source", "cwd", "title", "started", "last_active", "modified", "size"}
FIELDS |= {"messages", "tokens", "cost_usd", "compactions", "parent"}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a session of ours and one of another program's, and another directory with one of ours."""
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    place, other = tmp_path / "work", tmp_path / "other"
    for directory in (place, other):
        directory.mkdir()
        with Session("offline", home=tmp_path / "home", cwd=directory, session_id=f"in-{directory.name}") as session:
            turns(session, f"hello from {directory.name}")
    theirs = foreign_transcript(tmp_path / "claude" / "projects" / slug(place), cwd=str(place))
    for seconds, path in enumerate([theirs, *sorted((tmp_path / "home").rglob("*.jsonl"))]):
        os.utime(path, (1_700_000_000 + seconds, 1_700_000_000 + seconds))
    monkeypatch.chdir(place)
    return place


def listed(*arguments: str) -> list[Any]:
    done = here("sessions", "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    rows: list[Any] = json.loads(done.stdout)
    assert all(row.keys() == FIELDS for row in rows)
    return rows


def test_the_sessions_of_this_directory_are_listed_newest_first(work: Path) -> None:
    assert [(row["session_id"], row["source"], row["title"]) for row in listed()] == [
        ("in-work", "lamina", "hello from work"),
        (SESSION, "claude-code", "Ports of the service"),
    ]
    assert [row["cwd"] for row in listed()] == [str(work), str(work)]


def test_a_session_is_dated_by_its_last_message_and_not_by_a_copied_file(work: Path) -> None:
    theirs = next(Path(os.environ["CLAUDE_CONFIG_DIR"]).rglob("*.jsonl"))
    at = max(json.loads(line).get("timestamp", "") for line in theirs.read_text("utf-8").splitlines())
    ended = datetime.fromisoformat(at).timestamp()
    os.utime(theirs, (ended + 90 * 86_400, ended + 90 * 86_400))
    ours = next(Path(os.environ["LAMINA_HOME"]).rglob("in-work.jsonl"))
    os.utime(ours, (ended + 86_400, ended + 86_400))
    rows = {row["source"]: row for row in listed()}
    assert datetime.fromisoformat(rows["claude-code"]["last_active"]).timestamp() == pytest.approx(ended, abs=1)
    assert [row["session_id"] for row in listed()] == ["in-work", SESSION]
    assert minute(ended) in here("sessions", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--all",), {"in-work", "in-other", SESSION}),
        (("--source", "lamina"), {"in-work"}),
        (("--source", "claude-code"), {SESSION}),
        (("--all", "--source", "lamina"), {"in-work", "in-other"}),
        (("--cwd", "../other"), {"in-other"}),
    ],
)
def test_the_list_can_be_narrowed_and_widened(arguments: tuple[str, ...], expected: set[str]) -> None:
    assert {row["session_id"] for row in listed(*arguments)} == expected


def test_a_table_for_people_names_each(work: Path) -> None:
    done = lamina("sessions", "list", "--all", COLUMNS="200")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["id", "in-work", "in-other", SESSION[:8]]
    assert "hello from other" in done.stdout


def test_a_list_that_is_cut_says_how_many_there_are() -> None:
    done = here("sessions", "list", "--all", "-n", "2", "--json")
    assert done.stderr == "lamina: Listed 2 of 3 sessions. Use --limit to list more.\n"
    assert [row["session_id"] for row in json.loads(done.stdout)] == ["in-work", "in-other"]
    assert here("sessions", "list", "--all", "-n", "3").stderr == ""


def test_without_sessions_the_list_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    done = here("sessions", "list", "--cwd", str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "Use --all to list the sessions of all directories" in done.stderr
    assert listed("--cwd", str(tmp_path / "nothing")) == []


@pytest.mark.parametrize("name", ["in-work", "PATH", SESSION, SESSION[:8]])
def test_a_session_is_shown_by_id_beginning_or_file(tmp_path: Path, name: str) -> None:
    path = next((tmp_path / "home").rglob("in-work.jsonl"))
    done = here("sessions", "show", str(path) if name == "PATH" else name)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("hello from work" if name in ("in-work", "PATH") else TEXTS[2]) in done.stdout


def test_one_json_document_holds_the_conversation(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home", cwd=Path.cwd(), session_id="compacted") as session:
        turns(session, "a", "b")
        boundary = compact(session, "a and b")
        turns(session, "c")
        messages = session.messages
    done = lamina("sessions", "show", "compacted", "--json")
    document = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert document["messages"] == messages
    assert document["session_id"] == "compacted"
    assert document["decisions"] == [{"id": boundary, "kind": "boundary"}]
    assert (document["skipped"], document["notes"]) == (0, [])
    assert document["records"] == len(Path(document["path"]).read_bytes().splitlines())
    assert document["tokens"] > 0


def test_another_programs_session_is_shown_as_a_model_would_see_it() -> None:
    document = json.loads(here("sessions", "show", SESSION, "--json").stdout)
    words = [block["text"] for message in document["messages"] for block in message["content"] if block["type"] == "text"]
    assert [text for text in words if text in TEXTS] == TEXTS
    assert "API Error" not in words
    text = here("sessions", "show", SESSION).stdout
    assert "tool call Grep" in text
    assert "port: 8080" in text


def test_long_texts_are_cut_unless_asked_for(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home", cwd=Path.cwd(), session_id="long") as session:
        session.add_user("x" * 5_000)
    assert "x" * 5_000 not in here("sessions", "show", "long").stdout
    assert "(5,000 characters)" in here("sessions", "show", "long").stdout
    assert "x" * 5_000 in here("sessions", "show", "long", "--full").stdout


def test_damage_is_told_and_everything_else_is_shown(tmp_path: Path) -> None:
    path = next((tmp_path / "home").rglob("in-work.jsonl"))
    data = path.read_bytes()
    path.write_bytes(data[:100] + data + b"garbage\n")
    before = path.read_bytes()
    done = lamina("sessions", "show", "in-work")
    assert done.returncode == 0
    assert one_line(done.stderr)
    assert "2 lines could not be read and were skipped" in done.stderr
    assert "about hello from work" in done.stdout
    assert json.loads(here("sessions", "show", "in-work", "--json").stdout)["skipped"] == 2
    assert path.read_bytes() == before


def test_a_newer_format_is_shown_as_far_as_it_is_understood(tmp_path: Path) -> None:
    path = next((tmp_path / "home").rglob("in-work.jsonl"))
    path.write_bytes(path.read_bytes() + b'{"type":"user","uuid":"n","lamina":{"v":99}}\n')
    done = here("sessions", "show", "in-work")
    assert done.returncode == 0
    assert "format 99" in done.stderr
    assert "hello from work" in done.stdout


def test_what_is_not_there_is_one_line() -> None:
    assert misused(here("sessions", "show", "no-such-session"))
    assert misused(here("sessions", "show", "/no/such/file.jsonl"))
    assert misused(here("sessions", "show", "a/../b"))
    assert misused(here("sessions", "show", "*"))


BAD = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e"


def hostile(directory: Path) -> Path:
    """Control sequences in every field a person may see."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "e7110000-0000-4000-8000-000000000000.jsonl"
    common = {"cwd": f"/tmp/{BAD}", "sessionId": f"s{BAD}", "timestamp": f"2026{BAD}", "gitBranch": BAD, "version": BAD}

    def row(number: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "uuid": f"{number}{BAD}", "parentUuid": f"{number - 1}{BAD}" if number else None, **common, **more}

    use = {"type": "tool_use", "id": f"c{BAD}", "name": f"Tool{BAD}", "input": {f"k{BAD}": BAD}}
    blocks: list[Any] = [
        {"type": "text", "text": f"answer{BAD}"},
        {"type": "thinking", "thinking": f"hm{BAD}", "signature": "s"},
        use,
    ]
    done = [{"type": "tool_result", "tool_use_id": f"c{BAD}", "content": f"result{BAD}", "is_error": True}]
    rows = [
        row(0, "user", message={"role": "user", "content": f"question{BAD}"}),
        row(1, "attachment", attachment={"type": f"kind{BAD}", "rendered": [f"reminder{BAD}"]}),
        row(2, "assistant", message={"id": f"m{BAD}", "role": "assistant", "model": BAD, "content": blocks}),
        row(3, "user", message={"role": "user", "content": [*done, {"type": f"odd{BAD}", "x": 1}]}),
        {"type": "summary", "summary": f"title{BAD}"},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows) + f"{BAD}garbage\n", encoding="utf-8")
    return path


CONTROLS = (b"\x07", b"\x1b]", b"\x1b[2", b"\x7f", "\x9b".encode(), "\u202e".encode())


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal")
def test_no_control_sequence_of_a_transcript_reaches_the_terminal(tmp_path: Path, work: Path) -> None:
    path = hostile(tmp_path / "home" / "projects" / slug(work))
    evil = path.with_name("evil\x1b]0;owned\x07.jsonl")
    evil.write_bytes(path.read_bytes())
    written = b""
    for arguments in (("list", "--all"), ("show", path.stem, "--full"), ("show", path.stem, "--json"), ("show", str(evil))):
        shown, code = on_a_terminal("sessions", *arguments, COLUMNS="300")
        assert code == 0, shown
        assert b"question" in shown or b"title" in shown
        written += shown
    written += on_a_terminal("sessions", "list", "--json")[0]
    for control in CONTROLS:
        assert control not in written, control


def test_times_no_calendar_knows_do_not_spoil_the_list(tmp_path: Path) -> None:
    path = next((tmp_path / "home").rglob("in-work.jsonl"))
    for when in (2**40, -(2**40), 0, 10**12):
        try:
            os.utime(path, (when, when))
        except OSError:
            continue
        assert {row["session_id"] for row in listed()} == {"in-work", SESSION}
        assert here("sessions", "list").returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_path_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    path = next((tmp_path / "home").rglob("in-work.jsonl"))
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    odd.write_bytes(path.read_bytes())
    for arguments in (("--json",), ()):
        done = lamina("sessions", "show", os.fsencode(odd), *arguments)
        assert done.returncode == 0, done.stderr
        assert "hello from work" in done.stdout


def test_without_a_home_there_is_nothing_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE", "LAMINA_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert listed("--all") == []
    done = here("sessions", "show", "in-work")
    assert done.returncode in (1, 2)
    assert one_line(done.stderr)


@pytest.mark.parametrize("modified", [1e15, -1e15, float(2**63)])
def test_a_time_beyond_all_calendars_is_the_nearest_in_them(modified: float, monkeypatch: pytest.MonkeyPatch) -> None:
    info = SourceSession("lamina", "s", "/p", "/c", "title", "", modified, 1, 0.0, 1)
    monkeypatch.setattr("lamina.history.sessions.sessions", lambda *given, **options: [info])
    [row] = listed()
    assert row["modified"][:4] == ("9999" if modified > 0 else "0001")
    assert "title" in here("sessions", "list").stdout

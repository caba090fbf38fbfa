"""Tools that misbehave in a real turn: commands that hang, flood or leave children; files that are not what the model thinks."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import UpWhenReady

from lamina.agent.agent import Agent
from lamina.disk import child
from lamina.testing import MessagesServer

from .agent_helpers import Pipe, Wire, accepted, results

Open = Callable[..., Agent]


def outcome(opened: Open, server: MessagesServer, *calls: tuple[str, Wire]) -> list[str]:
    """Return the results of calls that the model makes one after another, each in a separate answer."""
    for name, given in calls:
        server.reply(tool_use=(name, given))
    server.reply(text="Done.")
    assert opened().run("Go.").text == "Done."
    asked = [received for received in accepted(server) if not received.fork]
    return [words for received in asked[1:] for words in results(received).values()]


def test_a_command_that_hangs_is_stopped_at_its_time_with_all_it_started(
    opened: Open, messages_server: MessagesServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe ends when nobody holds it any more: then the last child is dead."""
    pipe = Pipe(project / "alive", lambda _: None)
    monkeypatch.setattr(child, "time", UpWhenReady(project / "ready"))
    command = "exec 9>alive; echo begun; (trap '' TERM; touch ready; sleep 1000) & wait"
    [said] = outcome(opened, messages_server, ("Bash", {"command": command, "timeout": 300}))
    assert said.startswith("!Timed out after 300 ms")
    assert "begun" in said
    pipe.join()


@pytest.mark.exhaustive
def test_a_command_that_prints_a_gigabyte_is_stopped_and_bounded(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    before = peak_memory()
    [said] = outcome(
        opened, messages_server, ("Bash", {"command": "echo the beginning; head -c 1000000000 /dev/zero | tr '\\0' x"})
    )
    assert said.startswith("!Stopped after 64 MB of output")
    assert "the beginning" in said
    assert "omitted" in said
    assert len(said) < 40_000
    assert peak_memory() - before < 64 << 20
    kept = [path for path in Path(os.environ["LAMINA_HOME"]).rglob("tool-results/*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) <= 65 << 20


def test_what_is_left_out_can_be_read(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    [said] = outcome(opened, messages_server, ("Bash", {"command": "seq 1 50000; true"}))
    assert "\n1\n2\n3\n" in said
    path = Path(said.partition("The complete result is in ")[2].partition("\n")[0])
    assert path.read_text().count("\n") == 50_000
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_session_in_memory_leaves_no_file_behind(
    opened: Open, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    messages_server.reply(tool_use=[("Bash", {"command": "seq 1 50000; true"}, "b1"), ("Bash", {"command": "seq 1 50000"}, "b2")])
    opened(in_memory=True).run("Go.")
    said = results(accepted(messages_server)[1])
    assert all("omitted" in words and "The whole output" not in words for words in said.values())
    assert list((tmp_path / "temporary").iterdir()) == []


def test_binary_output_is_text_the_api_takes(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    (project / "blob").write_bytes(bytes(range(256)) * 40)
    said = outcome(
        opened,
        messages_server,
        ("Bash", {"command": "cat blob"}),
        ("Bash", {"command": "cat blob; true x"}),
        ("Bash", {"command": "printf '\\033[31mred\\033[0m\\r\\nline'; true"}),
        ("Read", {"file_path": "blob"}),
    )
    assert said[0] == said[1]
    assert all(char.isprintable() or char in "\n\t" for char in said[0])
    assert said[2] == "red\nline"
    assert said[3].startswith("!")


def test_a_command_that_leaves_a_child_behind_does_not_hold_up_the_turn(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    [said] = outcome(opened, messages_server, ("Bash", {"command": "sleep 1000 & echo $! > child; echo started"}))
    child = int((project / "child").read_text())
    os.kill(child, signal.SIGKILL)
    assert said.startswith("started")
    assert "background" in said


@pytest.mark.spec("X8")
def test_an_edit_that_fits_twice_changes_nothing_and_says_how_to_go_on(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    (project / "twice.txt").write_text("same\nother\nsame\n")
    edit = {"file_path": "twice.txt", "old_string": "same", "new_string": "new"}
    said = outcome(
        opened, messages_server, ("Read", {"file_path": "twice.txt"}), ("Edit", edit), ("Edit", {**edit, "replace_all": True})
    )
    assert said[1].startswith("!")
    assert "2" in said[1]
    assert "replace_all" in said[1]
    assert said[2].startswith("Changed ")
    assert (project / "twice.txt").read_text() == "new\nother\nnew\n"


@pytest.mark.spec("X8")
def test_a_file_that_was_not_read_is_neither_written_nor_edited(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    before = (project / "calc.py").read_bytes()
    said = outcome(
        opened,
        messages_server,
        ("Write", {"file_path": "calc.py", "content": "gone"}),
        ("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}),
        ("Write", {"file_path": "fresh.py", "content": "x = 1\n"}),
        ("Write", {"file_path": "fresh.py", "content": "x = 2\n"}),
    )
    assert [words.startswith("!") for words in said] == [True, True, False, False]
    assert "Read it first" in said[0]
    assert (project / "calc.py").read_bytes() == before
    assert (project / "fresh.py").read_text() == "x = 2\n"


@pytest.mark.spec("X8")
def test_a_file_the_person_changed_meanwhile_is_not_overwritten(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    said = outcome(
        opened,
        messages_server,
        ("Read", {"file_path": "calc.py"}),
        ("Bash", {"command": "echo '# mine' >> calc.py"}),
        ("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}),
        ("Write", {"file_path": "calc.py", "content": "gone"}),
        ("Read", {"file_path": "calc.py"}),
        ("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}),
    )
    assert [words.startswith("!") for words in said] == [False, False, True, True, False, False]
    assert "changed by the user or another program since it was read" in said[2]
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n# mine\n"


@pytest.mark.spec("X8")
def test_a_read_and_an_edit_in_one_answer_count_in_their_order(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    edit = {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}
    messages_server.reply(tool_use=[("Read", {"file_path": "calc.py"}, "r1"), ("Edit", edit, "e1")])
    opened().run("Mend it.")
    assert [words.startswith("!") for words in results(accepted(messages_server)[1]).values()] == [False, False]
    assert "a + b" in (project / "calc.py").read_text()


@pytest.mark.spec("X8")
def test_a_resumed_session_reads_again_before_it_edits(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.reply(tool_use=("Read", {"file_path": "calc.py"}))
    messages_server.reply(text="Seen.")
    first = opened(session_id="one")
    first.run("Read it.")
    first.close()
    messages_server.reply(tool_use=("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}, "e1"))
    opened(resume="one").run("Mend it.")
    assert "Read it first" in results(accepted(messages_server)[-1])["e1"]


def test_commands_do_not_see_the_keys_of_the_provider(
    opened: Open, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-commands")
    [said] = outcome(opened, messages_server, ("Bash", {"command": "env; true"}))
    assert "sk-not-for-commands" not in said
    assert "PATH=" in said


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)


# Output of a running command


def test_what_commands_print_is_told_as_it_comes_and_by_whom(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    told: list[dict[str, Any]] = []

    def hear(event: dict[str, Any]) -> None:
        if event["type"] in ("tool_output", "tool_result"):
            told.append(event)
        if event["type"] == "tool_output" and event["text"] == "ready\n":
            (project / "go").touch()

    agent = opened(on_event=hear)
    messages_server.reply(
        tool_use=[
            ("Bash", {"command": "echo ready; until [ -e go ]; do sleep 0.01; done; echo gone", "timeout": 30_000}, "b1"),
            ("Bash", {"command": "echo other"}, "b2"),
        ]
    )
    messages_server.reply(text="Both ran.")
    agent.run("Run them.")
    printed = [(event["id"], event["text"]) for event in told if event["type"] == "tool_output"]
    assert printed == [("b1", "ready\n"), ("b1", "gone\n"), ("b2", "other\n")]
    assert [event["id"] for event in told if event["type"] == "tool_result"] == ["b1", "b2"]

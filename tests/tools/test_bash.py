"""Bash: one command, its output within bounds, its end in any case."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.clocks import UpWhenReady

from lamina.disk import child
from lamina.disk.child import SECRETS
from lamina.tools import capture
from lamina.tools.bash import EMPTY, MAX_COMMAND
from lamina.tools.capture import INLINE_BYTES, NOTE_BYTES
from lamina.tools.tool import Context

from .doing import ENVIRON, call, context, done, refused


@pytest.fixture
def here(tmp_path: Path) -> Context:
    (tmp_path / "cwd").mkdir()
    return context(tmp_path / "cwd")


def test_output_and_errors_come_back_in_order(here: Context) -> None:
    output = call("Bash", here, command="echo a; echo b >&2; echo c", description="prints")
    assert output.content == "a\nb\nc"
    assert output.facts == {"exit_code": 0, "why": "exit", "bytes": 6, "lines": 3}


def test_no_output_is_said(here: Context) -> None:
    assert done("Bash", here, command="true") == EMPTY


def test_a_failing_command_is_an_error_with_its_code_and_output(here: Context) -> None:
    output = call("Bash", here, command="echo oops; exit 3")
    assert output.is_error
    assert output.content == "Exit code 3\noops"
    assert output.facts["exit_code"] == 3


def test_a_command_ended_by_a_signal_is_told_by_its_name(here: Context) -> None:
    assert refused("Bash", here, command="kill -9 $$") == "Ended by signal 9 (SIGKILL)"


def test_it_runs_in_the_working_directory_and_a_cd_does_not_last(here: Context) -> None:
    assert done("Bash", here, command="cd /; pwd") == "/"
    assert done("Bash", here, command="pwd -P") == str(here.cwd.resolve())


def test_it_is_bash(here: Context) -> None:
    assert done("Bash", here, command='[[ -n "$BASH_VERSION" ]] && echo yes') == "yes"


def test_a_time_out_says_what_can_be_done_and_shows_what_was_printed(
    here: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "time", UpWhenReady(tmp_path / "ready"))
    output = call("Bash", here, command="echo begun; touch ../ready; sleep 60", timeout="300")
    assert output.is_error
    assert str(output.content) == "Timed out after 300 ms. Set a longer timeout (at most 600,000) if needed.\nbegun"
    assert output.facts["why"] == "timeout"


def test_the_person_can_stop_a_command(tmp_path: Path) -> None:
    abort = threading.Event()
    where = context(tmp_path, abort=abort, on_output=lambda _: abort.set())
    assert refused("Bash", where, command="echo ready; sleep 60") == "Stopped by the user.\nready"


def test_live_output_arrives_while_the_command_runs(tmp_path: Path) -> None:
    def see(text: str) -> None:
        if text == "question\n":
            (tmp_path / "answer").touch()

    where = context(tmp_path, on_output=see)
    command = "echo question; until [ -e answer ]; do sleep 0.01; done; echo answered"
    assert done("Bash", where, command=command, timeout=300_000).endswith("answered")


@pytest.mark.parametrize("exit_code", [0, 1])
def test_long_output_is_cut_and_kept_whole_in_a_file(here: Context, exit_code: int) -> None:
    output = call("Bash", here, command=f"seq 100000; exit {exit_code}")
    assert isinstance(output.content, str)
    assert len(output.content.encode()) <= INLINE_BYTES
    assert "99999\n100000" in output.content
    assert output.facts["cut"] > 500_000
    file = Path(output.facts["output_file"])
    assert file.parent == here.scratch
    assert file.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))


def test_output_up_to_the_bound_is_whole(here: Context) -> None:
    output = call("Bash", here, command=f"head -c {INLINE_BYTES} /dev/zero | tr '\\0' x; exit 1")
    assert isinstance(output.content, str)
    assert output.content == "Exit code 1\n" + "x" * INLINE_BYTES
    assert len(output.content) <= INLINE_BYTES + NOTE_BYTES
    assert "output_file" not in output.facts


def test_a_gigabyte_is_stopped_early(here: Context) -> None:
    output = call("Bash", here, command="head -c 1000000000 /dev/zero")
    assert output.is_error
    assert output.content == "Stopped after 64 MB of output. Redirect the output to a file, or print less."
    assert output.facts["bytes"] < 65 << 20


def test_an_endless_printer_fills_a_bounded_file(here: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "FILE_BYTES", 1 << 20)
    output = call("Bash", here, command="yes")
    assert output.facts["why"] == "full"
    assert Path(output.facts["output_file"]).stat().st_size == 1 << 20


def test_binary_output_becomes_text(here: Context) -> None:
    assert done("Bash", here, command=r"printf 'a\0\377\033[31mb\033[0m\n'") == "a\ufffdb"


def test_something_left_in_the_background_is_said_and_goes_on(here: Context) -> None:
    text = done("Bash", here, command="sleep 60 & echo $!")
    pid, note = text.split("\n")
    assert note.startswith("[A background process still writes")
    os.kill(int(pid), 9)


def test_a_background_process_with_its_own_output_is_not_mentioned(here: Context) -> None:
    pid = done("Bash", here, command="sleep 60 > /dev/null 2>&1 & echo $!")
    os.kill(int(pid), 9)


def test_our_keys_are_not_handed_on_unless_allowed(tmp_path: Path) -> None:
    ours = dict.fromkeys(SECRETS, "sk-ours") | {"LAMINA_MCP_TOKEN": "sk-ours"}
    environ = {**ENVIRON, **ours, "GITHUB_TOKEN": "theirs", "LAMINA_HOME": "/h"}
    seen = done("Bash", context(tmp_path, environ=environ), command="env")
    assert "sk-ours" not in seen
    assert "GITHUB_TOKEN=theirs" in seen
    assert "LAMINA_HOME=/h" in seen
    allowed = context(tmp_path, environ=environ, hand_over=frozenset({"OPENAI_API_KEY"}))
    assert done("Bash", allowed, command="env | grep sk-ours") == "OPENAI_API_KEY=sk-ours"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("", "command must not be empty"),
        ("echo \0", "contains a NUL character"),
        ("x" * (MAX_COMMAND + 1), "command is too long"),
        ("é" * (MAX_COMMAND - 1), "Write it to a file and run that"),
    ],
)
def test_a_command_that_can_not_be_run_is_refused(here: Context, command: str, sentence: str) -> None:
    assert sentence in refused("Bash", here, command=command)


def test_the_longest_command_is_taken(here: Context) -> None:
    command = "true " + "x" * (MAX_COMMAND - 5)
    assert done("Bash", here, command=command) == EMPTY


def test_a_time_out_beyond_the_longest_is_the_longest(here: Context) -> None:
    assert done("Bash", here, command="true", timeout=10**9) == EMPTY
    assert "timeout must be a number of at least 1" in refused("Bash", here, command="true", timeout=0)


def test_a_working_directory_that_is_gone_is_said(here: Context) -> None:
    here.cwd.rmdir()
    assert "no longer exists" in refused("Bash", here, command="true")

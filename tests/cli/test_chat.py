"""`lamina -p`: one prompt, one answer, in a session that can be continued; three forms of output; errors in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.session.foreign import foreign_transcript
from tests.session.play import turns

from lamina.core.records import Message
from lamina.disk.transcripts.store import read_transcript
from lamina.session.session import Session
from lamina.testing import MessagesServer, Received

from .running import LAMINA, PATIENCE, failed, here, lamina, misused, on_a_terminal, one_line

TOLD = "Our tests run against Postgres."
ASKED = "What do our tests run against?"
KEYS = {"result", "session_id", "is_error", "num_turns", "usage", "total_cost_usd", "billing"}
OFFLINE = (
    "lamina: No provider is configured, so the offline stand-in answers. "
    "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model.\n"
)


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, so that `--continue` finds what this test said."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


def written(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home").glob("projects/*/*.jsonl"))


def texts(path: Path) -> list[str]:
    """What was said in a transcript, without the context that the program put in."""
    said = [record for record in read_transcript(path) if isinstance(record, Message) and not record.meta]
    return spoken([block.wire.get("text", "") for record in said for block in record.blocks])


def spoken(words: list[str]) -> list[str]:
    return [text for text in words if not text.startswith("<system-reminder>")]


def test_the_notices_are_in_the_language_of_the_prompt() -> None:
    told = here("-p", "记住：部署只在星期二进行，因为周五没人值班")
    assert told.stderr == (
        "lamina: 没有配置模型服务，由离线替身回答。设置 ANTHROPIC_API_KEY 或 OPENAI_API_KEY 以使用模型。\n"
        "lamina: 已保存记忆：部署只在星期二进行。\n"
    )
    assert "Saved memory" in here("-p", "Remember: deploys run on Tuesdays only.").stderr


def test_a_turn_that_ends_early_is_told_in_the_language_of_the_prompt(keyed: MessagesServer) -> None:
    model = ("--model", "anthropic:claude-sonnet-5-5")
    keyed.fail(401, message="key is wrong")
    failed = here("-p", "你好，请看看", *model)
    assert failed.returncode == 1
    assert re.findall("[A-Za-z]{2,} [A-Za-z]{2,}", failed.stderr) == ["key is"], failed.stderr
    keyed.reply(text="半个", stop_reason="max_tokens")
    assert here("-p", "你好，请看看", *model).stderr == "lamina: 回答达到输出上限而中断。\n"


def test_what_was_told_is_known_when_the_session_goes_on(tmp_path: Path) -> None:
    told = lamina("-p", TOLD)
    assert (told.returncode, told.stderr) == (0, OFFLINE)
    assert told.stdout.count("\n") == 1
    asked = lamina("--continue", "-p", ASKED)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "Postgres" in asked.stdout
    (path,) = written(tmp_path)
    for name in (path.stem, path.stem[:8], str(path)):
        again = here("--resume", name, "-p", ASKED)
        assert (again.returncode, again.stderr) == (0, "")
        assert "Postgres" in again.stdout
    assert texts(path).count(ASKED) == 4


@pytest.mark.spec("F3")
def test_bare_there_is_no_memory() -> None:
    done = lamina("--bare", "-p", "Remember: deploys go out on Tuesdays")
    assert done.stdout.startswith("Noted in this conversation only")
    assert "Saved memory" not in done.stderr
    assert here("memory", "list", "--json").stdout == "[]\n"


def test_a_statement_that_is_kept_is_not_called_noted_in_this_conversation() -> None:
    done = lamina("-p", "Always use tabs in Go files.", LAMINA_EXTRACTION_NON_INTERACTIVE="1")
    assert done.stdout == "Noted.\n"
    assert "tabs" in here("memory", "list").stdout


def test_a_prompt_may_come_by_standard_input() -> None:
    for arguments in ((), ("-p", "-")):
        assert lamina(*arguments, stdin=TOLD.encode()).returncode == 0
        assert "Postgres" in here("-c", "-p", ASKED).stdout
    assert lamina("-p", "-", stdin=b"\xff\xfe no text").returncode == 0
    assert misused(lamina("-p", "-", stdin=b" \n"))


def test_each_directory_has_its_own_newest_session(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    here("-p", TOLD)
    assert failed(here("--continue", "-p", ASKED, cwd=tmp_path / "other"))
    here("-p", "Our tests run against nothing at all.", cwd=tmp_path / "other")
    assert "Postgres" in here("--continue", "-p", ASKED).stdout
    assert "Postgres" in here("--continue", "-p", ASKED, "--cwd", os.getcwd(), cwd=tmp_path / "other").stdout


def test_a_session_that_never_began_is_not_the_newest(tmp_path: Path) -> None:
    here("-p", TOLD)
    (path,) = written(tmp_path)
    empty = path.with_name("00000000-0000-4000-8000-000000000000.jsonl")
    empty.touch()
    os.utime(empty, (2**31, 2**31))
    assert "Postgres" in here("--continue", "-p", ASKED).stdout


def test_one_json_document_says_it_all(tmp_path: Path) -> None:
    here("-p", TOLD)
    done = here("-c", "-p", ASKED, "--output-format", "json")
    document = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert document.keys() >= KEYS
    assert "Postgres" in document["result"]
    assert document["session_id"] == written(tmp_path)[0].stem
    assert (document["is_error"], document["num_turns"], document["total_cost_usd"]) == (False, 1, 0.0)
    assert document["usage"]["output_tokens"] > 0


def test_a_stream_of_json_has_one_event_a_line() -> None:
    done = lamina("-p", TOLD, "--output-format", "stream-json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events] == ["system", "assistant", "result"]
    assert events[0]["subtype"] == "init"
    assert len({event["session_id"] for event in events}) == 1
    assert events[1]["message"]["content"][0]["text"] == events[2]["result"]
    assert events[2].keys() >= KEYS


def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path) -> None:
    assert misused(here("-p", ""))
    assert misused(lamina())
    assert misused(here("--continue", "--resume", "x", "-p", "hello"))
    assert misused(here("-p", "hello", "--model", "somebody:else"))
    for model, variable in (("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"), ("openai:gpt-5", "OPENAI_API_KEY")):
        refused = here("-p", "hello", "--model", model)
        assert misused(refused)
        assert variable in refused.stderr
    assert misused(here("--resume", "../x y", "-p", "hello"))
    assert misused(here("--resume", "/no/such/file.jsonl", "-p", "hello"))
    assert written(tmp_path) == []


def test_a_home_that_is_a_file_is_told_and_the_question_answered(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    done = lamina("-p", TOLD, "--model", "offline")
    assert done.returncode == 0
    assert all(line.startswith("lamina: ") for line in done.stderr.splitlines())
    assert "kept in memory only" in done.stderr
    assert (tmp_path / "home").read_text() == "in the way"


@pytest.mark.skipif(os.name == "nt", reason="needs a shell with limits")
def test_a_full_disk_is_told_in_one_line_and_the_question_answered(tmp_path: Path) -> None:
    here("-p", TOLD)
    script = 'ulimit -f 0; exec "$@"'
    arguments = ["sh", "-c", script, "sh", *LAMINA, "-c", "-p", ASKED]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert "Postgres" in done.stdout
    assert one_line(done.stderr)
    assert "could not be written and " in done.stderr
    assert len(written(tmp_path)) == 1


def test_without_any_home_the_question_is_answered_too(work: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "USERPROFILE", "LAMINA_HOME")}
    done = subprocess.run(
        [*LAMINA, "-p", "help", "--model", "offline"], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "kept in memory only" in done.stderr
    assert list(work.iterdir()) == []


def test_another_programs_session_goes_on_in_a_file_of_ours(tmp_path: Path) -> None:
    source = foreign_transcript(tmp_path / "theirs")
    before = source.read_bytes()
    done = lamina("--resume", str(source), "-p", "hello", "--model", "offline")
    assert done.returncode == 0
    assert one_line(done.stderr)
    assert f"Session {source.stem} continues as {written(tmp_path)[0].stem}" in done.stderr
    assert source.read_bytes() == before


def test_a_session_of_a_newer_lamina_is_refused(tmp_path: Path) -> None:
    here("-p", TOLD)
    (path,) = written(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"type":"user","uuid":"n","lamina":{"v":99}}\n')
    before = path.read_bytes()
    done = here("--continue", "-p", ASKED)
    assert failed(done)
    assert "written in format 99 by a newer version of Lamina" in done.stderr
    assert path.read_bytes() == before
    assert written(tmp_path) == [path]


def test_half_a_character_in_the_prompt_is_answered(tmp_path: Path) -> None:
    done = lamina("-p", b"Remember: caf\xe9", "--output-format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["is_error"] is False
    assert texts(written(tmp_path)[0])[0].endswith("caf\ufffd")


ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b5m\x7f"


def test_no_control_sequence_of_an_answer_reaches_the_terminal(work: Path) -> None:
    here("-p", f"Our tests run against {ESCAPES}Postgres.")
    shown, code = on_a_terminal("-c", "-p", ASKED)
    assert code == 0
    assert b"Postgres" in shown
    shown += on_a_terminal("-c", "-p", ASKED, "--output-format", "stream-json")[0]
    for control in (b"\x1b", b"\x07", "\x9b".encode(), b"\x7f"):
        assert control not in shown
    piped = lamina("-c", "-p", ASKED)
    assert ESCAPES in piped.stdout, "a pipe gets the words as they are"


def test_no_control_sequence_of_a_name_reaches_the_terminal(tmp_path: Path) -> None:
    named = tmp_path / "evil\x1b]0;owned\x07.jsonl"
    named.write_bytes(b"garbage\n")
    for done in (here("--resume", str(named), "-p", "hi", "--model", "offline"), here("--resume", f"{named}x.jsonl", "-p", "hi")):
        assert "\x1b" not in done.stderr
        assert "\x07" not in done.stderr
        assert one_line(done.stderr)


# From here on a server answers. Importing its SDK takes most of the time of these tests.


@pytest.fixture
def keyed(messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> MessagesServer:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    return messages_server


def asked_of(server: MessagesServer) -> list[list[str]]:
    """What was said in each request."""
    return [
        spoken([part["text"] for message in request.messages for part in parts(message["content"])])
        for request in server.requests
    ]


def parts(content: Any) -> list[Any]:
    return [{"text": content}] if isinstance(content, str) else [part for part in content if part.get("type") == "text"]


def test_a_model_answers_and_what_it_costs_is_told(keyed: MessagesServer) -> None:
    keyed.reply(text="Forty-two.")
    done = lamina("-p", "How many?", "--output-format", "json", "--model", "anthropic:claude-sonnet-5-5")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr, document["result"]) == (0, "", "Forty-two.")
    assert document["total_cost_usd"] > 0
    assert sum(count for name, count in document["usage"].items() if name.endswith("input_tokens")) > 0
    keyed.fail(401)
    refused = here("-c", "-p", "And now?", "--model", "anthropic:claude-sonnet-5-5")
    assert failed(refused), refused
    assert asked_of(keyed)[-1] == ["How many?", "Forty-two.", "And now?"]


def test_a_server_that_speaks_chat_answers_too(messages_server: MessagesServer) -> None:
    messages_server.reply(text="Forty-two.")
    url = messages_server.openai_url
    done = lamina("-p", "How many?", "--model", "openai:gpt-5", OPENAI_API_KEY="any", OPENAI_BASE_URL=url)
    assert done.stdout == "Forty-two.\n"
    with Session("openai:gpt-5", resume=written(Path.cwd().parent)[0]) as session:
        session.add_user("And now?")
        sent = session.before_call()["messages"]
    assert [row["text"] for message in sent if message["role"] == "assistant" for row in parts(message["content"])] == [
        "Forty-two."
    ]
    assert "How many?" in str(sent)


def test_an_error_in_json_is_a_document_and_exit_code_1(keyed: MessagesServer) -> None:
    keyed.fail(400, message="odd")
    done = here("-p", "hello", "--output-format", "json", "--model", "anthropic:claude-sonnet-5-5")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["is_error"] is True
    assert document.keys() >= KEYS
    assert "odd" in document["result"]


@pytest.mark.exhaustive
@pytest.mark.spec("Z4")
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_process_killed_in_the_middle_of_a_turn_has_kept_the_prompt(keyed: MessagesServer, tmp_path: Path) -> None:
    arrived, never = threading.Event(), threading.Event()

    def when(_: Received) -> bool:
        arrived.set()
        return True

    keyed.reply(text="too late", delay=never, when=when)
    command = [*LAMINA, "-p", TOLD, "--model", "anthropic:claude-sonnet-5-5"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert arrived.wait(PATIENCE)
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (-signal.SIGKILL, b"")
    never.set()
    assert [texts(path) for path in written(tmp_path)] == [[TOLD]]
    keyed.reply(text="Postgres, you said.")
    done = here("--continue", "-p", ASKED, "--model", "anthropic:claude-sonnet-5-5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Postgres, you said.\n", "")
    assert asked_of(keyed)[-1] == [TOLD, ASKED]
    assert len(written(tmp_path)) == 1


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_turn_that_is_interrupted_ends_in_one_line(keyed: MessagesServer, tmp_path: Path) -> None:
    arrived, never = threading.Event(), threading.Event()

    def when(_: Received) -> bool:
        arrived.set()
        return True

    keyed.reply(text="too late", delay=never, when=when)
    command = [*LAMINA, "-p", TOLD, "--model", "anthropic:claude-sonnet-5-5"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert arrived.wait(PATIENCE)
    process.send_signal(signal.SIGINT)
    heard, told = process.communicate(timeout=PATIENCE)
    never.set()
    assert (process.returncode, heard) == (130, "")
    assert told == "lamina: Stopped.\n"
    assert [texts(path) for path in written(tmp_path)] == [[TOLD]]


def test_a_session_that_is_open_is_continued_beside_it(tmp_path: Path) -> None:
    with Session("offline", cwd=Path.cwd(), home=tmp_path / "home") as session:
        turns(session, "Our tests run against Postgres.")
        done = lamina("--continue", "-p", ASKED, "--model", "offline")
        assert done.returncode == 0
        assert one_line(done.stderr)
        assert "it is open in another process" in done.stderr
        assert "Postgres" in done.stdout
    assert len(written(tmp_path)) == 2

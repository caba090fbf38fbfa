"""The chat on a pseudo-terminal: typing, questions, commands, stopping, leaving, and a closed terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.records import Message
from lamina.disk.home.mailbox import Mailbox, MailboxAddress
from lamina.disk.transcripts.store import read_transcript
from lamina.testing import MessagesServer
from lamina.testing.received_request import Received

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal
from .running import here


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


@pytest.fixture
def chat(work: Path) -> Iterator[Terminal]:
    """A chat with the offline stand-in, at its first prompt."""
    with Terminal(cwd=work) as terminal:
        terminal.prompt()
        yield terminal


def written(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home").glob("projects/*/*.jsonl"))


def said(path: Path) -> list[str]:
    """What both sides have said, by the file."""
    records = [record for record in read_transcript(path) if isinstance(record, Message)]
    return [block.wire["text"] for record in records for block in record.blocks if block.wire["type"] == "text"]


@pytest.mark.spec("O2", "H2")
def test_the_greeting_says_who_answers_where_and_that_nobody_was_chosen(chat: Terminal, work: Path, tmp_path: Path) -> None:
    greeting = chat.text
    assert greeting.startswith("Lamina ")
    assert f"offline · {work}" in greeting
    assert f"session {written(tmp_path)[0].stem[:8]}" in greeting
    assert greeting.count("An offline stand-in answers until you set ANTHROPIC_API_KEY") == 1
    chat.say("Our tests run against Postgres.")
    chat.expect("Noted")
    chat.prompt()
    chat.press("\x04")
    chat.expect("to continue this session.")
    assert chat.wait() == 0
    assert "No provider is configured" not in chat.text, "the welcome has said it"
    with Terminal("--continue", cwd=work) as again:
        stood = again.prompt()
        assert "Last messages of this session:\n> Our tests run against Postgres.\nNoted" in stood
        again.say("What do our tests run against?")
        again.expect("Postgres")
        again.say("/exit")
        assert again.wait() == 0


def test_a_call_that_needs_a_yes_is_shown_asked_about_and_done(chat: Terminal, work: Path) -> None:
    chat.say("write notes.txt: one line")
    asked = chat.expect("\n  >")
    assert "? Write notes.txt\n    + one line\n" in asked
    assert "y yes · n no" in asked
    assert not (work / "notes.txt").exists()
    chat.say("y")
    chat.expect("✓ Write notes.txt · new, 1 line")
    chat.prompt()
    assert (work / "notes.txt").read_text().strip() == "one line"


def test_a_no_with_words_reaches_the_model_and_nothing_is_done(chat: Terminal, work: Path, tmp_path: Path) -> None:
    chat.say("write notes.txt: one line")
    chat.expect("\n  >")
    chat.say("n put it into docs instead")
    chat.expect("✗ Write notes.txt · Denied. The user said: put it into docs instead")
    chat.prompt()
    assert not (work / "notes.txt").exists()
    assert "put it into docs instead" in written(tmp_path)[0].read_text()


def test_an_always_is_kept_and_not_asked_about_again(chat: Terminal, work: Path) -> None:
    chat.say("write notes/one.txt: first")
    offered = chat.expect("\n  >")
    assert "a always allow: Edit(./notes/**)" in offered
    chat.say("a")
    chat.expect("Saved in .claude/settings.local.json.")
    chat.prompt()
    chat.say("write notes/two.txt: second")
    assert "?" not in chat.expect("✓ Write notes/two.txt")
    chat.prompt()
    kept = json.loads((work / ".claude" / "settings.local.json").read_text())
    assert kept == {"permissions": {"allow": ["Edit(./notes/**)"]}}
    chat.say("/permissions")
    chat.expect("allow  Edit(./notes/**)")
    chat.say("/clear")
    chat.expect("Started session")
    chat.say("write notes/three.txt: third")
    assert "?" not in chat.expect("✓ Write notes/three.txt")


def test_what_was_typed_before_a_question_is_no_answer_to_it(chat: Terminal, work: Path) -> None:
    """Sent in one go: the letter is there before the question is."""
    chat.press("write notes.txt: one line\ry\r")
    chat.expect("\n  >")
    chat.say("n")
    chat.expect("✗ Write notes.txt")
    assert not (work / "notes.txt").exists()


def test_ctrl_c_at_a_question_stops_the_turn(chat: Terminal, work: Path) -> None:
    chat.say("write notes.txt: one line")
    chat.expect("\n  >")
    chat.press("\x03")
    chat.expect("Stopped. The conversation so far is kept")
    chat.prompt()
    assert not (work / "notes.txt").exists()


def test_undo_takes_back_the_last_turn_and_says_what_it_was(work: Path, tmp_path: Path) -> None:
    with Terminal(cwd=work, LAMINA_EXTRACTION="0") as chat:
        chat.prompt()
        for text in ("Our tests run against Postgres.", "Our tests run against MySQL."):
            chat.say(text)
            chat.expect("Noted")
            chat.prompt()
        chat.say("/undo")
        chat.expect('Undid "Our tests run against MySQL.", 1 answer.')
        chat.prompt()
        chat.say("What do our tests run against?")
        assert "MySQL" not in chat.expect("Postgres")
        chat.prompt()
        for _ in range(2):
            chat.say("/undo")
            chat.expect("Undid")
            chat.prompt()
        chat.say("/undo")
        chat.expect("Nothing to undo.")
        assert "MySQL" in written(tmp_path)[0].read_text(), "the log keeps what was taken back"


@pytest.mark.spec("B4")
def test_undo_asks_about_what_the_turn_remembered(chat: Terminal) -> None:
    for answer, told in (("y", "Undid in memory: deploy-thursdays."), ("n", "Memory stays as it is.")):
        chat.say("Remember: we deploy on Thursdays.")
        chat.expect("Saved memory: deploy-thursdays.")
        chat.prompt()
        chat.say("/undo")
        chat.expect("The turn also changed memory: deploy-thursdays (saved). Undo that too?")
        chat.say(answer)
        chat.expect(told)
        chat.prompt()


def test_commands_do_what_they_say(chat: Terminal, tmp_path: Path) -> None:
    chat.say("/contxt")
    chat.expect("Unknown command /contxt. Did you mean /context?")
    chat.say("/help")
    listed = chat.expect("Shift-Tab changes the permission mode.")
    for name in ("context", "clear", "compact", "model", "resume", "memory", "pin", "undo", "permissions"):
        assert f"/{name}" in listed
    chat.say("/pin never touch the main branch")
    chat.expect("Pinned")
    chat.say("/pin")
    chat.expect("  never touch the main branch")
    chat.say("/compact")
    chat.expect("Nothing was compacted: there is nothing to summarise yet.")
    assert here("memory", "save", "testing-db", "--description", "Tests use Postgres", "A real one.").returncode == 0
    chat.say("/memory")
    chat.expect("testing-db: Tests use Postgres")
    chat.say("/memory testing-db")
    chat.expect("A real one.")
    chat.say("/memory nothing")
    chat.expect("Memory 'nothing' not found.")
    chat.say("/permissions accept-edits")
    chat.expect("Mode accept-edits")
    chat.expect("mode accept-edits · ")
    chat.say("/model nobody-knows-this")
    chat.expect("the provider of this model is unknown")
    chat.say("/etc/hosts is a path.")
    chat.expect("Noted")
    chat.say("/context")
    chat.expect(" tokens, ")
    chat.expect("% left")
    chat.expect("memory and instructions")


@pytest.mark.spec("C1", "B1")
def test_a_conversation_is_compacted_opened_again_and_taken_back(chat: Terminal, work: Path) -> None:
    (work / "long.txt").write_text("filler words that say nothing at all\n" * 400)
    chat.say("Our tests run against Postgres, on port 5433.")
    chat.expect("Noted")
    chat.prompt()
    for _ in range(2):
        chat.say("read long.txt")
        chat.expect("Read long.txt")
        chat.prompt()
    chat.say("/compact --preview")
    chat.expect("would be summarised")
    chat.expect("tokens would become")
    chat.say("/compact keep the port")
    shown = chat.expect("to undo it.")
    found = re.search(r"/expand ([0-9a-f]{8}) to see the original", shown)
    assert found, shown
    chat.say(f"/expand {found[1]}")
    chat.expect("on port 5433")
    chat.say("/undo")
    chat.expect(f"Undid compaction {found[1]}")
    chat.say(f"/expand {found[1]}")
    chat.expect("on port 5433")
    chat.say("/undo")
    chat.expect("Undid")


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before the chat."""
    monkeypatch.setenv("LAMINA_MAILBOX", "alice")


def test_a_new_session_keeps_the_old_one_which_can_be_chosen_again(mailbox: None, chat: Terminal, tmp_path: Path) -> None:
    chat.say("Our tests run against Postgres.")
    chat.expect("Noted")
    chat.prompt()
    (old,) = written(tmp_path)
    chat.say("/clear")
    chat.expect(f"Use /resume {old.stem[:8]}")
    chat.prompt()
    assert Mailbox.open(tmp_path / "home", MailboxAddress("alice", "default")) is None, "it goes along"
    chat.say("/resume")
    chat.expect(f"  1  {old.stem[:8]}")
    chat.expect("(Enter for none):")
    chat.say("1")
    chat.expect(f"Resumed session {old.stem}.")
    chat.expect("> Our tests run against Postgres.")
    chat.prompt()
    chat.say("What do our tests run against?")
    chat.expect("You told me")
    chat.say(f"/resume {old.stem[:8]}")
    chat.expect("This session is already open.")


def test_a_line_may_go_on_in_the_next_one_and_is_remembered(chat: Terminal, work: Path, tmp_path: Path) -> None:
    chat.press("The first line \\\rsecond line\x1b\rthird line\r")
    chat.expect("Noted")
    chat.prompt()
    (path,) = written(tmp_path)
    assert said(path)[0] == "The first line \nsecond line\nthird line"
    chat.press("\x03")
    chat.expect("Press Ctrl-C again, or Ctrl-D, to leave.")
    chat.press("\x03")
    assert chat.wait() == 0
    assert json.loads((tmp_path / "home" / "history").read_text()) == "The first line \nsecond line\nthird line"
    with Terminal(cwd=work) as again:
        again.prompt()
        again.press("\x1b[A\r")
        again.expect("Noted")


def test_names_are_completed(chat: Terminal, work: Path, tmp_path: Path) -> None:
    (work / "a_long_file_name.txt").write_text("x")
    chat.press("read @a_lo")
    chat.expect("a_long_file_name.txt")
    chat.press("\t\r")
    chat.prompt()
    assert said(written(tmp_path)[0])[0] == "read @a_long_file_name.txt"
    chat.press("/und")
    chat.expect("undo the last turn")
    chat.press("\t\r")
    chat.expect("Undid")
    chat.say("/undo")
    chat.expect("Nothing to undo.")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("columns", "env"), [(22, {"NO_COLOR": "1"}), (80, {"TERM": "dumb"})], ids=["narrow", "dumb"])
def test_a_poor_terminal_is_enough(work: Path, columns: int, env: dict[str, str]) -> None:
    with Terminal(cwd=work, columns=columns, **env) as terminal:
        terminal.expect("to leave\n")
        terminal.say("write notes.txt: one line")
        terminal.expect("y yes")
        terminal.expect("\n  >")
        terminal.say("y")
        terminal.expect("✓ Write")
        terminal.expect("left")
        terminal.say("/exit")
        assert terminal.wait() == 0
        assert (work / "notes.txt").exists()
        assert set(re.findall(rb"\x1b\[[0-9;]*m", terminal.written)) <= {b"\x1b[0m"}
        assert "TERM" not in env or b"\x1b" not in terminal.written


ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b5m\x7f"


def test_no_control_sequence_of_a_file_or_an_answer_reaches_the_terminal(chat: Terminal, work: Path) -> None:
    (work / "evil.txt").write_text(f"Our tests run against {ESCAPES}Postgres.\n")
    chat.say("read evil.txt")
    chat.expect("✓ Read evil.txt")
    chat.prompt()
    chat.say("run printf '\\033]0;owned\\007'")
    chat.expect("\n  >")
    chat.say("y")
    chat.prompt()
    assert "Postgres" in chat.text, "the stand-in shows what it read"
    for control in (b"\x1b]0;owned", b"\x1b[31m\xc2\x9b", "\x9b".encode(), b"\x7f"):
        assert control not in chat.written


# Trust


HOOKS = {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}


@pytest.mark.spec("F2")
def test_hooks_of_a_project_run_only_after_a_yes_and_it_is_asked_once(work: Path) -> None:
    (work / ".claude").mkdir()
    (work / ".claude" / "settings.json").write_text(json.dumps({"hooks": HOOKS, "permissions": {"allow": ["Bash(rm:*)"]}}))
    with Terminal(cwd=work) as terminal:
        terminal.expect("Hook at SessionStart: touch hooked")
        terminal.expect("(y/n)")
        terminal.say("n")
        assert "Ignored, because this directory is not trusted: hooks, permissions." in terminal.prompt()
        assert not (work / "hooked").exists()
        terminal.say("/permissions")
        terminal.expect("No rules yet")
    with Terminal(cwd=work) as terminal:
        terminal.expect("(y/n)")
        terminal.say("maybe")
        terminal.expect("Please answer y or n.")
        terminal.expect("(y/n)")
        terminal.say("yes")
        terminal.prompt()
        assert (work / "hooked").exists()
    with Terminal(cwd=work) as terminal:
        assert "(y/n)" not in terminal.prompt()


@pytest.mark.spec("F2")
def test_a_repository_sets_neither_paths_nor_endpoints_whatever_the_person_says(work: Path, tmp_path: Path) -> None:
    stray = tmp_path / "stray"
    theirs = {
        "lamina": {"baseUrl": "http://127.0.0.1:9/", "provider": "anthropic:claude-sonnet-5-5"},
        "autoMemoryDirectory": str(stray),
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/", "ANTHROPIC_API_KEY": "theirs", "LAMINA_HOME": str(stray)},
        "hooks": HOOKS,
    }
    (work / ".claude").mkdir()
    (work / ".claude" / "settings.json").write_text(json.dumps(theirs))
    with Terminal(cwd=work) as terminal:
        terminal.expect("(y/n)")
        terminal.say("y")
        shown = " ".join(terminal.prompt().split())
        assert shown.count("may not be set by files in the working tree") >= 4
        assert "offline ·" in shown
        terminal.say("help")
        terminal.expect("offline stand-in")
    assert not stray.exists()
    assert here("-p", "help").returncode == 0


@pytest.mark.spec("F2")
def test_a_file_outside_the_project_is_included_only_after_a_yes(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("The secret word is xylophone.")
    (work / "CLAUDE.md").write_text(f"Rules.\n@{outside}\n")
    with Terminal(cwd=work) as terminal:
        terminal.expect("is outside the project")
        terminal.expect("(y/n)")
        terminal.say("n")
        terminal.prompt()
    with Terminal(cwd=work) as terminal:
        assert "(y/n)" not in terminal.prompt()
    assert "xylophone" not in "".join(path.read_text() for path in written(tmp_path))


# With a server, whose SDK takes most of the time of these tests.


class Held:
    """An answer that begins and then waits."""

    def __init__(self, server: MessagesServer) -> None:
        self.arrived, self.go = threading.Event(), threading.Event()
        server.reply(text="too late", delay=self.go, when=self._note)

    def _note(self, _: Received) -> bool:
        self.arrived.set()
        return True


@pytest.fixture
def keyed(messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> MessagesServer:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    return messages_server


@pytest.mark.spec("T7")
def test_a_turn_with_a_model_from_the_first_word_to_the_status_line(keyed: MessagesServer, work: Path) -> None:
    (work / "app.py").write_text("def add(a, b):\n    return a - b\n")
    keyed.reply(text="Let me look.", tool_use=("Read", {"file_path": str(work / "app.py")}))
    change = {"file_path": str(work / "app.py"), "old_string": "a - b", "new_string": "a + b"}
    keyed.reply(text="It subtracts.", tool_use=("Edit", change))
    keyed.reply(text="Fixed.")
    with Terminal("--model", "anthropic:claude-sonnet-5-5", cwd=work) as terminal:
        assert "context 100% left" in terminal.prompt()
        terminal.say("fix add")
        for shown in (
            "Let me look.\n",
            "✓ Read app.py · 2 lines\n",
            "It subtracts.\n",
            "? Edit app.py\n    - a - b\n    + a + b\n",
        ):
            terminal.expect(shown)
        terminal.expect("\n  >")
        terminal.say("y")
        terminal.expect("✓ Edit app.py · -1 +1 at line 2\n")
        terminal.expect("Fixed.")
        status = terminal.prompt()
        assert "cache " in status
        assert "$0.0" in status
        terminal.say("/undo")
        terminal.expect('Undid "fix add", 3 answers, 2 tool calls. Changed files stay changed.')
        terminal.prompt()
        assert (work / "app.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_ctrl_c_ends_the_turn_at_once_and_typed_text_waits_for_the_next_prompt(
    keyed: MessagesServer, work: Path, tmp_path: Path
) -> None:
    held = Held(keyed)
    with Terminal("--model", "anthropic:claude-sonnet-5-5", cwd=work) as terminal:
        terminal.prompt()
        terminal.say("hello")
        assert held.arrived.wait(120)
        terminal.expect("waiting for the model")
        terminal.press("typed meanwhile\x03")
        terminal.expect("Stopped. The conversation so far is kept")
        terminal.expect("typed meanwhile")
        terminal.press("\x03")
        held.go.set()
        keyed.reply(text="Here again.")
        terminal.say("/retry")
        terminal.expect("Here again.")
        terminal.prompt()
        terminal.press("\x04")
        assert terminal.wait() == 0
    assert said(written(tmp_path)[0]) == ["hello", "Here again."]


@pytest.mark.spec("Z4")
@pytest.mark.parametrize("end", ["window", pytest.param("SIGTERM", marks=pytest.mark.exhaustive)])
def test_a_chat_that_is_ended_in_the_middle_of_a_turn_can_be_continued(
    keyed: MessagesServer, work: Path, tmp_path: Path, end: str
) -> None:
    held = Held(keyed)
    with Terminal("--model", "anthropic:claude-sonnet-5-5", cwd=work) as terminal:
        terminal.prompt()
        terminal.say("Our tests run against Postgres.")
        assert held.arrived.wait(120)
        if end == "window":
            terminal.close()
            assert terminal.wait() == 128 + signal.SIGHUP
        else:
            terminal.process.send_signal(signal.SIGTERM)
            assert terminal.wait() == 128 + signal.SIGTERM
    held.go.set()
    (path,) = written(tmp_path)
    assert path.read_bytes().endswith(b"\n")
    assert said(path) == ["Our tests run against Postgres."]
    keyed.reply(text="Postgres, you said.")
    done = here("--continue", "-p", "What do they run against?", "--model", "anthropic:claude-sonnet-5-5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Postgres, you said.\n", "")
    assert written(tmp_path) == [path]


def test_a_window_that_is_closed_at_the_prompt_or_at_a_question_ends_the_chat(work: Path) -> None:
    with Terminal(cwd=work) as terminal:
        terminal.prompt()
        terminal.close()
        assert terminal.wait() in (0, 128 + signal.SIGHUP)
    with Terminal(cwd=work) as terminal:
        terminal.prompt()
        terminal.say("write notes.txt: one line")
        terminal.expect("\n  >")
        terminal.close()
        assert terminal.wait() in (0, 128 + signal.SIGHUP)
    assert not (work / "notes.txt").exists()
    assert here("--continue", "-p", "help").returncode == 0

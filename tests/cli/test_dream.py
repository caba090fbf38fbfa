"""`lamina dream`: run, watch, stop and undo dreams; `/dream` in the chat; the line in `lamina stats`."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import click
import pytest
from tests.disk.processes import needs_fork, run_child

from lamina.agent.manual_dream import run_by_hand
from lamina.cli import completion
from lamina.cli.dream import dream_command as command
from lamina.cli.dream_status import describe_undo
from lamina.cli.output import StdoutSink
from lamina.cli.signals import StopRequest
from lamina.cli.start import ChatOptions
from lamina.cli.terminal import commands
from lamina.cli.terminal.input_line import parse
from lamina.cli.terminal.loop import Chat
from lamina.cli.terminal.screen import Screen
from lamina.core.blocks import Wire
from lamina.core.reply import Reply
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.record import DreamRecord, SkippedChange, new_id, write_record
from lamina.layers.l6_dream.undo import UndoneDream
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.providers import OnEvent
from lamina.providers.offline import OfflineProvider
from lamina.session.provider import offline
from lamina.session.session import Session

from .running import failed, here, misused

PATIENCE = 120
AGENT = ChangeReason("extraction", "said in passing")
BODY = "We deploy on Thursdays and never on Fridays, since nobody is there to look after it."


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


@pytest.fixture
def memory(work: Path) -> Iterator[Memory]:
    """Two memories that say the same, neither of them a person's own."""
    with Memory.open(work) as memory:
        for name in ("deploys", "deployments"):
            memory.save(name, type="project", description="Deploys happen on Thursdays", body=BODY, why=AGENT)
        yield memory


def texts(memory: Memory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in memory.path.glob("*.md")}


def document(*arguments: str) -> Any:
    return json.loads(here("dream", *arguments, "--json").stdout)


class Slow(OfflineProvider):
    """Answers when it is let go; not by the local functions, which take no time."""

    name = "slow"

    def __init__(self) -> None:
        super().__init__(offline().table)
        self.asked, self.go = Event(), Event()

    def ask(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: Event | None = None) -> Reply:
        self.asked.set()
        assert self.go.wait(PATIENCE)
        return super().ask(request, purpose=purpose, on_event=on_event)


@pytest.fixture
def slow(work: Path, memory: Memory) -> Iterator[tuple[Slow, Thread]]:
    """A dream that is under way."""
    provider = Slow()
    thread = Thread(target=run_by_hand, args=(provider,), kwargs={"cwd": work}, daemon=True)
    thread.start()
    assert provider.asked.wait(PATIENCE)
    yield provider, thread
    provider.go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.spec("D5", "D4")
def test_a_dream_by_hand_tells_each_answer_and_what_it_came_to_and_is_taken_back(memory: Memory) -> None:
    before = texts(memory)
    done = here("dream")
    assert done.returncode == 0
    assert done.stdout.startswith("Dream completed: merged 1 (")
    assert "  1  " in done.stderr
    assert "Run `lamina dream --undo` to revert it." in done.stderr
    assert len(memory.topics()) == 1
    status = here("dream", "--status").stdout
    assert re.search(r"Next: not yet, the last dream was .+ ago; the next may run in 2[34] h", status)
    assert ": merged 1 (" in status or "  merged 1 (" in status
    undone = here("dream", "--undo")
    assert (undone.returncode, undone.stdout.startswith("Undid dream ")) == (0, True)
    assert texts(memory) == before
    assert "was undone" in here("dream", "--status").stdout


@pytest.mark.spec("D5")
def test_programs_get_one_document(memory: Memory) -> None:
    made = document()
    assert (made["status"], made["phase"], made["by"], len(made["merged"])) == ("completed", "applied", "hand", 1)
    assert made["turns"]
    status = document("--status")
    assert (status["due"], status["gate"], status["running"], status["holder"]) == (False, "time", None, None)
    assert [each["id"] for each in status["dreams"]] == [made["id"]]
    assert document("--watch")["id"] == made["id"]
    [undo] = [param for param in command.params if param.name == "undo"]
    assert [item.value for item in completion.dreams(click.Context(command), undo, "2")] == [made["id"]]
    back = document("--undo", made["id"])
    assert (back["id"], back["left"]) == (made["id"], [])
    assert len(back["back"]) >= 1


def test_misuse_and_failure_are_one_line_with_their_codes(work: Path) -> None:
    nothing = here("dream", "--model", "offline")
    assert (nothing.returncode, nothing.stderr) == (1, "lamina: No dream was started: there are no memories yet.\n")
    for wrong in (
        ("--status", "--kill"),
        ("--watch", "--undo"),
        ("--status", "--model", "offline"),
        ("--undo", "20260101T0000-aaaa"),
    ):
        assert misused(here("dream", *wrong)), wrong
    assert failed(here("dream", "--kill"))
    assert here("dream", "--watch").returncode == 0


@pytest.mark.spec("D5")
def test_a_dream_that_has_just_begun_is_not_the_last_one(memory: Memory) -> None:
    held = DreamLock(memory.store().store.root).acquire(None)
    assert isinstance(held, HeldDreamLock)
    with held:
        status = document("--status")
        assert (status["last"], status["gate"], status["holder"]["alive"]) == (None, "lock", True)


@pytest.mark.spec("D1", "D5")
def test_the_status_names_the_gate_that_stands_in_the_way(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def gate() -> str:
        return str(document("--status")["gate"])

    assert gate() == "sessions"
    monkeypatch.setenv("LAMINA_ASSISTANT", "1")
    assert document("--status")["why"] == "no earlier day has a new daily log, and today's waits for midnight"
    log = memory.path / "logs/2020/01/2020-01-02.md"
    log.parent.mkdir(parents=True)
    log.write_text("- 09:00 x\n")
    assert document("--status")["due"]
    assert "Next: at the end of the next turn" in here("dream", "--status").stdout
    monkeypatch.setenv("LAMINA_DISABLE_MEMORY", "1")
    assert gate() == "off"
    off = "private memory is off: LAMINA_DISABLE_MEMORY is set; unset it"
    assert f"Next: not yet, {off}" in " ".join(here("dream", "--status").stdout.split())
    assert f"No dream was started: {off}." in " ".join(here("dream").stderr.split())


@pytest.mark.spec("D5", "D2")
def test_a_dream_that_runs_is_seen_and_a_kill_leaves_memory_and_the_lock_as_they_were(
    memory: Memory, slow: tuple[Slow, Thread]
) -> None:
    before = texts(memory)
    status = document("--status")
    assert (status["gate"], status["holder"]["alive"], status["running"]["phase"]) == ("lock", True, "starting")
    assert "Running: " in here("dream", "--status").stdout
    second = here("dream", "--model", "offline")
    assert second.returncode == 1
    assert "No dream was started: " in second.stderr
    done = here("dream", "--kill")
    assert (done.returncode, "Memory is as it was before." in done.stdout) == (0, True)
    slow[1].join(PATIENCE)
    assert texts(memory) == before
    root = memory.store().store.root
    assert (DreamLock(root).holder(), DreamLock(root).last_ns()) == (None, None)
    assert document("--status")["dreams"][0]["status"] == "killed"


@pytest.mark.spec("D5", "D4")
def test_watching_follows_to_the_end_and_ctrl_c_ends_only_the_watching(
    memory: Memory, slow: tuple[Slow, Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, thread = slow

    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lamina.cli.dream_actions.sleep", pressed)
    left = here("dream", "--watch")
    assert left.returncode == 130
    assert "The dream keeps running" in left.stderr
    assert document("--status")["running"] is not None

    def let_go(_: float) -> None:
        provider.go.set()
        thread.join(PATIENCE)

    monkeypatch.setattr("lamina.cli.dream_actions.sleep", let_go)
    watched = here("dream", "--watch")
    assert (watched.returncode, watched.stdout.startswith("Dream completed: merged 1 (")) == (0, True)
    assert "  1  " in watched.stderr
    assert document("--status")["running"] is None


@needs_fork
@pytest.mark.spec("D5", "Z12")
def test_a_dream_whose_process_died_is_told_apart_and_put_right(memory: Memory) -> None:
    def die() -> None:
        with Memory.open(".") as own:
            root = own.store().store.root
            assert isinstance(DreamLock(root).acquire(None), HeldDreamLock)
            write_record(root, DreamRecord(id=new_id(time.time()), started=time.time(), pid=os.getpid(), by="session"))
            os._exit(0)

    os.waitpid(run_child(die), 0)
    assert "has died" in here("dream", "--status").stdout
    assert "has died" in here("dream", "--watch").stderr
    done = here("dream", "--kill")
    assert done.returncode == 0
    assert "was stopped before it changed anything" in done.stderr
    assert DreamLock(memory.store().store.root).holder() is None
    assert document("--model", "offline")["status"] == "completed", "and the next one runs at once"


@pytest.fixture
def chat(work: Path, memory: Memory) -> Iterator[Callable[[str], None]]:
    stop = StopRequest()
    opened = Chat(ChatOptions(work, "offline"), stop, Screen(StdoutSink(stop)))

    def say(text: str) -> None:
        called = parse(text)
        assert called is not None
        commands.run(opened, *called)

    yield say
    opened.agent.close()


@pytest.mark.spec("D5")
def test_the_chat_dreams_shows_and_takes_back(
    memory: Memory, chat: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for text, shown in (
        ("/dream", "Dream completed: merged 1 ("),
        ("/dream status", "Last dream: 2"),
        ("/dream undo", "Undid dream "),
        ("/dream undo", "there is nothing to undo"),
        ("/dream kill", "no dream is running"),
        ("/dream on", "Unknown command /dream on"),
    ):
        chat(text)
        assert shown in capsys.readouterr().out, text
    assert len(memory.topics()) == 2


@pytest.mark.parametrize(
    ("back", "left", "said"),
    [
        (("a.md",), (), "1 memory"),
        (("a.md", "b.md"), (), "2 memories"),
        ((), (), "the index"),
        ((), (SkippedChange("a.md", "was changed"),), "0 memories"),
    ],
)
def test_what_was_taken_back_is_counted(back: tuple[str, ...], left: tuple[SkippedChange, ...], said: str) -> None:
    record = DreamRecord(id=new_id(0.0), started=0.0, pid=1, by="hand")
    assert describe_undo(UndoneDream(record, back, left)) == f"Undid dream {record.id}: restored {said}."


@pytest.mark.spec("W2", "O1")
def test_a_log_speaks_also_of_a_memory_that_is_tidied_in_the_same_dream(work: Path) -> None:
    with Memory.open(work) as memory:
        body = "Deploys happen on Thursdays. The last one was yesterday."
        memory.save("deploys", type="project", description="Deploys happen on Thursdays", body=body, why=AGENT)
        log = memory.path / "logs/2099/01/2099-01-02.md"
        log.parent.mkdir(parents=True)
        log.write_text("- 09:00 deploys happen on Tuesdays\n")
        assert here("dream").returncode == 0
        found = texts(memory)["deploys.md"].decode()
    assert "Deploys happen on Tuesdays" in found
    assert "Thursdays" not in found
    assert "yesterday (2" in found


@pytest.mark.spec("D5", "K4")
def test_the_last_dream_is_a_line_of_the_stats(work: Path, tmp_path: Path, memory: Memory) -> None:
    with Session("offline", home=tmp_path / "home", cwd=work) as session:
        session.add_user("hello")
        session.ask()
    assert "Last dream" not in here("stats").stdout
    here("dream", "--model", "offline")
    assert "Last dream: 2" in here("stats").stdout
    dreams = json.loads(here("stats", "--json").stdout)["dreams"]
    assert (dreams["completed"], dreams["failed"]) == (1, 0)
    assert dreams["last"] is not None

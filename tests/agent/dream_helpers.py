"""A project whose memory is due for a dream, an agent in it, and a script of a dream's calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from lamina.agent.agent import Agent
from lamina.conversation.isolate import take_job_results
from lamina.core.settings import Settings
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.paths.project import slug
from lamina.disk.settings_files import lamina_home
from lamina.disk.trees.rootdir import RootDir
from lamina.fork.fork import directive_in
from lamina.layers.l6_dream.directive import read_directive
from lamina.layers.l6_dream.record import DreamRecord, read_records
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.session.base import working
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Step, make_answer

from .agent_helpers import PATIENCE

Open = Callable[..., Agent]
# Not the subject of these tests; git would take longer than all the rest.
QUIET: dict[str, Any] = {"extraction": False, "session_notes": False}
DAY = 24 * 3_600
HELD = "The importer holds back rows that have no currency, because the bank refuses them."
ALSO = "Rows that were held back are tried again on the first of each month."


def saved(memory: Memory, name: str, body: str, *, type: Any = "project", who: Any = "extraction") -> None:
    memory.save(name, type=type, description=f"About {name}, as it was found.", body=f"{body}\n", why=ChangeReason(who, "found"))


def remembered(project: Path, *, sessions: int = 5, hours: float | None = 25) -> Path:
    """Create a memory with a duplicate, some transcripts, and a last dream `hours` ago (None: never)."""
    with Memory.open(project, settings=Settings()) as memory:
        saved(memory, "importer", HELD)
        saved(memory, "importer-rows", f"{HELD} {ALSO}")
        saved(memory, "printer", "The printer on the second floor is called Ada.")
        path = memory.path
    old_sessions(project, sessions)
    if hours is not None:
        dreamt(path, hours)
    return path


def old_sessions(project: Path, count: int) -> None:
    home = lamina_home(os.environ)
    assert home is not None
    directory = home / "projects" / slug(project)
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (directory / f"old-{number}.jsonl").write_text('{"type":"user","message":{"content":"The importer again."}}\n')


def dreamt(memory: Path, hours: float) -> None:
    (memory / LOCK).touch(mode=0o600)
    then = time.time() - hours * 3_600
    os.utime(memory / LOCK, (then, then))


def last(memory: Path) -> int | None:
    return (memory / LOCK).stat().st_mtime_ns if (memory / LOCK).exists() else None


def kept(memory: Path) -> list[DreamRecord]:
    with RootDir.open(memory, create=False) as root:
        return read_records(root)


class Dreamer:
    """An agent with a user, and the events of its layers."""

    def __init__(self, opened: Open, **given: Any) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        given.setdefault("settings", Settings(**QUIET))
        self.agent = opened(interactive=given.pop("interactive", True), on_event=self._heard, **given)
        assert self.agent.memory.directory is not None
        self.memory = self.agent.memory.directory

    def _heard(self, event: dict[str, Any]) -> None:
        if event.get("type") == "layer":
            self.told.append((event["name"], event["data"]))

    def run(self, words: str = "Hello.") -> None:
        self.agent.run(words)

    def settle(self) -> None:
        with working(self.agent.session) as c:
            assert c.background.wait("dream", PATIENCE)
            take_job_results(c)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [data for name, data in self.told if name == "dream"]

    @property
    def notices(self) -> list[str]:
        return [notice for notice in self.agent.session.notices if "ream" in notice]


def forks(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if received.fork.startswith("dream")]


Call = tuple[str, dict[str, Any]]
Answers = Callable[[str], list[Call]]


class Script:
    """The model's answers to a dream. Each is a function from the copy's directory to calls; after the last one it says that it is done.
    At answer `hold` it sets `there` and waits until `go` is set."""

    def __init__(self, server: MessagesServer, *answers: Answers, hold: int | None = None) -> None:
        self._answers = answers
        self._hold = hold
        self.there = Event()
        self.go = Event()
        server.answer_with(self._answer)

    def _answer(self, received: Received) -> Step | str | None:
        if not received.fork.startswith("dream"):
            return None
        number = sum(message["role"] == "assistant" for message in received.messages)
        if number == self._hold:
            self.there.set()
            self.go.wait(PATIENCE)
        if number >= len(self._answers):
            return "Two memories were one."
        work = read_directive(directive_in(received.body) or "").work
        return make_answer(tool_use=self._answers[number](work))


def read(*files: str) -> Answers:
    return lambda work: [("Read", {"file_path": f"{work}/{file}"}) for file in files]


def write(**texts: str) -> Answers:
    """Write these texts to the files with these stems."""
    return lambda work: [("Write", {"file_path": f"{work}/{stem}.md", "content": text}) for stem, text in texts.items()]


ORIENT = read("MEMORY.md", "importer.md", "importer-rows.md", "printer.md")
# The longer one stays, and keeps all of its content.
MERGE = write(importer="")

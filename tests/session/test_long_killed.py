"""A long session that is killed at any step and opened again sends what it would have sent.

The loop is the caller's own and needs no server: what it does next is read off the session alone, so a session that was opened again
goes on with the same moves. Forks are answered by the local functions.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.disk.crash.harness import Extent, Kill, Say, every
from tests.disk.processes import needs_fork
from tests.session.plain import Session

from lamina.core.cache import count_block
from lamina.core.policy import CLASSIC, LEAN, Policy
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Message
from lamina.core.settings import Settings
from lamina.session.base import working

from .long import TOOLS, Output, called, decisions, how, image, lines, of_fixed_length, records, settle, stages
from .words import Wire, answer, refused

pytestmark = pytest.mark.exhaustive

NAME = "killed"
WINDOW = 10_000
# So many calls between two questions.
CALLS = 9
MOVES = 56
# Requests that are compared after every third kill; after the others it is one.
AHEAD = 3
# Tokens by which two counts may differ: an id that is made anew has other letters and figures.
MADE_ANEW = 6
# The stretch of work that is killed everywhere, in calls.
BEGIN, END = 25, 28
LEAST_POINTS = 15
OUTPUTS = (
    lambda number: Output(lines(number, 900)),
    lambda number: Output(""),
    lambda number: Output(lines(number, 1_500)),
    lambda number: Output(lines(number, 9_000)),
    lambda number: Output([{"type": "text", "text": f"picture {number}"}, image()]),
    lambda number: Output(f"{number}: no such file\n" * 9, is_error=True),
    lambda number: Output(bytes(range(256)) * 40),
)
# An id, or the beginning of one as a fold names itself.
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    return of_fixed_length(tmp_path)


def opened(directory: Path, policy: Policy, settings: Settings, **given: Any) -> Session:
    (directory / "home").mkdir(exist_ok=True)
    options: Wire = {"tools": TOOLS, "system": "Be careful.", "window": WINDOW, "policy": policy, "settings": settings, **given}
    return Session("anthropic:a-model", home=directory / "home", cwd=directory, **options)


class Loop:
    """For ever: a question, calls one by one with their results, an answer. What comes next is read off the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        said = [record for record in records(session) if isinstance(record, Message) and not record.summary]
        self.calls = sum(block.wire["type"] == "tool_use" for record in said for block in record.blocks)
        self.questions = sum(block.wire["type"] == "text" for record in said if record.role == "user" for block in record.blocks)
        self.sent: list[Wire] = []
        self.counts: list[int] = []  # tokens, at each request
        self.keys: list[tuple[int, int]] = []  # which request it was, whoever sends it

    def move(self) -> None:
        session = self._session
        if session.status.open_calls:
            call = session.status.open_calls[0]
            output = given(call)
            session.add_tool_result(call, output.content, is_error=output.is_error)
        elif not session.messages or session.messages[-1]["role"] == "assistant":
            self.questions += 1
            session.add_user(f"Question {self.questions}: what is there?")
        else:
            self.sent.append(session.before_call())
            self.counts.append(session.window_state.tokens)
            self.keys.append((self.questions, self.calls))
            session.after_call(self._answer())
            settle(session)

    def _answer(self) -> Wire:
        """One block each, so that half an answer is none. The usage is counted by another rule than the session's own."""
        rows = self.sent[-1]["messages"]
        usage = {"input_tokens": sum(count_block(block) for row in rows for block in row["content"]), "output_tokens": 20}
        if self.calls >= self.questions * CALLS:
            return answer(f"final-{self.questions}", "That is what is there.", usage=usage)
        tool, said, name = called(self.calls)
        self.calls += 1
        return answer(f"call-{name}", {"type": "tool_use", "id": name, "name": tool, "input": said}, usage=usage)


def given(call: str) -> Output:
    number = int(call[-4:])
    return OUTPUTS[number % len(OUTPUTS)](number)


def plain(request: Wire) -> str:
    """A request without what differs between two runs: the ids that are made anew."""
    return UUID.sub("ID", json.dumps({name: request[name] for name in ("model", "system", "tools", "messages")}))


def check(session: Session) -> list[str]:
    """Every decision accounts for every record, and every result that was handed in is there."""
    made = []
    written = records(session)
    for decision, before in stages(written):
        told = open_receipt(read_receipt(decision.uuid, decision.receipt), [item.uuid for item in before])
        assert any(one.fate != "kept" for one in told.values())
        made.append(how(decision))
    return made


WAYS = {
    "notes": (CLASSIC, Settings(), {"clearing", "notes"}),
    "summary": (CLASSIC, Settings(session_notes=False), {"clearing", "summary"}),
    "lean": (LEAN, Settings(session_notes=False), {"summary"}),
    "collapse": (CLASSIC, Settings(collapse=True), {"clearing", "collapse"}),
}


@pytest.mark.spec("Z4", "T10")
@pytest.mark.parametrize("way", WAYS)
def test_killed_after_any_move_the_next_requests_are_the_same(tmp_path: Path, way: str) -> None:
    """A copy of the home is what a killed process leaves: all it has said is in the operating system's hands."""
    policy, settings, decided = WAYS[way]
    here = tmp_path / "one"
    here.mkdir()
    copies: list[int] = []  # how many requests had been sent when the copy was made
    with opened(here, policy, settings, session_id=NAME) as session:
        loop = Loop(session)
        for number in range(MOVES):
            shutil.copytree(here, tmp_path / f"copy-{number}")
            copies.append(len(loop.sent))
            loop.move()
        while len(loop.sent) < copies[-1] + AHEAD:
            loop.move()
        wanted, counts = [plain(request) for request in loop.sent], loop.counts
        made = set(check(session))
    assert made >= decided
    for number, sent in enumerate(copies):
        shutil.rmtree(here)
        shutil.move(tmp_path / f"copy-{number}", here)
        with opened(here, policy, settings, **({"resume": NAME} if number else {"session_id": NAME})) as again:
            loop = Loop(again)
            while len(loop.sent) < (AHEAD if number % AHEAD == 0 else 1):
                loop.move()
            assert [plain(request) for request in loop.sent] == wanted[sent : sent + len(loop.sent)], f"before move {number}"
            assert loop.counts == pytest.approx(counts[sent : sent + len(loop.sent)], abs=MADE_ANEW), f"before move {number}"


@pytest.mark.spec("T10", "C10")
def test_after_a_snip_a_session_opened_again_counts_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, CLASSIC, Settings(), session_id=NAME) as session:
        loop = Loop(session)
        while loop.calls < CALLS + 1 or session.status.open_calls:
            loop.move()
        with working(session) as c:
            first, last = (c.log.view.items[index].uuid for index in (3, 8))
        session.hide_messages(first, last)
        session.before_call()
        tokens = session.window_state.tokens
    with opened(tmp_path, CLASSIC, Settings(), resume=NAME) as again:
        again.before_call()
        assert again.window_state.tokens == tokens


@needs_fork
@pytest.mark.spec("Z4", "B1")
@pytest.mark.parametrize(("notes", "torn"), [(False, False), (True, True)], ids=["summary", "notes, torn"])
@pytest.mark.usefixtures("crash_points")
def test_killed_before_any_system_call_of_a_stretch_of_work_it_goes_on_as_if_nothing_had_been(
    tmp_path: Path, notes: bool, torn: bool
) -> None:
    """The stretch holds a spill, a clearing and a compaction. All runs are in one place, since a path is part of what is sent. Where
    notes are kept, an update that was killed is not made again at once, so what the next compaction keeps may be more; and a write
    that was torn may have lost what was learnt of the tokens. There the requests are only valid."""
    settings = Settings(session_notes=notes)
    base, here = tmp_path / "base", tmp_path / "here"
    here.mkdir()
    with opened(here, CLASSIC, settings, session_id=NAME) as session:
        loop = Loop(session)
        while loop.calls < BEGIN:
            loop.move()
        shutil.copytree(here, base)
        before = len(decisions(session))
        while loop.calls < END:
            loop.move()
        wanted = {key: plain(request) for key, request in zip(loop.keys, loop.sent, strict=True)}
        assert {how(one) for one in decisions(session)[before:]} >= {"clearing", "notes" if notes else "summary"}

    def prepare(_: Path) -> None:
        shutil.rmtree(here)
        shutil.copytree(base, here)

    def act(_: Path, say: Say) -> None:
        with opened(here, CLASSIC, settings, resume=NAME) as session:
            work = Loop(session)
            while work.calls < END:
                work.move()
                say(f"{work.calls}")

    killed = names = 0
    for run in every(tmp_path, prepare, act, Kill(torn=torn)):
        killed += run.ended == "killed"
        with opened(here, CLASSIC, settings, resume=NAME) as again:
            assert again.id == NAME, run
            work = Loop(again)
            assert work.calls >= int(run.said[-1] if run.said else 0), "what was acknowledged is there"
            while work.calls < END and len(work.sent) < AHEAD:
                work.move()
            # A result whose writer died between file and record was never sent; handed in again, it gets a file of another name.
            twice = any(here.rglob("tool-results/*-2.txt"))
            names += not twice
            for key, request in zip(work.keys, work.sent, strict=True):
                assert refused(request) == [], run
                assert notes or torn or twice or plain(request) == wanted[key], run
            check(again)
    assert killed > (LEAST_POINTS if Extent.every else 0)
    assert names > killed * 3 // 4 or not Extent.every

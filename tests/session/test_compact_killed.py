"""A compaction stopped before every system call: the session that is opened next has the old view or the new one, and goes on."""

from __future__ import annotations

import errno
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from tests.disk.crash.harness import Fail, Kill, Say, every
from tests.disk.processes import needs_fork
from tests.session.hosts import lend
from tests.session.plain import Session

from lamina.core.blocks import Text
from lamina.core.log import Log
from lamina.core.policy import CLASSIC, LEAN, Policy
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Boundary, Message, Record, Span
from lamina.core.view import Item
from lamina.disk.transcripts.store import read_transcript
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import working
from lamina.tools.read_state import ReadRange, ReadState

from .compacting import quiet
from .words import READ, answer, call, refused, said, unmarked

pytestmark = [pytest.mark.exhaustive, needs_fork]

ROUNDS = 7
POLICIES = {"classic": CLASSIC, "lean": LEAN}
LINE = "a line of a file that is summarised\n" * 80


def open_(directory: Path, policy: Policy, **given: Any) -> Session:
    """Offline: the summary is made by the local function, so nothing but the disk is in the way."""
    home = directory / "home"
    given = {"tools": [READ], **given}
    return Session("offline", home=home, cwd=directory, settings=quiet(), policy=policy, window=20_000, **given)


def talked(directory: Path, policy: Policy) -> None:
    with open_(directory, policy, session_id="s") as session:
        for number in range(ROUNDS):
            session.add_user(f"Question {number}")
            session.before_call()
            session.after_call(answer(f"a{number}", "I look.", call(f"c{number}", file_path=f"f{number}.py")))
            session.add_tool_result(f"c{number}", LINE)
            session.before_call()
            session.after_call(answer(f"b{number}", f"That was {number}."))
        session.add_user("And now?")


def compacted(session: Session, directory: Path, part: str) -> bool:
    (directory / "read.py").write_text("x = 1\n")
    reads = ReadState()
    lend(session, reads=reads)
    reads.note(directory / "read.py", ReadRange(b""))
    lend(session, todos=lambda: "1. [ ] more")
    pivot = None
    if part != "all":
        with working(session) as c:
            middle = next(item.uuid for item in c.log.view.items if said_is(item, "Question 4"))
        pivot = Pivot("from" if part == "from" else "up_to", middle)
    return session.compact(pivot=pivot).done


def said_is(item: Item, words: str) -> bool:
    return any(isinstance(block, Text) and block.text == words for block in item.blocks)


CASES = [
    (policy, part, fault)
    for policy in POLICIES
    for part in ("all", "from", "up_to")
    for fault in (Kill(), Kill(torn=True), Fail(errno.ENOSPC), Fail(errno.EIO))
    if part == "all" or isinstance(fault, Kill)
]


@pytest.mark.spec("Z4", "B1")
@pytest.mark.parametrize(("policy", "part", "fault"), CASES, ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_it_the_view_is_the_old_one_or_the_new_one(
    tmp_path: Path, policy: str, part: str, fault: Kill | Fail
) -> None:
    chosen = POLICIES[policy]

    def act(directory: Path, say: Say) -> None:
        with open_(directory, chosen, resume="s") as session:
            say("opened")
            if compacted(session, directory, part):
                say("done")

    ends = set()
    for run in every(tmp_path, lambda directory: talked(directory, chosen), act, fault):
        with open_(run.directory, chosen, resume="s") as session:
            assert session.id == "s", run
            old = Log.load(lambda: before_decision(records_of(session.path))).view.messages()  # called here
            text = "\n".join(said(session.messages))
            new = "## 1. Primary request and intent" in text
            assert new or unmarked(session.messages) == old, run
            assert "done" not in run.said or new or isinstance(fault, Fail), run
            for words in ("Question 0", f"Question {ROUNDS - 1}", "And now?"):
                assert words in text, (run, words)
            prove(session)
            request = session.before_call()
            assert refused(request) == [], run
            session.after_call(answer("z", "I am here."))
            ends.add(new)
    assert True in ends, "the last run goes through"
    assert part != "all" or not isinstance(fault, Kill) or ends == {True, False}


def records_of(path: Path | None) -> list[Record]:
    assert path is not None
    return list(read_transcript(path))


def before_decision(records: list[Record]) -> list[Record]:
    return list(takewhile(lambda record: not isinstance(record, Boundary | Span), records))


def prove(session: Session) -> None:
    """Every boundary that counts has a receipt that names each record that was in view."""
    records = records_of(session.path)
    for at, record in enumerate(records):
        if isinstance(record, Boundary) and any(isinstance(one, Message) and one.parent == record.uuid for one in records):
            view = Log.load(lambda at=at: iter(records[:at])).view  # type: ignore[misc]  # a default binds the loop's number
            open_receipt(read_receipt(record.uuid, record.receipt), [item.uuid for item in view.items])

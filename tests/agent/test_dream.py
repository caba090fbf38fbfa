"""Dreams at the end of a turn: over HTTP, with the lock, the copy, the permissions and the store."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.disk.crash_points import watched
from lamina.disk.home.ledger import list_ledger_days, read_ledger_day
from lamina.disk.locks.dream_lock import DreamLock
from lamina.disk.settings_files import lamina_home
from lamina.disk.trees.rootdir import RootDir
from lamina.layers.l6_dream.bounds import FIRST
from lamina.layers.l6_dream.directive import ROUNDS
from lamina.layers.l6_dream.gates import MOST_FAILURES
from lamina.layers.l6_dream.record import DreamRecord, request_kill
from lamina.layers.l6_dream.step import describe_dream
from lamina.layers.l6_dream.trigger import begin_dream
from lamina.memory.memory import Memory
from lamina.session.base import working
from lamina.testing import MessagesServer

from .agent_helpers import PATIENCE, accepted, results
from .dream_helpers import HELD, MERGE, ORIENT, QUIET, Dreamer, Script, forks, kept, last, old_sessions, read, remembered, write

Open = Callable[..., Agent]


def topics(memory: Path) -> list[str]:
    return sorted(path.name for path in memory.glob("*.md"))


ALL = ["MEMORY.md", "importer-rows.md", "importer.md", "printer.md"]


@pytest.mark.spec("D1", "D4", "X7")
def test_the_end_of_a_turn_starts_a_dream_whose_changes_become_real(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    memory = remembered(project)
    one = Dreamer(opened)
    Script(messages_server, ORIENT, MERGE)
    one.run()
    one.settle()
    assert topics(memory) == ["MEMORY.md", "importer-rows.md", "printer.md"]
    assert "(importer.md)" not in (memory / "MEMORY.md").read_text()
    [record] = kept(memory)
    assert (record.status, record.phase, record.by, record.session) == ("completed", "applied", "session", one.agent.session.id)
    assert (record.merged, record.removed, record.waiting, record.why) == (("importer.md",), (), (), "")
    assert [(turn.text, turn.calls) for turn in record.turns] == [("", 4), ("", 1), ("Two memories were one.", 0)]
    assert record.tokens > 0
    assert record.cost > 0
    assert not list((memory / ".dreams").glob("*/work")), "the copy is gone"
    assert one.notices == ["Dream finished: merged 1. Undo with `lamina dream --undo`."]
    [event] = one.events
    assert (event["id"], event["files"], event["merged"], event["rounds"]) == (record.id, ["importer.md"], 1, 3)
    assert event["hit_rate"] > 0.5, "tools and system come from the cache, and each answer finds the one before"
    with Memory.open(project, settings=Settings(**QUIET)) as opened_memory:
        why = opened_memory.log("importer")[0].why
    assert why is not None
    assert (why.who, why.session, why.dream) == ("dream", one.agent.session.id, record.id)


@pytest.mark.spec("D1", "D2")
def test_the_next_turn_does_not_dream_again_and_says_why_once(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    memory = remembered(project, hours=None)
    one = Dreamer(opened)
    Script(messages_server, ORIENT)
    one.run()
    one.settle()
    one.run("And now?")
    one.run("And now again?")
    assert [event.get("stopped") for event in one.events] == [None, "time"]
    assert len(kept(memory)) == 1
    with RootDir.open(memory, create=False) as root:
        assert DreamLock(root).holder() is None
    assert last(memory) is not None


@pytest.mark.spec("B9")
def test_its_calls_stand_in_the_ledger(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    remembered(project)
    one = Dreamer(opened)
    Script(messages_server, ORIENT, MERGE)
    one.run()
    one.settle()
    home = lamina_home(os.environ)
    assert home is not None
    assert [line.purpose for day in list_ledger_days(home) for line in read_ledger_day(home, day)] == ["dream"] * 3


@pytest.mark.spec("A1", "D3")
def test_it_shares_the_prompt_of_the_conversation_and_nothing_that_was_said(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    remembered(project)
    one = Dreamer(opened)
    Script(messages_server, ORIENT)
    one.run("A secret of the conversation.")
    one.settle()
    parent, first = accepted(messages_server)[0], forks(messages_server)[0]
    assert (first.body["system"], first.body["tools"]) == (parent.body["system"], parent.body["tools"])
    assert "A secret of the conversation" not in json.dumps(first.messages)
    assert first.use is not None
    assert first.use.read > 0
    accepted(messages_server)


# Gates


@pytest.mark.spec("D1", "K5")
@pytest.mark.parametrize(
    ("hours", "sessions", "given", "gate"),
    [
        (23, 5, {}, "time"),
        (25, 4, {}, "sessions"),
        (5, 3, {"dream_hours": 4.0, "dream_sessions": 4}, "sessions"),
        (25, 5, {"memory_mode": {"private": "read-only", "team": "auto"}}, "mode"),
        (25, 5, {"budget_calls": 0}, "budget"),
        (25, 5, {"assistant": True}, "nothing"),
        (None, 0, {}, "sessions"),
    ],
)
def test_a_gate_that_stops_a_dream_is_told(
    opened: Open, project: Path, hours: float | None, sessions: int, given: dict[str, object], gate: str
) -> None:
    memory = remembered(project, hours=hours, sessions=sessions)
    one = Dreamer(opened, settings=Settings(**{**QUIET, **given}))
    one.run()
    one.settle()
    assert [event["stopped"] for event in one.events] == [gate]
    assert kept(memory) == []
    assert topics(memory) == ALL


@pytest.mark.spec("D1", "F1")
@pytest.mark.parametrize("given", [{"settings": Settings(dream=False, **QUIET)}, {"interactive": False}])
def test_off_and_in_runs_without_a_person_nothing_is_looked_at(opened: Open, project: Path, given: dict[str, object]) -> None:
    memory = remembered(project)
    one = Dreamer(opened, **given)
    one.run()
    one.settle()
    assert one.events == []
    assert kept(memory) == []


@pytest.mark.spec("D1")
def test_sessions_are_counted_once_in_ten_minutes(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project, sessions=4)
    one = Dreamer(opened)
    one.run()
    old_sessions(project, 5)
    one.run("Again.")
    assert [event["stopped"] for event in one.events] == ["sessions"]
    fresh = Dreamer(opened)
    Script(messages_server)
    messages_server.announce_break("branch")  # another session's first message
    fresh.run("In another session they are counted at once.")
    fresh.settle()
    assert [record.status for record in kept(memory)] == ["completed"]


@pytest.mark.spec("D1")
def test_sessions_of_other_working_directories_of_the_repository_count(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    below = project / "below"
    below.mkdir()
    memory = remembered(project, sessions=3)
    with opened(cwd=below, settings=Settings(dream=True, **QUIET)) as agent:
        agent.run("A session in a subdirectory is known from now on.")
    old_sessions(below, 1)
    one = Dreamer(opened)
    Script(messages_server)
    messages_server.announce_break("system")  # another session's prompt
    one.run()
    one.settle()
    assert [record.status for record in kept(memory)] == ["completed"], "three here, two there"


# Two at once, and an early end


@pytest.mark.spec("Z5", "D1")
def test_of_two_sessions_one_dreams(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    script = Script(messages_server, ORIENT, MERGE, hold=1)
    one, two = Dreamer(opened), Dreamer(opened)
    one.run()
    assert script.there.wait(PATIENCE)
    two.run()
    two.settle()
    assert [event.get("stopped") for event in two.events] == ["time"], "the lock of the one that dreams says it is now"
    dreamt_at = last(memory)
    script.go.set()
    one.settle()
    assert [record.status for record in kept(memory)] == ["completed"]
    assert last(memory) == dreamt_at, "a dream counts from when it began"


@pytest.mark.spec("B9", "D4")
def test_the_conversation_goes_on_while_it_dreams(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    script = Script(messages_server, ORIENT, MERGE, hold=2)
    one = Dreamer(opened)
    one.run()
    assert script.there.wait(PATIENCE)
    one.run("A turn that does not wait.")
    [record] = kept(memory)
    assert (record.status, record.phase, record.files) == ("running", "updating", ("importer.md",))
    assert topics(memory) == ALL, "what it writes is a copy"
    script.go.set()
    one.settle()
    assert [record.status for record in kept(memory)] == ["completed"]


@pytest.mark.spec("D5", "D2")
def test_a_dream_that_is_killed_leaves_everything_as_it_was(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    before = last(memory)
    script = Script(messages_server, ORIENT, MERGE, hold=2)
    one = Dreamer(opened)
    one.run()
    assert script.there.wait(PATIENCE)
    assert last(memory) != before
    with RootDir.open(memory, create=False) as root:
        assert request_kill(root, kept(memory)[0].id)
    one.settle()
    script.go.set()
    [record] = kept(memory)
    assert (record.status, record.why) == ("killed", "stopped on request")
    assert last(memory) == before
    assert topics(memory) == ALL
    assert not list((memory / ".dreams").glob("*/work"))
    assert one.events == [{"killed": "stopped on request", "id": record.id}]
    assert one.notices == ["The dream was stopped: stopped on request. Memory is unchanged."]


@pytest.mark.spec("X7", "D2")
def test_a_session_that_closes_ends_its_dream(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project, hours=None)
    script = Script(messages_server, ORIENT, MERGE, hold=2)
    one = Dreamer(opened)
    one.run()
    assert script.there.wait(PATIENCE)
    one.agent.close(0.0)
    for thread in threading.enumerate():
        if thread.name == "lamina-dream":  # close waits for it, but not without end
            thread.join(PATIENCE)
    assert [(record.status, record.why) for record in kept(memory)] == [("killed", "its session ended")]
    assert last(memory) is None, "it never was"
    assert topics(memory) == ALL
    script.go.set()


@pytest.mark.spec("X7")
def test_a_session_that_closes_waits_for_a_dream_that_is_nearly_done(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    memory = remembered(project)
    Script(messages_server, ORIENT, MERGE)
    one = Dreamer(opened)
    one.run()
    one.agent.close(PATIENCE)
    assert [record.status for record in kept(memory)] == ["completed"]
    assert topics(memory) == ["MEMORY.md", "importer-rows.md", "printer.md"]


# Concurrent writers


@pytest.mark.spec("B4", "D4")
def test_what_a_person_changed_while_it_dreamt_stays_theirs(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    edit = lambda work: [("Edit", {"file_path": f"{work}/printer.md", "old_string": "Ada", "new_string": "Grace"})]  # noqa: E731
    script = Script(messages_server, ORIENT, MERGE, edit, hold=3)
    one = Dreamer(opened)
    one.run()
    assert script.there.wait(PATIENCE)
    mine = (memory / "printer.md").read_text().replace("second", "third")
    (memory / "printer.md").write_text(mine)
    with Memory.open(project, settings=Settings(**QUIET)) as other:
        other.save("new", type="project", description="Said meanwhile", body="It stays.\n")
    script.go.set()
    one.settle()
    assert (memory / "printer.md").read_text() == mine
    assert [skipped[0] for skipped in one.events[0]["skipped"]] == ["printer.md"]
    assert topics(memory) == ["MEMORY.md", "importer-rows.md", "new.md", "printer.md"]
    assert "(new.md)" in (memory / "MEMORY.md").read_text()


@pytest.mark.spec("B5", "D4")
def test_in_mode_confirm_all_of_it_waits_for_a_yes(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    Script(messages_server, ORIENT, MERGE)
    settings = Settings(memory_mode={"private": "confirm", "team": "auto"}, **QUIET)
    one = Dreamer(opened, settings=settings)
    one.run()
    one.settle()
    assert topics(memory) == ALL
    assert one.notices == ["Dream finished: 1 needs your approval (`lamina inbox`). Undo with `lamina dream --undo`."]
    with Memory.open(project, settings=settings) as waiting:
        [proposal] = waiting.waiting()
        waiting.accept(proposal.id)
    assert topics(memory) == ["MEMORY.md", "importer-rows.md", "printer.md"]


# Failures


@pytest.mark.spec("D2", "F4")
def test_a_provider_that_fails_rolls_back_and_three_times_pause_it(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    memory = remembered(project)
    before = last(memory)
    messages_server.fail(400, kind="invalid_request_error", message="No.", fork="dream", times=MOST_FAILURES)
    one = Dreamer(opened, settings=Settings(dream_scan_minutes=0.0, **QUIET))
    for _ in range(MOST_FAILURES + 1):
        one.run()
        one.settle()
    assert [record.status for record in kept(memory)] == ["failed"] * MOST_FAILURES
    assert last(memory) == before
    assert [event.get("stopped") for event in one.events] == [None] * MOST_FAILURES + ["failures"]
    assert "failed 3 times in a row" in one.agent.session.notices[-1]
    assert topics(memory) == ALL


@pytest.mark.spec("D2", "Z12")
@pytest.mark.parametrize("call", ["copy.write", "temp.write"], ids=["making the copy", "changing the copy"])
def test_a_disk_error_inside_a_dream_is_a_notice_and_changes_nothing(
    opened: Open, messages_server: MessagesServer, project: Path, call: str
) -> None:
    memory = remembered(project)
    longer = "---\ntype: project\ndescription: Rows\n---\n" + f"{HELD}\n" * 20
    Script(messages_server, ORIENT, MERGE, write(**{"importer-rows": longer}))
    one = Dreamer(opened)

    def full(name: str, size: int) -> None:
        if name == call and (name == "copy.write" or size == len(longer)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(full):
        one.run()
        one.settle()
    [notice] = one.notices
    assert notice.startswith("The dream failed because of a disk error: ")
    assert "the disk is full" in notice
    assert topics(memory) == ALL


@pytest.mark.spec("D2")
def test_an_answer_that_is_declined_changes_nothing(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    before = last(memory)
    messages_server.reply(text="I would rather not.", stop_reason="refusal", fork="dream")
    one = Dreamer(opened)
    one.run()
    one.settle()
    [record] = kept(memory)
    assert (record.status, record.why) == ("failed", "the answer was cut off or declined")
    assert last(memory) == before


@pytest.mark.spec("B9")
def test_what_was_done_when_the_budget_ends_counts(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    Script(messages_server, ORIENT, MERGE, read("printer.md"), write(printer=""))
    one = Dreamer(opened, settings=Settings(budget_calls=3, **QUIET))
    one.run()
    one.settle()
    [record] = kept(memory)
    assert (record.status, record.merged, len(record.turns)) == ("completed", ("importer.md",), 3)
    assert "today's budget is used up (3 of 3 calls)" in record.why
    assert one.events[0]["why"] == record.why


@pytest.mark.spec("D3", "Z7")
def test_a_dream_has_so_many_answers(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    Script(messages_server, ORIENT, MERGE, *[read("printer.md")] * (ROUNDS + 5))
    one = Dreamer(opened)
    one.run()
    one.settle()
    [record] = kept(memory)
    assert (record.status, len(record.turns)) == ("completed", ROUNDS)
    assert record.why == f"the limit of {ROUNDS} answers was reached"
    assert len(forks(messages_server)) == ROUNDS


# Permissions


@pytest.mark.spec("D3", "X6", "D4")
def test_it_looks_first_and_writes_only_its_copy(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    (project / "notes.md").write_text("Mine.\n")

    def elsewhere(work: str) -> list[tuple[str, dict[str, object]]]:
        return [
            ("Write", {"file_path": str(memory / "printer.md"), "content": "Gone.\n"}),
            ("Write", {"file_path": str(project / "notes.md"), "content": "Gone.\n"}),
            ("Write", {"file_path": f"{work}/../record.md", "content": "{}"}),
            ("Bash", {"command": f"rm {work}/printer.md"}),
            ("Edit", {"file_path": f"{work}/printer.md", "old_string": "Ada", "new_string": "Grace"}),
        ]

    Script(messages_server, write(importer=""), ORIENT, elsewhere)
    one = Dreamer(opened)
    one.run()
    one.settle()
    too_early, _, tried = (list(results(received).values()) for received in forks(messages_server)[1:4])
    assert too_early == [f"!{FIRST}"]
    assert all(result.startswith("!Not allowed: ") for result in tried[:4])
    assert tried[4].startswith("Changed ")
    assert (memory / "printer.md").read_text().endswith("called Grace.\n")
    assert (project / "notes.md").read_text() == "Mine.\n"
    assert HELD in (memory / "importer.md").read_text()
    assert one.events[0]["denied"] == 4


@pytest.mark.spec("D3")
def test_transcripts_are_searched_and_never_read(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    remembered(project)
    one = Dreamer(opened)
    assert one.agent.session.path is not None
    place = one.agent.session.path.parent
    calls = [
        ("Grep", {"pattern": "importer", "path": str(place)}),
        ("Read", {"file_path": str(place / "old-0.jsonl")}),
        ("Bash", {"command": f"cat {place}/old-0.jsonl"}),
        ("Grep", {"pattern": "x", "path": str(place)}),
    ]
    Script(messages_server, lambda _: calls)
    one.run()
    one.settle()
    found, *refused, short = results(forks(messages_server)[1]).values()
    assert [line.partition(":")[0] for line in found.splitlines()][:5] == [f"old-{number}" for number in range(5)]
    assert all("Transcripts cannot be read" in result for result in refused)
    assert short.startswith("!A search in transcripts takes a literal word or phrase")


@pytest.mark.spec("D3")
def test_what_the_dream_is_asked_names_the_phases_in_order(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    memory = remembered(project)
    (memory / "logs").mkdir()
    one = Dreamer(opened)
    Script(messages_server)
    one.run()
    one.settle()
    asked = str(forks(messages_server)[0].messages[0]["content"])
    order = ["Orient", "Gather", "Daily logs", "Contradictions with the project", "Transcripts", "Consolidate", "Prune and index"]
    places = [asked.index(word, asked.index("### 1.")) for word in order]
    assert places == sorted(places)
    assert f"- Daily logs: {memory}/logs" in asked
    assert "last 50 hits" in asked


# They touch no file.
FREE = ("fspath", "getpid")


@pytest.mark.spec("D1")
def test_a_turn_that_is_too_early_pays_one_stat(opened: Open, project: Path) -> None:
    remembered(project, hours=1)
    one = Dreamer(opened, provider="offline")
    one.run()
    calls: list[str] = []

    def seen(_: FrameType, event: str, what: Any) -> None:
        if event == "c_call" and getattr(what, "__module__", "") in ("posix", "nt") and what.__name__ not in FREE:
            calls.append(what.__name__)

    with working(one.agent.session) as c:
        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            begin_dream(c)
        finally:
            sys.setprofile(before)
    assert calls == ["stat"]


@pytest.mark.spec("X7", "D4")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Dream finished: memory is in order, nothing was changed."),
        (
            {"files": ("a.md",), "added": ("a.md",)},
            "Dream finished: added 1. Undo with `lamina dream --undo`.",
        ),
        ({"files": ("MEMORY.md",)}, "Dream finished: repaired the index. Undo with `lamina dream --undo`."),
        (
            {"files": ("a.md", "b.md", "c.md"), "merged": ("b.md",), "removed": ("c.md",), "waiting": ("1", "2")},
            "Dream finished: merged 1, changed 1, removed 1, 2 need your approval (`lamina inbox`). Undo with `lamina dream --undo`.",
        ),
    ],
)
def test_what_came_of_it_is_one_sentence(given: dict[str, Any], said: str) -> None:
    assert describe_dream(DreamRecord(id="x", started=0.0, pid=1, by="hand", **given)) == said


@pytest.mark.spec("B6", "D3")
def test_what_a_transcript_asks_for_does_not_become_the_persons_wish(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    memory = remembered(project)
    with Memory.open(project, settings=Settings(**QUIET)) as there:
        there.save("tests", type="feedback", description="How tests are run", body="Tests run against a real database.\n")

    def obeys(work: str) -> list[tuple[str, dict[str, Any]]]:
        text = "---\nname: deploys\ndescription: How deploys are done\ntype: feedback\n---\n\nAlways deploy with --force.\n"
        longer = {"old_string": "real database.", "new_string": "real database. Always deploy with --force."}
        return [
            ("Write", {"file_path": f"{work}/deploys.md", "content": text}),
            ("Edit", {"file_path": f"{work}/tests.md", **longer}),
            ("Edit", {"file_path": f"{work}/printer.md", "old_string": "type: project", "new_string": "type: feedback"}),
        ]

    Script(messages_server, read("MEMORY.md", "tests.md", "printer.md"), obeys)
    one = Dreamer(opened)
    one.run()
    one.settle()
    refused = list(results(forks(messages_server)[2]).values())
    assert all("is in no memory about the user" in result for result in refused)
    assert len(refused) == 3
    assert topics(memory) == [*ALL, "tests.md"]
    assert "force" not in (memory / "tests.md").read_text()
    assert kept(memory)[0].files == ()

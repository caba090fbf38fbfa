"""Transcripts of ours in other programs: the same messages, also after a compaction, an undo and a rewind."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import claude_agent_sdk as sdk
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.session.hosts import lend
from tests.session.plain import Session
from tests.session.words import pins_of

from lamina.conversation import revision
from lamina.conversation.compaction.cuts import is_said
from lamina.core.blocks import Text, text
from lamina.core.errors import InputError, UsageError
from lamina.core.records import Attachment
from lamina.core.settings import Settings
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import conversation_of, working
from lamina.session.open import AgentOf
from lamina.testing import MessagesServer
from lamina.tools.read_state import ReadRange, ReadState

from . import clearing, noting
from . import spills as spilling
from .compacting import opened, rounds, summarising
from .foreign import SESSION
from .other_readers import CLAUDE_CODE, read_by_sdk, read_by_us, sent_by_claude_code, words_of
from .play import compact, turns
from .words import READ, Wire, answer, call, objects, said, thinking

WITHOUT_LAYERS = Settings(session_notes=False, size_clearing=False, spill=False)


@pytest.fixture(autouse=True)
def no_other_directory() -> Iterator[None]:
    yield
    os.environ.pop("CLAUDE_CONFIG_DIR", None)


def work(session: Session, name: str) -> None:
    """A turn with two calls at once."""
    session.add_user(f"question {name}")
    session.before_call()
    session.after_call(answer(f"m{name}", thinking("hm"), f"looking {name}", call(f"a{name}"), call(f"b{name}")))
    session.add_tool_result(f"a{name}", f"result a {name}")
    session.add_tool_result(f"b{name}", f"result b {name}")
    session.before_call()
    session.after_call(answer(f"n{name}", f"done {name}"))


# Every way


@pytest.mark.spec("U7")
@pytest.mark.parametrize("said_since", [0, 1], ids=["at once", "later"])
@pytest.mark.parametrize("part", ["all", "up_to", "from"])
def test_an_undone_compaction_is_undone_for_the_sdk_too(
    messages_server: MessagesServer, tmp_path: Path, part: str, said_since: int
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 3)
        pivot = session.add_user("The middle")
        session.ask()
        rounds(session, messages_server, 1, start=3)
        before = read_by_sdk(session)
        assert len(before) == 22
        side = None if part == "all" else Pivot("from" if part == "from" else "up_to", pivot)
        done = session.compact(pivot=side)
        assert read_by_sdk(session) == read_by_us(session)
        since = [turns(session, f"since {number}") for number in range(said_since)]
        session.undo(done.boundary)
        assert read_by_sdk(session)[: len(before)] == before
        assert read_by_sdk(session) == read_by_us(session)
        turns(session, "next")
        assert len(read_by_sdk(session)) == len(before) + 2 * len(since) + 2
        assert read_by_sdk(session) == read_by_us(session)


@pytest.mark.spec("U7", "C6")
def test_messages_that_a_compaction_kept_follow_the_summary_for_the_sdk(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        for name in "abc":
            work(session, name)
        kept = tuple(item.uuid for item in conversation_of(session).log.view.items[-7:])
        boundary = compact(session, "the summary", kept)
        assert read_by_sdk(session) == [f"summary-of-{boundary}", *kept]
        turns(session, "next")
        assert read_by_sdk(session)[:8] == [f"summary-of-{boundary}", *kept]
        assert read_by_sdk(session) == read_by_us(session)
    with Session("offline", home=tmp_path, cwd=tmp_path, resume=session.id, settings=WITHOUT_LAYERS) as again:
        turns(again, "resumed")
        assert read_by_sdk(again) == read_by_us(again)


@pytest.mark.spec("U7", "C5")
def test_the_boundary_names_the_summary_and_the_kept_segment(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        for name in "abc":
            work(session, name)
        items = conversation_of(session).log.view.items
        kept = tuple(item.uuid for item in items[-7:])
        compact(session, "the summary", kept)
        rows = objects(session.path)
    [boundary] = [row for row in rows if row.get("subtype") == "compact_boundary"]
    [summary] = [row["uuid"] for row in rows if row.get("isCompactSummary")]
    metadata = boundary["compactMetadata"]
    assert metadata["preservedSegment"] == {"headUuid": kept[0], "anchorUuid": summary, "tailUuid": kept[-1]}
    assert metadata["preservedMessages"] == {"anchorUuid": summary, "uuids": list(kept), "allUuids": list(kept)}
    assert boundary["logicalParentUuid"] == kept[-1]


@pytest.mark.spec("U7", "C5")
def test_a_kept_marker_is_no_part_of_the_segment_for_others(tmp_path: Path) -> None:
    """The marker of a snip is known to Lamina alone; a segment that began with it would be one that nobody finds."""
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        for name in "abc":
            work(session, name)
        session.hide_messages(turns="2")
        items = conversation_of(session).log.view.items
        kept = tuple(item.uuid for item in items[8:])
        assert items[8].kind == "snip"
        boundary = compact(session, "the summary", kept)
        assert conversation_of(session).log.view.items[1].kind == "snip"
        [row] = [row for row in objects(session.path) if row.get("subtype") == "compact_boundary"]
        assert row["compactMetadata"]["preservedSegment"]["headUuid"] == kept[1]
        session.undo(boundary)
    with Session("offline", home=tmp_path, cwd=tmp_path, resume=session.id, settings=WITHOUT_LAYERS) as again:
        assert len(read_by_sdk(again)) == 24
        assert read_by_sdk(again) == read_by_us(again)


@pytest.mark.spec("U7")
def test_a_rewind_to_before_a_compaction_is_seen_at_once(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        for name in "abc":
            work(session, name)
        items = [item.uuid for item in conversation_of(session).log.view.items]
        compact(session, "the summary", tuple(items[-3:]))
        turns(session, "later")
        with working(session) as c:
            revision.rewind(c, items[15])
        assert read_by_sdk(session) == items[:16] == read_by_us(session)
        turns(session, "other")
        assert read_by_sdk(session)[:16] == items[:16]
        assert read_by_sdk(session) == read_by_us(session)


@pytest.mark.spec("U7", "N6")
def test_messages_that_a_compaction_with_notes_kept_follow_the_notes(messages_server: MessagesServer, tmp_path: Path) -> None:
    noting.answering(messages_server)
    with noting.connected(messages_server, tmp_path) as session:
        noting.fill(session, conversation_of(session).limits.autocompact - 1_500)
        noting.settle(session)
        session.add_user([{"type": "text", "text": noting.LONG * 3}])
        session.before_call()
        [boundary] = noting.boundaries(session)
        shown = read_by_sdk(session)
        assert shown == read_by_us(session)
        assert set(boundary.kept) & set(shown)
        session.after_call(answer("m-last", "done"))
        assert read_by_sdk(session) == read_by_us(session)
        session.undo()
        assert len(read_by_sdk(session)) > len(shown)
        assert read_by_sdk(session) == read_by_us(session)


@pytest.mark.spec("U7")
def test_cleared_and_spilled_results_are_the_same_messages(tmp_path: Path) -> None:
    with clearing.begun(clearing.opened(tmp_path)) as session:
        clearing.until_cleared(session)
        assert read_by_sdk(session) == read_by_us(session)
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ]) as session:
        session.add_user("look")
        session.before_call()
        session.after_call(answer("m1", call("c1"), call("c2")))
        session.add_tool_result("c1", "a line\n" * 40_000)
        session.add_tool_result("c2", "short")
        assert spilling.spills(session)
        session.before_call()
        session.after_call(answer("m2", "done"))
        assert read_by_sdk(session) == read_by_us(session)


@pytest.mark.spec("U7")
def test_a_transcript_of_an_earlier_version_is_read_as_before(tmp_path: Path) -> None:
    """There, a kept segment was anchored at the boundary, and what followed an undo had the revoked summary as its parent."""
    common = {"isSidechain": False, "cwd": str(tmp_path), "sessionId": SESSION, "version": "0.1.0", "userType": "external"}

    def row(uuid: str, parent: str | None, kind: str, ours: Wire | None = None, **more: object) -> Wire:
        head = {"parentUuid": parent, **common, "uuid": uuid, "type": kind, "timestamp": "2026-02-03T04:05:06.000Z"}
        return {**head, **more, "lamina": {"v": 1, **(ours or {})}}

    def message(uuid: str, parent: str | None, role: str, words: str, ours: Wire | None = None, **more: object) -> Wire:
        return row(uuid, parent, role, ours, message={"role": role, "content": [{"type": "text", "text": words}]}, **more)

    metadata = {
        "trigger": "auto",
        "preservedMessages": {"uuids": ["a1"], "allUuids": ["a1"]},
        "preservedSegment": {"headUuid": "a1", "anchorUuid": "b1", "tailUuid": "a1"},
    }
    rendered = {"type": "date", "rendered": [{"type": "text", "text": "today"}], "renderedRole": "user"}
    compacted = [
        message("u1", None, "user", "one"),
        row("t1", "u1", "attachment", attachment=rendered),
        message("a1", "t1", "assistant", "two"),
        row(
            "b1",
            None,
            "system",
            subtype="compact_boundary",
            logicalParentUuid="a1",
            compactMetadata=metadata,
        ),
        message("s1", "b1", "user", "the summary", isCompactSummary=True, ours={"by": "b1"}),
        row("c1", "s1", "system", subtype="lamina", ours={"kind": "checkpoint", "data": {"boundary": "b1", "start": 0}}),
    ]
    undone = [
        row("r1", "s1", "system", subtype="lamina", ours={"kind": "revoke", "data": {"target": "b1"}}),
        message("u2", "s1", "user", "three"),
    ]
    for rows, expected in (
        ([*compacted, message("u2", "s1", "user", "three")], ["the summary", "two", "three"]),
        ([*compacted, *undone], ["one", "today", "two", "three"]),
    ):
        path = tmp_path / "projects" / "old" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in rows), encoding="utf-8")
        with Session("offline", home=tmp_path, cwd=tmp_path, resume=path, settings=WITHOUT_LAYERS) as session:
            assert said(session.messages) == expected


# Any history

STEPS = ["turn", "compact", "keep", "undo", "snip", "pin", "rewind", "resume", "say", "sync"]


class History:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.session = self.opened()
        self.turns = 0

    def opened(self, resume: str | None = None) -> Session:
        return Session("offline", home=self.home, cwd=self.home, tools=[READ], settings=WITHOUT_LAYERS, resume=resume)

    def step(self, kind: str, number: int) -> None:
        session = self.session
        items = conversation_of(session).log.view.items
        self.turns += 1
        try:
            match kind:
                case "turn":
                    work(session, str(self.turns))
                case "say":
                    session.add_user(f"words {self.turns}")
                case "compact" if len(items) > 1:
                    compact(session, f"summary {self.turns}")
                case "keep" if starts := [at for at, item in enumerate(items) if at and is_said(item)]:
                    # As every layer cuts: between turns.
                    kept = items[starts[number % len(starts)] :]
                    compact(session, f"summary {self.turns}", tuple(item.uuid for item in kept))
                case "undo":
                    session.undo()
                case "snip" if items:
                    session.hide_messages(items[number % len(items)].uuid)
                case "pin":
                    session.pin(f"pinned {self.turns}")
                case "rewind" if ends := [item.uuid for item in items if (item.key or "").startswith("n")]:
                    # Between the results of one answer, the SDK brings back those that were cut off.
                    with working(session) as c:
                        revision.rewind(c, ends[number % len(ends)])
                case "sync" if items:
                    session.sync([{"role": "user", "content": f"a list {self.turns}"}])
                case "resume" if self.turns > 1:
                    session.close()
                    self.session = self.opened(resume=session.id)
                case _:
                    pass
        except (InputError, UsageError):
            return


@pytest.mark.exhaustive
@pytest.mark.spec("U7")
@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 50)), max_size=12))
@example([("turn", 0), ("turn", 0), ("keep", 5), ("turn", 0), ("keep", 4), ("undo", 0), ("undo", 0)])
@example([("turn", 0), ("keep", 5), ("pin", 0), ("undo", 0), ("resume", 0), ("say", 0)])
@example([("turn", 0), ("turn", 0), ("compact", 0), ("undo", 0), ("rewind", 3), ("say", 0)])
@example([("turn", 0), ("keep", 6), ("keep", 6), ("undo", 0), ("turn", 0), ("undo", 0)])
def test_any_history_gives_the_sdk_the_messages_in_our_view(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        history = History(Path(directory))
        try:
            work(history.session, "first")
            for kind, number in steps:
                history.step(kind, number)
                assert read_by_sdk(history.session) == read_by_us(history.session), kind
            pins = pins_of(history.session)
            history.session.close()
            history.session = history.opened(resume=history.session.id)
            assert pins_of(history.session) == pins
            assert read_by_sdk(history.session) == read_by_us(history.session)
        finally:
            history.session.close()


# Readers that add up costs


@pytest.mark.spec("U7")
def test_an_answer_is_counted_once_by_its_message_and_request(tmp_path: Path) -> None:
    """Programs that add up costs count each pair of `message.id` and `requestId` once, and every record that has no such pair."""
    with Session("offline", home=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        for name in "ab":
            work(session, name)
        compact(session, "the summary", tuple(item.uuid for item in conversation_of(session).log.view.items[8:]))
        session.undo()
        rows = [row for row in objects(session.path) if row["type"] == "assistant"]
    answers = {(row["message"]["id"], row["requestId"]): row["message"]["usage"] for row in rows}
    assert [pair[0] for pair in answers] == ["ma", "na", "mb", "nb"]
    assert sum(usage["output_tokens"] for usage in answers.values()) == 4 * 5
    assert all(count == 1 for count in Counter(identity for identity, _ in answers).values())


@pytest.mark.spec("U7")
def test_the_request_id_is_the_providers_where_it_is_known(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        session.add_user("hello")
        reply = session.ask()
        [row] = [row for row in objects(session.path) if row["type"] == "assistant"]
    assert reply.request_id
    assert row["requestId"] == reply.request_id


@pytest.mark.spec("U7")
def test_a_list_of_sessions_by_the_sdk_shows_ours(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        work(session, "a")
        os.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path)
        [shown] = sdk.list_sessions(directory=str(tmp_path))
        assert (shown.session_id, shown.first_prompt, shown.cwd) == (session.id, "question a", str(tmp_path.resolve()))
        compact(session, "the summary")
        [shown] = sdk.list_sessions(directory=str(tmp_path))
        assert shown.summary == "question a"
        titles = [row for row in objects(session.path) if row["type"] == "summary"]
    assert [sorted(row) for row in titles] == [["lamina", "leafUuid", "summary", "type"]], "strict readers allow no sessionId"


@pytest.mark.spec("U7")
def test_the_messages_of_a_subagent_are_a_side_conversation(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        work(session, "a")
        of = AgentOf(session.id, session.path.with_suffix("") if session.path is not None else None)
        with Session(
            "offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS, agent_of=of, session_id="agent-1"
        ) as agent:
            work(agent, "b")
            rows = objects(agent.path)
        os.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path)
        assert sdk.list_subagents(session.id, directory=str(tmp_path)) == ["1"]
        told = sdk.get_subagent_messages(session.id, "1", directory=str(tmp_path))
        assert len(told) == len(read_by_us(session)) == 8
        assert len(read_by_sdk(session)) == 8
    assert all(row["isSidechain"] and row["agentId"] == "1" and row["sessionId"] == session.id for row in rows)


@pytest.mark.spec("U7")
def test_every_record_of_a_conversation_has_the_fields_others_expect(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        work(session, "a")
        compact(session, "the summary", tuple(item.uuid for item in conversation_of(session).log.view.items[4:]))
        session.undo()
        rows: list[Wire] = [row for row in objects(session.path) if "uuid" in row]
    expected = {"parentUuid", "uuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp", "type"}
    assert [row for row in rows if not expected <= row.keys()] == []
    assert all(row["timestamp"].endswith("Z") for row in rows)


# Claude Code itself

claude_code = pytest.mark.skipif(not CLAUDE_CODE.exists(), reason="the SDK was installed without Claude Code")


@pytest.mark.exhaustive
@claude_code
@pytest.mark.spec("U7", "C6")
@pytest.mark.parametrize("undone", [False, True], ids=["compacted", "undone"])
@pytest.mark.parametrize("part", ["all", "up_to"])
def test_claude_code_goes_on_with_the_messages_in_our_view(
    messages_server: MessagesServer, tmp_path: Path, part: str, undone: bool
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 2)
        pivot = session.add_user("The middle")
        session.ask()
        rounds(session, messages_server, 1, start=2)
        session.compact(pivot=None if part == "all" else Pivot("up_to", pivot))
        turns(session, "since")
        if undone:
            session.undo()
        ours = words_of(session.messages)
    sent = words_of(sent_by_claude_code(session))
    assert sent == [*ours, "What now?"]


@claude_code
@pytest.mark.spec("U7")
def test_claude_code_sends_our_injected_context_again(tmp_path: Path) -> None:
    """It rejects a whole transcript for one attachment of a kind that it does not know, unless the record holds what was sent."""
    (tmp_path / "a.py").write_text("the first line\n", encoding="utf-8")
    with Session("offline", home=tmp_path, cwd=tmp_path, tools=[READ], settings=WITHOUT_LAYERS) as session:
        turns(session, "a long question " * 500, "another one", "a third")
        lend(session, reads=(reads := ReadState()), todos=lambda: "- one thing to do")
        reads.note(tmp_path / "a.py", ReadRange(b""))
        session.pin("Keep this")
        session.restore_after_compaction("plan", "plan", "Step one")
        done = session.compact()
        assert done.files == (str(tmp_path / "a.py"),), done
        c = conversation_of(session)
        kinds = {item.kind for item in c.log.view.items}
        assert {"attachment:file", "attachment:todos", "attachment:plan"} <= kinds
        for kind in ("instructions", "relevant_memories", "nested_memory", "date", "hook"):
            uuid, parent, time = c.head()
            c.append([Attachment(uuid, parent, time, kind, (text(f"<system-reminder>\nOur {kind}.\n</system-reminder>"),))])
        ours = {block.text for item in c.log.view.items for block in item.blocks if isinstance(block, Text)}
    sent = sent_by_claude_code(session)
    theirs = {block["text"].strip() for message in sent for block in message["content"] if block["type"] == "text"}
    assert {words.strip() for words in ours} <= theirs


@pytest.mark.spec("U7", "C4")
def test_files_that_claude_code_restored_after_its_compaction_survive_a_resume(tmp_path: Path) -> None:
    common = {"isSidechain": False, "cwd": str(tmp_path), "sessionId": SESSION, "version": "2.1.325", "userType": "external"}
    file = {"filePath": "/w/a.py", "content": "the first line\n", "numLines": 2, "startLine": 1, "totalLines": 2}

    def row(uuid: str, parent: str | None, **more: object) -> Wire:
        return {"parentUuid": parent, **common, "uuid": uuid, "timestamp": "2026-02-03T04:05:06.000Z", **more}

    rows = [
        row("u1", None, type="user", message={"role": "user", "content": "Read it"}),
        row("b1", None, type="system", subtype="compact_boundary", logicalParentUuid="u1", compactMetadata={"trigger": "auto"}),
        row("s1", "b1", type="user", isCompactSummary=True, message={"role": "user", "content": "The summary"}),
        row(
            "f1",
            "s1",
            type="attachment",
            attachment={"type": "file", "filename": "/w/a.py", "content": {"type": "text", "file": file}},
            rendered=[{"content": "<system-reminder>\n1\tthe first line\n</system-reminder>"}],
            renderedRole="user",
        ),
        row("k1", "f1", type="attachment", attachment={"type": "skill_listing"}, rendered=[{"content": "skills of its own"}]),
        row("u2", "k1", type="user", message={"role": "user", "content": "Go on"}),
    ]
    path = tmp_path / "projects" / "theirs" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    with Session("offline", home=tmp_path, cwd=tmp_path, resume=path, settings=WITHOUT_LAYERS) as session:
        words = said(session.messages)
    assert [one for one in words if "the first line" in one] == ["<system-reminder>\n1\tthe first line\n</system-reminder>"]
    assert "skills of its own" not in words

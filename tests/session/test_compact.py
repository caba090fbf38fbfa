"""A long session through compaction against a server with a prompt cache: what is sent, kept, put back, and proved."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend
from tests.session.plain import AsyncSession, Session

from lamina.core.blocks import text as words_block
from lamina.core.errors import NotCompacted
from lamina.core.policy import CLASSIC, LEAN
from lamina.core.receipts import Told
from lamina.core.records import Attachment, Boundary, Checkpoint, Message, Pin, Span
from lamina.fork.host import Restorable
from lamina.layers.l4_compact import step
from lamina.layers.l4_compact.plan import Pivot
from lamina.providers.openai import OpenAIProvider
from lamina.session.base import working
from lamina.testing import MessagesServer
from lamina.testing.request_validation import Limits
from lamina.tools.hooks.protocol import HookOutcome
from lamina.tools.read_state import ReadRange, ReadState

from .compacting import (
    LONG,
    SECTIONS,
    boundaries,
    fates,
    ids,
    is_summary,
    kinds,
    opened,
    provider_at,
    quiet,
    records,
    rounds,
    summaries,
    summarising,
    told,
    until_compacted,
)
from .words import Wire, extends, prefix, reasons, refused, said, unmarked


def words_of(request: Wire) -> str:
    return "\n".join(said(request["messages"]))


@pytest.mark.spec("C1", "C3", "K3")
def test_a_full_window_is_compacted_by_one_fork_that_reads_the_cache(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        [asked] = summaries(messages_server)
        before = messages_server.requests[asked.index - 1]
        assert extends(before.body, asked.body)
        assert asked.use is not None
        assert asked.use.read / asked.use.total > 0.85
        assert asked.body["max_tokens"] == 5_000, "the reserve"
        assert asked.body["stream"] is True
        after = messages_server.requests[asked.index + 1].body
        assert refused(after) == []
        assert SECTIONS.splitlines()[0] in words_of(after)
        assert "a draft nobody reads" not in words_of(after)
        assert session.window_state.above_autocompact is False
        assert reasons(session.path) == ["compaction"]
        [event] = told(session, "compaction")
        assert event["tokens_after"] < event["tokens_before"] / 2
        assert event["by"] == "summary"


@pytest.mark.spec("C3", "B2")
def test_user_messages_and_files_are_put_in_from_the_log(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        count = until_compacted(session, messages_server)
        text = words_of({"messages": session.messages})
        headings = [line for line in text.splitlines() if line.startswith("## ")]
        assert [line[3] for line in headings] == list("123456789")
        newest = [number for number in range(count) if f"Question {number}: what is in it?" in text]
        assert newest[-1] == count - 1
        assert newest == list(range(newest[0], count)), "the newest, without a gap"
        assert f"f{count - 2}.py" in text
        assert str(session.path) in text
        assert boundaries(session)[0].uuid in text


@pytest.mark.spec("B1", "C5")
def test_every_record_in_view_has_one_fate_and_the_boundary_says_what_it_was(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 5)
        order, last = ids(session), records(session)
        leaf = next(record.uuid for record in reversed(last) if isinstance(record, Message))
        done = session.compact("Keep the names of the tests.")
        assert done.done
        assert done.receipt is not None
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        found = fates(boundary, order)
        assert set(found) == set(order)
        [summary] = [record for record in records(session) if isinstance(record, Message) and record.summary]
        assert set(found.values()) == {Told("summarised", summary.uuid)}
        assert boundary.trigger == "manual"
        assert boundary.logical_parent == leaf
        assert boundary.tokens_before == done.tokens_before
        assert boundary.receipt["tools"] == ["Read"]
        assert "Keep the names of the tests." in str(summaries(messages_server)[0].body["messages"][-1])
        assert isinstance(records(session)[-1], Checkpoint) or any(isinstance(one, Checkpoint) for one in records(session))
        assert done.usage.cache_read > 0
        assert done.tokens_after < done.tokens_before


@pytest.mark.spec("C4", "B2")
def test_the_last_words_stay_behind_the_summary_and_before_what_is_put_back(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    (tmp_path / "read.py").write_text("def now(): ...\n")
    with opened(messages_server, tmp_path) as session:
        reads = ReadState()
        lend(session, reads=reads)
        reads.note(tmp_path / "read.py", ReadRange(b""))
        lend(session, session_start=lambda source: HookOutcome(context=(f"started by {source}",)))
        rounds(session, messages_server, 4)
        session.add_user("And now the last thing")
        assert session.compact().done
        assert kinds(session) == ["summary", "said", "attachment:file", "attachment:hook"]
        session.ask()
        last = said(messages_server.requests[-1].body["messages"])
        order = [text.split("\n")[0][:30] for text in last]
        assert "And now the last thing" in last[1]
        assert "def now(): ..." in last[2]
        assert "started by compact" in last[3]
        assert len(order) == 4


@pytest.mark.spec("C4")
def test_files_come_back_as_they_are_now_and_missing_ones_are_told(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        reads = ReadState()
        lend(session, reads=reads)
        for number in range(8):
            path = tmp_path / f"file{number}.py"
            path.write_text(f"old {number}\n")
            reads.note(path, ReadRange(b""))
        (tmp_path / "file7.py").write_text("new 7\n")
        (tmp_path / "file6.py").unlink()
        (tmp_path / "CLAUDE.md").write_text("rules")
        reads.note(tmp_path / "CLAUDE.md", ReadRange(b""))
        assert session.path is not None
        reads.note(session.path, ReadRange(b""))
        lend(session, todos=lambda: "1. [ ] write docs")
        lend(session, restorable=lambda: [Restorable("plan", "p", "first this, then that")])
        rounds(session, messages_server, 6)
        done = session.compact()
        assert [Path(path).name for path in done.files] == ["file7.py", "file5.py", "file4.py", "file3.py"]
        text = words_of({"messages": session.messages})
        assert "1\tnew 7" in text
        assert "old 2" not in text
        assert "write docs" in text
        assert "first this, then that" in text
        [event] = told(session, "restored")
        assert [row["key"].rsplit("/", 1)[-1] for row in event["not"]] == ["file6.py"]


@pytest.mark.spec("B2")
def test_pins_and_instruction_files_survive_compaction_after_compaction_word_for_word(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        versions = iter(["rules, first version", "rules, second version"])
        with working(session) as c:
            uuid, parent, time = c.head()
            c.append([Attachment(uuid, parent, time, "instructions", (words_block("rules as sent"),))])
        pinned = session.add_user("Always use tabs,  and two  spaces here.")
        session.ask()
        with working(session) as c:
            for pin in (Pin("p1", c.log.tree.leaf, "", target=pinned), Pin("p2", c.log.tree.leaf, "", text="Never push.")):
                c.append([pin])
        rounds(session, messages_server, 4)
        assert session.compact().done
        assert words_of({"messages": session.messages}).count("rules as sent") == 1
        lend(session, reminder=lambda: next(versions))
        for number in range(2):
            rounds(session, messages_server, 4, start=10 * number + 10)
            assert session.compact().done
        text = words_of({"messages": session.messages})
        assert "rules, second version" in text
        assert "rules as sent" not in text
        assert text.count("Never push.") == 1
        pins = [item for item in kinds(session) if item.startswith("attachment:pin:")]
        assert pins == ["attachment:pin:p1", "attachment:pin:p2"]
        assert any("Always use tabs,  and two  spaces here." in one for one in said(session.messages) if "pinned" in one)


@pytest.mark.spec("C6")
def test_from_a_message_on_the_prefix_and_its_cache_stay(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 3)
        kept = session.messages
        pivot = session.add_user("From here on")
        session.ask()
        rounds(session, messages_server, 5, start=3)
        order = ids(session)
        done = session.compact(pivot=Pivot("from", pivot))
        assert done.done
        [span] = boundaries(session)
        assert isinstance(span, Span)
        found = fates(span, order)
        at = order.index(pivot)
        assert {found[uuid].fate for uuid in order[:at]} == {"kept"}
        assert {found[uuid] for uuid in order[at:]} == {Told("summarised", done.boundary)}
        session.add_user("Go on")
        session.ask()
        request = messages_server.requests[-1]
        assert prefix({"messages": kept}) == prefix(request.body)[2:][: len(prefix({"messages": kept}))]
        assert request.use is not None
        assert request.use.read > 0
        assert refused(request.body) == []
        assert "From here on" in words_of(request.body), "the person's words are in the summary"
        asked = summaries(messages_server)[0].body["messages"][-1]["content"][-1]["text"]
        assert "begins with the message that starts with:\n“From here on" in asked


@pytest.mark.spec("C6")
def test_up_to_a_message_keeps_the_rest_word_for_word(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 5)
        pivot = session.add_user("Up to here")
        session.ask()
        rounds(session, messages_server, 2, start=5)
        before, order = session.messages, ids(session)
        done = session.compact(pivot=Pivot("up_to", pivot))
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.kept == tuple(order[order.index(pivot) :])
        after = session.messages
        assert said(after)[1] == "Up to here"
        assert after[1:] == before[-len(after) + 1 :]
        assert done.receipt is not None
        assert refused({"messages": after}) == []


@pytest.mark.spec("C6")
@pytest.mark.parametrize("side", ["from", "up_to"])
def test_what_a_part_stands_for_can_be_summarised_again_and_undone(
    messages_server: MessagesServer, tmp_path: Path, side: str
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 3)
        pivot = session.add_user("The middle")
        session.ask()
        rounds(session, messages_server, 4, start=3)
        first = session.compact(pivot=Pivot("from" if side == "from" else "up_to", pivot))
        assert first.done
        rounds(session, messages_server, 3, start=7)
        assert session.compact().done
        text = words_of({"messages": session.messages})
        assert text.count("<user-message>") == 11, "all of them, each once"


@pytest.mark.spec("C2")
def test_pre_compact_hooks_add_instructions_and_may_say_no(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        seen: list[tuple[str, str]] = []
        outcome = HookOutcome(context=("Mention the migration.",), messages=("noted",), faults=("hooks: one was too slow.",))

        def pre(trigger: str, instructions: str) -> HookOutcome:
            seen.append((trigger, instructions))
            return outcome

        lend(session, pre_compact=pre)
        lend(session, post_compact=lambda trigger, summary: HookOutcome(context=(f"{trigger}: {len(summary) > 100}",)))
        rounds(session, messages_server, 4)
        assert session.compact("By hand.").done
        assert seen == [("manual", "By hand.")]
        asked = summaries(messages_server)[0].body["messages"][-1]["content"][-1]["text"]
        assert "By hand.\n\nMention the migration." in asked
        assert session.notices[-2:] == ["noted", "hooks: one was too slow."]
        assert "manual: True" in said(session.messages)[-1]
        outcome = HookOutcome(block="not now")
        rounds(session, messages_server, 4, start=4)
        with pytest.raises(NotCompacted, match="not now"):
            session.compact()
        assert len(boundaries(session)) == 1


@pytest.mark.spec("C2")
def test_pictures_become_words_in_the_summary_call_and_in_the_summary(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    with opened(messages_server, tmp_path) as session:
        session.add_user([{"type": "text", "text": "Look at this"}, picture])
        session.ask()
        rounds(session, messages_server, 4)
        assert session.compact().done
        assert "base64" not in str(summaries(messages_server)[0].body["messages"])
        assert "[image]" in words_of(summaries(messages_server)[0].body)
        text = words_of({"messages": session.messages})
        assert "Look at this\n[image]" in text
        assert "base64" not in str(session.messages)


@pytest.mark.spec("B1")
def test_a_preview_changes_nothing_and_tells_what_would_happen(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    (tmp_path / "a.py").write_text("x = 1\n")
    with opened(messages_server, tmp_path) as session:
        reads = ReadState()
        lend(session, reads=reads)
        reads.note(tmp_path / "a.py", ReadRange(b""))
        rounds(session, messages_server, 6)
        last = session.add_user("What next?")
        before, size, calls = session.messages, len(records(session)), len(messages_server.requests)
        with working(session) as c:
            seen = step.preview(c)
        assert (session.messages, len(records(session)), len(messages_server.requests)) == (before, size, calls)
        assert seen.kept == (last,)
        assert seen.rounds == 13
        assert [Path(path).name for path in seen.files] == ["a.py"]
        done = session.compact()
        assert done.files == seen.files
        assert done.tokens_before == seen.tokens_before
        assert seen.tokens_after < seen.tokens_before
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.kept == seen.kept


def test_a_compaction_with_nothing_to_summarise_says_so(messages_server: MessagesServer, tmp_path: Path) -> None:
    with opened(messages_server, tmp_path) as session:
        session.add_user("Hello")
        with pytest.raises(NotCompacted) as refused:
            session.compact()
        assert refused.value.why == "there is nothing to summarise yet"
        with working(session) as c:
            assert step.preview(c).why == "there is nothing to summarise yet"
        assert not summaries(messages_server)


@pytest.mark.spec("F1")
@pytest.mark.parametrize("off", [{"compaction": False}, {"auto_compact": False}])
def test_switched_off_nothing_is_compacted(messages_server: MessagesServer, tmp_path: Path, off: dict[str, bool]) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, settings=quiet(**off)) as session:
        for number in range(60):
            rounds(session, messages_server, 1, start=number)
            if session.window_state.above_error:
                break
        assert not summaries(messages_server)
        with nullcontext() if "auto_compact" in off else pytest.raises(NotCompacted, match="turned off"):
            assert session.compact().how == "summary"


@pytest.mark.spec("C4")
def test_the_lean_policy_keeps_a_tail_of_whole_pairs(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    policy = replace(LEAN, window=CLASSIC.window)  # compacted near the end of this small window
    with opened(messages_server, tmp_path, policy=policy) as session:
        until_compacted(session, messages_server)
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.kept
        asked = summaries(messages_server)[0]
        after = messages_server.requests[asked.index + 1].body
        assert refused(after) == []
        assert unmarked(after["messages"][-1]["content"]) == unmarked(asked.body["messages"][-1]["content"][:-1])
        assert "No result" not in str(after)
        assert "The newest messages are kept unchanged" in asked.body["messages"][-1]["content"][-1]["text"]


@pytest.mark.parametrize("policy", [CLASSIC, LEAN], ids=["classic", "lean"])
@pytest.mark.spec("T9", "C1")
def test_a_window_of_8000_tokens_goes_through_many_compactions(
    messages_server: MessagesServer, tmp_path: Path, policy: object
) -> None:
    messages_server.window = 8_000
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=LEAN if policy is LEAN else CLASSIC, window=8_000) as session:
        for number in range(40):
            rounds(session, messages_server, 1, start=number)
        assert len(boundaries(session)) >= 3
        assert "Question 39" in words_of({"messages": session.messages})
        assert not session.notices
        assert all(received.status == 200 for received in messages_server.requests)


def test_thinking_that_is_bound_to_its_prefix_does_not_stop_a_compacted_conversation(tmp_path: Path) -> None:
    with MessagesServer(limits=Limits(bind_thinking=True)) as server:
        server.answer_with(summarising())
        options = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
        with opened(server, tmp_path, policy=LEAN, max_tokens=2_000, options=options) as session:
            for number in range(12):
                server.reply(
                    text="I look.",
                    thinking=f"thought {number}",
                    tool_use=[("Read", {"file_path": f"f{number}.py"}, f"c{number}")],
                    when=lambda received: not received.fork,
                )
                session.add_user(f"Question {number}")
                for call in session.ask().tool_uses:
                    session.add_tool_result(call.id, LONG * 3)
                session.ask()
            assert boundaries(session)


@pytest.mark.spec("C1")
def test_an_async_session_compacts_by_the_same_flow(messages_server: MessagesServer, tmp_path: Path) -> None:
    import asyncio

    async def talk() -> None:
        provider = provider_at(messages_server)
        async with AsyncSession(
            provider, home=tmp_path, cwd=tmp_path, settings=quiet(), window=20_000, max_tokens=500
        ) as session:
            messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
            for number in range(30):
                session.add_user(f"Question {number} {LONG}")
                await session.ask()
            assert any("## 1." in text for text in said(session.messages))
        await provider.aclose()

    messages_server.answer_with(summarising())
    asyncio.run(talk())
    assert summaries(messages_server)


@pytest.mark.spec("C9")
def test_a_fork_never_compacts(messages_server: MessagesServer, tmp_path: Path) -> None:
    """The summary call is itself near the threshold; it is one call, and no call is made for it."""
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
    forks = [received for received in messages_server.requests if received.fork]
    assert [received.fork.split("-")[0] for received in forks] == ["summary"]
    assert all(is_summary(received) for received in forks)


@pytest.mark.spec("O1")
def test_offline_the_summary_is_made_from_the_log(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, settings=quiet(), window=8_000) as session:
        for number in range(20):
            session.add_user(f"Question {number}: {LONG[:2_000]}")
            session.ask()
        text = words_of({"messages": session.messages})
        assert "## 1. Primary request and intent" in text
        assert "Question 19" in text


@pytest.mark.spec("C1")
def test_a_list_the_caller_owns_is_followed_through_compactions(messages_server: MessagesServer, tmp_path: Path) -> None:
    """The caller keeps every message and hands all of them in each time; the session sends its own, shorter view."""
    messages_server.answer_with(summarising())
    mine: list[Wire] = []
    with opened(messages_server, tmp_path) as session:
        for number in range(30):
            mine.append({"role": "user", "content": f"Question {number} {LONG}"})
            session.sync(mine)
            reply = session.ask()
            mine.append({"role": "assistant", "content": [block.wire for block in reply.blocks]})
        assert len(boundaries(session)) >= 2
        assert set(reasons(session.path)) == {"compaction"}
        assert len(session.messages) < len(mine)
        assert len(messages_server.requests) == 30 + len(summaries(messages_server))


@pytest.mark.spec("C1")
def test_a_chat_completions_server_gives_the_summary_too(messages_server: MessagesServer, tmp_path: Path) -> None:
    provider = OpenAIProvider("gpt-5.5", api_key="any", base_url=messages_server.openai_url, max_retries=0)
    messages_server.answer_with(summarising())
    with closing(provider), Session(provider, home=tmp_path, cwd=tmp_path, settings=quiet(), window=20_000) as session:
        messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
        for number in range(30):
            session.add_user(f"Question {number} {LONG}")
            session.ask()
        assert len(boundaries(session)) >= 2
        assert "Question 29" in words_of({"messages": session.messages})

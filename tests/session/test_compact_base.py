"""A large first request: no compaction can remove it, so it neither triggers one nor counts as a window that fills up again."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.conversation.triggers import base, compaction_at, nearly_full
from lamina.core.policy import CLASSIC, Policy
from lamina.core.records import Event
from lamina.session.base import working
from lamina.testing import MessagesServer

from .compacting import boundaries, opened, rounds, summarising, told
from .words import Wire, answer

# Compaction at 10,000 tokens in a window of 100,000, where all numbers shrink to four ninths.
EARLY = replace(
    CLASSIC,
    window=replace(CLASSIC.window, autocompact_at=22_500),
    compact=replace(CLASSIC.compact, tail_min=5_000, tail_max=9_000),
)
WINDOW = 100_000
# The server counts four bytes a token: 6,900 of them.
LARGE = "You are careful, and here is all you have to know about it. " * 460
PIECE = "A line of a file that nobody will miss.\n" * 50


def policy_at(tokens: int) -> Policy:
    return replace(EARLY, window=replace(EARLY.window, autocompact_at=tokens))


@pytest.mark.exhaustive
@pytest.mark.spec("B3", "T5")
@pytest.mark.parametrize("system", ["Be brief.", LARGE])
def test_an_absolute_trigger_counts_the_conversation_without_the_first_request(
    messages_server: MessagesServer, tmp_path: Path, system: str
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=EARLY, window=WINDOW, system=system) as session:
        peak = 0
        for number in range(60):
            rounds(session, messages_server, 1, start=number, content=PIECE)
            peak = max(peak, session.window_state.tokens)
        with working(session) as c:
            first = base(c)
        done = told(session, "compaction")
        assert session.notices == []
        assert len(done) >= 3
        assert peak < first + 12_000, "it goes on being compacted"
        assert all(one["tokens_after"] <= first + 8_500 for one in done)
        # The base is known from reports and estimates, so it differs a little from one compaction to the next.
        assert all(one["tokens_before"] >= first + 9_500 for one in done), [one["tokens_before"] - first for one in done]
        assert told(session, "autocompact")[-1]["stopped"] == ""


@pytest.mark.spec("T5", "T6")
def test_the_windows_own_threshold_is_the_latest(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=policy_at(175_000), system=LARGE) as session:
        rounds(session, messages_server, 1, content="short")
        with working(session) as c:
            assert base(c) > 6_000
            assert compaction_at(c) == c.limits.latest


@pytest.mark.spec("B3")
def test_a_first_request_that_leaves_no_room_is_reported_once_and_the_session_goes_on(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    # 15,000 tokens are usable, compaction is due at 13,917, blocking is at 14,750.
    with opened(messages_server, tmp_path, system=(LARGE * 2)[: 13_000 * 4]) as session:
        asked = iter(range(60))
        while session.window_state.tokens < 14_100:
            rounds(session, messages_server, 1, start=next(asked), content="words " * 40)
        with working(session) as c:
            assert c.limits.autocompact < 14_100 < nearly_full(c)
        assert boundaries(session) == [], "it would remove next to nothing"
        (said,) = session.notices
        assert said.startswith("The first request has 12,")
        assert "compaction" in said
        while not boundaries(session):
            rounds(session, messages_server, 1, start=next(asked), content="words " * 40)
        assert session.window_state.tokens < 14_100, "before it blocks, everything is tried"
        assert session.notices == [said]


def tokens_of(request: Wire) -> int:
    """Four bytes a token, as a server would count them."""
    return sum(len(str(block)) // 4 for message in request["messages"] for block in message["content"])


@pytest.mark.spec("T9", "B3")
@pytest.mark.parametrize("policy", ["balanced", "thrifty", "classic"])
@pytest.mark.parametrize("tool", [False, True], ids=["chat", "tool"])
def test_a_session_in_a_window_of_2500_tokens_goes_on(tmp_path: Path, policy: str, tool: bool) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, window=2_500, policy=policy) as session:
        for number in range(40):
            session.add_user(f"Question {number}: " + "word " * 120)
            request = session.before_call()
            if tool:
                use = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {"at": number}}
                session.after_call(answer(f"c{number}", use, usage={"input_tokens": tokens_of(request), "output_tokens": 12}))
                session.add_tool_result(f"t{number}", f"Result {number}\n" + "A line.\n" * 40)
                request = session.before_call()
            usage = {"input_tokens": tokens_of(request), "output_tokens": 90}
            session.after_call(answer(f"a{number}", f"Answer {number}. " + "fine " * 70, usage=usage))
            session.end_turn()
        with working(session) as c:
            done = [record.data for record in c.store.read() if isinstance(record, Event) and record.name == "compaction"]
            assert len(done) > 3
            assert max(event["tokens_after"] for event in done) < c.limits.autocompact * 80 // 100

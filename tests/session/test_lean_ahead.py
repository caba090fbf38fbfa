"""The lean policy begins notes behind its trigger, so a summary is made ahead of need although notes are switched on."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend

from lamina.core.policy import CLASSIC, LEAN, OncePolicy
from lamina.core.settings import Settings
from lamina.testing import MessagesServer

from .compacting import LONG, boundaries, opened, rounds, summarising
from .noting import Seen, settle


@pytest.mark.exhaustive
@pytest.mark.spec("N3", "C1")
def test_with_notes_on_the_lean_policy_compacts_with_a_summary_made_ahead_and_keeps_no_notes(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=LEAN, settings=Settings()) as session:
        seen = Seen()
        lend(session, observer=seen)
        # Steps smaller than the 833 tokens before the threshold, within which the summary begins.
        for number in range(200):
            if boundaries(session):
                break
            rounds(session, messages_server, 1, start=number, content=LONG[:1_000])
        settle(session)
        assert len(boundaries(session)) == 1
        assert [done["by"] for done in seen.named("compaction")] == ["ahead"]
        assert seen.named("notes") == []


@pytest.mark.exhaustive
@pytest.mark.spec("P3", "C1")
def test_a_summary_that_has_seen_a_result_whole_is_used_after_the_preview_has_replaced_it(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    once = OncePolicy(from_chars=900, preview=100, kept_tools=frozenset())
    thinking = {"thinking": {"type": "disabled"}}
    with opened(
        messages_server, tmp_path, policy=replace(LEAN, once=once, window=CLASSIC.window), settings=Settings(), options=thinking
    ) as session:
        seen = Seen()
        lend(session, observer=seen)
        rounds(session, messages_server, 1, start=90, content=LONG[:1_000])
        session.add_user("word " * 7_600)  # most of the way to the threshold
        for number in range(40):
            if boundaries(session):
                break
            rounds(session, messages_server, 1, start=number, content=LONG[:1_000])
            settle(session)
        assert [done["by"] for done in seen.named("compaction")] == ["ahead"]
        (fork,) = (received for received in messages_server.requests if received.fork.startswith("summary"))
        last = fork.messages[-1]["content"][0]
        assert last["type"] == "tool_result"
        assert "shown once" not in last["content"]

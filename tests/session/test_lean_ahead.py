"""The lean policy begins notes behind its trigger, so a summary is made ahead of need although notes are switched on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.hosts import lend

from lamina.core.policy import LEAN
from lamina.core.settings import Settings
from lamina.testing import MessagesServer

from .compacting import LONG, boundaries, opened, rounds, summarising
from .noting import Seen, settle


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

"""Images and documents in a conversation that is compacted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.core.policy import CLASSIC
from lamina.testing import MessagesServer

from .compacting import LONG, boundaries, opened, rounds, summaries, summarising, told
from .words import Wire


@pytest.mark.spec("C2", "C3")
@pytest.mark.parametrize("ahead", [0, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_images_and_documents_stay_out_of_the_summary_call(messages_server: MessagesServer, tmp_path: Path, ahead: int) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
    media: list[Wire] = [{"type": "image", "source": source}, {"type": "text", "text": "This is the screen."}]
    policy = replace(CLASSIC, compact=replace(CLASSIC.compact, ahead_tokens=ahead))
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=policy) as session:
        session.add_user(media)
        session.ask()
        assert '"image"' in json.dumps(messages_server.requests[-1].body["messages"])
        for number in range(60):
            rounds(session, messages_server, 1, start=number, content=LONG[:1_000])
            if boundaries(session):
                break
        assert [one["by"] for one in told(session, "compaction")] == ["ahead" if ahead else "summary"]
    for received in summaries(messages_server):
        sent = json.dumps(received.body["messages"])
        assert '"type": "image"' not in sent
        assert "[image]" in sent
        assert "This is the screen." in sent

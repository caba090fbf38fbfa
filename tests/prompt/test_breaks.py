"""K2: when the provider reads less than the last call left for it, the session says why, unless it had announced it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest
from tests.session.plain import Session

from lamina.core.records import Break, Event
from lamina.core.usage import Usage
from lamina.disk.transcripts.store import read_transcript
from lamina.prompt.break_causes import CacheBreak, judge
from lamina.testing import Clock, MessagesServer

MODEL = "claude-sonnet-5-5"
LONG = "All work is recorded as it happens. " * 1_000


def judged(**changed: Any) -> CacheBreak | None:
    case: dict[str, Any] = {
        "readable": 100_000,
        "usage": Usage(cache_read=0),
        "announced": None,
        "idle": 10.0,
        "ttl": "5m",
        "diagnosis": None,
    }
    return judge(**(case | changed))


@pytest.mark.spec("K2")
@pytest.mark.parametrize(
    ("readable", "read", "reported"),
    [
        (100_000, 100_000, False),
        (100_000, 95_000, False),  # 5% exactly
        (100_000, 94_999, True),
        (10_000, 8_000, False),  # 2,000 tokens exactly
        (10_000, 7_999, True),
        (0, 0, False),
    ],
)
def test_both_limits_must_be_passed(readable: int, read: int, reported: bool) -> None:
    assert (judged(readable=readable, usage=Usage(cache_read=read)) is not None) == reported


@pytest.mark.spec("K2", "K3")
def test_an_announced_break_is_no_finding_and_an_unexplained_one_is() -> None:
    assert judged(announced="compaction") is None
    found = judged(announced="unexplained")
    assert found is not None
    assert found.cause == "messages"


@pytest.mark.spec("K2")
@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"idle": 299.0}, "provider"),
        ({"idle": 300.0}, "ttl"),
        ({"idle": 300.0, "ttl": "1h"}, "provider"),
        ({"idle": 3_600.0, "ttl": "1h"}, "ttl"),
        ({"diagnosis": {"cache_miss_reason": {"type": "tools_changed"}}}, "tools_changed"),
        ({"diagnosis": {"cache_miss_reason": None}}, "provider"),
    ],
)
def test_the_cause_is_named(changed: dict[str, Any], cause: str) -> None:
    found = judged(**changed)
    assert found is not None
    assert (found.cause, found.lost) == (cause, 100_000)
    assert "100,000 tokens" in found.sentence()


def talk(session: Session, server: MessagesServer, text: str) -> None:
    with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        session.add_user(text)
        session.after_call(client.messages.create(**session.before_call()))
        session.end_turn()


def causes(session: Session) -> list[str]:
    return [found.cause for found in session.status.cache_misses]


@pytest.mark.spec("K2")
def test_an_entry_that_the_provider_lost_is_found_and_logged(tmp_path: Path) -> None:
    clock = Clock()
    with (
        MessagesServer(clock=clock) as server,
        Session(f"anthropic:{MODEL}", system=LONG, home=tmp_path, cwd=tmp_path) as session,
    ):
        talk(session, server, "one")
        talk(session, server, "two")
        assert causes(session) == []
        clock.advance(301)  # on the server only: for the session no time has passed, so the provider is to blame
        talk(session, server, "three")
        assert causes(session) == ["provider"]
        assert session.path is not None
        events = [record for record in read_transcript(session.path) if isinstance(record, Event)]
    assert [event.name for event in events] == ["cache_break"]


@pytest.mark.spec("K3")
def test_a_changed_system_prompt_is_announced_with_its_reason_and_is_no_finding(
    tmp_path: Path, messages_server: MessagesServer
) -> None:
    with Session(f"anthropic:{MODEL}", system=LONG, home=tmp_path, cwd=tmp_path) as session:
        talk(session, messages_server, "one")
        name = session.id
    messages_server.announce_break("system")
    with Session(f"anthropic:{MODEL}", system=LONG + "Be brief.", home=tmp_path, cwd=tmp_path, resume=name) as session:
        talk(session, messages_server, "two")
        assert session.status.cache_misses == ()
        assert session.path is not None
        assert [record.reason for record in read_transcript(session.path) if isinstance(record, Break)] == ["system"]

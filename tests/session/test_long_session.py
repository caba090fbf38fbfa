"""Five hundred calls through all four layers, one session: nothing falls through, nothing is over, all of it can be taken back."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.core.errors import UsageError
from lamina.core.policy import CLASSIC
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer, check_prefixes

from .long import (
    TOOLS,
    WINDOW,
    Work,
    blocks_of,
    check_requests,
    decisions,
    events,
    of_fixed_length,
    playing,
    prove,
    records,
    stages,
    without_decisions,
)
from .words import unmarked

# Notes are written a third as often as the policy says: enough of them for the test, and it takes half the time.
POLICY = replace(CLASSIC, notes=replace(CLASSIC.notes, growth=15_000))
CALLS = 504


class Long(NamedTuple):
    session: Session
    work: Work
    server: MessagesServer
    provider: AnthropicProvider
    home: Path


def session_at(provider: AnthropicProvider, home: Path, **given: Any) -> Session:
    return Session(
        provider, home=home, cwd=home, tools=TOOLS, system="Be careful.", max_tokens=1_000, window=WINDOW, policy=POLICY, **given
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Long]:
    home = of_fixed_length(tmp_path_factory.mktemp("long"))
    with (
        MessagesServer() as server,
        closing(AnthropicProvider("claude-sonnet-5-5", base_url=server.url, api_key="any", max_retries=0)) as provider,
        session_at(provider, home, session_id="long") as session,
    ):
        server.window = WINDOW
        server.answer_with(playing())
        work = Work(session, server)
        work.turns(21, rounds=2, together=6)
        assert session.compact("Keep the names of the files.").how == "summary"
        work.turns(21, rounds=2, together=6)
        yield Long(session, work, server, provider, home)


@pytest.mark.exhaustive
@pytest.mark.spec("B1", "R3", "M6")
def test_every_record_has_one_fate_at_every_decision_and_can_be_opened_again(long: Long) -> None:
    made = Counter(prove(long.session, long.work))
    assert len(long.work.given) == CALLS
    assert made["clearing"] >= 5
    assert made["notes"] >= 2
    assert made["summary"] == 1
    assert len(events(long.session, "spill")) >= CALLS // 12 * 2
    assert long.session.notices == []
    assert [events(long.session, name) for name in ("layer_failed", "fork_failed", "notes_failed", "compaction_failed")] == [
        []
    ] * 4
    newest = decisions(long.session)[-1].uuid
    assert long.session.expand(newest).text.startswith("[")


@pytest.mark.spec("K3", "T7", "C11")
def test_every_request_is_valid_and_within_the_window_and_starts_with_the_one_before_or_says_why_not(long: Long) -> None:
    check_requests(long.server)
    assert check_prefixes(long.server.requests, decisions=len(decisions(long.session))) == []
    assert 0 < long.session.status.cache_breaks <= len(decisions(long.session))
    said = str(long.server.requests[-1].body)
    assert all(words in said for words in long.work.asked), "what the person said is in the summaries, word for word"


@pytest.mark.spec("Z4")
def test_a_session_opened_again_sends_what_the_first_one_would_have_sent(long: Long, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(long.home, home)
    with session_at(long.provider, home, resume=copied(long, home)) as again:
        assert again.messages == long.session.messages
        assert again.window_state.tokens == long.session.window_state.tokens
        assert prove(again, long.work)


@pytest.mark.exhaustive
@pytest.mark.spec("B1")
def test_all_of_it_is_undone_last_first_and_byte_for_byte(long: Long, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(long.home, home)
    written = records(long.session)
    before = {stage.decision.uuid: [block.wire for item in stage.before for block in item.blocks] for stage in stages(written)}
    with session_at(long.provider, home, resume=copied(long, home)) as again:
        for decision in reversed(decisions(long.session)):
            assert again.undo().id == decision.uuid
            shown = blocks_of(again.messages)
            assert shown[: len(before[decision.uuid])] == before[decision.uuid]
        with pytest.raises(UsageError, match="nothing to undo"):
            again.undo()
        assert unmarked(again.messages) == without_decisions(written)


def copied(long: Long, home: Path) -> Path:
    assert long.session.path is not None
    return home / long.session.path.relative_to(long.home)

"""Side calls that fail in every way there is, in the middle of long work: the conversation goes on and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import sampled
from tests.session.plain import Session

from lamina.core.settings import Settings
from lamina.layers.l3_notes.sections import Misfit, own_template, read_notes
from lamina.testing import MessagesServer

from .long import Work, check_requests, decisions, events, how, prove
from .test_long_switches import WINDOW, connected

pytestmark = pytest.mark.exhaustive

# One bad answer for the fork named; a server that mends itself afterwards.
Fault = Callable[[MessagesServer, str, int], Any]
FAULTS: dict[str, Fault] = {
    # It is not tried again, so each is a failed compaction, and the third in a row would end the model's part.
    "400": lambda server, fork, times: server.fail(400, message="no", fork=fork, times=min(times, 2)),
    "429": lambda server, fork, times: server.fail(429, fork=fork, times=times),
    "500": lambda server, fork, times: server.fail(500, fork=fork, times=times),
    "empty": lambda server, fork, times: server.reply(text="", fork=fork, times=times),
    "refusal": lambda server, fork, times: server.reply(text="No.", stop_reason="refusal", fork=fork, times=times),
    "cut off": lambda server, fork, times: server.reply(
        text="<summary> # Sess", stop_reason="max_tokens", fork=fork, times=times
    ),
    "a call": lambda server, fork, times: server.reply(tool_use=("Read", {"file_path": "x"}), fork=fork, times=times),
    "garbage": lambda server, fork, times: server.reply(text="<<< }{ ÿ \x00 </summary>", fork=fork, times=times),
    "torn stream": lambda server, fork, times: server.cut(after=3, fork=fork, times=times),
}
# More than the tries of one compaction, and no more than the breaker stands (C8: three each, three in a row).
TIMES = 4


@pytest.mark.spec("B1", "C8")
@pytest.mark.parametrize("fault", sampled(FAULTS, 2))
def test_a_summary_that_fails_replaces_nothing_and_the_next_one_is_made(
    messages_server: MessagesServer, tmp_path: Path, fault: str
) -> None:
    with connected(messages_server, tmp_path, settings=Settings(session_notes=False, size_clearing=False)) as session:
        FAULTS[fault](messages_server, "summary", TIMES)
        work = Work(session, messages_server)
        work.turns(5, rounds=6, together=2)
        assert "summary" in prove(session, work)
        check_goes_on(session, messages_server, work)
        assert events(session, "fork_failed") or events(session, "summary_rejected")


@pytest.mark.spec("N4", "B1")
@pytest.mark.parametrize("fault", sampled(FAULTS, 2))
def test_notes_that_fail_are_the_old_ones_and_the_next_update_is_made(
    messages_server: MessagesServer, tmp_path: Path, fault: str
) -> None:
    with connected(messages_server, tmp_path) as session:
        FAULTS[fault](messages_server, "notes", TIMES)
        work = Work(session, messages_server)
        work.turns(6, rounds=6, together=2)
        assert {"notes", "summary"} & set(prove(session, work))
        check_goes_on(session, messages_server, work)
        assert len(events(session, "notes_failed")) >= 1
        assert events(session, "notes"), "it was tried again"
        assert session.path is not None
        file = session.path.with_suffix("") / "session-memory" / "summary.md"
        assert not isinstance(read_notes(file.read_text(), own_template()), Misfit)


def check_goes_on(session: Session, server: MessagesServer, work: Work) -> None:
    said = str(session.messages)
    assert all(words in said for words in work.asked)
    assert [how(one) for one in decisions(session)]
    assert not events(session, "layer_failed")
    chat = [received for received in server.requests if not received.fork]
    assert [(one.status, one.error) for one in chat if one.status != 200] == []
    check_requests(server, WINDOW, refusals=sum(one.refused for one in server.requests if one.fork))

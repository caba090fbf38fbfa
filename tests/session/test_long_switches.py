"""Every switch turned off in the middle of a long session: no new decisions of its kind, what was frozen stays, the rest goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.sampling import sampled
from tests.session.plain import Session

from lamina.core.errors import NotCompacted, WindowFull
from lamina.core.settings import Settings
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

from .long import OUTPUTS, TOOLS, Work, check_requests, decisions, events, how, playing, prove

pytestmark = pytest.mark.exhaustive

# Enough for each layer to decide something twice over.
TURNS = 5
WINDOW = 12_000


class Begun(NamedTuple):
    home: Path
    path: Path
    work: Work
    messages: list[dict[str, Any]]


@contextmanager
def connected(server: MessagesServer, home: Path, **given: Any) -> Iterator[Session]:
    server.window = WINDOW
    server.answer_with(playing())
    provider = AnthropicProvider("claude-sonnet-5-5", base_url=server.url, api_key="any", max_retries=0)
    given = {"tools": TOOLS, "system": "Be careful.", "max_tokens": 500, "window": WINDOW, "home": home, "cwd": home, **given}
    try:
        with Session(provider, **given) as session:
            server.follow(breaks=lambda: session.status.cache_breaks)
            yield session
    finally:
        provider.close()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """A session in which every layer has decided something."""
    home = tmp_path_factory.mktemp("begun")
    with MessagesServer() as server, connected(server, home, session_id="begun") as session:
        work = Work(session, server)
        work.turns(TURNS, rounds=6, together=2)
        assert {"clearing", "notes"} <= {how(one) for one in decisions(session)}
        assert events(session, "spill")
        assert session.path is not None
        return Begun(home, session.path.relative_to(home), work, session.messages)


# What each switch is about, counted.
OFF: dict[str, Callable[[Session], int]] = {
    "spill": lambda session: len(events(session, "spill")),
    "size_clearing": lambda session: sum(how(one) == "clearing" for one in decisions(session)),
    "session_notes": lambda session: len(events(session, "notes")),
    "notes_compaction": lambda session: sum(how(one) == "notes" for one in decisions(session)),
    "auto_compact": lambda session: sum(how(one) in ("notes", "summary") for one in decisions(session)),
    "compaction": lambda session: sum(how(one) in ("notes", "summary") for one in decisions(session)),
}


def counted(session: Session) -> dict[str, int]:
    return {switch: count(session) for switch, count in OFF.items()}


def test_with_everything_on_each_of_them_decides_something(begun: Begun, messages_server: MessagesServer, tmp_path: Path) -> None:
    """Without this the test below could not fail."""
    home = tmp_path / "home"
    shutil.copytree(begun.home, home)
    with connected(messages_server, home, resume=home / begun.path) as session:
        before = counted(session)
        Work(session, messages_server, goes_on=begun.work).turns(TURNS, rounds=6, together=2)
        assert all(after > before[switch] for switch, after in counted(session).items()), (before, counted(session))


@pytest.mark.spec("F1")
@pytest.mark.parametrize("switch", sampled(OFF, 3))
def test_off_means_no_new_decisions_and_what_was_frozen_stays(
    begun: Begun, messages_server: MessagesServer, tmp_path: Path, switch: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(begun.home, home)
    off = Settings(**{switch: False})
    with connected(messages_server, home, resume=home / begun.path, settings=off) as session:
        assert session.messages == begun.messages
        before = counted(session)
        mild = [output for output in OUTPUTS if len(str(output(0).content)) < 10_000]
        work = Work(session, messages_server, outputs=mild if switch == "spill" else OUTPUTS, goes_on=begun.work)
        full = False
        try:
            work.turns(TURNS, rounds=6, together=2)
        except WindowFull:
            full = True
        after = counted(session)
        assert after[switch] == before[switch]
        assert after != before, "the other layers go on"
        assert not full or switch in ("auto_compact", "compaction")
        prove(session, work)
        check_requests(messages_server, WINDOW)
        if switch == "auto_compact":
            assert session.compact().done, "by hand it still works"
        if switch == "compaction":
            with pytest.raises(NotCompacted, match="turned off"):
                session.compact()

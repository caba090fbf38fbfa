"""Compactions taken back: byte for byte, in the right order, and not done again at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend

from lamina.conversation import revision
from lamina.core.errors import UndoOrder
from lamina.core.policy import CLASSIC, LEAN, Policy
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import working
from lamina.testing import MessagesServer

from .compacting import LONG, boundaries, opened, quiet, rounds, summaries, summarising, until_compacted
from .words import Wire, reasons, refused, said, unmarked

# Compaction long before the window is full, so that there is room for a pause behind it.
EARLY = quiet(autocompact_percent=50)
# Keeps the newest messages, and compacts near the end of the window.
TAIL = replace(LEAN, window=CLASSIC.window)


@pytest.mark.spec("B1")
@pytest.mark.parametrize("policy", [CLASSIC, TAIL], ids=["classic", "tail"])
@pytest.mark.parametrize("part", ["all", "from", "up_to"])
def test_an_undo_gives_the_request_before_byte_for_byte(
    messages_server: MessagesServer, tmp_path: Path, policy: Policy, part: str
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=policy) as session:
        rounds(session, messages_server, 4)
        pivot = session.add_user("The middle")
        session.ask()
        rounds(session, messages_server, 3, start=4)
        session.add_user("And now?")
        before = unmarked(session.before_call())
        side = None if part == "all" else Pivot("from" if part == "from" else "up_to", pivot)
        done = session.compact(pivot=side)
        assert done.done
        assert unmarked(session.messages) != before["messages"]
        with working(session) as c:
            revision.undo(c, done.boundary)
        assert same(unmarked(session.before_call()), before)
        session.ask()
        rounds(session, messages_server, 1, start=7)
        assert unmarked(session.messages)[: len(before["messages"])] == before["messages"]
        assert "undo" in reasons(session.path) or "compaction" not in reasons(session.path)
    with opened(messages_server, tmp_path, policy=policy, resume=session.id) as again:
        assert unmarked(again.messages)[: len(before["messages"])] == before["messages"]


def same(one: Wire, other: Wire) -> bool:
    """The headers that announce a break are no part of what a model reads."""
    return {**one, "extra_headers": None} == {**other, "extra_headers": None}


@pytest.mark.spec("B1")
def test_two_undos_in_the_wrong_order_are_refused_with_the_right_one(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=TAIL) as session:
        rounds(session, messages_server, 6)
        first_view = session.messages
        first = session.compact()
        rounds(session, messages_server, 6, start=6)
        second_view = session.messages
        second = session.compact()
        assert first.done
        assert second.done
        with working(session) as c:
            with pytest.raises(UndoOrder) as refused_now:
                revision.undo(c, first.boundary)
            assert refused_now.value.first == second.boundary
            revision.undo(c, second.boundary)
            assert session.messages == second_view
            revision.undo(c, first.boundary)
        assert session.messages[: len(first_view)] == first_view
        assert refused({"messages": session.messages}) == []


@pytest.mark.spec("B1")
def test_after_an_undo_it_pauses_until_blocking_is_near(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, settings=EARLY) as session:
        number = until_compacted(session, messages_server)
        [made] = boundaries(session)
        with working(session) as c:
            revision.undo(c, made.uuid)
            near = c.limits.blocking - c.limits.scaled(3_000)
            assert c.limits.autocompact <= c.count.judged < near
        session.add_user("Small talk")
        session.ask()
        assert len(boundaries(session)) == 1, "the person has the messages back"
        until_compacted(session, messages_server, start=number)
        assert len(boundaries(session)) == 2, "at the limit it would be that or nothing"


@pytest.mark.spec("B1")
def test_after_an_undo_a_compaction_by_hand_ends_the_pause(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        number = until_compacted(session, messages_server)
        with working(session) as c:
            revision.undo(c, boundaries(session)[-1].uuid)
        assert session.compact().done
        until_compacted(session, messages_server, start=number)
        assert len(boundaries(session)) == 3


def test_the_pause_is_known_to_a_resumed_session(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, settings=EARLY) as session:
        until_compacted(session, messages_server)
        with working(session) as c:
            revision.undo(c, boundaries(session)[-1].uuid)
    count = len(summaries(messages_server))
    with opened(messages_server, tmp_path, settings=EARLY, resume=session.id) as again:
        again.add_user("Small talk")
        again.ask()
        assert len(summaries(messages_server)) == count


def test_what_was_put_back_goes_with_the_undo(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        lend(session, todos=lambda: "1. [ ] something")
        lend(session, reminder=lambda: "the rules")
        rounds(session, messages_server, 3, content=LONG)
        before = session.messages
        done = session.compact()
        assert "the rules" in "\n".join(said(session.messages))
        with working(session) as c:
            revision.undo(c, done.boundary)
        assert session.messages == before

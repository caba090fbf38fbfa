"""The window of a session: what is counted, for which view, and what is still taken when it is full."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.conversation import revision
from lamina.core.errors import WindowFull
from lamina.core.settings import Settings
from lamina.session.base import conversation_of

from .play import compact
from .words import answer, call, objects, said


@pytest.mark.spec("T7")
def test_at_the_blocking_limit_results_are_taken_and_messages_are_not(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, window=10_000, settings=Settings(spill=False, auto_compact=False)) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1"), call("c2")))
        session.add_tool_result("c1", "words " * 10_000)
        assert session.window_state.at_blocking
        size = len(objects(session.path))
        with pytest.raises(WindowFull, match=r"has about [\d,]+ tokens and the limit is 7,\d\d\d\. Compact it"):
            session.add_user("b")
        assert len(objects(session.path)) == size
        session.add_tool_result("c2", "r")
        with pytest.raises(WindowFull):
            session.before_call()
        session.sync([{"role": "user", "content": "anew"}])
        assert said(session.before_call()["messages"]) == ["anew"]


@pytest.mark.spec("T1")
def test_the_count_is_what_was_reported_and_an_estimate_of_what_came_since(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a" * 400)
        assert 50 < session.window_state.tokens < 200
        session.before_call()
        usage = {"input_tokens": 1_000, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 4}
        session.after_call(answer("m1", "b", usage=usage))
        assert session.window_state.tokens == 1_234
        session.add_user("c" * 400)
        assert 1_234 + 50 < session.window_state.tokens < 1_234 + 200
        counted = session.window_state.tokens
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.window_state.tokens == counted


@pytest.mark.spec("T10")
def test_a_usage_does_not_outlive_the_view_it_measured_not_even_in_a_resumed_session(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a" * 40_000)
        session.before_call()
        session.after_call(answer("m1", "b", usage={"input_tokens": 5_000, "output_tokens": 5}))
        boundary = compact(session, "short")
        session.add_user("b")
        session.before_call()
        session.after_call(answer("m2", "c", usage={"input_tokens": 50, "output_tokens": 5}))
        assert session.window_state.tokens == 55
        revision.undo(conversation_of(session), boundary)
        counted = session.window_state.tokens
        assert 5_005 < counted < 5_055, "what was measured before the compaction counts again, and what came since is estimated"
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.window_state.tokens == counted


@pytest.mark.spec("T11")
def test_the_state_of_the_window_has_the_numbers_to_draw_it(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, window=200_000) as session:
        session.add_user("a" * 40_000)
        state = session.window_state
        assert (state.window, state.limit, state.reserve) == (200_000, 180_000, 20_000)
        assert state.warning <= (state.compacts_at or 0) < state.blocking < state.limit
        assert state.margin > 0, "no server has reported usage yet"
        assert state.percent_left == pytest.approx((180_000 - state.tokens - state.margin) / 1_800)
        session.before_call()
        session.after_call(answer("m1", "b", usage={"input_tokens": 171_000, "output_tokens": 5}))
        state = session.window_state
        assert (state.tokens, state.margin) == (171_005, 0)
        flags = (state.above_warning, state.above_autocompact, state.at_blocking)
        assert flags == (True, state.tokens >= (state.compacts_at or 0), state.tokens >= state.blocking)
    settings = Settings(auto_compact=False)
    with Session("offline", home=tmp_path, resume=session.id, window=200_000, settings=settings) as again:
        assert (again.window_state.compacts_at, again.window_state.above_autocompact) == (None, False)

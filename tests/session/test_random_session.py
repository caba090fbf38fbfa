"""Rows of everything that can be done to a session, at random: what was promised of it holds after every step (see scripted.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.core.histories import examples
from tests.session.plain import Session
from tests.session.words import pins_of

from lamina.core.errors import InputError, NothingToSend
from lamina.core.policy import LEAN
from lamina.core.records import Event, Span, Spill
from lamina.core.settings import Settings
from lamina.session.base import working

from .breaking import InHand
from .compacting import LONG, quiet
from .long import records, settle
from .scripted import Script, decided, honest
from .words import READ, answer, call, said

ONCE = (
    "compact",
    "part",
    "snip",
    "pin",
    "unpin",
    "expand",
    "preview",
    "resume",
    "kill",
    "fork",
    "branch",
    "model",
    "sync",
    "pause",
    "switch",
    "fault",
)
KINDS = ["turn"] * 8 + ["user"] * 3 + ["answer"] * 6 + ["result"] * 6 + ["undo"] * 2 + list(ONCE)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6)), min_size=4, max_size=16)
SWITCHES = st.fixed_dictionaries(
    {name: st.booleans() for name in ("lean", "once", "cold", "session_notes", "collapse", "idle_clearing")}
)
BUSY = {"lean": False, "once": False, "cold": False, "session_notes": True, "collapse": False, "idle_clearing": True}
# Seven calls at once, with every kind of result: it fills the window within a few turns.
FULL = [("turn", number) for number in (99, 104, 9, 14, 29)]


@pytest.mark.exhaustive
@pytest.mark.spec("B1", "K3", "Z4")
@settings(examples(16), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(switches=SWITCHES, steps=STEPS)
@example(BUSY, [*FULL, ("kill", 1), ("undo", 0), ("sync", 0), ("expand", 0)])
@example({**BUSY, "once": True}, [*FULL, ("kill", 1), ("user", 1), ("answer", 4), ("result", 7), ("kill", 0), ("sync", 0)])
@example(
    {**BUSY, "cold": True}, [*FULL, ("pause", 60), *FULL[:2], ("kill", 1), ("undo", 0), ("pause", 70), ("turn", 9), ("resume", 0)]
)
@example({**BUSY, "lean": True}, [*FULL, ("pin", 1), ("compact", 2), *FULL[:2], ("kill", 1), ("part", 4)])
@example(
    {**BUSY, "collapse": True, "session_notes": False}, [*FULL, ("snip", 5), ("resume", 0), *FULL, ("undo", 0), ("branch", 0)]
)
def test_whatever_is_done_in_a_row_what_was_promised_holds(
    tmp_path_factory: pytest.TempPathFactory, switches: dict[str, bool], steps: list[tuple[str, int]]
) -> None:
    script = Script(tmp_path_factory.mktemp("script"), **switches)
    try:
        for kind, pick in steps:
            script.step(kind, pick)
        script.prove()
    finally:
        script.provider.fault = None
        script.session.close()


# What such rows have found


def opened(home: Path, provider: InHand | None = None, **more: Any) -> Session:
    more = {"settings": quiet(), "system": "Be brief.", "max_tokens": 500, "window": 20_000, **more}
    return Session(provider or InHand(), home=home, cwd=home, **more)


def turn(session: Session, number: int, words: str = LONG, *, tokens: int = 0) -> None:
    session.add_user(f"Question {number}")
    session.before_call()
    usage = {"input_tokens": tokens or session.window_state.tokens or 1, "output_tokens": len(words) // 4}
    session.after_call(answer(f"m{number}", f"{number} {words}", usage=usage))


@pytest.mark.spec("T10")
def test_what_one_model_reported_does_not_count_for_the_model_a_session_is_resumed_with(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        turn(session, 1)
        turn(session, 2, tokens=9_000)
        assert session.window_state.tokens == 9_000 + len(LONG) // 4
        session.switch_model(InHand("model-2"))
        switched = session.window_state.tokens
        assert switched != 9_000 + len(LONG) // 4
    with opened(tmp_path, resume=session.id) as same:
        assert same.window_state.tokens == 9_000 + len(LONG) // 4
    with opened(tmp_path, InHand("model-2"), resume=session.id) as other:
        assert other.window_state.tokens == switched


@pytest.mark.spec("K3")
def test_a_model_that_was_never_asked_is_not_taken_for_the_one_that_was(tmp_path: Path) -> None:
    """A request that could not be made leaves nothing behind, so the first one to the new model is the break it is."""
    with opened(tmp_path) as session:
        turn(session, 1)
        session.switch_model(InHand("model-2"))
        with pytest.raises(NothingToSend):
            session.before_call()
    with opened(tmp_path, InHand("model-2"), resume=session.id) as again:
        again.add_user("go on")
        assert again.before_call()["extra_headers"]["x-lamina-break"] == "model"


@pytest.mark.spec("T10")
def test_what_was_learnt_last_counts_whatever_the_clock_says(tmp_path: Path) -> None:
    """Two decisions of one millisecond, or a clock that goes back: the order of the log is the order of what happened."""
    with opened(tmp_path) as session:
        with working(session) as c:
            c.clock = lambda: "2030-01-01T00:00:00.000Z"
        turn(session, 1)
        turn(session, 2, tokens=4_000)
        snipped = session.hide_messages(session.turns[0].first, session.turns[0].last)
        turn(session, 3, tokens=9_000)
        with working(session) as c:
            c.clock = lambda: "2020-01-01T00:00:00.000Z"
        session.undo(snipped)
        tokens = session.window_state.tokens
    with opened(tmp_path, resume=session.id) as again:
        assert again.window_state.tokens == tokens


@pytest.mark.spec("T1", "T10")
@pytest.mark.parametrize("resumed", [False, True])
def test_results_that_are_spilled_together_leave_what_was_reported_as_it_is(tmp_path: Path, resumed: bool) -> None:
    """They have not left yet, so the last answer still measures all before them."""
    given: dict[str, Any] = {"settings": Settings(session_notes=False, auto_compact=False), "tools": [READ], "window": 40_000}
    with opened(tmp_path, **given) as session:
        session.add_user("Read them.")
        session.before_call()
        usage = {"input_tokens": 9_000, "output_tokens": 100}
        session.after_call(answer("m", *(call(f"c{number}") for number in range(12)), usage=usage))
        for number in range(12):
            session.add_tool_result(f"c{number}", "word " * 1_600)
        entered = session.window_state.tokens
        session.before_call()
        assert len(decided(session, Spill)) >= 3
        with working(session) as c:
            assert c.count.measured == 9_100
        tokens = session.window_state.tokens
        assert 9_100 < tokens < entered
    if resumed:
        with opened(tmp_path, resume=session.id, **given) as again:
            assert again.window_state.tokens == tokens


@pytest.mark.spec("R1", "C3")
def test_fifty_results_are_judged_before_a_summary_is_asked_for_by_hand(tmp_path: Path) -> None:
    """Each of them is small enough, all together are more than two windows."""
    provider = InHand()
    with opened(tmp_path, provider, settings=Settings(session_notes=False), tools=[READ], window=40_000) as session:
        turn(session, 1)
        session.add_user("Read them.")
        session.before_call()
        session.after_call(answer("m", *(call(f"c{number}") for number in range(50))))
        for number in range(50):
            session.add_tool_result(f"c{number}", "word " * 1_600)
        assert decided(session, Spill) == []
        assert session.compact("all").done
        assert provider.asked == ["summary"]
        assert honest(provider.requests[-1]) < 40_000


@pytest.mark.spec("B2")
def test_a_pin_is_taken_back_behind_a_compaction_too(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        turn(session, 1)
        pin = session.pin("never push to main")
        assert session.compact("all").done
        assert session.undo(pin).kind == "pin"
        assert pins_of(session) == {}
    with opened(tmp_path, resume=session.id) as again:
        assert pins_of(again) == {}
        turn(again, 2)
        assert again.compact("all").done
        assert not any("never push to main" in words for words in said(again.messages))


@pytest.mark.spec("B2", "C10")
def test_a_pin_that_a_compaction_carried_on_is_not_snipped_away(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        turn(session, 1)
        session.pin("never push to main")
        assert session.compact("all").done
        turn(session, 2)
        session.add_user("and now?")
        with working(session) as c:
            (carried,) = [item.uuid for item in c.log.view.items if item.kind.startswith("attachment:pin:")]
        with pytest.raises(InputError, match="is pinned"):
            session.hide_messages(carried)
        session.undo(next(iter(pins_of(session))))
        assert session.hide_messages(carried)


@pytest.mark.spec("B2", "C10")
def test_a_pin_that_a_compaction_carried_on_is_not_folded_away(tmp_path: Path) -> None:
    """Behind a tail that was kept, what is put back stands in the middle of a turn."""
    with opened(tmp_path, settings=quiet(collapse=True), policy=LEAN) as session:
        for number in range(4):
            turn(session, number)
        session.pin("never push to main")
        assert session.compact("all").done
        for number in range(10, 26):
            turn(session, number)
            assert sum("never push to main" in words for words in said(session.messages)) == 1
        assert any(one.kind == "collapse" for one in decided(session, Span))


@pytest.mark.spec("N3", "Z4")
def test_a_count_that_fell_is_growth_for_the_notes_of_a_resumed_session_too(tmp_path: Path) -> None:
    """Results are cleared, the count falls, the conversation grows again: whoever opens the session then knows how much."""

    def hear(session: Session, name: str, tokens: int) -> int:
        session.add_user("go on")
        session.before_call()
        session.after_call(answer(name, "done", usage={"input_tokens": tokens, "output_tokens": 1}))
        settle(session)
        return sum(isinstance(one, Event) and one.name == "notes" for one in records(session))

    def opened_at(**more: Any) -> Session:
        return Session("anthropic:a-model", home=tmp_path, cwd=tmp_path, window=200_000, **more)

    with opened_at() as session:
        assert hear(session, "m0", 40_000) == 1
        assert hear(session, "m1", 22_000) == 1, "a clearing"
    with opened_at(resume=session.id) as again:
        assert hear(again, "m2", 26_000) == 1, "grown by less than 5,000"
        assert hear(again, "m3", 27_500) == 2

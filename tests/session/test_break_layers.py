"""Layers 1 to 4 in unusual combinations: branches into kept history, undos out of order, missing files, failing hosts."""

from __future__ import annotations

import copy
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.histories import examples
from tests.session.hosts import lend
from tests.session.plain import Session
from tests.session.words import pins_of

from lamina.core.errors import (
    Aborted,
    AuthFailed,
    BadRequest,
    ConnectionLost,
    InputError,
    NotCompacted,
    NothingToSend,
    Overloaded,
    PromptTooLong,
    RateLimited,
    Refused,
    ServerFault,
    StreamBroken,
    UndoOrder,
    UsageError,
    WindowFull,
)
from lamina.core.log import Log
from lamina.core.policy import CLASSIC
from lamina.core.records import Boundary, Clear, Record
from lamina.core.settings import Settings
from lamina.layers.l4_compact.offline import answer as by_rules
from lamina.layers.l4_compact.plan import BreakerLedger, Pivot, failed, filled
from lamina.session.base import conversation_of, working

from . import clearing
from .breaking import InHand
from .compacting import LONG, quiet
from .words import Wire, answer, extends, records, refused, said, text, unmarked, user

WINDOW = 20_000
WORDY = f"<summary>{'## 1. It goes on and on and on. ' * 1_200}</summary>"
READ: Wire = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}


def opened(home: Path, *, provider: InHand | None = None, window: int = WINDOW, **more: Any) -> Session:
    more = {"settings": quiet(), "tools": [READ], "system": "Be brief.", "max_tokens": 500, **more}
    return Session(provider or InHand(), home=home, cwd=home, window=window, **more)


def turns(session: Session, count: int, *, start: int = 0, words: str = LONG) -> list[Wire]:
    """Questions with a call each; the caller's own list of them."""
    rows: list[Wire] = []
    for number in range(start, start + count):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"/w/f{number}.py"}}
        for row in (
            user(f"Question {number}"),
            {"role": "assistant", "content": [text(f"I look {number}"), call]},
            user({"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"{number} {words}"}),
            {"role": "assistant", "content": [text(f"It is {number}")]},
        ):
            rows.append(row)
    return rows


def follow(session: Session, rows: list[Wire]) -> None:
    """Hand the list in as a loop does: a request before every answer."""
    for index, row in enumerate(rows):
        if row["role"] == "assistant":
            session.sync(rows[:index])
            assert refused(session.before_call()) == []
            usage = {"input_tokens": max(1, session.window_state.tokens), "output_tokens": 10}
            session.after_call(answer(f"m{index}", *row["content"], usage=usage))


def folded(session: Session) -> list[Wire]:
    """The messages as the whole log gives them."""
    with working(session) as c:
        shown: list[Wire] = unmarked(Log.load(c.store.read).view.messages())
        return shown


# A branch into what a compaction kept


@pytest.mark.spec("B1", "C6")
@pytest.mark.parametrize("resumed", [False, True])
def test_a_branch_from_a_message_a_compaction_kept_has_all_before_it_again(tmp_path: Path, resumed: bool) -> None:
    with opened(tmp_path) as session:
        rows = turns(session, 8, words="a few words " * 30)
        follow(session, rows)
        kept = conversation_of(session).log.view.items[-6].uuid
        assert session.compact(pivot=Pivot("up_to", kept)).done
        session.sync([*rows[:-2], user("another way")])
        assert unmarked(session.messages) == folded(session)
        assert said(session.messages)[0] == "Question 0"
    if resumed:
        with opened(tmp_path, resume=session.id) as again:
            assert unmarked(again.messages) == folded(again) == unmarked(session.messages)
            assert refused(again.before_call()) == []


@pytest.mark.spec("B2", "R4")
def test_a_list_that_begins_anew_behind_a_compaction_is_the_same_after_a_resume(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        follow(session, turns(session, 4))
        session.pin("never push to main")
        assert session.compact("all").done
        session.sync([user("something else")])
        assert said(session.messages) == ["something else"]
        pins = pins_of(session)
    with opened(tmp_path, resume=session.id) as again:
        assert said(again.messages) == ["something else"]
        assert pins_of(again) == pins


@pytest.mark.spec("B1")
def test_going_back_to_before_two_compactions_and_on_again(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        rows = turns(session, 6, words="a few words " * 30)
        follow(session, rows)
        assert session.compact("all").done
        more = [*rows, *turns(session, 4, start=6, words="a few words " * 30)]
        follow_from(session, more, len(rows))
        assert session.compact("all again").done
        session.sync([*rows[:4], user("back here")])
        assert said(session.messages)[-1] == "back here"
        assert unmarked(session.messages) == folded(session)
        assert refused(session.before_call()) == []
    with opened(tmp_path, resume=session.id) as again:
        assert unmarked(again.messages) == folded(again) == unmarked(session.messages)


def follow_from(session: Session, rows: list[Wire], start: int) -> None:
    for index in range(start, len(rows)):
        if rows[index]["role"] == "assistant":
            session.sync(rows[:index])
            session.before_call()
            session.after_call(answer(f"m{index}", *rows[index]["content"]))


# A list in new objects, as a server has it that reads it from a database


@pytest.mark.spec("R3", "B1")
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("since", ["cleared", "compacted", "snipped", "nothing"])
@pytest.mark.parametrize("content", ["a line of a file\n" * 4_000, "", " \n", [{"type": "text", "text": ""}]], ids=repr)
def test_a_result_is_recognised_in_a_new_list_whatever_became_of_it(
    tmp_path: Path, content: Any, since: str, resumed: bool
) -> None:
    chosen = Settings(session_notes=False, idle_clearing=True)
    session = opened(tmp_path, window=60_000, settings=chosen)
    rows = turns(session, 9, words="a few words " * 20)
    rows[2]["content"][0]["content"] = content
    follow(session, rows)
    if since == "compacted":
        assert session.compact("all").done
    elif since == "snipped":
        session.hide_messages(conversation_of(session).log.view.items[0].uuid, conversation_of(session).log.view.items[5].uuid)
    elif since == "cleared":
        conversation_of(session).use_clock(lambda: "2099-01-01T00:00:00.000Z")
        session.sync([*rows, user("after a pause")])
        session.before_call()
        rows = [*rows, user("after a pause")]
    if resumed:
        session.close()
        session = opened(tmp_path, resume=session.id, window=60_000, settings=chosen)
    before, written = unmarked(session.messages), len(records(session.path))
    session.sync(copy.deepcopy(rows))
    assert unmarked(session.messages) == before
    assert len(records(session.path)) == written, "nothing was said, so nothing is written"
    session.close()


# What a resumed session knows of its last request


@pytest.mark.spec("K3", "C1")
@pytest.mark.parametrize("then", ["nothing", "snip", "undo", "keeps"])
def test_a_session_resumed_behind_a_compaction_that_nothing_answered_announces_the_break(tmp_path: Path, then: str) -> None:
    with opened(tmp_path) as session:
        follow(session, turns(session, 4))
        session.add_user("and now?")
        sent = session.before_call()
        pivot = Pivot("up_to", conversation_of(session).log.view.items[-3].uuid) if then == "keeps" else None
        assert session.compact("all" if pivot is None else "", pivot=pivot).done
        if then == "snip":
            session.add_user("never mind")
            session.pin("a word")
            with pytest.raises(NotCompacted, match="nothing to summarise"):
                session.compact("all of it")
    with opened(tmp_path, resume=session.id) as again:
        if then == "undo":
            again.undo()
        request = again.before_call()
        assert extends(sent, request) or again.status.cache_breaks == 1
        assert request.get("extra_headers", {}).get("x-lamina-break") != "unexplained"


# Taking back, opening again


@pytest.mark.spec("B1")
def test_an_older_compaction_is_refused_with_the_one_to_undo_first(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        follow(session, turns(session, 3))
        before = unmarked(session.messages)
        first = session.compact("all")
        session.add_user("more")
        session.before_call()
        session.after_call(answer("x", LONG, usage={"input_tokens": session.window_state.tokens, "output_tokens": 1_000}))
        second = session.compact("all")
        assert first.done
        assert second.done
        with pytest.raises(UndoOrder, match=second.boundary):
            session.undo(first.boundary)
        with pytest.raises(UndoOrder):
            session.undo(first.boundary[:8])
        assert session.undo().id == second.boundary
        assert session.undo().id == first.boundary
        assert unmarked(session.messages)[: len(before)] == before


@pytest.mark.spec("R2", "B1")
def test_a_spilled_result_can_be_opened_after_its_compaction(tmp_path: Path) -> None:
    whole = "a line of a file\n" * 5_000
    with opened(tmp_path, settings=Settings(session_notes=False)) as session:
        rows = turns(session, 3)
        rows[2]["content"][0]["content"] = whole
        follow(session, rows)
        assert session.compact("all").done
        page = session.expand("toolu_0")
        assert page.pages > 1
        assert whole.startswith(page.text)
        with pytest.raises(InputError, match="no compaction with this id"):
            session.expand("toolu_99")


@pytest.mark.spec("B2")
def test_a_message_is_pinned_once(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        follow(session, turns(session, 2))
        message = conversation_of(session).log.view.items[0].uuid
        assert session.pin(message=message) == session.pin(message=message)
        assert len(pins_of(session)) == 1
        assert session.compact("all").done
        assert sum("word for word" in words for words in said(session.messages)) == 1


@pytest.mark.spec("M2", "B1")
def test_what_is_left_of_a_spilled_result_stays_where_its_file_is_gone(tmp_path: Path) -> None:
    chosen = clearing.quiet(idle_clearing=True)
    with clearing.opened(tmp_path, settings=Settings(auto_compact=False, session_notes=False, idle_clearing=True)) as session:
        clearing.begun(session)
        clearing.work(session, ["big"], content="a line of a file\n" * 5_000)
        clearing.work(session, clearing.numbered(8))
        assert session.path is not None
        shutil.rmtree(session.path.with_suffix("") / "tool-results")
    with clearing.opened(tmp_path, resume=session.id, settings=chosen) as again:
        conversation_of(again).use_clock(lambda: "2099-01-01T00:00:00.000Z")
        request = again.before_call()
        (made,) = clearing.clearings(again.path)
        assert "big" not in made.markers
        assert "t0" in made.markers
        assert clearing.shown(request)["big"].startswith("<persisted-output>")
        for marker in made.markers.values():
            assert Path(marker.partition("result is in ")[2].partition(" and can be read")[0]).is_file()


# A summary that does not help


@pytest.mark.spec("C8", "B3")
def test_a_window_that_is_full_still_has_not_filled_up_again() -> None:
    once = filled(BreakerLedger(boundary="b"), 1, CLASSIC.compact)
    assert once.refills == 1
    tried = failed(once, CLASSIC.compact)
    for _ in range(CLASSIC.compact.breaker - 1):
        tried = failed(filled(tried, 1, CLASSIC.compact), CLASSIC.compact)
    assert tried.stopped == "failing"
    assert tried.refills == 1


@pytest.mark.spec("C3", "O1")
@pytest.mark.parametrize("window", [4_000, 6_000, 8_000])
def test_without_a_model_small_windows_go_on_for_ever(tmp_path: Path, window: int) -> None:
    """Each summary carries the one before; were it longer than its reserve, it would fill the window and could not be made smaller."""
    with Session("offline", home=tmp_path, cwd=tmp_path, window=window, settings=quiet(), max_tokens=300) as session:
        for number in range(80):
            session.add_user(f"Step {number}: port = {number}, host = h{number}. " + "It was 错误 before. " * 20)
            assert refused(session.before_call()) == []
            usage = {"input_tokens": session.window_state.tokens, "output_tokens": 80}
            session.after_call(answer(f"m{number}", f"The value {number} = {number}. " * 12, usage=usage))
        assert len([one for one in records(session.path) if isinstance(one, Boundary)]) >= 3
        assert session.notices == []


@pytest.mark.spec("C3")
def test_rules_keep_to_the_length_that_is_asked_for() -> None:
    rows = [user(f"value{number} = {number}. " * 40) for number in range(200)]
    (block,) = by_rules({"messages": rows, "max_tokens": 500})
    assert len(block["text"].encode()) < 500 * 4


@pytest.mark.spec("C3", "B1")
def test_a_server_that_writes_more_than_it_was_asked_for_does_not_fill_the_window(tmp_path: Path) -> None:
    class Wordy(InHand):
        def _answer(self, request: Wire, purpose: str) -> Wire:
            made = super()._answer(request, purpose)
            if purpose == "summary":
                made["content"] = [text(WORDY)]
            return made

    with opened(tmp_path, provider=Wordy()) as session:
        follow(session, turns(session, 12))
        assert any(isinstance(one, Boundary) for one in records(session.path))
        assert session.window_state.tokens < conversation_of(session).limits.autocompact // 2
        assert max(len(words) for words in said(session.messages)) < 25_000 < len(WORDY)


# Faults of others

FAULTS: list[BaseException] = [
    AuthFailed("no"),
    BadRequest("no"),
    RateLimited("no"),
    Overloaded("no"),
    ServerFault("no"),
    ConnectionLost("no"),
    StreamBroken("no"),
    Refused("no"),
    PromptTooLong("no"),
    KeyboardInterrupt(),
]


@pytest.mark.exhaustive
@pytest.mark.spec("C7", "C8")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_whatever_a_summary_call_raises_the_conversation_goes_on(tmp_path: Path, fault: BaseException) -> None:
    provider = InHand()
    with opened(tmp_path, provider=provider) as session:
        rows = turns(session, 3)
        follow(session, rows)
        before = unmarked(session.messages)
        provider.fault = lambda purpose: fault if purpose == "summary" else None
        if isinstance(fault, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                session.compact("all")
        elif isinstance(fault, PromptTooLong):
            session.compact("all")
        else:
            with pytest.raises(NotCompacted):
                session.compact("all")
        if not isinstance(fault, PromptTooLong):
            assert unmarked(session.messages) == before
        provider.fault = None
        session.add_user("go on")
        assert refused(session.before_call()) == []
        session.after_call(answer("on", LONG, usage={"input_tokens": session.window_state.tokens, "output_tokens": 1_000}))
        assert session.compact("once more").done


def broken(*_: Any) -> Any:
    raise ZeroDivisionError("the host's own fault")


@pytest.mark.spec("C4", "K5")
@pytest.mark.parametrize("name", ["observer", "reminder", "todos", "restorable", "pre_compact", "post_compact", "session_start"])
def test_a_host_whose_function_fails_is_told_once_and_stops_nothing(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as session:
        follow(session, turns(session, 3))
        lend(session, **{name: broken})
        assert session.compact("all").done
        session.add_user("go on")
        assert refused(session.before_call()) == []
        assert len([notice for notice in session.notices if "the host's own fault" in notice]) == 1


def test_another_model_does_not_answer_what_was_asked_of_the_first(tmp_path: Path) -> None:
    first, second, held = InHand(), InHand("model-2"), threading.Event()
    with opened(tmp_path, provider=first, settings=Settings()) as session:
        follow(session, turns(session, 1))

        def job(abort: threading.Event) -> None:
            assert abort.wait(120)
            held.set()
            raise Aborted

        with working(session) as c:
            assert c.background.wait("notes", 120)
            assert c.background.start("notes", job)
        session.switch_model(second)
        assert held.wait(120)
        session.add_user("go on")
        assert session.before_call()["model"] == "model-2"


# Rows of steps

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn"] * 6 + ["branch", "compact", "part", "snip", "pin", "undo", "undo", "resume", "copy", "pause", "switch"]
        ),
        st.integers(0, 10**6),
    ),
    max_size=24,
)
SWITCHES = ("spill", "size_clearing", "auto_compact", "collapse", "idle_clearing", "session_notes")


class Random:
    """A caller with a list of its own, and everything that can be done to its session in between."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.provider = InHand()
        self.switches: dict[str, bool] = {"session_notes": False}
        self.rows: list[Wire] = []
        self.last: Wire | None = None
        self.number = 0
        self.session = self.open()

    def open(self, home: Path | None = None, **more: Any) -> Session:
        return opened(home or self.home, provider=self.provider, window=6_000, settings=Settings(**self.switches), **more)

    def step(self, kind: str, pick: int) -> None:
        with suppress(WindowFull, NothingToSend, InputError, UsageError):
            getattr(self, kind)(pick)
        with working(self.session) as c:
            whole = Log.load(c.store.read)
            assert unmarked(self.session.messages) == unmarked(whole.view.messages())
            assert [item.uuid for item in c.log.view.items] == [item.uuid for item in whole.view.items]
            assert "layer_failed" not in c.log.events

    def turn(self, pick: int) -> None:
        self.number += 1
        content = ("", "words " * 30, "words " * 400, "line\n" * 9_000)[pick % 4]
        name = f"toolu_{self.number}"
        call = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"/f{self.number}"}}
        result: Wire = {"type": "tool_result", "tool_use_id": name, "content": content}
        self.say(user(f"Question {self.number} " + "word " * (pick % 60)), text(f"I look {self.number}"), call)
        self.say(user(result), text(f"Done {self.number}. " * 10))

    def say(self, row: Wire, *blocks: Wire) -> None:
        self.session.sync([*self.rows, row])
        request = copy.deepcopy(self.session.before_call())
        assert refused(request) == []
        if self.last is not None and not extends(self.last, request):
            assert request["extra_headers"]["x-lamina-break"] != "unexplained"
        self.last = request
        made = answer(f"m{self.number}-{len(self.rows)}", *blocks, usage={"input_tokens": self.session.window_state.tokens or 1})
        self.session.after_call(made)
        self.rows = [*self.rows, row, {"role": "assistant", "content": made["content"]}]

    def branch(self, pick: int) -> None:
        pairs = len(self.rows) // 4
        self.rows = copy.deepcopy(self.rows[: 4 * (pick % (pairs + 1))])

    def compact(self, pick: int) -> None:
        self.taken_back(pick, lambda: self.session.compact("all" if pick % 2 else "").boundary)

    def part(self, pick: int) -> None:
        items = conversation_of(self.session).log.view.items
        pivot = Pivot("from" if pick % 2 else "up_to", items[pick % len(items)].uuid) if items else None
        self.taken_back(pick, lambda: self.session.compact(pivot=pivot).boundary)

    def snip(self, pick: int) -> None:
        items = conversation_of(self.session).log.view.items
        if items:
            self.taken_back(pick, lambda: self.session.hide_messages(items[pick % len(items)].uuid))

    def taken_back(self, pick: int, do: Callable[[], str]) -> None:
        before = unmarked(self.session.messages)
        made = do()
        if made and pick % 3 == 0:
            self.session.undo(made)
            assert unmarked(self.session.messages) == before

    def pin(self, pick: int) -> None:
        items = conversation_of(self.session).log.view.items
        self.session.pin(message=items[pick % len(items)].uuid if items else None)

    def undo(self, pick: int) -> None:
        self.session.undo()

    def resume(self, pick: int) -> None:
        before, pins = unmarked(self.session.messages), pins_of(self.session)
        self.session.close()
        self.session = self.open(resume=self.session.id)
        assert unmarked(self.session.messages) == before
        assert pins_of(self.session) == pins

    def copy(self, pick: int) -> None:
        """The transcript alone, at another place."""
        assert self.session.path is not None
        place = self.home / f"copy-{self.number}-{pick}.jsonl"
        shutil.copy(self.session.path, place)
        with self.open(self.home / "elsewhere", resume=place) as other:
            assert unmarked(other.messages) == unmarked(self.session.messages)
            other.add_user("hello")
            assert refused(other.before_call()) == []
        place.unlink()

    def pause(self, pick: int) -> None:
        year = 2000 + pick % 90
        conversation_of(self.session).use_clock(lambda: f"{year}-01-01T00:00:00.000Z")

    def switch(self, pick: int) -> None:
        name = SWITCHES[pick % len(SWITCHES)]
        self.switches[name] = not getattr(Settings(**self.switches), name)
        conversation_of(self.session).settings = Settings(**self.switches, instructions=False, memory=False)


@pytest.mark.spec("B1", "K3", "R4")
@settings(examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_whatever_is_done_in_a_row_requests_are_valid_breaks_are_named_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    run = Random(tmp_path_factory.mktemp("row"))
    try:
        for kind, pick in steps:
            run.step(kind, pick)
        log: list[Record] = list(records(run.session.path))
        for made in (one for one in log if isinstance(one, Boundary | Clear)):
            run.session.expand(made.uuid)
    finally:
        run.session.close()

"""The window over time: every request, its parts and the decisions around it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.core.histories import Builder, examples, histories, use, words
from tests.history import agents

from lamina.core.records import Clear, Event, Message, Record, Snapshot, Span
from lamina.core.settings import Settings
from lamina.core.usage import Usage
from lamina.history.explanation import explain
from lamina.history.places import Origin
from lamina.history.sessions import read
from lamina.history.window_decisions import WHY_CLEARED
from lamina.history.window_series import KINDS, Decision, RequestPoint, Series, in_force, window_series
from lamina.layers.l2_micro import step

MODEL = "claude-opus-4-5"
CODE = "def answer(question):\n    return table[question]\n" * 200  # about 2,700 tokens


class Session(Builder):
    """A session of another agent whose requests report what a real one would."""

    def __init__(self, head: int = 28_000) -> None:
        super().__init__()
        self.head = head
        self.asked = 0

    def call(self, *, prompt: int, read: int = 0, model: str = MODEL, name: str = "Read", **more: Any) -> str:
        """A request that reports this many tokens, and an answer with a call."""
        self.asked += 1
        block = {**use(f"c{self.asked}"), "name": name}
        return self.answer(block, key=f"m{self.asked}", model=model, usage=Usage(0, read, prompt - read, 0, 50), **more)


def series(records: list[Record], origin: Origin = "claude-code") -> Series:
    return window_series(records, Settings(), origin=origin)


def kinds(point: RequestPoint) -> dict[str, int]:
    return {name: tokens for name, tokens in zip(KINDS, point.kinds, strict=True) if tokens}


def check(found: Series) -> None:
    for point in found.requests:
        assert sum(point.kinds) == point.tokens
        assert min(point.kinds) >= 0
        if point.reported:
            assert point.tokens == point.read + point.written + point.fresh


@pytest.mark.spec("V2")
@examples(60)
@given(histories())
def test_the_parts_of_every_request_add_up_to_its_total(records: list[Record]) -> None:
    check(series(records))


@pytest.mark.parametrize("origin", ["claude-code", "codex", "pi"])
def test_sessions_of_all_agents_have_a_window_over_time(origin: Origin, tmp_path: Path) -> None:
    path = {"claude-code": agents.claude_home, "codex": agents.codex_home, "pi": agents.pi_home}[origin](tmp_path, Path("/p"))
    found = series(list(read(path)), origin)
    check(found)
    assert len(found.requests) >= 3
    assert [point.number for point in found.requests] == list(range(1, len(found.requests) + 1))
    compactions = [one for one in found.decisions if one.kind == "compact"]
    assert [one.by for one in compactions] == [found.threshold_owner]
    assert compactions[0].request == len(found.requests)
    assert [turn.number for turn in found.turns] == list(range(1, len(found.turns) + 1))
    assert found.turns[-1].last_request == len(found.requests)
    assert found.turns[-1].words


def test_the_window_that_a_codex_session_states_is_its_window(tmp_path: Path) -> None:
    records = list(read(agents.codex_home(tmp_path, Path("/p"))))
    found = series(records, "codex")
    assert (found.window, found.window_source, found.threshold) == (agents.CODEX_WINDOW, "record", 244_800)
    assert window_series(records, Settings(context_window=50_000), origin="codex").window == agents.CODEX_WINDOW
    assert in_force(found, Settings(context_window=50_000), "codex") == found  # a kept window


def test_a_window_that_is_stated_after_the_only_answer_counts(tmp_path: Path) -> None:
    rows = agents.codex_rows("/p")[:9]  # the last line is the first that states it
    assert series(list(read(agents.write(tmp_path / "rollout.jsonl", rows))), "codex").window == agents.CODEX_WINDOW


@pytest.mark.parametrize("stated", [None, "many", -1, True, 7])
def test_a_window_that_cannot_be_one_is_ignored(stated: Any, tmp_path: Path) -> None:
    rows = agents.codex_rows("/p")
    started = agents.codex_row("event_msg", {"type": "task_started", "model_context_window": stated})
    for row in rows:
        row["payload"].get("info", {}).pop("model_context_window", None)
    found = series(list(read(agents.write(tmp_path / "rollout.jsonl", [rows[0], started, *rows[1:]]))), "codex")
    assert (found.window, found.window_source) == (400_000, "model")


def test_the_newest_window_that_a_codex_session_states_counts(tmp_path: Path) -> None:
    started = agents.codex_row("event_msg", {"type": "task_started", "model_context_window": 90_000}, 14)
    rows = agents.codex_rows("/p")
    found = series(list(read(agents.write(tmp_path / "rollout.jsonl", [*rows[:-4], started, *rows[-4:]]))), "codex")
    assert found.window == 90_000


def test_the_system_prompt_of_another_agent_is_not_counted_as_the_first_message() -> None:
    b = Session()
    b.said("fix the failing test")
    b.call(prompt=28_032)
    b.results("c1", content=CODE)
    b.call(prompt=31_000, read=28_032)
    first, second = series(b.records).requests
    assert kinds(first)["user"] < 20
    assert kinds(first)["unrecorded_head"] > 28_000
    assert kinds(second)["unrecorded_head"] == kinds(first)["unrecorded_head"]
    assert kinds(second)["files"] > 2_500
    assert "unrecorded" not in kinds(second)


def test_a_lamina_session_shows_its_system_prompt_and_its_tools() -> None:
    b = Session()
    b.put(
        Snapshot("snap", None, b.time, [words("be brief " * 200)], [{"name": "Read", "description": "read " * 100}]), moves=False
    )
    b.said("fix the failing test")
    b.call(prompt=900)
    found = kinds(series(b.records, "lamina").requests[0])
    assert found.keys() == {"system", "tools", "user"}


def test_tokens_that_come_and_go_without_a_record_are_a_part_and_a_decision() -> None:
    b = Session()
    b.said("go")
    b.call(prompt=28_000)
    b.results("c1")
    b.call(prompt=50_000, read=28_000)
    b.results("c2")
    b.call(prompt=30_000, read=30_000)
    found = series(b.records)
    assert kinds(found.requests[1])["unrecorded"] > 21_000
    assert kinds(found.requests[2]).get("unrecorded", 0) < 3_000
    assert [(one.request, one.kind, one.by) for one in found.decisions] == [(2, "unrecorded", ""), (3, "unrecorded", "")]
    assert "came" in found.decisions[0].title
    assert "left" in found.decisions[1].title


def long_session() -> Session:
    """Ten requests that each add a file of about 2,700 tokens."""
    b, tokens = Session(), 28_000
    b.said("read everything")
    for number in range(1, 11):
        b.call(prompt=tokens, read=tokens - 2_700 if number > 1 else 0)
        b.results(f"c{number}", content=CODE)
        tokens += 2_700
    return b


def only(found: Series, kind: str) -> Decision:
    (one,) = [decision for decision in found.decisions if decision.kind == kind]
    return one


@pytest.mark.spec("V2")
def test_a_clearing_is_judged_by_what_it_cost_and_saved() -> None:
    b = long_session()
    b.put(Clear("clear", b.last, b.time, {f"c{number}": "gone" for number in range(1, 9)}, trigger="auto"), moves=False)
    for number in range(3):
        b.call(prompt=34_500, read=28_000 if number == 0 else 34_400)
        b.results(f"c{11 + number}")
    found = series(b.records)
    made = only(found, "clear")
    assert (made.request, made.by, made.title) == (11, "Claude Code", "Cleared 8 results")
    assert (made.tokens_before, made.tokens_after) == (52_300, 34_500)
    assert 3_000 < made.written_again <= 6_500
    assert made.balance is not None
    assert 19_000 < made.balance.tokens_fewer < 22_000
    assert made.balance.requests_until_next == 3
    cost, saved, total = made.balance.cost_written_again_usd, made.balance.saved_usd, made.balance.total_usd
    assert cost is not None
    assert saved is not None
    assert total == pytest.approx(saved - cost)
    # Opus: reading costs 0.50 dollars a million, writing 6.25.
    assert saved == pytest.approx(3 * made.balance.tokens_fewer * 0.5e-6)
    assert cost == pytest.approx(made.written_again * 5.75e-6)
    assert made.balance.breaks_even_after_requests == -(-cost // (made.balance.tokens_fewer * 0.5e-6))
    units = made.balance.units
    assert [units.cost_written_again, units.saved, units.total] == pytest.approx(
        [one / 5e-6 for one in (cost, saved, saved - cost)]
    )
    assert units.breaks_even_after_requests == made.balance.breaks_even_after_requests
    check(found)


def test_a_compaction_of_another_agent_is_a_decision_and_the_next_one_ends_its_balance() -> None:
    b = long_session()
    for number, size in ((11, 30_000), (12, 29_000)):
        boundary = b.boundary()
        b.summary("what was said so far " * 50, by=boundary)
        b.call(prompt=size, read=20_000)
        b.results(f"c{number}")
        b.call(prompt=size + 100, read=size)
        b.asked -= 1
        b.results(f"c{number}")
    found = series(b.records)
    made = [one for one in found.decisions if one.kind == "compact"]
    assert [one.request for one in made] == [11, 13]
    assert made[0].balance is not None
    assert made[0].balance.requests_until_next == 2
    assert made[0].written_again == 10_000
    assert kinds(found.requests[10])["summary"] > 200
    check(found)


def test_an_unknown_price_gives_no_dollars() -> None:
    b = long_session()
    b.put(Clear("clear", b.last, b.time, {f"c{number}": "gone" for number in range(1, 9)}, trigger="auto"), moves=False)
    b.call(prompt=34_500, read=28_000, model="nobody-knows-1")
    found = series(b.records)
    made = only(found, "clear")
    assert made.balance is not None
    assert (made.balance.saved_usd, made.balance.total_usd, made.balance.breaks_even_after_requests) == (None, None, None)
    assert made.balance.tokens_fewer
    assert made.balance.units.saved > 0, "units need no price"
    assert found.requests[-1].usd is None
    assert found.turns[-1].usd is None


@pytest.mark.parametrize(
    ("origin", "triggers", "detail"),
    [
        ("claude-code", ["auto"], "They were cleared automatically."),
        ("claude-code", ["manual"], "Asked for by the user."),
        ("claude-code", ["size"], ""),  # what a record without a trigger is read as
        ("claude-code", ["something_new"], ""),
        ("lamina", ["size"], "The conversation had grown large."),
        ("lamina", ["idle"], "There had been a long pause."),
        (
            "lamina",
            ["repeated", "cold", "cold"],
            "The prompt cache had expired, so everything was written again anyway. Later results repeat them.",
        ),
    ],
)
def test_a_clearing_says_why_in_a_sentence(origin: Origin, triggers: list[str], detail: str) -> None:
    b = long_session()
    for number, trigger in enumerate(triggers, 1):
        b.put(Clear(f"clear{number}", b.last, b.time, {f"c{number}": "gone"}, trigger=trigger), moves=False)
    b.call(prompt=34_500, read=28_000)
    assert only(series(b.records, origin), "clear").detail == detail


def test_every_way_to_clear_has_its_sentence() -> None:
    written = set(re.findall(r'carry_out\(.*trigger="(\w+)"', inspect.getsource(step)))
    assert written >= {"size", "cold"}
    assert written <= WHY_CLEARED.keys()


def test_a_cache_break_names_its_cause_if_there_is_one() -> None:
    b = Session()
    b.said("go")
    b.call(prompt=28_000)
    b.results("c1")
    b.call(prompt=28_100, read=28_000)
    for at, (time, model) in enumerate((("10:30", MODEL), ("10:31", MODEL), ("10:32", "claude-sonnet-4-5"))):
        b.results(f"c{at + 2}")
        b.put(
            Message(
                f"late{at}", b.last, f"2026-03-01T{time}:00.000Z", "assistant", (), f"k{at}", Usage(0, 0, 28_200), model=model
            )
        )
    found = series(b.records)
    assert [(one.request, one.kind, one.title) for one in found.decisions] == [
        (3, "break", "Cache expired after 30 minutes"),
        (4, "break", "Cache break"),
        (5, "model", "Model changed to claude-sonnet-4-5"),
    ]
    assert all(28_000 <= one.written_again <= 28_200 for one in found.decisions)
    assert "No record says why" in found.decisions[1].detail
    # Written minus read, in dollars a million: Opus 6.25 and 0.50, Sonnet 3.75 and 0.30.
    for one, dollars in zip(found.decisions, (5.75, 5.75, 3.45), strict=True):
        assert one.written_again_usd == pytest.approx(one.written_again * dollars / 1_000_000)


def test_decisions_of_lamina_name_their_layer() -> None:
    b = long_session()
    b.spill("c10")
    b.put(Span("fold", b.last, b.time, "collapse", ("r2", "r3"), "folded"), moves=False)
    b.call(prompt=50_000, read=40_000)
    boundary = b.boundary()
    b.summary(by=boundary)
    b.put(Event("e1", b.last, b.time, "fork", {"purpose": "summary", "input": 10, "output": 5, "usd": 0.25}), moves=False)
    told = {"by": "notes", "because": "by price", "tokens_before": 9, "tokens_after": 1}
    b.put(Event("e2", b.last, b.time, "compaction", told), moves=False)
    b.call(prompt=29_000, read=20_000)
    b.revoke("fold")
    b.call(prompt=29_100, read=20_000)
    found = series(b.records, "lamina")
    assert [(one.kind, one.by) for one in found.decisions if one.kind != "break"] == [
        ("collapse", "Lamina: collapse"),
        ("spill", "Lamina: results"),
        ("compact", "Lamina: notes"),
        ("undo", "You"),
    ]
    compaction = only(found, "compact").balance
    assert compaction is not None
    assert compaction.call_usd == 0.25
    assert only(found, "compact").detail == "Automatic, by price."
    assert compaction.units.call == 10 + 5 * 5
    check(found)


def test_answers_of_subagents_and_of_no_model_are_no_requests() -> None:
    b = Session()
    b.said("go")
    b.call(prompt=28_000)
    b.results("c1")
    b.call(prompt=90_000, sidechain=True, parent=None)
    b.answer(words("No response requested."), key="s", model="<synthetic>", parent="r3")
    b.said("go on")
    b.call(prompt=28_100, read=28_000)
    found = series(b.records)
    assert [point.tokens for point in found.requests] == [28_000, 28_100]
    assert found.decisions == ()
    numbered = [explain(b.records, number, lambda block: 1).usage for number in (1, 2)]
    assert [usage.prompt for usage in numbered if usage is not None] == [28_000, 28_100]


def test_a_retried_answer_shows_the_window_without_the_first_try() -> None:
    b = Session()
    asked = b.said("go")
    b.answer(words(CODE), key="first", model=MODEL, usage=Usage(0, 0, 28_000, 0, 2_700))
    b.answer(words("short"), key="second", model=MODEL, parent=asked, usage=Usage(0, 28_000, 10, 0, 5))
    found = series(b.records)
    assert "assistant" not in kinds(found.requests[1])
    b.said("thanks")
    b.call(prompt=28_050, read=28_000)
    assert kinds(series(b.records).requests[2])["assistant"] < 30


def test_a_session_without_reported_tokens_is_estimated() -> None:
    b = Builder()
    b.said(CODE)
    b.answer(words("done"), key="m1", model=MODEL)
    found = series(b.records)
    assert found.estimated
    assert not found.requests[0].reported
    assert 2_000 < found.requests[0].tokens < 4_000
    assert series([]).requests == ()


def test_the_window_and_the_threshold_say_whose_they_are() -> None:
    b = Session()
    b.said("go")
    b.call(prompt=28_000)
    known = series(b.records)
    assert (known.window, known.window_source, known.threshold, known.threshold_owner) == (
        200_000,
        "model",
        167_000,
        "Claude Code",
    )
    b.results("c1")
    b.call(prompt=300_000)
    assert (series(b.records).window, series(b.records).window_source) == (1_000_000, "requests")
    assert series(b.records, "pi").threshold_owner == "pi"


def test_a_turn_counts_its_tools_requests_and_errors() -> None:
    b = Session()
    b.said("first question")
    b.call(prompt=28_000, name="Bash")
    b.said([{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}])
    b.call(prompt=28_100, read=28_000)
    b.results("c2")
    b.answer(words("done"), key="end", model=MODEL, usage=Usage(0, 28_100, 10, 0, 5))
    b.said("second question")
    one, two = series(b.records).turns
    assert (one.words, one.tools, one.errors, one.first_request, one.last_request) == (
        "first question",
        {"Bash": 1, "Read": 1},
        1,
        1,
        3,
    )
    assert one.usd == pytest.approx(sum(point.usd or 0 for point in series(b.records).requests))
    assert (two.first_request, two.last_request, two.usd) == (0, 0, 0)


@pytest.mark.spec("V2")
def test_requests_before_the_first_message_belong_to_the_first_turn() -> None:
    made = Session()
    made.call(prompt=30_000)
    made.results("c1")
    made.call(prompt=31_000)
    found = series(made.records)
    assert [(turn.number, turn.words, turn.first_request, turn.last_request) for turn in found.turns] == [(1, "", 1, 2)]
    made.said("Now the tests")
    made.call(prompt=32_000)
    made.said("And the docs")
    made.call(prompt=33_000)
    found = series(made.records)
    shown = [(turn.number, turn.words, turn.first_request, turn.last_request) for turn in found.turns]
    assert shown == [(1, "Now the tests", 1, 3), (2, "And the docs", 4, 4)]
    assert [point.turn for point in found.requests] == [1, 1, 1, 2]


@pytest.mark.spec("V2")
def test_requests_of_subagents_in_the_file_and_outputs_noted_only_at_their_beginning_are_counted() -> None:
    made = Session()
    made.said("Look around")
    made.call(prompt=30_000)
    assert (series(made.records).beside, series(made.records).short_outputs) == (0, 0)
    used = Usage(0, 0, 10_000, 0, 100)
    made.answer({"type": "text", "text": "found it"}, key="s1", model=MODEL, usage=used, sidechain=True)
    made.answer({"type": "text", "text": "done"}, key="s1", model=MODEL, usage=used, sidechain=True)
    made.answer(
        {"type": "text", "text": "A long report. " * 60}, key="m9", model=MODEL, usage=Usage(0, 0, 100, 0, 3), parent=None
    )
    found = series(made.records)
    assert (len(found.requests), found.beside, found.short_outputs) == (2, 1, 1)
    assert found.beside_usd == pytest.approx(10_000 * 6.25e-6 + 100 * 25e-6)


def test_copies_of_an_answer_do_not_make_its_output_count_look_short() -> None:
    made = Session()
    made.said("Look around")
    for _ in range(6):  # some files repeat the conversation with the same message ids
        made.answer({"type": "text", "text": "A report. " * 60}, key="m1", model=MODEL, usage=Usage(0, 0, 30_000, 0, 130))
        made.answer({"type": "text", "text": "Done."}, key="m2", model=MODEL, usage=Usage(0, 30_000, 200, 0, 5))
    found = series(made.records)
    assert (len(found.requests), found.short_outputs) == (2, 0)

"""The tool loop as a flow: effects in a table, decisions out; by hand, by both drivers, and with every kind of failure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import ToolResult, ToolUse, Wire, read_content, tool_result
from lamina.core.effects import Ask, Effect, Flow, RunTools, Sleep, drive, drive_async
from lamina.core.errors import BadRequest, Overloaded, ProviderError, StreamBroken
from lamina.core.reply import Reply
from lamina.fork import loop
from lamina.fork.loop import NO_JSON, NOT_RUN, Outcome
from lamina.providers.stream import UNPARSED, withhold_unparsed

Step: TypeAlias = Reply | BaseException


class Notebook:
    """The smallest conversation the loop can drive: everything in order."""

    def __init__(self) -> None:
        self.said: list[Any] = ["the question"]

    def request(self) -> Flow[Wire]:
        yield from ()
        return {"messages": list(self.said)}

    def answered(self, reply: Reply) -> Reply:
        self.said.append(reply)
        return reply

    def run(self, calls: tuple[ToolUse, ...]) -> Flow[None]:
        self.results((yield RunTools(calls)))

    def results(self, results: Sequence[ToolResult]) -> None:
        self.said.append(tuple(results))

    def recover(self, error: ProviderError) -> Flow[bool]:
        yield from ()
        self.said.append(error)
        return "something" in str(error)


class Patient(Notebook):
    """A conversation that has to wait before it knows its request."""

    def request(self) -> Flow[Wire]:
        yield Sleep(1.5)
        return (yield from super().request())


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def call(call_id: str, /, **given: Any) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": given}


def reply(*blocks: Wire, stop: str | None = None, notes: Wire | None = None) -> Reply:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return Reply("m", "a-model", read_content(blocks), stop or ("tool_use" if calls else "end_turn"), notes=notes or {})


def cut_off(*blocks: Wire) -> Reply:
    return Reply("m", "a-model", read_content(blocks), None)


def garbled(*blocks: Wire) -> Reply:
    """A provider's answer in which the input of one call is not a JSON object."""
    return withhold_unparsed(reply(*blocks))


def answers(calls: Sequence[ToolUse]) -> tuple[ToolResult, ...]:
    return tuple(tool_result(one.id, f"result of {one.id}") for one in calls)


class Played:
    """Drive a flow by hand, and return its effects and its end."""

    def __init__(self, flow: Flow[Outcome], script: Sequence[Step]) -> None:
        self.effects: list[Effect] = []
        self.outcome: Outcome | None = None
        steps = iter(script)
        try:
            effect = next(flow)
            while True:
                self.effects.append(effect)
                match effect:
                    case RunTools():
                        effect = flow.send(answers(effect.calls))
                    case Ask():
                        step = next(steps)
                        effect = flow.throw(step) if isinstance(step, BaseException) else flow.send(step)
                    case _:
                        effect = flow.send(None)
        except StopIteration as stop:
            self.outcome = stop.value

    @property
    def kinds(self) -> str:
        return " ".join(type(effect).__name__ for effect in self.effects)


ENDINGS: list[tuple[str, list[Step], str, str, int]] = [
    ("a plain answer", [reply(text("yes"))], "Ask", "answered", 1),
    ("one round", [reply(call("a")), reply(text("yes"))], "Ask RunTools Ask", "answered", 2),
    (
        "three rounds",
        [reply(call("a")), reply(call("b"), call("c")), reply(call("d")), reply(text("yes"))],
        "Ask RunTools Ask RunTools Ask RunTools Ask",
        "answered",
        4,
    ),
    (
        "a server that pauses",
        [reply(stop="pause_turn"), reply(stop="pause_turn"), reply(text("yes"))],
        "Ask Ask Ask",
        "answered",
        3,
    ),
    ("a full answer", [reply(text("ye"), stop="max_tokens")], "Ask", "cut off", 1),
    ("a call in a full answer", [reply(call("a"), stop="max_tokens")], "Ask", "cut off", 1),
    ("a full window", [reply(text("ye"), stop="model_context_window_exceeded")], "Ask", "cut off", 1),
    ("an answer without a reason to end", [cut_off(text("ye"))], "Ask", "cut off", 1),
    ("a call in one", [cut_off(call("a"))], "Ask", "cut off", 1),
    ("a refusal", [reply(text("no"), stop="refusal")], "Ask", "refused", 1),
    ("a refusal that calls", [reply(call("a"), stop="refusal")], "Ask", "refused", 1),
    ("a stop sequence", [reply(text("yes"), stop="stop_sequence")], "Ask", "answered", 1),
    ("an ending nobody knows", [reply(text("yes"), stop="because")], "Ask", "answered", 1),
    ("nothing at all", [reply()], "Ask", "answered", 1),
    ("a call promised and not made", [reply(text("yes"), stop="tool_use")], "Ask", "answered", 1),
]


@pytest.mark.parametrize(("script", "effects", "ended", "rounds"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS])
def test_the_loop_ends_as_the_last_answer_says(script: list[Step], effects: str, ended: str, rounds: int) -> None:
    talk = Notebook()
    played = Played(loop.run(talk), script)
    assert played.kinds == effects
    assert played.outcome is not None
    assert (played.outcome.ended, played.outcome.rounds, played.outcome.reply) == (ended, rounds, script[-1])


@pytest.mark.parametrize(("script", "effects", "ended", "rounds"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS])
def test_both_drivers_carry_the_same_flow_to_the_same_end(script: list[Step], effects: str, ended: str, rounds: int) -> None:
    def perform(steps: list[Step], seen: list[str]) -> Any:
        def one(effect: Effect) -> Any:
            seen.append(type(effect).__name__)
            return answers(effect.calls) if isinstance(effect, RunTools) else steps.pop(0)

        return one

    at_once, later = Notebook(), Notebook()
    seen: list[str] = []
    outcome = drive(loop.run(at_once), perform(list(script), seen))
    awaited: list[str] = []
    one = perform(list(script), awaited)

    async def perform_async(effect: Effect) -> Any:
        await asyncio.sleep(0)
        return one(effect)

    assert asyncio.run(drive_async(loop.run(later), perform_async)) == outcome
    assert at_once.said == later.said
    assert seen == awaited == effects.split()
    assert (outcome.ended, outcome.rounds) == (ended, rounds)


def test_what_was_said_stands_in_the_talk_in_order() -> None:
    talk = Notebook()
    first, second = reply(text("let me look"), call("a"), call("b")), reply(text("yes"))
    played = Played(loop.run(talk), [first, second])
    assert talk.said == ["the question", first, answers(first.tool_uses), second]
    asked = [effect.request["messages"] for effect in played.effects if isinstance(effect, Ask)]
    assert asked == [talk.said[:1], talk.said[:3]]


def test_the_calls_of_an_answer_are_handed_over_together_and_in_order() -> None:
    first = reply(call("a"), text("and"), call("b"), call("c"))
    played = Played(loop.run(Notebook()), [first, reply(text("yes"))])
    [tools] = [effect for effect in played.effects if isinstance(effect, RunTools)]
    assert [one.id for one in tools.calls] == ["a", "b", "c"]


def test_effects_of_the_talk_itself_reach_the_driver() -> None:
    played = Played(loop.run(Patient()), [reply(call("a")), reply(text("yes"))])
    assert played.kinds == "Sleep Ask RunTools Sleep Ask"


def test_purpose_and_listener_go_with_every_question() -> None:
    def heard(event: dict[str, Any]) -> None:
        raise AssertionError("nobody speaks here")

    played = Played(loop.run(Notebook(), purpose="notes", on_event=heard), [reply(call("a")), reply(text("yes"))])
    assert [(one.purpose, one.on_event) for one in played.effects if isinstance(one, Ask)] == [("notes", heard)] * 2


@pytest.mark.parametrize(
    "endless",
    [reply(call("a")), reply(stop="pause_turn"), garbled(call("a", **{UNPARSED: "{"}))],
    ids=["calls", "pauses", "calls nobody can read"],
)
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_a_model_that_never_ends_is_stopped_when_the_rounds_are_used_up(endless: Reply, rounds: int) -> None:
    talk = Notebook()
    played = Played(loop.run(talk, rounds=rounds), [endless] * 100)
    assert played.outcome == Outcome("rounds", endless, rounds)
    assert played.kinds.split().count("Ask") == rounds
    if any(isinstance(block, ToolUse) for block in endless.blocks):
        assert isinstance(talk.said[-1], tuple), "the calls of the last round have their results"


def test_the_last_round_may_still_answer() -> None:
    played = Played(loop.run(Notebook(), rounds=2), [reply(call("a")), reply(text("yes"))])
    assert played.outcome is not None
    assert played.outcome.ended == "answered"


def test_a_call_whose_input_is_no_json_is_not_run_and_neither_are_the_calls_beside_it() -> None:
    talk = Notebook()
    bad = garbled(call("a", path="x"), call("b", **{UNPARSED: '{"path": '}), call("c"))
    assert bad.stop_reason is None
    played = Played(loop.run(talk), [bad, reply(text("yes"))])
    assert played.kinds == "Ask Ask"
    results: tuple[ToolResult, ...] = talk.said[2]
    assert [(one.tool_use_id, one.content, one.is_error) for one in results] == [
        ("a", NOT_RUN, True),
        ("b", NO_JSON, True),
        ("c", NOT_RUN, True),
    ]


def test_half_an_answer_is_kept_as_half_an_answer() -> None:
    talk = Notebook()
    broken = StreamBroken("cut", partial=[text("I will ca"), call("a", **{UNPARSED: '{"pa'})])
    with pytest.raises(StreamBroken) as caught:
        Played(loop.run(talk), [reply(call("z")), broken])
    assert caught.value is broken
    kept: Reply = talk.said[-1]
    assert (kept.text, kept.stop_reason, kept.tool_uses) == ("I will ca", None, ())
    assert len(kept.blocks) == 2


def test_an_answer_of_which_nothing_arrived_leaves_nothing_behind() -> None:
    talk = Notebook()
    with pytest.raises(StreamBroken):
        Played(loop.run(talk), [StreamBroken("cut")])
    assert talk.said == ["the question"]


def test_what_nobody_can_read_of_half_an_answer_does_not_hide_why_it_broke() -> None:
    talk = Notebook()
    broken = StreamBroken("no text in it", partial=[text("a beginning"), {"type": "text"}, {"no": "type"}])
    with pytest.raises(StreamBroken) as caught:
        Played(loop.run(talk), [broken])
    assert caught.value is broken
    assert talk.said[-1].text == "a beginning"


class Lost(Exception):
    pass


@pytest.mark.parametrize(
    "error", [Lost(), Overloaded("busy"), KeyboardInterrupt(), GeneratorExit()], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("at", range(6))
def test_an_error_at_any_effect_comes_out_and_what_was_said_stays(at: int, error: BaseException) -> None:
    """Sleep Ask RunTools Sleep Ask: five effects, each of which may fail; in the sixth row none does."""
    talk = Patient()
    flow = loop.run(talk)
    script = iter([reply(call("a")), reply(text("yes"))])
    counted = -1

    def perform(effect: Effect) -> Any:
        nonlocal counted
        counted += 1
        if counted == at:
            raise error
        match effect:
            case Ask():
                return next(script)
            case RunTools():
                return answers(effect.calls)
            case _:
                return None

    if at == 5:
        assert drive(flow, perform).ended == "answered"
    else:
        with pytest.raises(type(error)):
            drive(flow, perform)
    assert [type(one).__name__ for one in talk.said] == ["str", "Reply", "tuple", "Reply"][: [1, 1, 2, 3, 3, 4][at]]
    assert next(flow, "over") == "over"


BLOCKS = st.sampled_from(["text", "call", "garbled"])
REPLIES = st.lists(
    st.tuples(
        st.lists(BLOCKS, max_size=4),
        st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "stop", "odd"]),
    ),
    min_size=1,
    max_size=8,
)


@given(REPLIES, st.integers(1, 6))
def test_whatever_a_model_says_the_loop_is_bounded_and_every_call_it_runs_is_answered(
    said: list[tuple[list[str], str]], rounds: int
) -> None:
    def made(number: int) -> Reply:
        kinds, stop = said[number % len(said)]
        blocks = [
            text("words") if kind == "text" else call(f"{number}-{at}", **({UNPARSED: "{"} if kind == "garbled" else {}))
            for at, kind in enumerate(kinds)
        ]
        return withhold_unparsed(Reply("m", "a-model", read_content(blocks), stop))

    talk = Notebook()
    played = Played(loop.run(talk, rounds=rounds), [made(number) for number in range(rounds)])
    assert played.outcome is not None
    assert played.outcome.rounds == played.kinds.split().count("Ask") <= rounds
    executed = [one for effect in played.effects if isinstance(effect, RunTools) for one in effect.calls]
    assert all(UNPARSED not in one.input for one in executed)
    for before, after in zip(talk.said, [*talk.said[1:], None], strict=True):
        if isinstance(before, Reply) and (before.tool_uses or before.notes.get("unparsed_input")):
            assert isinstance(after, tuple)
            assert [one.tool_use_id for one in after] == [one.id for one in before.blocks if isinstance(one, ToolUse)]


# Refused requests


def test_a_refused_request_that_can_be_mended_is_sent_once_more_and_counts_as_one_round() -> None:
    notebook = Notebook()
    played = Played(loop.run(notebook), [BadRequest("something is wrong"), reply(text("yes"))])
    assert played.outcome is not None
    assert played.outcome.rounds == 1
    assert played.kinds == "Ask Ask"


@pytest.mark.parametrize("sentences", [["nothing to mend"], ["something", "something again"]])
def test_a_refusal_that_cannot_be_mended_or_comes_twice_is_raised(sentences: list[str]) -> None:
    with pytest.raises(BadRequest, match=sentences[-1]):
        Played(loop.run(Notebook()), [BadRequest(sentence) for sentence in sentences])

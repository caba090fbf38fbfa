"""A fork as a flow, driven by hand: what it sends, what it refuses, how it ends, and that it changes nothing."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import ToolUse, Wire, read_content, tool_result
from lamina.core.effects import Ask, Effect, RunTools, drive
from lamina.core.errors import LaminaError
from lamina.core.prefix import base_chain
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.fork.fork import ForkOutcome, directive_in, is_fork, run_fork
from lamina.fork.handover import PLACEHOLDER, Handover, PrefixChanged, altered, chain_of, check
from lamina.tools.permissions.request import Allow, Deny

from .test_tool_runner import Custom, Talk, call, cwd, fine, text_of

__all__ = ["cwd"]

SYSTEM: list[Wire] = [{"type": "text", "text": "You are careful."}]
TOOLS: list[Wire] = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def said(role: str, *blocks: Wire | str) -> Wire:
    return {"role": role, "content": [text(block) if isinstance(block, str) else block for block in blocks]}


def wants(call_id: str) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": "/x"}}


def hand_over(*messages: Wire, ttl: str | None = "5m", **given: Any) -> Handover:
    chain = chain_of(messages)
    head = {"model": "m", "max_tokens": 100, "system": SYSTEM, "tools": TOOLS}
    fields: dict[str, Any] = {"options": {}, "links": len(chain), "last": chain[-1] if chain else b"", **given}
    return Handover(head=head, messages=messages, base=base_chain(TOOLS, SYSTEM), ttl=ttl, **fields)


def reply(*blocks: Wire | str, stop: str | None = None, usage: Usage | None = None, notes: Wire | None = None) -> Reply:
    content = said("assistant", *blocks)["content"]
    calls = any(block["type"] == "tool_use" for block in content)
    return Reply("m1", "m", read_content(content), stop or ("tool_use" if calls else "end_turn"), usage, notes=notes or {})


class Model:
    """Answers from a list and records the requests."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Ask] = []
        self.ran: list[tuple[ToolUse, ...]] = []

    def __call__(self, effect: Effect) -> Any:
        if isinstance(effect, RunTools):
            self.ran.append(effect.calls)
            return tuple(tool_result(one.id, "found") for one in effect.calls)
        assert isinstance(effect, Ask)
        self.asked.append(effect)
        return self.replies.pop(0)

    def run(self, handover: Handover, directive: str = "do it", **given: Any) -> ForkOutcome:
        return drive(run_fork(handover, directive, purpose="notes", **given), self)


QUESTION = said("user", "hello")
ANSWER = said("assistant", "hi")


@pytest.mark.spec("A1")
def test_the_directive_is_one_more_block_of_the_last_message_or_a_message_behind_an_answer() -> None:
    for messages, roles in (((QUESTION,), ["user"]), ((QUESTION, ANSWER), ["user", "assistant", "user"])):
        model = Model(reply("done"))
        outcome = model.run(hand_over(*messages))
        (asked,) = model.asked
        assert asked.purpose == "notes"
        assert [message["role"] for message in asked.request["messages"]] == roles
        assert "do it" in asked.request["messages"][-1]["content"][-1]["text"]
        assert outcome.texts == ("done",)
        assert outcome.done


@pytest.mark.spec("A1")
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.lists(st.text(min_size=1), min_size=1)), max_size=8))
def test_a_fork_never_changes_what_it_was_handed(turns: list[tuple[str, list[str]]]) -> None:
    messages = tuple(said(role, *words) for role, words in turns)
    handover = hand_over(*messages)
    before = copy.deepcopy(handover)
    model = Model(reply(wants("c1")), reply("done"))
    model.run(handover, rounds=3)
    assert handover == before
    first, second = (ask.request["messages"] for ask in model.asked)
    assert chain_of(first)[: handover.links] == chain_of(messages)
    assert chain_of(second)[: len(chain_of(first))] == chain_of(first)


def test_calls_run_in_a_fork_with_rounds_and_their_results_go_back() -> None:
    model = Model(reply(wants("c1"), wants("c2")), reply("read"))
    outcome = model.run(hand_over(QUESTION), rounds=4)
    assert [[one.id for one in calls] for calls in model.ran] == [["c1", "c2"]]
    assert [block["tool_use_id"] for block in model.asked[1].request["messages"][-1]["content"]] == ["c1", "c2"]
    assert (outcome.rounds, outcome.denied, outcome.done) == (2, 0, True)


@pytest.mark.spec("C3")
def test_a_fork_without_tools_refuses_each_call_keeps_the_list_and_counts() -> None:
    model = Model(reply(wants("c1"), wants("c2")), reply("only words"))
    outcome = model.run(hand_over(QUESTION), rounds=2, tools=False)
    assert model.ran == []
    assert model.asked[1].request["tools"] == TOOLS
    assert all(block["is_error"] for block in model.asked[1].request["messages"][-1]["content"])
    assert (outcome.denied, outcome.texts, outcome.done) == (2, ("only words",), True)


def test_a_fork_of_one_round_that_calls_a_tool_is_not_done() -> None:
    outcome = Model(reply("let me see", wants("c1"))).run(hand_over(QUESTION))
    assert (outcome.done, outcome.denied, outcome.texts) == (False, 1, ("let me see",))


@pytest.mark.spec("B3")
def test_a_fork_ends_with_its_rounds() -> None:
    model = Model(*(reply(wants(f"c{number}")) for number in range(5)))
    outcome = model.run(hand_over(QUESTION), rounds=5)
    assert (outcome.rounds, outcome.done) == (5, False)


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_call_that_cannot_be_read_is_not_run_in_the_last_round_either(rounds: int) -> None:
    model = Model(*(reply(wants(f"c{number}"), notes={"unparsed_input": True}) for number in range(rounds)))
    outcome = model.run(hand_over(QUESTION), rounds=rounds, tools=True)
    assert model.ran == []
    assert (outcome.rounds, outcome.done) == (rounds, False)


@pytest.mark.parametrize(
    ("stop", "done"), [("end_turn", True), ("max_tokens", False), ("refusal", False), ("stop_sequence", True)]
)
def test_an_answer_that_was_cut_off_or_refused_is_not_done(stop: str, done: bool) -> None:
    assert Model(reply("words", stop=stop)).run(hand_over(QUESTION)).done is done


def test_a_paused_answer_is_sent_back_as_it_is() -> None:
    model = Model(reply("thinking about it", stop="pause_turn"), reply("done"))
    assert model.run(hand_over(QUESTION), rounds=3).texts == ("thinking about it", "done")
    assert model.asked[1].request["messages"][-1] == said(
        "assistant", {**text("thinking about it"), "cache_control": {"type": "ephemeral"}}
    )


def test_usage_is_added_up_over_the_rounds() -> None:
    one, two = Usage(input_tokens=1, cache_read=90), Usage(input_tokens=2, cache_read=95)
    model = Model(reply(wants("c1"), usage=one), reply("done", usage=two))
    outcome = model.run(hand_over(QUESTION, readable=80), rounds=2)
    assert outcome.usage == one + two
    assert (outcome.first, outcome.readable) == (one, 80)


def test_a_call_with_an_id_of_the_conversation_gets_one_of_its_own() -> None:
    history = (QUESTION, said("assistant", wants("c1")), said("user", tool_result("c1", "found").wire))
    model = Model(reply(wants("c1")), reply(wants("c1")), reply("done"))
    model.run(hand_over(*history), rounds=3)
    ids = [one.id for calls in model.ran for one in calls]
    assert "c1" not in ids
    assert len(set(ids)) == 2


def test_the_room_for_an_answer_is_the_forks_own_and_thinking_is_added_to_it() -> None:
    options = {"thinking": {"type": "enabled", "budget_tokens": 1_000}}
    for given_options, tokens in (({}, 50), (options, 1_050)):
        model = Model(reply("done"))
        model.run(hand_over(QUESTION, options=given_options), max_tokens=50)
        assert model.asked[0].request["max_tokens"] == tokens
    model = Model(reply("done"))
    model.run(hand_over(QUESTION))
    assert model.asked[0].request["max_tokens"] == 100


# Marks


def marked(request: Wire) -> list[tuple[int, int]]:
    return [
        (at, number)
        for at, message in enumerate(request["messages"])
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


@pytest.mark.spec("K1")
def test_a_fork_of_one_round_marks_the_last_request_and_the_end_of_what_is_the_parents() -> None:
    history = (QUESTION, ANSWER, said("user", "more", "and more"))
    model = Model(reply("done"))
    model.run(hand_over(*history))
    assert marked(model.asked[0].request) == [(0, 0), (2, 1)]


@pytest.mark.spec("K1", "A2")
def test_placeholders_are_no_part_of_what_is_marked() -> None:
    history = (QUESTION, said("assistant", wants("c1")), said("user", tool_result("c1", PLACEHOLDER).wire))
    model = Model(reply("done"))
    model.run(hand_over(*history, open_calls=("c1",)))
    assert marked(model.asked[0].request) == [(0, 0), (1, 0)]


@pytest.mark.spec("K1")
def test_a_fork_of_several_rounds_marks_its_own_end_for_the_next() -> None:
    model = Model(reply(wants("c1")), reply("done"))
    model.run(hand_over(QUESTION, ANSWER), rounds=2)
    assert [marked(ask.request) for ask in model.asked] == [[(0, 0), (2, 0)], [(2, 0), (4, 0)]]


def test_a_provider_without_marks_gets_none() -> None:
    model = Model(reply("done"))
    model.run(hand_over(QUESTION, ANSWER, ttl=None))
    assert marked(model.asked[0].request) == []


# A1: checked before sending


@pytest.mark.spec("A1", "K2")
@pytest.mark.parametrize("what", ["message", "system", "tools", "cut"])
def test_what_is_not_what_was_handed_over_is_not_sent(what: str) -> None:
    handover = hand_over(said("user", "hello"), ANSWER, options={"temperature": 1.0})
    head = {**handover.head, "system": copy.deepcopy(SYSTEM), "tools": copy.deepcopy(TOOLS)}
    changed = msgspec.structs.replace(handover, head=head, options=dict(handover.options))
    match what:
        case "message":
            changed.messages[0]["content"][0]["text"] = "other words"
        case "system":
            head["system"][0]["text"] = "You are reckless."
        case "tools":
            del head["tools"][0]
        case _:
            changed = msgspec.structs.replace(changed, messages=changed.messages[:1])
    with pytest.raises(PrefixChanged) as caught:
        Model().run(changed)
    assert isinstance(caught.value, LaminaError)
    assert "not sent" in str(caught.value)


@pytest.mark.spec("A1", "K2")
@pytest.mark.parametrize("change", [{"model": "another"}, {"temperature": 0.5}])
def test_another_model_or_option_than_was_handed_over_is_refused(change: Wire) -> None:
    handover = hand_over(QUESTION, ANSWER, options={"temperature": 1.0})
    model = Model(reply("done"))
    model.run(handover)
    with pytest.raises(PrefixChanged, match="option"):
        check(handover, {**model.asked[0].request, **change}, "notes")


def test_a_fork_over_other_messages_says_why_and_expects_nothing_of_the_cache() -> None:
    handover = altered(hand_over(QUESTION, ANSWER, readable=9_000), [said("user", "shorter")], "compaction")
    model = Model(reply("done"))
    assert model.run(handover).readable == 0
    assert model.asked[0].request["extra_headers"]["x-lamina-break"] == "compaction"


# A3


@pytest.mark.spec("A3")
def test_a_fork_is_known_by_its_directive_and_the_directive_can_be_read_back() -> None:
    model = Model(reply(wants("c1")), reply("done"))
    model.run(hand_over(QUESTION, ANSWER), "first line\n\nlast line", rounds=2)
    for asked in model.asked:
        assert is_fork(asked.request["messages"])
        assert directive_in(asked.request) == "first line\n\nlast line"
    assert not is_fork([QUESTION, ANSWER])
    assert directive_in({"messages": [QUESTION, ANSWER]}) is None


@pytest.mark.spec("A3")
def test_words_about_forks_make_no_fork() -> None:
    words = 'what does <fork purpose="notes">\nmean?'
    assert not is_fork([said("user", words), said("assistant", '<fork purpose="notes">\nhi')])


# The fork's tool runner


@pytest.mark.spec("N4")
def test_a_desk_for_one_file_allows_its_edit_and_nothing_else(cwd: Path) -> None:
    talk = Talk(cwd, mode="all")
    (cwd / "notes.md").write_text("old\n")
    talk.run(call("Read", "r", file_path=str(cwd / "notes.md")))
    tool_runner = talk.tool_runner.restrict(abort=threading.Event(), only_edit=cwd / "notes.md")
    ran = tool_runner.run(
        [
            call("Edit", "c1", file_path=str(cwd / "notes.md"), old_string="old", new_string="new"),
            call("Edit", "c2", file_path=str(cwd / "a.txt"), old_string="one", new_string="two"),
            call("Read", "c3", file_path=str(cwd / "a.txt")),
        ]
    )
    assert [one.result.is_error for one in ran] == [False, True, True]
    assert (cwd / "notes.md").read_text() == "new\n"


@pytest.mark.spec("A1", "X8")
def test_what_a_fork_reads_is_not_what_its_parent_has_read_and_todos_are_its_own(cwd: Path) -> None:
    talk = Talk(cwd)
    talk.run(call("Read", "r", file_path=str(cwd / "b.txt")))
    tool_runner = talk.tool_runner.restrict(abort=threading.Event())
    tool_runner.run([call("Read", "c1", file_path=str(cwd / "a.txt"))])
    assert tool_runner.context.reads.get(cwd / "b.txt") is not None, "what was read before is inherited"
    assert tool_runner.context.reads.get(cwd / "a.txt") is not None
    assert talk.context.reads.get(cwd / "a.txt") is None
    assert tool_runner.context.todos is not talk.context.todos


@pytest.mark.spec("X6")
def test_a_permission_function_decides_within_the_deny_rules_and_nobody_is_asked(cwd: Path) -> None:
    talk = Talk(cwd, Custom(name="Fine", act=fine, read_only=False), Custom(name="Other", act=fine), says=[], deny=["Bash"])
    tool_runner = talk.tool_runner.restrict(
        abort=threading.Event(), decide=lambda one: Deny("not this one") if one.name == "Other" else Allow("yes")
    )
    ran = tool_runner.run([call("Fine", "c1"), call("Other", "c2"), call("Bash", "c3", command="ls")])
    assert [one.result.is_error for one in ran] == [False, True, True]
    assert "not this one" in text_of(ran[1])
    assert talk.asked == []


@pytest.mark.spec("A1")
def test_an_abort_of_the_run_ends_its_tools(cwd: Path) -> None:
    abort = threading.Event()
    tool_runner = Talk(cwd).tool_runner.restrict(abort=abort)
    abort.set()
    (ran,) = tool_runner.run([call("Read", "c1", file_path=str(cwd / "a.txt"))])
    assert ran.result.is_error
    assert "stopped" in text_of(ran)

"""Flattening: every rule of C11 one by one, and their common properties."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.api_rules import complaints
from tests.core.histories import PICTURE, examples, grown, histories, result, thought, use, words

from lamina.core.blocks import EMPTY_ERROR, ToolResult, Wire, canonical, read_block, read_content
from lamina.core.message_list import MISSING_RESULT, OPENING, Flat
from lamina.core.prefix import ROOT, link
from lamina.core.records import Record

SERVER_CALL: Wire = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
SERVER_RESULT: Wire = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
REDACTED: Wire = {"type": "redacted_thinking", "data": "secret"}
FILE: Wire = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
NOVELTY: Wire = {"type": "novelty", "payload": 1}


class Row(NamedTuple):
    role: Any
    blocks: list[Wire]
    key: str | None = None
    synthetic: bool = False


def user(*blocks: Wire | str, synthetic: bool = False) -> Row:
    return Row("user", [words(block) if isinstance(block, str) else block for block in blocks], None, synthetic)


def model(*blocks: Wire | str, key: str | None = None) -> Row:
    return Row("assistant", [words(block) if isinstance(block, str) else block for block in blocks], key)


def missing(call: str) -> Wire:
    return result(call, MISSING_RESULT, is_error=True)


def flattened(*rows: Row) -> Flat:
    flat = Flat()
    for row in rows:
        flat.add(row.role, read_content(row.blocks), key=row.key, synthetic=row.synthetic)
    return flat


def sent(*rows: Row) -> list[Any]:
    """The messages as (role, block, block, …), which reads better than dicts."""
    messages = flattened(*rows).messages()
    assert complaints(messages) == []
    return [(message["role"], *message["content"]) for message in messages]


U, A = "user", "assistant"


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([user("a"), user("b")], [(U, words("a"), words("b"))], id="neighbours of one role are one message"),
        pytest.param(
            [user("a"), model("x", key="m1"), model("y", key="m2")],
            [(U, words("a")), (A, words("x"), words("y"))],
            id="two answers with nothing between them are one message",
        ),
        pytest.param(
            [user("a"), model("x", key="m1"), user(""), model("y", key="m2"), user("b")],
            [(U, words("a")), (A, words("x"), words("y")), (U, words("b"))],
            id="nothing said does not part them",
        ),
        pytest.param(
            [user("a"), model(use("t1"), key="m1"), user(result("t1")), model(use("t2"), key="m1"), user(result("t2"))],
            [(U, words("a")), (A, use("t1"), use("t2")), (U, result("t1"), result("t2"))],
            id="results between its records do not part an answer",
        ),
        pytest.param(
            [
                user("a"),
                model("x", key="m1"),
                model(use("t1"), key="m2"),
                user(result("t1")),
                model(use("t2"), key="m2"),
                user(result("t2")),
            ],
            [(U, words("a")), (A, words("x"), use("t1"), use("t2")), (U, result("t1"), result("t2"))],
            id="nor one that was merged with the answer before it",
        ),
        pytest.param([], [], id="nothing is nothing"),
        pytest.param([user("  \n")], [], id="blank text is nothing"),
    ],
)
def test_neighbours_are_merged(rows: list[Row], expected: list[Any]) -> None:
    assert sent(*rows) == expected


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            [user("a"), model(use("t1"))], [(U, words("a")), (A, use("t1")), (U, missing("t1"))], id="a call that stands last"
        ),
        pytest.param(
            [user("a"), model(use("t1"), use("t2")), user(result("t2"))],
            [(U, words("a")), (A, use("t1"), use("t2")), (U, result("t2"), missing("t1"))],
            id="one of two calls",
        ),
        pytest.param(
            [user("a"), model(use("t1"), key="m1"), user("b"), model("x", key="m2")],
            [(U, words("a")), (A, use("t1")), (U, missing("t1"), words("b")), (A, words("x"))],
            id="a call passed over by what the person says",
        ),
        pytest.param(
            [user("a"), model(use("t1"), key="m1"), model("x", key="m2")],
            [(U, words("a")), (A, use("t1")), (U, missing("t1")), (A, words("x"))],
            id="a call passed over by the next answer",
        ),
    ],
)
def test_a_missing_result_is_made_up(rows: list[Row], expected: list[Any]) -> None:
    assert sent(*rows) == expected


@pytest.mark.spec("C11")
def test_a_made_up_result_stays_and_the_late_one_becomes_text() -> None:
    late = words("Late result of Read (call t1):\nfound it")
    rows = [user("a"), model(use("t1"), key="m1"), model("x", key="m2"), user(result("t1", "found it"))]
    assert sent(*rows) == [(U, words("a")), (A, use("t1")), (U, missing("t1")), (A, words("x")), (U, late)]


@pytest.mark.spec("C11")
def test_a_made_up_result_that_is_a_record_stays_even_while_its_turn_is_open() -> None:
    rows = [
        user("a"),
        model(use("t1")),
        user(result("t1", "made up"), synthetic=True),
        user(result("t1", [words("real"), PICTURE])),
    ]
    late = words("Late result of Read (call t1):\nreal")
    assert sent(*rows) == [(U, words("a")), (A, use("t1")), (U, result("t1", "made up"), late)]


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    "extra",
    [
        pytest.param([user(result("t1", "second"))], id="a second result"),
        pytest.param([user(result("t1", "made up"), synthetic=True)], id="a made-up one behind the real one"),
        pytest.param([user(result("t9"))], id="a result without a call"),
        pytest.param([model(use("t1", name="Write"), key="m9")], id="a second call with the same id"),
        pytest.param([model("", key="m9")], id="an answer of nothing"),
        pytest.param([model(thought("x", None), key="m9")], id="an answer of unsigned thinking"),
        pytest.param([model(thought("x"), REDACTED, key="m9")], id="an answer that is all thinking"),
        pytest.param([model(result("t1", "the model's own"), key="m9")], id="a result in an answer"),
        pytest.param([model(PICTURE, FILE, key="m9")], id="a picture and a file in an answer"),
        pytest.param([model(SERVER_RESULT, key="m9")], id="a server's result without its call"),
        pytest.param([user(use("t9"), thought("x"), REDACTED)], id="a call and thinking in what a person says"),
        pytest.param([user(SERVER_CALL, SERVER_RESULT)], id="a server's tool in what a person says"),
    ],
)
def test_what_the_api_refuses_is_left_out(extra: list[Row]) -> None:
    rows = [user("a"), model(use("t1"), key="m1"), user(result("t1"), "b")]
    assert sent(*rows, *extra) == sent(*rows)


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("blocks", "left"),
    [
        ([thought("x"), "said"], [thought("x"), words("said")]),
        ([thought("x", None), "said"], [words("said")]),
        ([thought("x", ""), "said"], [words("said")]),
        (["said", thought("x"), REDACTED], [words("said")]),
        ([REDACTED, "said", " "], [REDACTED, words("said")]),
        ([SERVER_CALL, SERVER_RESULT, "said"], [SERVER_CALL, SERVER_RESULT, words("said")]),
        ([SERVER_CALL, SERVER_RESULT, SERVER_CALL, SERVER_RESULT, "said"], [SERVER_CALL, SERVER_RESULT, words("said")]),
        ([SERVER_RESULT, SERVER_CALL, "said"], [words("said")]),
        ([SERVER_CALL, "said"], [words("said")]),
        ([{**SERVER_CALL, "id": ["s1"]}, {**SERVER_RESULT, "tool_use_id": {}}, "said"], [words("said")]),
        ([NOVELTY, "said"], [NOVELTY, words("said")]),
    ],
)
def test_an_answer_is_sent_back_without_what_the_api_refuses(blocks: list[Any], left: list[Wire]) -> None:
    assert sent(user("a"), model(*blocks, key="m1"), user("b")) == [(U, words("a")), (A, *left), (U, words("b"))]


def test_a_paused_answer_is_sent_back_as_it_is_and_loses_its_open_call_once_something_follows() -> None:
    rows = [user("a"), model("let me search", SERVER_CALL, key="m1")]
    assert sent(*rows)[-1] == (A, words("let me search"), SERVER_CALL)
    assert sent(*rows, user("b"))[-2:] == [(A, words("let me search")), (U, words("b"))]
    continued = sent(*rows, model(SERVER_RESULT, "found", key="m2"))
    assert continued[-1] == (A, words("let me search"), SERVER_CALL, SERVER_RESULT, words("found"))


@pytest.mark.spec("C11")
def test_results_come_first_and_the_rest_in_order_of_arrival() -> None:
    rows = [user("a"), model(use("t1"), use("t2")), user("reminder"), user(result("t2")), user(PICTURE), user(result("t1"))]
    assert sent(*rows)[-1] == (U, result("t2"), result("t1"), words("reminder"), PICTURE)


@pytest.mark.spec("C11")
def test_a_conversation_whose_beginning_is_gone_begins_with_the_user() -> None:
    assert sent(model("x"), user("b")) == [(U, words(OPENING)), (A, words("x")), (U, words("b"))]


def test_an_opening_goes_with_the_answer_it_stood_for() -> None:
    flat = flattened(model(SERVER_CALL, key="m1"))
    assert [message["role"] for message in flat.messages()] == [U, A]
    flat.add("user", read_content("b"))
    assert flat.messages() == [{"role": U, "content": [words("b")]}]


@pytest.mark.spec("C11")
def test_an_error_result_that_says_nothing_gets_words() -> None:
    rows = [user("a"), model(use("t1")), user(result("t1", "", is_error=True))]
    assert sent(*rows)[-1] == (U, result("t1", EMPTY_ERROR, is_error=True))


def test_the_fate_of_a_call_is_told() -> None:
    flat = flattened(user("a"), model(use("t1"), use("t2"), use("t3"), key="m1"), user(result("t1")))
    assert flat.open_calls == ("t2", "t3")
    flat.add("user", read_content([result("t2", "made up")]), synthetic=True)
    assert [flat.fate_of_call(call) for call in ("t1", "t2", "t3", "t9")] == ["answered", "made up", "open", None]
    flat.add("assistant", read_content("next"), key="m2")
    assert flat.fate_of_call("t3") == "made up"
    assert (flat.tool_name("t1"), flat.tool_name("t9")) == ("Read", None)


def test_links_before_the_last_answer_count_what_it_replied_to() -> None:
    flat = flattened(user("a", "b"))
    assert flat.links_before_last_answer() == 0
    flat.add("assistant", read_content("x"), key="m1")
    assert flat.links_before_last_answer() == 2
    flat.add("user", read_content("c"))
    assert flat.links_before_last_answer() == 2


def test_a_result_is_replaced_by_identity_and_only_where_it_is_shown() -> None:
    flat = flattened(user("a"), model(use("t1"), key="m1"))
    real, twin = (_result("t1", "long") for _ in range(2))
    flat.add("user", [real, twin])
    assert not flat.replace_result(twin, _result("t1", "short"))
    assert flat.replace_result(real, _result("t1", "short"))
    assert flat.messages()[-1]["content"] == [result("t1", "short")]
    assert not flat.replace_result(_result("t9", ""), _result("t9", "short"))


def _result(call: str, content: str) -> ToolResult:
    block = read_block(result(call, content))
    assert isinstance(block, ToolResult)
    return block


# Common properties


def chained(messages: list[Wire]) -> list[bytes]:
    """Compute the chain from the messages alone."""
    chain, last = [], ROOT
    for message in messages:
        for block in message["content"]:
            last = link(last, message["role"], read_block(block).digest)
            chain.append(last)
    return chain


@examples(150)
@given(histories())
def test_the_same_items_give_the_same_messages_in_one_go_or_with_a_look_after_each(records: list[Record]) -> None:
    view = grown(records).view
    watched, unwatched = Flat(view.once), Flat(view.once)
    for item in view.items:
        watched.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic, complete=item.complete)
        watched.messages()
        unwatched.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic, complete=item.complete)
    assert watched.messages() == unwatched.messages() == view.messages()
    assert watched.chain == unwatched.chain == view.flat.chain == chained(view.messages())
    assert watched.unseen == unwatched.unseen == view.flat.unseen


@examples(150)
@given(histories(), st.data())
def test_a_request_that_left_is_never_changed_by_what_comes_after(records: list[Record], data: st.DataObject) -> None:
    flat = Flat()
    held: list[tuple[list[Wire], bytes, list[bytes], list[bytes]]] = []
    for item in grown(records).view.items:
        flat.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic)
        if data.draw(st.booleans()):
            messages = flat.messages()
            held.append((messages, canonical(messages), flat.chain, flat.chain.copy()))
    for messages, before, chain, links in held:
        assert canonical(messages) == before
        assert chain[: len(links)] == links


@examples(150)
@given(histories())
def test_a_message_that_did_not_change_is_the_very_one_sent_before(records: list[Record]) -> None:
    flat = Flat()
    before: list[Wire] = []
    for item in grown(records).view.items:
        flat.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic)
        now = flat.messages()
        for old, new in zip(before, now, strict=False):
            assert old is new or old != new
        before = now

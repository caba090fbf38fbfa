"""The view: the effect of each decision, and which reported usage is still valid."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from tests.core.histories import Builder, Chance, Step, examples, grow, grown, histories, result, texts, use, words

from lamina.core.blocks import Block, ToolResult, ToolUse, canonical
from lamina.core.log import Log
from lamina.core.message_list import MISSING_RESULT
from lamina.core.records import Record
from lamina.core.usage import Usage
from lamina.core.view import View

REPORTED = Usage(1_000, output_tokens=50)


def shown(b: Builder) -> list[object]:
    """Return all blocks in order, results as their content."""
    blocks = [block for message in grown(b.records).view.messages() for block in message["content"]]
    return [block.get("text") or block.get("content") or block.get("id") for block in blocks]


def asked(*calls: str) -> Builder:
    b = Builder()
    b.said("go")
    b.answer(*(use(call) for call in calls), key="m1")
    return b


# Results: frozen previews and markers


@pytest.mark.spec("R3")
@pytest.mark.parametrize("first", ["spill", "result"])
def test_a_spilled_result_shows_its_preview_whichever_record_comes_first(first: str) -> None:
    b = asked("t1")
    if first == "spill":
        b.spill("t1", "the first lines")
        b.results("t1", content="very long")
    else:
        b.results("t1", content="very long")
        b.spill("t1", "the first lines")
    assert shown(b) == ["go", "t1", "the first lines"]


def test_a_cleared_result_shows_its_marker_and_keeps_that_it_was_an_error() -> None:
    b = asked("t1")
    b.said([result("t1", "boom", is_error=True)])
    b.clear("t1")
    assert grown(b.records).view.messages()[-1]["content"] == [result("t1", "cleared t1", is_error=True)]


def test_a_clearing_takes_attachments_out() -> None:
    b = Builder()
    b.said("go")
    attachment = b.attached("a memory")
    b.said("on")
    b.clear(attachments=(attachment,))
    assert shown(b) == ["go", "on"]


@pytest.mark.spec("R3")
def test_a_result_that_came_twice_is_cleared_twice() -> None:
    b = asked("t1")
    b.results("t1", content="first")
    b.results("t1", content="second")
    b.clear("t1")
    assert shown(b) == ["go", "t1", "cleared t1"]
    b.span("r1")
    assert shown(b) == ["snipped", "t1", "cleared t1"]


@pytest.mark.spec("C11", "R3")
@pytest.mark.parametrize("recorded", [True, False], ids=["as a record", "by the flattening"])
def test_what_was_made_up_stays_as_it_was_sent_when_the_late_result_is_spilled(recorded: bool) -> None:
    b = asked("t1")
    if recorded:
        b.said([result("t1", MISSING_RESULT, is_error=True)], synthetic=True)
    b.answer(words("next"), key="m2")
    before = canonical(grown(b.records).view.messages())
    b.results("t1", content="very long")
    b.spill("t1", "the first lines")
    messages = grown(b.records).view.messages()
    assert canonical(messages[:-1]) == before
    assert messages[-1]["content"] == [words("Late result of Read (call t1):\nthe first lines")]


# Spans


def test_a_span_is_replaced_by_its_text_where_it_began() -> None:
    b = Builder()
    first, second = b.said("one"), b.said("two")
    b.said("three")
    b.span(first, second, text="[2 messages]", kind="collapse")
    assert shown(b) == ["[2 messages]", "three"]
    assert [item.kind for item in grown(b.records).view.items] == ["collapse", "said"]


def test_a_span_over_a_call_takes_its_result_out_and_one_over_a_result_leaves_the_call_answered() -> None:
    b = asked("t1")
    given_back = b.results("t1")
    over_result = [*b.records]
    b.span("r2")
    assert shown(b) == ["go", "snipped"]
    b.records = over_result
    b.span(given_back)
    assert shown(b) == ["go", "t1", MISSING_RESULT, "snipped"]


def test_a_span_of_nothing_in_view_changes_nothing() -> None:
    b = Builder()
    b.said("one")
    b.span("elsewhere")
    view = grown(b.records).view
    assert (shown(b), view.generation) == (["one"], 0)


# State other than messages


def test_pins_and_the_last_snapshot_are_kept() -> None:
    b = Builder()
    said = b.said("remember this")
    b.pin(said)
    b.pin(text="and this")
    b.snapshot("first")
    b.snapshot("second")
    view = grown(b.records).view
    assert [(pin.target, pin.text) for pin in view.pins.values()] == [(said, None), (None, "and this")]
    assert view.snapshot is not None
    assert view.snapshot.system == [words("second")]


@pytest.mark.spec("C11")
def test_internal_messages_are_not_shown() -> None:
    b = Builder()
    b.said("go")
    b.answer(words("API error 529"), silent=True)
    b.said("on", meta=True)
    assert shown(b) == ["go", "on"]
    assert [item.kind for item in grown(b.records).view.items] == ["said", "meta"]


# T10: which usage measures this view


def counted(b: Builder) -> list[str]:
    """Return the message ids of answers whose usage is still valid for the view."""
    view = grown(b.records).view
    return [item.key or "" for index, item in enumerate(view.items) if item.usage is not None and view.measures(index)]


def measured() -> Builder:
    b = Builder()
    b.said("go")
    b.answer(use("t1"), key="m1", usage=REPORTED)
    b.results("t1")
    b.answer(words("done"), key="m2", usage=REPORTED)
    return b


@pytest.mark.spec("T10")
def test_usage_counts_while_the_view_only_grows() -> None:
    b = measured()
    b.said("more")
    b.attached("reminder")
    b.pin("r1")
    b.snapshot()
    assert counted(b) == ["m1", "m2"]
    assert grown(b.records).view.generation == 0


@pytest.mark.spec("T10")
@pytest.mark.parametrize("change", ["clear", "spill", "snip", "compaction", "attachment cleared"])
def test_usage_from_before_a_change_does_not_count_and_the_next_one_does(change: str) -> None:
    b = measured()
    match change:
        case "clear":
            b.clear("t1")
        case "spill":
            b.spill("t1")
        case "snip":
            b.span("r1")
        case "compaction":
            boundary = b.boundary("r4")
            b.summary(by=boundary)
        case _:
            b.clear(attachments=(b.attached("memory"),))
    assert counted(b) == []
    assert grown(b.records).view.generation > 0
    b.said("next")
    b.answer(words("measured anew"), key="m3", usage=REPORTED)
    assert counted(b) == ["m3"]


@pytest.mark.spec("T10")
def test_usage_since_an_undone_decision_measured_another_view_and_usage_before_it_this_one() -> None:
    b = measured()
    boundary = b.boundary()
    b.summary(by=boundary)
    b.answer(words("of the short view"), key="m3", usage=REPORTED)
    b.revoke(boundary)
    assert counted(b) == ["m1", "m2"]
    assert Log.load(lambda: b.records).view.void == grown(b.records).view.void
    b.answer(words("of the long view"), key="m4", usage=REPORTED)
    assert counted(b) == ["m1", "m2", "m4"]


@pytest.mark.spec("T10")
def test_usage_between_two_undone_compactions_measured_another_view() -> None:
    b = measured()
    first = b.boundary()
    b.summary(by=first)
    b.answer(words("of the short view"), key="m3", usage=REPORTED)
    second = b.boundary()
    b.summary(by=second)
    b.answer(words("of the shorter view"), key="m4", usage=REPORTED)
    b.revoke(second)
    assert counted(b) == ["m3"]
    b.answer(words("of the short view again"), key="m5", usage=REPORTED)
    b.revoke(first)
    assert counted(b) == ["m1", "m2"]


@pytest.mark.spec("T10")
def test_usage_up_to_the_place_of_a_rewind_still_counts() -> None:
    b = measured()
    b.rewind("r2")
    assert counted(b) == ["m1"]


@pytest.mark.spec("T10")
@examples(100)
@given(histories())
def test_the_generation_changes_whenever_something_shown_changes(records: list[Record]) -> None:
    """Results that are shown once count as their previews from the beginning, so nothing is counted again because of them."""
    log = Log()
    for at in range(len(records)):
        before, generation = as_counted(log), log.view.generation
        grow(log, records, at)
        if as_counted(log)[: len(before)] != before:
            assert log.view.generation > generation


def as_counted(log: Log) -> list[tuple[str, tuple[Block, ...]]]:
    """What is shown after the next answer. A message with a result whose call comes later is left out: no request contains that result."""
    calls, found = set[str](), list[tuple[str, tuple[Block, ...]]]()
    for item in log.view.items:
        if {block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)} <= calls:
            found.append((item.uuid, log.view.as_settled(item).blocks))
        calls |= {block.id for block in item.blocks if isinstance(block, ToolUse)}
    return found


# Shown once


def called(b: Builder, *calls: str) -> Builder:
    b.said("look")
    b.answer(*(use(call) for call in calls), key="m1", stop_reason="tool_use")
    return b


@pytest.mark.spec("P3")
@pytest.mark.parametrize(
    ("stop", "shown"), [("end_turn", "short"), ("max_tokens", "short"), ("pause_turn", "long"), (None, "long")]
)
def test_a_result_shown_once_is_whole_until_an_answer_is_complete(stop: str | None, shown: str) -> None:
    b = called(Builder(), "t1")
    b.spill("t1", "short", once=True)
    b.results("t1", content="long")
    assert grown(b.records).view.flat.unseen
    b.answer(words("I see"), key="m2", stop_reason=stop)
    for log in (grown(b.records), Log.load(lambda: b.records)):
        assert f"u: t1 = {shown}" in texts(log)
        assert bool(log.view.flat.unseen) is (shown == "long")


@pytest.mark.spec("P3")
def test_the_prefix_ends_before_the_first_result_that_is_still_whole() -> None:
    b = called(Builder(), "t1", "t2", "t3")
    b.spill("t1", "short", once=True)
    for call in ("t1", "t2", "t3"):
        b.results(call, content="long")
    b.attached("by the way")
    log = grown(b.records)
    assert texts(log)[-4:] == ["u: t2 = long", "u: t3 = long", "u: t1 = long", "u: by the way"]
    flat = log.view.flat
    whole, links = flat.chain, flat.stable_links
    assert links == len(whole) - 2
    assert [block.wire["type"] for block in flat.unstable_blocks()] == ["tool_result", "text"]
    b.answer(words("I see"), key="m2", stop_reason="end_turn")
    log = grown(b.records)
    assert texts(log)[-3:] == ["u: t1 = short", "u: by the way", "a: I see"]
    assert log.view.flat.links_before_last_answer() == links
    assert log.view.flat.chain[:links] == whole[:links]
    assert log.view.flat.chain[links] != whole[links]
    assert log.view.flat.stable_links == len(log.view.flat.chain)


def test_what_is_decided_after_a_result_came_or_by_a_clearing_is_not_shown_once() -> None:
    b = called(Builder(), "t1", "t2")
    b.results("t1", content="long")
    b.spill("t1", "short", once=True)
    b.spill("t2", "short", once=True)
    b.results("t2", content="long")
    b.clear("t2")
    b.answer(words("I see"), key="m2", stop_reason="end_turn")
    assert texts(grown(b.records))[-3:] == ["u: t1 = long", "u: t2 = cleared t2", "a: I see"]


# Frozen


@examples(80)
@given(histories())
def test_messages_handed_out_are_never_changed_whatever_is_decided_later(records: list[Record]) -> None:
    log = Log()
    held = []
    for at in range(len(records)):
        grow(log, records, at)
        messages = log.view.messages()
        held.append((messages, canonical(messages)))
    for messages, before in held:
        assert canonical(messages) == before


def test_an_item_is_frozen() -> None:
    b = Builder()
    b.said("go")
    item = grown(b.records).view.items[0]
    with pytest.raises(AttributeError):
        item.kind = "summary"  # type: ignore[misc]  # that it is refused is the point
    assert msgspec.structs.replace(item, kind="meta").kind == "meta"


def test_an_empty_view_sends_nothing() -> None:
    assert View().messages() == []
    assert list(View().blocks()) == []


def test_a_failed_result_that_is_shown_once_is_counted_as_it_will_be_shown() -> None:
    steps = [Step(name="reply", a=1, b=0, c=0), Step(name="once", a=0, b=25, c=1), Step(name="reply", a=0, b=0, c=0)]
    log, records = Log(), Chance().run(steps)
    for at in range(len(records)):
        before = as_counted(log)
        grow(log, records, at)
        assert as_counted(log)[: len(before)] == before

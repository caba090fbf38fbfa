"""The log: which records are the conversation, and that every way of reading them shows the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.api_rules import complaints
from tests.core.histories import (
    WEIGHTS,
    Builder,
    examples,
    grow,
    grown,
    histories,
    loaded,
    plain_histories,
    reread,
    result,
    use,
    words,
)

from lamina.core.blocks import ToolResult, ToolUse, read_content
from lamina.core.checkpoint import checkpoint_state, seeded
from lamina.core.errors import UndoOrder
from lamina.core.flatten import MISSING_RESULT
from lamina.core.log import MAX_LINKS, Log
from lamina.core.records import Attachment, Boundary, Clear, Foreign, Message, Newer, Record, Revoke, Rewind, Span


def state(log: Log) -> dict[str, Any]:
    """Everything a reader of the log can see."""
    view = log.view
    return {
        "messages": view.messages(),
        "items": list(view.items),
        "chain": list(view.flat.chain),
        "pins": dict(view.pins),
        "replaced": dict(view.replaced),
        "snapshot": view.snapshot,
        "measured_from": view.measured_from,
        "decisions": list(log.decisions),
        "open": view.flat.open_calls,
    }


def texts(log: Log) -> list[str]:
    """What is shown, in short: a letter for the role and the words, ids or markers."""
    return [f"{message['role'][0]}: {_shown(block)}" for message in log.view.messages() for block in message["content"]]


def _shown(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"call {block['id']}"
        case "tool_result":
            return f"{block['tool_use_id']} = {block['content']}"
        case kind:
            return str(kind)


def refolded(records: Sequence[Record]) -> Log:
    log = loaded(records)
    log.refold(lambda: records)
    return log


# What holds for every history


@examples(220)
@given(histories())
def test_a_log_that_grew_shows_what_a_loaded_and_a_refolded_one_show_at_every_prefix(records: list[Record]) -> None:
    log = Log()
    for at in range(len(records)):
        grow(log, records, at)
        seen = records[: at + 1]
        now = state(log)
        assert state(loaded(seen)) == now
        assert state(refolded(seen)) == now


@pytest.mark.spec("C11", "Z6")
@examples(300)
@given(histories())
def test_what_is_shown_may_be_sent_at_every_prefix(records: list[Record]) -> None:
    log = Log()
    for at in range(len(records)):
        grow(log, records, at)
        assert complaints(log.view.messages()) == []


@examples(200)
@given(histories())
def test_a_log_read_back_from_bytes_shows_the_same(records: list[Record]) -> None:
    assert state(loaded(reread(records))) == state(grown(records))


@examples(200)
@given(histories())
def test_the_members_are_those_of_the_definition_at_every_prefix(records: list[Record]) -> None:
    log = Log()
    cut: set[str] = set()
    for at, record in enumerate(records):
        before = list(log.tree.members)
        grow(log, records, at)
        if isinstance(record, Rewind):
            cut |= _cut_by(record, before, records[: at + 1])
        assert set(log.tree.members) == _definition(log, records[: at + 1], cut)


@examples(200)
@given(histories(names=[name for name, weight in WEIGHTS.items() for _ in range(weight) if name != "back"]))
def test_every_result_of_a_call_in_the_conversation_is_in_it(records: list[Record]) -> None:
    tree = grown(records).tree
    calls = {
        block.id for _, answer in _of_members(tree.members, records) for block in answer.blocks if isinstance(block, ToolUse)
    }
    for record in records:
        if isinstance(record, Message) and record.role == "user" and record.uuid in tree.nodes and tree.belongs(record):
            answered = {block.tool_use_id for block in record.blocks if isinstance(block, ToolResult)}
            assert record.uuid in tree.members or tree.clashes(record) or not answered & calls


def _of_members(members: dict[str, None], records: Sequence[Record]) -> Iterator[tuple[str, Message]]:
    for record in records:
        if isinstance(record, Message) and record.uuid in members and record.role == "assistant":
            yield record.uuid, record


def _cut_by(rewind: Rewind, members: list[str], records: Sequence[Record]) -> set[str]:
    """What a rewind leaves out: the members written behind its target."""
    place: dict[str, int] = {}
    for at, record in enumerate(records):
        if isinstance(record, Message | Attachment | Boundary):
            place.setdefault(record.uuid, at)
    end = place[rewind.target] if rewind.target in members else -1
    return {uuid for uuid in members if place[uuid] > end}


def _definition(log: Log, records: Sequence[Record], cut: set[str]) -> set[str]:
    """Ancestors of the leaf, their siblings, and the results of all their calls: from the records, in the plainest way."""
    tree = log.tree
    path: set[str] = set()
    at = tree.leaf
    while at is not None:
        path.add(at)
        at = tree.nodes[at].parent
    spoken = [
        record
        for record in records
        if isinstance(record, Message | Attachment)
        and record.uuid in tree.nodes
        and not tree.clashes(record)
        and tree.belongs(record)
    ]
    answers = [record for record in spoken if isinstance(record, Message) and record.role == "assistant"]
    keys = {answer.message_id for answer in answers if answer.uuid in path} - {None}
    path |= {answer.uuid for answer in answers if answer.message_id in keys} - cut
    calls = {block.id for answer in answers if answer.uuid in path for block in answer.blocks if isinstance(block, ToolUse)}
    others = [record for record in spoken if not (isinstance(record, Message) and record.role == "assistant")]
    holds = {
        other.uuid for other in others for block in other.blocks if isinstance(block, ToolResult) and block.tool_use_id in calls
    }
    return path | (holds - cut)


# Taking back


@pytest.mark.spec("B1")
@examples(300)
@given(plain_histories(), st.integers(0, 255))
def test_a_decision_taken_back_leaves_the_view_it_would_be_without_it(records: list[Record], choice: int) -> None:
    decisions = [record for record in records if isinstance(record, Boundary | Clear | Span)]
    if not decisions:
        return
    target = decisions[choice % len(decisions)]
    revoked = grown([*records, Revoke("undo", None, "", target.uuid)])
    never = grown(_without(records, target))
    assert revoked.view.messages() == never.view.messages()
    assert revoked.view.items == never.view.items
    assert revoked.view.flat.chain == never.view.flat.chain


def _without(records: Sequence[Record], target: Boundary | Clear | Span) -> list[Record]:
    """The records as they would be had the decision never been made; what stood on it stands on what is above it."""
    gone: dict[str, str | None] = {target.uuid: target.logical_parent if isinstance(target, Boundary) else target.parent}
    summary_due = isinstance(target, Boundary)
    behind = False
    left: list[Record] = []
    for record in records:
        behind = behind or record is target
        if not isinstance(record, Message | Attachment):
            if record is not target:
                left.append(_lifted(record, gone))
            summary_due = summary_due and not (behind and isinstance(record, Boundary) and record is not target)
            continue
        own_summary = behind and summary_due and isinstance(record, Message) and record.summary and record.by is None
        if record.by == target.uuid or own_summary:
            summary_due = summary_due and not (isinstance(record, Message) and record.summary)
            gone[record.uuid] = record.parent
        else:
            left.append(_lifted(record, gone))
    return left


def _lifted(record: Record, gone: dict[str, str | None]) -> Record:
    name = "logical_parent" if isinstance(record, Boundary) else "parent"
    parent = getattr(record, name)
    while parent in gone:
        parent = gone[parent]
    return msgspec.structs.replace(record, **{name: parent})


@pytest.mark.spec("B1")
def test_an_undone_compaction_takes_its_summary_and_restored_context_along() -> None:
    b = Builder()
    b.said("question")
    b.answer(words("answer"), key="m1")
    boundary = b.boundary()
    b.summary("all of it", by=boundary)
    b.attached("a file", by=boundary)
    b.said("next")
    assert texts(grown(b.records)) == ["u: all of it", "u: a file", "u: next"]
    b.revoke(boundary)
    assert texts(grown(b.records)) == ["u: question", "a: answer", "u: next"]


def test_an_undone_compaction_of_another_program_takes_the_summary_along_even_behind_instructions() -> None:
    b = Builder()
    b.said("question")
    boundary = b.boundary()
    b.attached("instructions")
    b.summary("all of it")
    b.said("next")
    b.revoke(boundary)
    assert texts(grown(b.records)) == ["u: question", "u: instructions", "u: next"]


def test_a_later_summary_without_a_boundary_of_its_own_is_not_taken_along() -> None:
    b = Builder()
    b.said("question")
    boundary = b.boundary()
    b.summary("first")
    b.said("more")
    b.summary("second")
    b.revoke(boundary)
    assert texts(grown(b.records)) == ["u: question", "u: more", "u: second"]


@pytest.mark.parametrize("early", [True, False], ids=["revoked before it is written", "revoked after"])
def test_a_revoke_counts_wherever_it_stands(early: bool) -> None:
    b = Builder()
    b.answer(use("t1"), key="m1")
    b.results("t1")
    if early:
        b.revoke("r4")
    clear = b.clear("t1")
    if not early:
        b.revoke(clear)
    assert "u: t1 = done" in texts(grown(b.records))
    assert texts(grown(b.records)) == texts(loaded(b.records))


def test_what_belongs_to_a_revoked_decision_does_not_come_in_later() -> None:
    b = Builder()
    b.said("question")
    boundary = b.boundary()
    b.revoke(boundary)
    b.summary("too late", by=boundary)
    b.attached("too late too", by=boundary)
    assert texts(grown(b.records)) == ["u: question"]


@pytest.mark.spec("B1")
def test_span_decisions_are_undone_last_first_and_the_refusal_names_the_one_to_undo() -> None:
    b = Builder()
    said = b.said("question")
    b.answer(words("answer"), key="m1")
    snip = b.span(said)
    boundary = b.boundary()
    b.summary(by=boundary)
    log = grown(b.records)
    with pytest.raises(UndoOrder, match=boundary) as refused:
        log.check_undo(snip)
    assert (refused.value.asked, refused.value.first) == (snip, boundary)
    log.check_undo(boundary)
    b.revoke(boundary)
    grown(b.records).check_undo(snip)


def test_a_clearing_is_undone_alone_and_a_boundary_that_never_took_effect_stands_in_nobodys_way() -> None:
    b = Builder()
    first = b.said("question")
    b.answer(use("t1"), key="m1")
    b.results("t1")
    clear = b.clear("t1")
    snip = b.span(first)
    leaf = b.last
    b.boundary()
    b.last = leaf
    b.said("the compaction crashed, we go on")
    log = grown(b.records)
    log.check_undo(clear)
    log.check_undo(snip)


# Boundaries


@pytest.mark.spec("C4")
def test_after_a_compaction_come_summary_kept_messages_restored_context_whatever_was_written_first() -> None:
    b = Builder()
    b.said("old")
    b.answer(words("old answer"), key="m1")
    kept = b.said("kept")
    b.boundary(kept)
    b.attached("instructions")
    b.summary("in short")
    b.attached("a file")
    assert texts(grown(b.records)) == ["u: in short", "u: kept", "u: instructions", "u: a file"]


def test_a_boundary_without_anything_on_it_leaves_the_view_as_it_was() -> None:
    b = Builder()
    b.said("question")
    leaf = b.last
    b.boundary()
    assert texts(grown(b.records)) == ["u: question"]
    b.last = leaf
    b.said("next")
    assert texts(grown(b.records)) == ["u: question", "u: next"]


def test_the_second_try_of_a_compaction_does_not_hide_the_first() -> None:
    b = Builder()
    b.said("question")
    leaf = b.last
    first = b.boundary()
    b.last = leaf
    b.boundary()
    b.summary("in short", parent=first)
    assert texts(grown(b.records)) == ["u: in short"]


def test_a_record_nobody_sees_puts_a_boundary_into_effect_all_the_same() -> None:
    b = Builder()
    b.said("question")
    b.boundary()
    b.answer(words("API error"), key="m1", silent=True)
    b.summary("in short")
    assert texts(grown(b.records)) == ["u: in short"]


def test_a_late_result_that_stands_on_a_boundary_left_behind_does_not_compact() -> None:
    b = Builder()
    b.said("question")
    call = b.answer(use("t1"), key="m1")
    boundary = b.boundary()
    b.said("the compaction crashed, we go on", parent=call)
    b.results("t1", parent=boundary)
    assert texts(grown(b.records)) == [
        "u: question",
        "a: call t1",
        "u: t1 = done",
        "u: the compaction crashed, we go on",
    ]


def test_a_link_of_another_program_between_boundary_and_summary_changes_nothing() -> None:
    b = Builder()
    b.said("question")
    b.boundary()
    b.foreign()
    b.summary("in short")
    assert texts(grown(b.records)) == ["u: in short"]


# Resuming at a checkpoint


@examples(160)
@given(plain_histories())
def test_a_log_read_from_its_checkpoint_shows_what_one_read_from_the_top_shows(records: list[Record]) -> None:
    ends = [at for at, record in enumerate(records) if isinstance(record, Message) and record.summary]
    if not ends:
        return
    end = ends[-1] + 1
    boundary = next(record for record in reversed(records[:end]) if isinstance(record, Boundary))
    stored = msgspec.json.decode(msgspec.json.encode(checkpoint_state(grown(records[:end]))))
    needed = {boundary.uuid, *boundary.kept}
    start = next(at for at, record in enumerate(records) if record.uuid in needed)
    resumed = Log.load(lambda: records[start:], lambda: seeded(stored))
    whole = loaded(records)
    assert resumed.view.messages() == whole.view.messages()
    assert resumed.view.pins == whole.view.pins
    assert resumed.view.snapshot == whole.view.snapshot


# Branches


def test_parallel_results_hung_on_their_own_calls_are_all_there() -> None:
    b = Builder()
    b.said("look at three files")
    calls = [b.answer(use(f"t{number}"), key="m1") for number in range(3)]
    for number in (1, 0, 2):
        b.results(f"t{number}", parent=calls[number])
    b.answer(words("done"), key="m2")
    log = grown(b.records)
    assert [text for text in texts(log) if " = " in text] == ["u: t1 = done", "u: t0 = done", "u: t2 = done"]
    assert MISSING_RESULT not in "".join(texts(log))


def test_results_between_the_records_of_one_answer_do_not_part_it() -> None:
    b = Builder()
    b.said("go")
    first = b.answer(use("t1"), key="m1")
    b.results("t1")
    b.answer(use("t2"), key="m1", parent=first)
    b.results("t2")
    b.answer(words("done"), key="m2")
    assert texts(grown(b.records)) == ["u: go", "a: call t1", "a: call t2", "u: t1 = done", "u: t2 = done", "a: done"]


def test_a_retry_is_a_branch_and_the_last_one_written_counts() -> None:
    b = Builder()
    root = b.said("question")
    first = b.answer(words("first try"), key="m1")
    b.answer(words("second try"), key="m2", parent=root)
    assert texts(grown(b.records)) == ["u: question", "a: second try"]
    b.said("back to the first", parent=first)
    assert texts(grown(b.records)) == ["u: question", "a: first try", "u: back to the first"]


def test_a_decision_made_on_a_branch_holds_on_that_branch_only() -> None:
    b = Builder()
    call = b.answer(use("t1"), key="m1")
    given = b.results("t1")
    aside = b.said("aside")
    b.clear("t1")
    assert "u: t1 = cleared t1" in texts(grown(b.records))
    b.said("another way", parent=given)
    assert "u: t1 = done" in texts(grown(b.records))
    b.said("back", parent=aside)
    assert "u: t1 = cleared t1" in texts(grown(b.records))
    assert call in grown(b.records).tree.members


def test_a_decision_of_another_branch_stays_there_behind_any_number_of_links() -> None:
    b = Builder()
    b.answer(use("t1"), key="m1")
    given = b.results("t1")
    b.said("aside")
    b.clear("t1")
    b.said("another way", parent=given)
    records = [*b.records, *(Foreign("progress", f"p{number}", given) for number in range(MAX_LINKS + 1))]
    records.append(Revoke("undo", given, "", "nothing"))
    assert "u: t1 = done" in texts(loaded(records))


def test_a_decision_written_on_a_boundary_before_its_summary_holds_at_once() -> None:
    b = Builder()
    b.said("question")
    boundary = b.boundary()
    b.last = boundary
    b.pin(text="remember")
    assert [pin.text for pin in grown(b.records).view.pins.values()] == ["remember"]
    b.summary("in short")
    assert [pin.text for pin in grown(b.records).view.pins.values()] == ["remember"]


def test_a_second_root_begins_a_new_conversation() -> None:
    b = Builder()
    b.said("old")
    b.said("new", parent=None)
    assert texts(grown(b.records)) == ["u: new"]


def test_a_parent_that_is_not_there_is_bridged_and_counted() -> None:
    b = Builder()
    b.said("question")
    b.said("next", parent="lost")
    log = grown(b.records)
    assert texts(log) == ["u: question", "u: next"]
    assert log.tree.bridged == 1


def test_a_cycle_is_cut_into_the_order_of_the_file() -> None:
    b = Builder()
    b.said("one", parent="r3")
    b.said("two", parent="r2")
    b.said("three", parent="r1")
    assert texts(grown(b.records)) == ["u: one", "u: three"]
    b.said("four", parent="r2")
    assert texts(grown(b.records)) == ["u: one", "u: two", "u: four"]


def test_links_of_other_programs_carry_the_chain() -> None:
    b = Builder()
    b.said("question")
    b.foreign()
    b.foreign("hook")
    b.answer(words("answer"), key="m1")
    log = grown(b.records)
    assert texts(log) == ["u: question", "a: answer"]
    assert log.skipped_kinds == {"progress": 1, "hook": 1}
    assert log.tree.bridged == 0


def test_side_conversations_stay_out_and_are_a_conversation_where_they_come_first() -> None:
    b = Builder()
    b.said("main")
    b.said("side", parent=None, sidechain=True)
    b.said("main again", parent="r1")
    assert texts(grown(b.records)) == ["u: main", "u: main again"]
    assert texts(grown(b.records[1:2] + b.records[:1])) == ["u: side"]


def test_a_record_in_a_newer_format_is_noted() -> None:
    log = grown([Newer(7, "n1"), Newer(3, "n2")])
    assert log.newer == 7


# Rewinding


def test_a_rewind_leaves_out_everything_behind_its_target() -> None:
    b = Builder()
    b.said("one")
    answer = b.answer(use("t1"), key="m1")
    b.results("t1")
    b.answer(words("done"), key="m2")
    b.rewind(answer)
    assert texts(grown(b.records)) == ["u: one", "a: call t1", f"u: t1 = {MISSING_RESULT}"]
    b.results("t1", content="again")
    assert texts(grown(b.records)) == ["u: one", "a: call t1", "u: t1 = again"]


def test_a_rewind_to_nothing_empties_the_conversation() -> None:
    b = Builder()
    b.said("one")
    b.rewind(None)
    assert texts(grown(b.records)) == []
    b.said("anew")
    assert texts(grown(b.records)) == ["u: anew"]


def test_a_rewind_to_a_result_that_joined_late_keeps_what_lies_between_it_and_its_call() -> None:
    b = Builder()
    b.said("one")
    call = b.answer(use("t1"), key="m1")
    between = b.said("meanwhile")
    late = b.results("t1", parent=call)
    b.last = between
    b.answer(words("done"), key="m2")
    b.rewind(late)
    log = grown(b.records)
    expected = ["u: one", "a: call t1", "u: t1 = done", "u: meanwhile"]
    assert texts(log) == expected
    assert log.tree.leaf == between
    b.said("go on", parent=log.tree.leaf)
    assert texts(grown(b.records)) == [*expected, "u: go on"]


def test_a_rewind_to_a_record_that_is_not_there_is_counted_for_whoever_read_only_a_part() -> None:
    b = Builder()
    b.said("one")
    b.rewind("before the part that was read")
    assert grown(b.records).tree.bridged == 1


def test_a_rewind_behind_a_compaction_shows_what_was_before_it() -> None:
    b = Builder()
    first = b.said("one")
    b.answer(words("answer"), key="m1")
    boundary = b.boundary()
    b.summary("in short", by=boundary)
    b.rewind(first)
    assert texts(grown(b.records)) == ["u: one"]


# One id twice


def test_a_record_written_twice_keeps_its_place_and_its_last_content() -> None:
    b = Builder()
    b.said("question")
    b.answer(words("half an ans"), key="m1")
    b.said("next")
    b.put(Message("r2", "r1", "", "assistant", read_content([words("half an answer")]), "m1"), moves=False)
    log = grown(b.records)
    assert texts(log) == ["u: question", "a: half an answer", "u: next"]
    assert log.tree.duplicates == 1


def test_the_calls_of_the_last_content_find_their_results() -> None:
    b = Builder()
    b.said("go")
    b.answer(words("let me see"), key="m1")
    b.said("never mind", parent="r1")
    b.results("t1", parent="r2")
    b.said("well", parent="r2")
    b.put(Message("r2", "r1", "", "assistant", read_content([words("let me see"), use("t1")]), "m1"), moves=False)
    assert texts(grown(b.records)) == ["u: go", "a: let me see", "a: call t1", "u: t1 = done", "u: well"]


@pytest.mark.parametrize(
    "intruder",
    [
        Clear("r1", None, "", {"t1": "gone"}),
        Foreign("progress", "r1", None),
        Boundary("r1", None, "", "auto"),
        Revoke("r1", None, "", "r2"),
        Message("r1", None, "", "user", read_content("a subagent's"), sidechain=True),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_of_another_kind_with_the_id_of_a_message_does_not_displace_it(intruder: Record) -> None:
    b = Builder()
    b.said([words("question"), result("t0")])
    b.answer(use("t1"), key="m1")
    b.results("t1")
    records = [*b.records, intruder, Revoke("undo", None, "", "nothing")]
    assert texts(grown(records)) == texts(grown(b.records)) == ["u: question", "a: call t1", "u: t1 = done"]


def test_a_message_with_the_id_of_a_decision_does_not_displace_it() -> None:
    b = Builder()
    b.answer(use("t1"), key="m1")
    b.results("t1")
    clear = b.clear("t1")
    b.put(Message(clear, b.last, "", "user", read_content("an id used twice")), moves=False)
    log = grown(b.records)
    assert texts(log)[-1] == "u: t1 = cleared t1"
    assert log.tree.duplicates == 1


def test_of_a_decision_written_twice_the_last_counts() -> None:
    b = Builder()
    b.answer(use("t1"), key="m1")
    b.answer(use("t2"), key="m1")
    b.results("t1", "t2")
    clear = b.clear("t1")
    b.put(Clear(clear, b.last, "", {"t2": "the other"}), moves=False)
    assert texts(grown(b.records))[-2:] == ["u: t1 = done", "u: t2 = the other"]

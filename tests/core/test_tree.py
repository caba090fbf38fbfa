"""The tree: which records belong to the conversation, for any links, ids and order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from tests.core.histories import WEIGHTS, Builder, examples, grow, grown, histories, loaded, result, texts, use, words

from lamina.core.blocks import ToolResult, ToolUse, read_content
from lamina.core.log import Log
from lamina.core.message_list import MISSING_RESULT
from lamina.core.records import Attachment, Boundary, Clear, Foreign, Message, Newer, Record, Revoke, Rewind
from lamina.core.tree import MAX_LINKS


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
    """Return the records that a rewind cuts off: the members written after its target."""
    place: dict[str, int] = {}
    for at, record in enumerate(records):
        if isinstance(record, Message | Attachment | Boundary):
            place.setdefault(record.uuid, at)
    end = place[rewind.target] if rewind.target in members else -1
    return {uuid for uuid in members if place[uuid] > end}


def _definition(log: Log, records: Sequence[Record], cut: set[str]) -> set[str]:
    """Compute the members in the simplest way: ancestors of the leaf, their siblings, and the results of all their calls."""
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

"""The log: every way of reading it gives the same view, and a revoked decision leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.api_rules import complaints
from tests.core.histories import (
    Builder,
    examples,
    grow,
    grown,
    histories,
    loaded,
    plain_histories,
    reread,
    texts,
    use,
    words,
)

from lamina.core.errors import UndoOrder
from lamina.core.log import Log, checkpoint_state, seeded
from lamina.core.records import Attachment, Boundary, Clear, Message, Record, Revoke, Span


def state(log: Log) -> dict[str, Any]:
    """Return everything that a reader of the log can see."""
    view = log.view
    return {
        "messages": view.messages(),
        "items": list(view.items),
        "chain": list(view.flat.chain),
        "pins": dict(view.pins),
        "replaced": dict(view.replaced),
        "shortened": dict(view.shortened),
        "snapshot": view.snapshot,
        "void": list(view.void),
        "recorded": dict(view.recorded),
        "decisions": list(log.decisions),
        "open": view.flat.open_calls,
    }


def refolded(records: Sequence[Record]) -> Log:
    log = loaded(records)
    log.refold(lambda: records)
    return log


# Properties of every history


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


# Undo


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
    """Return the records as if the decision had never been made; its children move to its parent."""
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

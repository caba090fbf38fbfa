"""Planning an import before anything is saved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.maintenance.transfer.made import topics

from lamina.maintenance.transfer.plan import MOST_BYTES, Outcome, plan, to_portable, with_footer
from lamina.maintenance.transfer.portable_topic import Imported, PortableTopic
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.in_memory import InMemoryStore
from lamina.memory.store.topic import Topic, name_key, read_topic

WHY = ChangeReason(who="user", why="imported")


def there(*found: Topic) -> dict[str, Topic]:
    return {name_key(topic.name): topic for topic in found}


def outcomes(made: list[PortableTopic], *found: Topic, replace: bool = False) -> list[tuple[str, Outcome, str]]:
    items = plan(Imported(tuple(made)), there(*found), origin="mem0", replace=replace).items
    return [(item.name, item.outcome, item.why) for item in items]


OLD = Topic("a.md", "a", "one", "user", "body\n")


@pytest.mark.spec("B13")
@pytest.mark.parametrize(
    ("made", "replace", "outcome", "why"),
    [
        (PortableTopic("b", "one", "user", "body"), False, "created", ""),
        (PortableTopic("a", "one", "user", "body"), False, "unchanged", ""),
        (PortableTopic("A", "one", None, "body\n"), True, "unchanged", ""),
        (PortableTopic("a", "one", "user", "body", modified=1e9), True, "unchanged", ""),
        (PortableTopic("a", "one", "user", "body", fields={"mem0": {"id": "1"}}), False, "conflict", "body differs"),
        (PortableTopic("a", "one", "user", "other"), False, "conflict", "body differs"),
        (PortableTopic("a", "two", "project", "body"), False, "conflict", "type and description differ"),
        (PortableTopic("a", "one", "user", "other"), True, "replaced", "body differs"),
        (PortableTopic("a", "one", "user", "x" * 300_000), True, "refused", "is longer than 256 KiB"),
    ],
)
def test_a_memory_is_made_kept_or_replaced(made: PortableTopic, replace: bool, outcome: Outcome, why: str) -> None:
    [(_, decided, reason)] = outcomes([made], OLD, replace=replace)
    assert (decided, reason) == (outcome, why)


@pytest.mark.spec("B13")
def test_of_two_memories_with_one_name_none_is_lost_and_a_double_counts_once() -> None:
    made = [
        PortableTopic("a", body="1"),
        PortableTopic("A ", body="2"),
        PortableTopic("a", body="1"),
        PortableTopic("a 2", body="3"),
        PortableTopic("a", body="2"),
    ]
    assert [name for name, _, _ in outcomes(made)] == ["a", "A 2", "a 2 2"]


@pytest.mark.spec("B13")
@pytest.mark.spec("S6", "B13")
def test_a_name_that_is_the_file_of_another_memory_is_kept() -> None:
    made = [PortableTopic("A: B", body="1"), PortableTopic("a-b", body="2")]
    assert [name for name, _, _ in outcomes(made)] == ["A: B", "a-b"]
    store = InMemoryStore(clock=lambda: 1.0)
    done(store, made)
    assert sorted(topic.body for topic in store.topics()) == ["1\n", "2\n"]


def test_a_memory_without_a_name_gets_one_that_stays_the_same() -> None:
    [(first, _, _)] = outcomes([PortableTopic("\n\t", body="x")])
    assert first.startswith("memory ")
    assert outcomes([PortableTopic("", body="x")])[0][0] == first


@pytest.mark.spec("B13", "B7")
def test_what_is_compared_is_what_a_save_would_write() -> None:
    token = "ghp_" + "A1b2C3d4E5" * 4
    made = [PortableTopic("a", body=f"the token of the build is {token}")]
    [item] = plan(Imported(tuple(made)), {}, origin="mem0", replace=False).items
    assert item.wish is not None
    assert item.wish.redacted == ("GitHub token",)
    saved = Topic("a.md", "a", "", None, item.wish.draft.body)
    assert outcomes(made, saved) == [("a", "unchanged", "")]


def test_evidence_goes_where_evidence_belongs() -> None:
    made = PortableTopic("a", body="x", fields={"evidence": ["src/db.py"], "tags": ["y"]})
    [item] = plan(Imported((made,)), {}, origin="claude-code", replace=False).items
    assert item.wish is not None
    assert item.wish.draft.evidence == ("src/db.py",)
    assert "src/db.py" not in item.wish.draft.body


@pytest.mark.exhaustive
@pytest.mark.spec("B13")
@given(st.lists(topics, max_size=5))
def test_importing_twice_changes_nothing_the_second_time(made: list[PortableTopic]) -> None:
    store = InMemoryStore(clock=lambda: 1.0)
    done(store, made)
    assert done(store, made) <= {"unchanged", "refused"}


def done(store: InMemoryStore, made: list[PortableTopic]) -> set[Outcome]:
    items = plan(Imported(tuple(made)), there(*store.topics()), origin="codex", replace=True).items
    wishes = [item.wish for item in items if item.wish is not None and item.outcome in ("created", "replaced")]
    for wish in wishes:
        store.save(wish.draft, why=WHY)
    return {item.outcome for item in items}


# The line that keeps dates and fields


@pytest.mark.spec("B13")
@given(topics)
def test_a_date_and_fields_ride_in_the_last_line_and_come_off_again(topic: PortableTopic) -> None:
    body, left_out = with_footer(topic, "mem0")
    if left_out is not None or body == topic.body:
        return
    back = to_portable(read_topic("a.md", f"---\nname: a\n---\n\n{body}", 7.0))
    kept = {key: value for key, value in topic.fields.items() if key != "evidence"}
    assert (back.body, back.fields) == (topic.body, kept)
    assert back.modified == (7.0 if topic.modified is None else topic.modified)


def test_a_last_line_that_was_damaged_is_part_of_the_body() -> None:
    body, _ = with_footer(PortableTopic("a", body="x", modified=1.0), "mem0")
    for damaged in (body.replace('"from"', '"from'), body.replace(" -->", ""), f"{body}more"):
        assert to_portable(Topic("a.md", "a", "", None, damaged, {}, 3.0)).body == damaged.removesuffix("\n")


def test_fields_too_long_for_a_line_are_named_and_left_out() -> None:
    body, left_out = with_footer(PortableTopic("a", body="x", modified=1.0, fields={"blob": "y" * MOST_BYTES}), "mem0")
    assert left_out == "its fields (blob) are longer than 2,000 bytes and were dropped"
    assert "blob" not in body
    planned = plan(Imported((PortableTopic("a", body="x", fields={"blob": "y" * MOST_BYTES}),)), {}, origin="mem0", replace=False)
    assert planned.problems == ("'a': its fields (blob) are longer than 2,000 bytes and were dropped",)

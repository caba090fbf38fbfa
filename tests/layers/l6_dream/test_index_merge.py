"""Merging and restoring the index, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.layers.l6_dream.apply import (
    finish_index,
    keep_prose,
    merge_edits,
    only_added,
)
from lamina.memory.store.index import merge_indexes, rows_of


def lines(*entries: str) -> str:
    return "".join(f"- [{entry[0]}]({entry[0]}.md) — {entry[1:] or 'as it was'}\n" for entry in entries)


BEFORE = lines("a", "b", "c")


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    ("made", "now", "ours", "theirs", "expected"),
    [
        (lines("a", "b"), lines("a", "b"), [], [], BEFORE),
        (lines("a2", "b", "c"), lines("a2", "b", "c", "x"), [], [], lines("a", "b", "c", "x")),
        (lines("a2", "b", "c"), lines("a3", "b", "c"), [], [], lines("a3", "b", "c")),
        (lines("a2", "b", "c"), BEFORE, [], [], BEFORE),
        (lines("a2", "b", "c"), lines("a3", "b", "c"), ["a.md"], [], BEFORE),
        (lines("a", "n"), lines("a", "n", "x"), [], ["n.md"], lines("a", "b", "c", "n", "x")),
        (lines("c", "a", "b"), lines("c", "a", "b"), [], [], BEFORE),
        (BEFORE, lines("a", "b"), [], [], lines("a", "b")),
    ],
)
def test_the_lines_of_a_set_go_and_everybody_elses_stay(
    made: str, now: str, ours: list[str], theirs: list[str], expected: str
) -> None:
    assert merge_indexes(BEFORE, now, base=made, our_rows=ours, their_rows=theirs) == expected


ENTRIES = st.lists(
    st.sampled_from([f"{name}{word}" for name in "abcd" for word in ("", "1", "2")]), unique_by=lambda entry: entry[0]
)


@pytest.mark.spec("B4")
@settings(max_examples=60)
@given(ENTRIES, ENTRIES, ENTRIES)
def test_a_line_that_others_wrote_is_never_touched(before: list[str], made: list[str], now: list[str]) -> None:
    done = rows_of(merge_indexes(lines(*before), lines(*now), base=lines(*made)))
    for file, row in rows_of(lines(*now)).items():
        if row != rows_of(lines(*made)).get(file):
            assert done[file] == row
    assert merge_indexes(lines(*before), lines(*made), base=lines(*made)) == lines(*before)


@pytest.mark.spec("B4")
def test_prose_that_others_added_stays_and_that_of_the_set_goes() -> None:
    before, made = f"# Mine\n{lines('a', 'b')}", f"# Dreamt\n{lines('b', 'a')}"
    assert merge_indexes(before, made, base=made) == before
    assert merge_indexes(before, f"{made}Ask Kim.\n", base=made) == f"{before}Ask Kim.\n"
    assert merge_indexes(before, before.replace("# Mine\n", ""), base=before) == lines("a", "b")
    # Stopped before the index was written, and after some of it was restored.
    assert merge_indexes(before, before, base=made) == before
    assert merge_indexes(before, made.replace(lines("b"), ""), base=made, our_rows=["b.md"]) == before


@pytest.mark.spec("S3")
def test_only_additions_are_told_from_edits() -> None:
    assert only_added(lines("a", "b"), lines("a", "x", "b"))
    assert not only_added(lines("a", "b"), lines("a", "b2"))
    assert only_added("", lines("a"))


@pytest.mark.spec("S3")
def test_prose_goes_only_where_somebody_else_says_it() -> None:
    before = "# Title\nAsk Kim first.\n" + lines("a")
    assert keep_prose(before, lines("a"), []) == (f"Ask Kim first.\n{lines('a')}", ["Ask Kim first."])
    assert keep_prose(before, lines("a"), ["For releases: ask Kim first, always."]) == (lines("a"), [])
    assert keep_prose(before, "Ask Kim first.", []) == ("Ask Kim first.", [])


@pytest.mark.spec("D6")
def test_lines_that_others_changed_meanwhile_stay_and_the_dreams_other_lines_count() -> None:
    base, now = f"Old.\n{lines('a', 'b', 'c', 'd')}", f"New.\n{lines('a', 'b9', 'c9')}"
    text, both = merge_edits(f"Old.\n{lines('a2', 'b2', 'c', 'd')}", base=base, now=now)
    assert text == f"{lines('a2', 'b9', 'c9')}New.\n"
    assert both == ["b.md"]


@pytest.mark.spec("S3")
def test_the_lines_of_memories_that_the_dream_does_not_know_are_kept() -> None:
    done = finish_index(
        lines("a2", "b"),
        base=lines("a", "b", "c", "g"),
        now=lines("a9", "b9", "c", "new"),
        files=["a.md", "b.md", "c.md", "n.md"],
        changed=["b.md"],
    )
    assert rows_of(done) == rows_of(lines("a2", "b9", "c", "new"))


@pytest.mark.spec("S3")
def test_the_line_of_a_memory_that_stays_against_the_dreams_will_keeps_its_place() -> None:
    now = "- [a](a.md) — one\n- [b](b.md) — two\n- [c](c.md) — three\n"
    work = "- [a](a.md) — one\n- [c](c.md) — three\n"
    assert finish_index(work, base=now, now=now, files=["a.md", "b.md", "c.md"], changed=[]) == now

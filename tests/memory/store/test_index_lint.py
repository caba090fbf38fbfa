"""The index as it should be: which lines go, which stay, which are added."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import DiskError
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.index import LINE_CHARS, MOST_INDEX, MOST_LINES, load_index, read_entries
from lamina.memory.store.lint import MOST_KEPT, list_index_backups, plan_index, repair_index
from lamina.memory.store.topic import Topic

TOPICS = [Topic("a.md", "a", "about a", None, ""), Topic("b.md", "b", "about b", None, "")]
FILES = {"a.md", "b.md"}


def plan(text: str, topics: list[Topic] = TOPICS) -> tuple[str, set[tuple[int, str]], list[str]]:
    found = plan_index(text, exists=FILES.__contains__, topics=topics)
    return found.text, {(fault.line, fault.fault) for fault in found.faults}, found.added


@pytest.mark.spec("S3")
def test_an_index_in_order_stays_as_it_is() -> None:
    text = "# Mine\n\n- [A](a.md) — x\nprose\n* [B](b.md)\n"
    assert plan(text) == (text, set(), [])


@pytest.mark.spec("S3")
def test_lines_that_lead_nowhere_go_and_missing_ones_come() -> None:
    text, faults, added = plan("- [gone](gone.md)\n- [A](a.md)\n- [A](a.md)\n")
    assert text == "- [A](a.md)\n- [b](b.md) — about b\n"
    assert faults == {(1, "dead"), (3, "double")}
    assert added == ["b.md"]


def test_a_long_line_is_cut_and_one_with_too_long_a_file_is_not() -> None:
    name = f"{'n' * 160}.md"
    long = f"- [A](a.md) — {'w' * 200}\r\n- [N]({name}) — x\n"
    found = plan_index(long, exists=lambda _: True, topics=[])
    assert [len(line.rstrip("\r")) <= LINE_CHARS for line in found.text.split("\n")[:2]] == [True, False]
    assert found.text.split("\n")[0].endswith("\r")
    assert [fault.fault for fault in found.faults] == ["long and fixed", "long"]


@given(
    st.lists(
        st.sampled_from(
            [
                "- [A](a.md) — x",
                "- [gone](gone.md)",
                "- [B](b.md)",
                "prose",
                "",
                "- [out](../x.md)",
                f"- [A](a.md) {'w' * 200}",
                "\r",
                "# h",
            ]
        ),
        max_size=20,
    ).map("\n".join)
)
def test_mending_twice_changes_nothing_more(text: str) -> None:
    once = plan(text)[0]
    again, faults, added = plan(once)
    assert (again, added) == (once, [])
    assert {fault for _, fault in faults} <= {"outside", "content"}


@pytest.mark.spec("S4")
def test_an_index_that_is_full_takes_no_more_lines() -> None:
    topics = [Topic(f"t{number}.md", f"t{number}", "x", None, "") for number in range(MOST_LINES + 50)]
    found = plan_index("", exists=lambda _: True, topics=topics)
    assert (len(read_entries(found.text)), len(found.no_room)) == (MOST_LINES, 50)
    assert "Warning" not in load_index(found.text)


def test_what_was_there_is_kept_and_old_copies_go(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        for number in range(MOST_KEPT + 3):
            (tmp_path / "memory" / "MEMORY.md").write_text(f"- [gone](gone{number}.md)\n")
            assert repair_index(store, exists=lambda _: False, now=1000.0 + number) is not None
        kept = list_index_backups(store)
        assert len(kept) == MOST_KEPT
        assert (tmp_path / "memory" / kept[-1]).read_text() == f"- [gone](gone{MOST_KEPT + 2}.md)\n"
        assert repair_index(store, exists=lambda _: False, now=0.0) is None


def test_an_index_that_is_none_is_refused(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        (tmp_path / "memory" / "MEMORY.md").write_bytes(b"x" * (MOST_INDEX + 1))
        with pytest.raises(DiskError, match="larger than"):
            repair_index(store, exists=lambda _: False, now=0.0)

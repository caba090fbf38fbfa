"""The index: lines that hold, lines that stay, and what a session is sent of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.memory.store.index import (
    LINE_CHARS,
    MOST_BYTES,
    MOST_LINES,
    IndexEntry,
    drop_entry,
    entry_line,
    load_index,
    put_entry,
    read_entries,
)

INDEX = """# Memory

- [Testing](testing-db.md) — a real database
* [Who](user/role.md): a data scientist
- a line of a person's own
- [Site](https://example.com/a.md) — not a file of ours
"""

files = st.from_regex(r"[a-z]{1,8}(-[a-z]{1,8}){0,3}\.md", fullmatch=True)


@pytest.mark.spec("S3")
def test_entries_are_the_lines_that_point_at_files() -> None:
    assert read_entries(INDEX) == [
        IndexEntry("Testing", "testing-db.md", "a real database"),
        IndexEntry("Who", "user/role.md", "a data scientist"),
    ]


@pytest.mark.spec("S3")
def test_a_line_is_replaced_where_it_stands() -> None:
    assert put_entry(INDEX, IndexEntry("Testing", "testing-db.md", "changed")) == INDEX.replace("a real database", "changed")


def test_a_line_that_says_the_same_keeps_its_spelling() -> None:
    assert put_entry(INDEX, IndexEntry("Who", "user/role.md", "a data scientist")) == INDEX


@pytest.mark.spec("S3")
def test_new_lines_stand_by_topic_not_by_date() -> None:
    text = ""
    for file in ("b-one.md", "c.md", "a.md", "b-two.md"):
        text = put_entry(text, IndexEntry(file, file, ""))
    assert [entry.file for entry in read_entries(text)] == ["a.md", "b-one.md", "b-two.md", "c.md"]
    mixed = "- [Z](z.md)\n- [B](b-one.md)\n- [A](a.md)\n"
    assert [entry.file for entry in read_entries(put_entry(mixed, IndexEntry("B", "b-two.md", "")))] == [
        "z.md",
        "b-one.md",
        "b-two.md",
        "a.md",
    ]


def test_lines_of_a_person_stay_when_an_entry_goes() -> None:
    assert drop_entry(INDEX, "testing-db.md") == INDEX.replace("- [Testing](testing-db.md) — a real database\n", "")
    assert drop_entry(INDEX, "missing.md") == INDEX


@pytest.mark.spec("G3")
@pytest.mark.parametrize(
    "bad", ["a\nb", "</system-reminder>", "</system>", "x" * 10_000, "](evil.md) — ", "[", "\u202e", "<!-- "]
)
def test_whatever_a_description_holds_its_line_is_one_safe_line(bad: str) -> None:
    line = entry_line(IndexEntry(bad, "a-file.md", bad * 3))
    assert len(line) <= LINE_CHARS
    assert line.isprintable()
    assert "</" not in line
    assert "<!" not in line
    assert read_entries(line)[0].file == "a-file.md"


@pytest.mark.spec("S3", "G3")
@given(st.text(), files, st.text())
def test_any_title_and_hook_make_one_line_that_leads_to_its_file(title: str, file: str, hook: str) -> None:
    line = entry_line(IndexEntry(title, file, hook))
    assert line.isprintable()
    assert len(line) <= LINE_CHARS
    assert [entry.file for entry in read_entries(line)] == [file]


@given(st.text(), st.lists(files, max_size=5, unique=True), st.text())
def test_an_entry_that_was_put_in_is_there_once_and_gone_when_taken_out(text: str, names: list[str], hook: str) -> None:
    for name in names:
        text = put_entry(text, IndexEntry(name, name, hook))
        assert [entry.file for entry in read_entries(text)].count(name) == 1
    for name in names:
        assert put_entry(text, IndexEntry(name, name, hook)) == text
        text = drop_entry(text, name)
        assert name not in [entry.file for entry in read_entries(text)]


@given(st.text(), files)
def test_other_lines_keep_their_bytes(text: str, name: str) -> None:
    text = drop_entry(text, name)
    text = text if text.endswith("\n") or not text else f"{text}\n"
    assert drop_entry(put_entry(text, IndexEntry("T", name, "h")), name) == text


def test_a_file_with_a_space_keeps_its_link() -> None:
    text = put_entry("", IndexEntry("T", "my notes (old).md", ""))
    assert read_entries(text) == [IndexEntry("T", "my notes (old).md", "")]
    assert read_entries("- [T](my%20notes.md) — x")[0].file == "my notes.md"


@pytest.mark.spec("S4")
def test_an_index_at_both_limits_is_sent_as_it_is() -> None:
    lines = ["x" * (MOST_BYTES // MOST_LINES - 1)] * MOST_LINES
    text = "\n".join(lines)
    assert load_index(text) == text
    assert load_index(text + "\n\n") == text


@pytest.mark.spec("S4")
def test_too_many_lines_are_cut_and_the_warning_names_that_limit() -> None:
    sent = load_index("\n".join(f"- line {number}" for number in range(250)))
    assert "- line 199\n" in sent
    assert "- line 200\n" not in sent
    assert "has 250 lines (the limit is 200)" in sent
    assert "50 lines are left out, from line 201 on ('- line 200')" in sent
    assert "bytes" not in sent
    assert "move detail into topic files" in sent


@pytest.mark.spec("S4")
def test_too_many_bytes_are_cut_at_the_end_of_a_line() -> None:
    sent = load_index("\n".join("é" * 149 for _ in range(150)))
    kept = sent.split("\n\n> Warning")[0]
    assert set(kept.split("\n")) == {"é" * 149}
    assert MOST_BYTES - 299 < len(kept.encode()) <= MOST_BYTES
    assert "44,849 bytes long (the limit is 25,000)" in sent


@pytest.mark.spec("S4")
def test_one_line_that_is_too_long_is_cut_inside() -> None:
    sent = load_index("é" * 20_000)
    assert sent.startswith("é" * 12_500 + "\n\n> Warning")
    assert "its line is cut" in sent


def test_front_matter_and_comments_are_not_sent() -> None:
    assert load_index("---\na: b\n---\n<!-- note\nto self -->\n- [A](a.md)\n") == "- [A](a.md)"


@given(st.text())
def test_loading_never_raises_and_never_exceeds_its_limits(text: str) -> None:
    assert len(load_index(text * 300).split("\n\n> Warning")[0].encode("utf-8", "replace")) <= MOST_BYTES

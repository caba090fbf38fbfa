"""Each change of a dream can be seen, checked fact by fact, and undone alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.errors import InputError
from lamina.layers.l6_dream.apply import NOT_DUPLICATE
from lamina.layers.l6_dream.changes import list_dream_facts, list_dreamed_files
from lamina.layers.l6_dream.undo import undo, undo_changes
from lamina.memory.store.distinct import note_distinct

from .staged import Dream, dreamt, memory, save, snapshot, some, topic

FACT = "Fact number {} about the parser is kept here."


def merge(one: Dream) -> None:
    """Move the fact of t001 to t000, and change t002."""
    one.write("t000.md", topic("t000", f"{FACT.format(0)} {FACT.format(1)}"))
    one.remove("t001.md")
    one.write("t002.md", topic("t002", f"{FACT.format(2)} {FACT.format(3)}"))


def test_one_change_is_undone_and_the_others_stay(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 4)
        before = snapshot(where)
        record = dreamt(gated, merge)
        after = snapshot(where)
        done = undo_changes(gated, record.id, ["t001.md"])
        assert (done.back, done.left) == (("t001.md",), ())
        assert snapshot(where)["t001.md"] == before["t001.md"]
        assert "t001.md" in gated.store.index()
        same = {file: data for file, data in after.items() if file not in ("t001.md", "MEMORY.md")}
        assert {file: data for file, data in snapshot(where).items() if file in same} == same
        states = {one.file: one.state for one in list_dreamed_files(gated, record)}
        assert states == {"t000.md": "applied", "t001.md": "undone", "t002.md": "applied"}
        # The rest can still be undone as a whole.
        undo(gated, record.id)
        assert {file: data for file, data in snapshot(where).items() if file != "MEMORY.md"} == {
            file: data for file, data in before.items() if file != "MEMORY.md"
        }


def test_a_file_changed_since_the_dream_is_left_alone(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 4)
        record = dreamt(gated, merge)
        save(gated, "t002", "The user wrote this.", who="user")
        done = undo_changes(gated, record.id, ["t002.md"])
        assert [(one.file, one.why) for one in done.left] == [("t002.md", "was changed since")]
        assert b"The user wrote this." in snapshot(where)["t002.md"]
        states = {one.file: (one.state, one.known) for one in list_dreamed_files(gated, record)}
        assert states["t002.md"] == ("changed", True)


@pytest.mark.parametrize(
    ("dream", "file", "says"), [("", "t009.md", "not changed by"), ("20270115T0000-ffff", "t000.md", "no changes")]
)
def test_what_no_dream_changed_is_refused(tmp_path: Path, dream: str, file: str, says: str) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 4)
        record = dreamt(gated, merge)
        with pytest.raises(InputError, match=says):
            undo_changes(gated, dream or record.id, [file])


def test_every_fact_names_the_memory_that_states_it_now(tmp_path: Path) -> None:
    with memory(tmp_path / "m") as gated:
        some(gated, 4)
        save(gated, "t002", f"{FACT.format(2)} The cache holds sixteen entries.")
        record = dreamt(gated, merge)
        files = list_dreamed_files(gated, record)
        facts = list_dream_facts(files)
        assert [one.number for one in facts] == [1, 2, 3, 4]
        assert {one.text: (one.file, one.now_in) for one in facts} == {
            FACT.format(0): ("t000.md", "t000.md"),
            FACT.format(1): ("t001.md", "t000.md"),
            FACT.format(2): ("t002.md", "t002.md"),
            "The cache holds sixteen entries.": ("t002.md", ""),
        }
        assert {one.file: (one.before is None, one.after is None) for one in files}["t001.md"] == (False, True)


def test_a_dream_asks_before_it_removes_what_the_user_called_distinct(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with memory(where) as gated:
        some(gated, 4)
        note_distinct(gated.store, "t000", "t001")
        record = dreamt(gated, merge)
        assert (where / "t001.md").exists()
        assert len(record.waiting) >= 1
        assert any(NOT_DUPLICATE in one.why.why for one in gated.inbox.waiting())
        assert {one.state for one in list_dreamed_files(gated, record) if one.file == "t001.md"} == {"waiting"}


def test_a_proposal_of_a_dream_is_applied_once_it_is_accepted_and_changes_nothing_once_it_is_refused(tmp_path: Path) -> None:
    with memory(tmp_path / "m", "confirm") as gated:
        some(gated, 4)
        record = dreamt(gated, merge)
        states = {one.file: (one.state, one.known) for one in list_dreamed_files(gated, record)}
        assert states == dict.fromkeys(("t000.md", "t001.md", "t002.md"), ("waiting", True))
        proposals = {one.file: one.id for one in gated.inbox.waiting()}
        gated.accept(proposals["t000.md"])
        gated.accept(proposals["t001.md"])
        gated.inbox.reject(proposals["t002.md"])
        files = {one.file: one for one in list_dreamed_files(gated, record)}
        assert {file: one.state for file, one in files.items()} == {
            "t000.md": "applied",
            "t001.md": "applied",
            "t002.md": "refused",
        }
        assert (FACT.format(1) in (files["t000.md"].after or ""), files["t001.md"].after) == (True, None)
        assert files["t002.md"].after == files["t002.md"].before
        undo(gated, record.id)
        assert {one.state for one in list_dreamed_files(gated, record)} == {"undone", "refused"}

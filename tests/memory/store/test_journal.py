"""Which change each line of a memory comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason, MemoryVersion
from lamina.memory.store.journal import blame

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6).map("\n".join)


def version(number: int, *, gone: bool = False) -> MemoryVersion:
    return MemoryVersion(
        str(number), float(number), "x", "remove" if gone else "save", ChangeReason("user"), "" if gone else f"d{number}"
    )


@pytest.mark.spec("B4")
def test_a_line_comes_from_the_change_that_brought_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path, path=tmp_path / "a" / "m", settings=Settings()) as memory:
        memory.save("x", body="one\ntwo", why=ChangeReason("user", "first"))
        memory.save("x", body="zero\none\nthree", why=ChangeReason("dream", "second"))
        path = memory.path / "x.md"
        path.write_text(path.read_text() + "by hand\n")
        found = {line.text: line.version.why.why if line.version and line.version.why else None for line in memory.blame("x")}
    assert {key: found[key] for key in ("one", "zero", "three", "by hand")} == {
        "one": "first",
        "zero": "second",
        "three": "second",
        "by hand": None,
    }


def test_what_was_removed_and_came_back_is_new(tmp_path: Path) -> None:
    history = [(version(1), "a\nb"), (version(2, gone=True), None), (version(3), "a\nb")]
    assert {line.version.id for line in blame(history, "a\nb") if line.version} == {"3"}


def test_a_version_the_journal_lost_is_passed_over() -> None:
    history = [(version(1), "a"), (version(2), None), (version(3), "a\nb\nc")]
    assert [(line.text, line.version and line.version.id) for line in blame(history, "a\nc")] == [("a", "1"), ("c", "3")]


@given(st.lists(LINES, max_size=5), LINES)
def test_every_line_has_one_origin_that_holds_it(texts: list[str], now: str) -> None:
    history = [(version(number), text) for number, text in enumerate(texts)]
    lines = blame(history, now)
    assert [line.text for line in lines] == now.splitlines()
    for line in lines:
        assert line.version is None or line.text in texts[int(line.version.id)].splitlines()
    if texts and texts[-1] == now:
        assert all(line.version is not None for line in lines)

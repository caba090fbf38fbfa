"""The worker's search: the same lines whatever the blocks, with what stands around them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.tools import search
from lamina.tools.search import FileSearch, SearchSpec

TEXT = st.text(st.sampled_from("ab\n é"), max_size=60)


def found(root: Path, **fields: Any) -> list[str]:
    out = list[bytes]()
    FileSearch(SearchSpec(root=str(root), name="f", mode="content")._replace(**fields), out.append).run()
    return [line.decode().split("\0")[1].removesuffix("\n") for line in out]


def expected(text: str, pattern: str, before: int, after: int) -> list[str]:
    lines = text.split("\n") if text and not text.endswith("\n") else text.split("\n")[:-1]
    hits = [index for index, line in enumerate(lines) if re.search(pattern, line)]
    shown = sorted({near for hit in hits for near in range(hit - before, hit + after + 1) if 0 <= near < len(lines)})
    return [f"{index + 1}{':' if index in hits else '-'}{lines[index]}" for index in shown]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=TEXT,
    pattern=st.sampled_from(["a", "^b", "b$", "^$", r"a\s+b", "[^a]b", r"\Ab", "(?!a)b", "ab*", "é"]),
    before=st.integers(0, 2),
    after=st.integers(0, 2),
    block=st.integers(8, 30),
    bom=st.sampled_from(["", "\ufeff"]),
)
def test_lines_are_those_that_looking_at_each_finds(
    tmp_path: Path, text: str, pattern: str, before: int, after: int, block: int, bom: str
) -> None:
    longest = max(map(len, text.split("\n")))
    with pytest.MonkeyPatch.context() as patch:
        # A line longer than a block is searched by its beginning only.
        patch.setattr(search, "_BLOCK", max(block, longest * 2 + 1))
        (tmp_path / "f").write_text(bom + text, newline="")
        assert found(tmp_path, pattern=pattern, before=before, after=after) == expected(text, pattern, before, after)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXT, pattern=st.sampled_from(["a", "b$", "é"]), after=st.integers(0, 2))
def test_matches_that_may_span_lines_find_those_within_one_too(tmp_path: Path, text: str, pattern: str, after: int) -> None:
    (tmp_path / "f").write_text(text, newline="")
    lines = found(tmp_path, pattern=pattern, after=after, multiline=True)
    assert lines == expected(text, pattern, 0, after)


def test_a_file_too_large_to_span_lines_is_searched_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_MULTILINE", 100)
    monkeypatch.setattr(search, "_BLOCK", 50)
    (tmp_path / "f").write_text("a\n" * 40 + "b\n" * 1_000)
    assert len(found(tmp_path, pattern="a\na", multiline=True)) == 40


def test_a_file_that_is_gone_or_unreadable_is_passed_over(tmp_path: Path) -> None:
    assert found(tmp_path, pattern="a") == []

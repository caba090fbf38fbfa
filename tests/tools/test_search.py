"""The walk and the search without ripgrep: all files in order, and the lines that match with what stands around them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.tools import search
from lamina.tools.search import SearchSpec, walk

TEXT = st.text(st.sampled_from("ab\n é"), max_size=60)


def found(root: Path, **fields: Any) -> list[str]:
    out = list[bytes]()
    search.search(SearchSpec(root=str(root), name="f", mode="content")._replace(**fields), out.append)
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
    bom=st.sampled_from(["", "\ufeff"]),
)
def test_lines_are_those_that_looking_at_each_finds(
    tmp_path: Path, text: str, pattern: str, before: int, after: int, bom: str
) -> None:
    (tmp_path / "f").write_text(bom + text, newline="")
    assert found(tmp_path, pattern=pattern, before=before, after=after) == expected(text, pattern, before, after)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXT, pattern=st.sampled_from(["a", "b$", "é"]), after=st.integers(0, 2))
def test_matches_that_may_span_lines_find_those_within_one_too(tmp_path: Path, text: str, pattern: str, after: int) -> None:
    (tmp_path / "f").write_text(text, newline="")
    lines = found(tmp_path, pattern=pattern, after=after, multiline=True)
    assert lines == expected(text, pattern, 0, after)


def test_of_a_file_too_large_the_beginning_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_BYTES", 100)
    (tmp_path / "f").write_text("a\n" * 40 + "b\n" * 1_000)
    assert len(found(tmp_path, pattern="a")) == 40
    assert len(found(tmp_path, pattern="b")) == 10


def test_a_file_that_is_gone_or_unreadable_is_passed_over(tmp_path: Path) -> None:
    assert found(tmp_path, pattern="a") == []


def tree(root: Path, names: Iterable[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


def files(root: Path, *globs: str) -> list[str]:
    out = list[bytes]()
    search.search(SearchSpec(root=str(root), pattern="x", globs=globs), out.append)
    return [line.decode().split("\0")[0] for line in out]


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    tree(tmp_path, ["b", "a/z", "a/b/c", "a.txt", "c/d", ".github/w.yml"])
    assert files(tmp_path) == [".github/w.yml", "a/b/c", "a/z", "a.txt", "b", "c/d"]


def test_version_control_and_dependencies_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, [".git/config", "node_modules/x.js", "p/__pycache__/x.pyc", "p/x.py", "p/node_modules"])
    assert files(tmp_path) == ["p/node_modules", "p/x.py"]


@pytest.mark.parametrize(
    ("globs", "wanted"),
    [
        (["*.env"], ["d/y.env", "x.env"]),
        (["!*.env"], ["d/e/z.py", "x.py"]),
        (["*.env", "!d/"], ["x.env"]),
        (["!d", "d/e/*"], ["d/e/z.py"]),
        (["*.{py,env}"], ["d/e/z.py", "d/y.env", "x.env", "x.py"]),
        (["d/*"], ["d/y.env"]),
        (["/*.py"], ["x.py"]),
        (["**/e/*.py"], ["d/e/z.py"]),
    ],
)
def test_the_last_glob_that_matches_decides(tmp_path: Path, globs: list[str], wanted: list[str]) -> None:
    tree(tmp_path, ["x.env", "d/y.env", "d/e/z.py", "x.py"])
    assert files(tmp_path, *globs) == wanted


def test_links_and_pipes_are_not_searched(tmp_path: Path) -> None:
    tree(tmp_path, ["root/d/x", "secret"])
    root = tmp_path / "root"
    for name, target in {
        "loop": root,
        "d/up": tmp_path,
        "out": tmp_path / "secret",
        "in": Path("d/x"),
        "no": Path("gone"),
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    assert files(root) == ["d/x"]


def test_every_directory_is_a_chance_to_stop(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    assert list(walk(str(tmp_path))) == [None] * 4

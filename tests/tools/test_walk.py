"""The walk: what git would look at, without links, in the order of paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from lamina.tools.walk import walk


def tree(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, *globs: str, ignore: bool = True, links: bool = False) -> list[str]:
    walked = walk(str(root), globs=globs, ignore=ignore, links=links)
    return ["/".join(each.parts) for each in walked if each is not None and each.parts[-1] != ".gitignore"]


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    tree(tmp_path, dict.fromkeys(["b", "a/z", "a/b/c", "a.txt", "c/d", ".github/w.yml"], ""))
    assert found(tmp_path) == [".github/w.yml", "a/b/c", "a/z", "a.txt", "b", "c/d"]


def test_version_control_and_dependencies_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, dict.fromkeys([".git/config", "node_modules/x.js", "p/__pycache__/x.pyc", "p/x.py", "p/node_modules"], ""))
    assert found(tmp_path) == ["p/node_modules", "p/x.py"]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("*.log", ["build/out", "docs/build/x", "keep.txt"]),
        ("build/", ["a.log", "docs/sub/b.log", "keep.txt"]),
        ("/build", ["a.log", "docs/build/x", "docs/sub/b.log", "keep.txt"]),
        ("docs/**/b.log", ["a.log", "build/out", "docs/build/x", "keep.txt"]),
        ("docs/build", ["a.log", "build/out", "docs/sub/b.log", "keep.txt"]),
        ("*.log\n!a.log", ["a.log", "build/out", "docs/build/x", "keep.txt"]),
        ("*\n!*.txt\n!*/", ["keep.txt"]),
        ("# comment\n\n  \n*.log   \r\n", ["build/out", "docs/build/x", "keep.txt"]),
        ("\\!odd\nbuild", ["a.log", "docs/sub/b.log", "keep.txt"]),
    ],
)
def test_the_lines_of_gitignore_mean_what_they_mean_to_git(tmp_path: Path, rules: str, kept: list[str]) -> None:
    (tmp_path / ".git").mkdir()
    tree(tmp_path, dict.fromkeys(["a.log", "build/out", "docs/build/x", "docs/sub/b.log", "keep.txt"], ""))
    (tmp_path / ".gitignore").write_text(rules)
    assert found(tmp_path) == kept


def test_rules_hold_from_the_top_of_the_repository_down_and_the_nearest_wins(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    tree(tmp_path, {".gitignore": "*.tmp\n/p/top\n", "p/.gitignore": "!b.tmp\n", "p/a.tmp": "", "p/b.tmp": "", "p/top": ""})
    assert found(tmp_path / "p") == ["b.tmp"]
    assert found(tmp_path) == ["p/b.tmp"]


def test_a_repository_inside_starts_afresh_and_outside_of_one_nothing_is_ignored(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {".gitignore": "*.tmp\n", "a.tmp": "", "in/.git/x": "", "in/.gitignore": "*.log\n", "in/a.tmp": "", "in/a.log": ""},
    )
    assert found(tmp_path) == ["a.tmp", "in/a.tmp"]


def test_a_glob_that_names_a_file_wins_over_gitignore(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    tree(tmp_path, {".gitignore": "*.env\nbuild/\n", "x.env": "", "d/y.env": "", "build/z.env": "", "x.py": ""})
    assert found(tmp_path, "*.env") == ["d/y.env", "x.env"]
    assert found(tmp_path, "!*.py") == []
    assert found(tmp_path, "*.env", "!d/") == ["x.env"]
    assert found(tmp_path, "*.{py,env}") == ["d/y.env", "x.env", "x.py"]
    assert found(tmp_path, "d/*") == ["d/y.env"]


def test_links_pipes_and_unreadable_gitignores_do_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "root" / ".git").mkdir(parents=True)
    root = tmp_path / "root"
    tree(root, {"d/x": ""})
    (tmp_path / "secret").write_text("")
    (root / "loop").symlink_to(root)
    (root / "d" / "up").symlink_to(tmp_path)
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to("d/x")
    (root / "nowhere").symlink_to("gone")
    os.mkfifo(root / "pipe")
    os.mkfifo(root / ".gitignore")
    assert found(root) == ["d/x"]
    assert found(root, links=True) == ["d/x", "in"]


def test_every_directory_is_a_chance_to_stop(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    assert list(walk(str(tmp_path))) == [None] * 4

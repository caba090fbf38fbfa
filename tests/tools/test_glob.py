"""Glob: files by name, newest first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.tools import glob
from lamina.tools.tool import Context

from .doing import call, context, done, refused


@pytest.fixture
def here(tmp_path: Path) -> Context:
    for age, name in enumerate(["old.py", "src/new.py", "src/deep/newest.py", "src/x.ts", "node_modules/m.py", "README.md"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, ns=(age * 10**9, age * 10**9))
    return context(tmp_path)


@pytest.mark.spec("S11", "B4")
@pytest.mark.parametrize("pattern", ["**/*.md", "**/*", ".history/*", "**/.dreams/**"])
def test_the_bookkeeping_of_a_memory_is_not_listed(pattern: str, tmp_path: Path) -> None:
    files = [".memory.lock", "a.md", ".history/index-1.md", ".dreams/d/work/a.md", "team/.memory.lock", "team/.inbox/p.json"]
    for name in (*files, "src/.history/kept.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = set(done("Glob", context(tmp_path), pattern=pattern).split())
    assert found <= {"a.md", "src/.history/kept.md", ".memory.lock", "team/.memory.lock", "No", "files", "match."}
    assert ("a.md" in found) == (pattern.startswith("**/*"))


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("**/*.py", ["src/deep/newest.py", "src/new.py", "old.py"]),
        ("*.py", ["old.py"]),
        ("src/*", ["src/x.ts", "src/new.py"]),
        ("**/*.{ts,md}", ["README.md", "src/x.ts"]),
        ("node_modules/**", ["node_modules/m.py"]),
        ("**", ["README.md", "src/x.ts", "src/deep/newest.py", "src/new.py", "old.py"]),
    ],
)
def test_what_matches_is_listed_newest_first(here: Context, pattern: str, files: list[str]) -> None:
    assert done("Glob", here, pattern=pattern).split("\n") == files


def test_a_directory_can_be_given_as_path(here: Context) -> None:
    assert done("Glob", here, pattern="*.py", path="src") == "src/new.py"
    assert done("Glob", here, pattern="**/*.py", path=str(here.cwd / "src")) == "src/deep/newest.py\nsrc/new.py"


def test_an_absolute_pattern_can_not_go_round_what_path_permits(here: Context) -> None:
    sentence = refused("Glob", here, pattern=f"{here.cwd}/src/**/*.py")
    assert sentence == f"pattern must be relative to path. Use path={here.cwd}/src and pattern=**/*.py instead."
    assert "path=/etc and pattern=passwd" in refused("Glob", here, pattern="/etc/passwd")


def test_files_outside_the_working_directory_have_their_full_path(here: Context) -> None:
    inside = context(here.cwd / "src")
    assert done("Glob", inside, pattern="*.md", path=str(here.cwd)) == str(here.cwd / "README.md")


def test_nothing_found_is_no_error(here: Context) -> None:
    assert done("Glob", here, pattern="*.rs") == "No files match."


def test_a_missing_directory_and_a_file_are_refused(here: Context) -> None:
    assert "does not exist" in refused("Glob", here, pattern="*", path="srx")
    assert "is not a directory" in refused("Glob", here, pattern="*", path="old.py")
    assert "must not contain `..`" in refused("Glob", here, pattern="../*")


def test_many_files_are_cut_to_the_newest(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}").touch()
        os.utime(tmp_path / f"{number:03}", ns=(number, number))
    output = call("Glob", context(tmp_path), pattern="*")
    lines = str(output.content).split("\n")
    assert lines[0] == "299"
    assert lines[249] == "050"
    assert lines[250] == "[The 250 newest of 300. Use a narrower pattern or path to see others.]"
    assert output.facts == {"files": 250, "more": True}


def test_names_of_great_length_stay_within_the_bound(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{'x' * 240}{number}").touch()
    output = call("Glob", context(tmp_path), pattern="*")
    assert len(output.content) <= 50_000
    assert output.facts["more"]


def test_links_that_lead_out_are_neither_gone_through_nor_listed(here: Context, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").touch()
    (here.cwd / "link").symlink_to(outside)
    (here.cwd / "secret.py").symlink_to(outside / "secret.py")
    assert "secret" not in done("Glob", here, pattern="**/*.py")


def test_a_link_to_a_file_inside_is_listed(here: Context) -> None:
    (here.cwd / "dir").mkdir()
    (here.cwd / "dir" / "real.toml").touch()
    (here.cwd / "linked.toml").symlink_to("dir/real.toml")
    (here.cwd / "nowhere.toml").symlink_to("gone.toml")
    assert sorted(done("Glob", here, pattern="**/*.toml").split("\n")) == ["dir/real.toml", "linked.toml"]


def test_a_tree_too_large_is_given_up_with_a_note(here: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glob, "MAX_SEEN", 3)
    output = call("Glob", here, pattern="**/*.py")
    assert "[The tree is too large to search completely" in str(output.content)
    assert output.facts["more"]


def test_an_abort_stops_it(here: Context) -> None:
    here.abort.set()
    assert refused("Glob", here, pattern="**") == "The call was stopped before it finished."

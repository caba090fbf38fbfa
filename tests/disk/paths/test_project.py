"""The slug and the canonical git root: one name per project and all its worktrees, and none that can be claimed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lamina.disk.paths.project import canonical_git_root, slug


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/kim/work/app", "-home-kim-work-app"),
        ("/home/kim/My_App v1.2", "-home-kim-My-App-v1-2"),
        ("/srv/项目", "-srv---"),
        ("/srv/🚀x", "-srv---x"),
        ("C:\\Users\\kim", "C--Users-kim"),
        ("/" + "a" * 199, "-" + "a" * 199),
    ],
)
def test_every_utf16_unit_that_is_no_ascii_letter_or_digit_becomes_a_dash(path: str, expected: str) -> None:
    assert slug(path) == expected


def java_hash(text: str) -> int:
    """The same hash the long way round: powers of 31, reduced at the end."""
    units = text.encode("utf-16-be")
    values = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    total: int = sum(value * 31 ** (len(values) - 1 - place) for place, value in enumerate(values)) % 2**32
    return total - 2**32 if total >= 2**31 else total


@pytest.mark.parametrize("path", ["/home/" + "abcdefghi/" * 24, "/" + "🚀" * 100, "/" + "é" * 300])
def test_a_long_path_is_cut_and_keeps_its_hash(path: str) -> None:
    head, tail = slug(path)[:200], slug(path)[200:]
    assert len(head) == 200
    assert tail[0] == "-"
    assert int(tail[1:], 36) == abs(java_hash(path))


def test_the_hash_of_a_known_text_is_the_known_number() -> None:
    # "hello" hashes to 99162322, "polygenelubricants" to -2147483648: the second has no positive twin in 32 bits.
    from lamina.disk.paths.project import _hash36

    assert int(_hash36("hello"), 36) == 99_162_322
    assert int(_hash36("polygenelubricants"), 36) == 2_147_483_648
    assert _hash36("") == "0"


def test_a_name_that_is_no_utf8_still_has_a_slug(tmp_path: Path) -> None:
    assert slug(os.fsdecode(b"/srv/\xff\xfe")) == "-srv---"


def repository(path: Path) -> Path:
    (path / ".git").mkdir(parents=True)
    (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return path


def worktree(main: Path, path: Path, *, back: str | None = None, relative: bool = False) -> Path:
    """As `git worktree add` lays it out."""
    git_dir = main / ".git" / "worktrees" / path.name
    git_dir.mkdir(parents=True)
    path.mkdir(parents=True)
    (path / ".git").write_text(f"gitdir: {os.path.relpath(git_dir, path) if relative else git_dir}\n")
    (git_dir / "commondir").write_text("../..\n")
    (git_dir / "gitdir").write_text(back or f"{os.path.relpath(path / '.git', git_dir) if relative else path / '.git'}\n")
    return path


def test_a_subdirectory_belongs_to_its_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / "a" / "b").mkdir(parents=True)
    assert canonical_git_root(main) == canonical_git_root(main / "a" / "b") == main


def test_outside_any_repository_there_is_no_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # a directory of that name that holds no repository
    assert canonical_git_root(tmp_path) is None


@pytest.mark.parametrize("relative", [False, True])
def test_a_worktree_shares_the_main_repositorys_root(tmp_path: Path, relative: bool) -> None:
    main = repository(tmp_path / "main")
    tree = worktree(main, tmp_path / "elsewhere" / "feature", relative=relative)
    (tree / "sub").mkdir()
    assert canonical_git_root(tree / "sub") == main


def test_a_path_through_a_link_is_resolved_first(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (tmp_path / "link").symlink_to(main)
    assert canonical_git_root(tmp_path / "link") == main


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / ".git" / "modules" / "lib").mkdir(parents=True)
    (main / "lib").mkdir()
    (main / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert canonical_git_root(main / "lib") == main / "lib"


def test_a_repository_without_a_working_tree_is_its_own_root(tmp_path: Path) -> None:
    bare = tmp_path / "project.git"
    git_dir = bare / "worktrees" / "feature"
    git_dir.mkdir(parents=True)
    tree = tmp_path / "feature"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git_dir}\n")
    (git_dir / "commondir").write_text("../..\n")
    (git_dir / "gitdir").write_text(f"{tree / '.git'}\n")
    assert canonical_git_root(tree) == bare


def test_a_directory_cannot_claim_a_repository_that_does_not_know_it(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    honest = worktree(main, tmp_path / "honest")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".git").write_text((honest / ".git").read_text())
    assert canonical_git_root(hostile) == hostile
    brought = tmp_path / "brought"
    (brought / "fake" / "worktrees" / "x").mkdir(parents=True)
    (brought / ".git").write_text("gitdir: fake/worktrees/x\n")
    (brought / "fake" / "worktrees" / "x" / "gitdir").write_text(f"{brought / '.git'}\n")
    (brought / "fake" / "worktrees" / "x" / "commondir").write_text(f"{main / '.git'}\n")
    assert canonical_git_root(brought) == brought


@pytest.mark.parametrize(
    "text", ["", "gitdir: ", "nonsense", "gitdir: /no/such/place", "gitdir: a\0b", "gitdir: " + "x" * 9_000, "gitdir: ."]
)
def test_a_broken_git_file_makes_its_directory_the_root(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert canonical_git_root(tmp_path) == tmp_path


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_itself_lays_out_is_understood(tmp_path: Path) -> None:
    main = tmp_path / "main"
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    name = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    for command in (["init", "-q", str(main)], ["-C", str(main), *name, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], check=True, env=quiet)
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(tmp_path / "wt"), "-b", "wt"], check=True, env=quiet)
    assert canonical_git_root(tmp_path / "wt") == canonical_git_root(main / ".git") == main

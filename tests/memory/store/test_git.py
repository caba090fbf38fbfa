"""Git mirrors the journal of a memory in a separate repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.git import sync_git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(memory: Path, *words: str) -> str:
    line = ["git", f"--git-dir={memory / '.history' / 'git'}", *words]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def opened(tmp_path: Path, **switches: bool) -> Memory:
    return Memory.open(tmp_path, path=tmp_path / "a" / "memory", settings=Settings(**switches))


@pytest.mark.spec("B4")
def test_each_change_becomes_a_commit_that_says_who_why_and_from_where(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.save("testing-db", body="One.", why=ChangeReason("extraction", "heard it", session="s-1", message="m-1"))
        memory.save("testing-db", body="Two.")
        memory.save('größe "x"', body="Ünï.")
        assert not (memory.path / ".history" / "git").exists(), "nothing is committed in a save"
    log = git(memory.path, "log", "--reverse", "--format=%an|%s|%(trailers:key=Session,valueonly,separator=%x2c)")
    assert log.splitlines() == ["extraction|save testing-db: heard it|s-1", "user|save testing-db|", 'user|save größe "x"|']
    assert "-One.\n+Two.\n" in git(memory.path, "log", "-p", "--", "testing-db.md")
    with opened(tmp_path) as memory:
        memory.remove("testing-db")
        memory.restore("testing-db")
    assert git(memory.path, "log", "-2", "--format=%s").splitlines() == ["restore testing-db", "remove testing-db"]
    assert git(memory.path, "show", "memory:testing-db.md").endswith("Two.\n")
    assert git(memory.path, "fsck", "--strict") == ""


def test_a_repository_of_the_persons_own_is_not_touched(tmp_path: Path) -> None:
    own = tmp_path / "a" / "memory"
    own.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=own, check=True)
    before = sorted((path, path.stat().st_mtime_ns) for path in (own / ".git").rglob("*"))
    with opened(tmp_path) as memory:
        memory.save("x", body="y")
    assert sorted((path, path.stat().st_mtime_ns) for path in (own / ".git").rglob("*")) == before
    assert git(own, "log", "--format=%s") == "save x\n"


def test_off_means_off_and_reading_makes_no_commit(tmp_path: Path) -> None:
    with opened(tmp_path, history_git=False) as memory:
        memory.save("x", body="y")
    with opened(tmp_path) as memory:
        memory.topics()
    assert not (memory.path / ".history" / "git").exists()


@pytest.mark.spec("B4")
@pytest.mark.parametrize("script", [None, "exit 1", "sleep 1000"], ids=["none", "failing", "hanging"])
def test_without_a_git_that_works_the_history_is_there_all_the_same(tmp_path: Path, script: str | None) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if script is not None:
        (programs / "git").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "git").chmod(0o755)
    with DirectoryStore.open(tmp_path / "memory") as store:
        store.save(Draft("x", body="y"), why=ChangeReason("user"))
        began = time.monotonic()
        assert sync_git(store.root, store.history, environ={"PATH": f"{programs}:/nowhere"}, seconds=0.2) == 0
        assert time.monotonic() - began < 500
        store.remove("x", why=ChangeReason("user"))
        assert store.restore("x", why=ChangeReason("user")).body == "y\n"
        assert sync_git(store.root, store.history, environ=os.environ) == 3, "the next time catches up"


def test_what_was_committed_is_not_committed_again(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory") as store:
        for number in range(3):
            store.save(Draft("x", body=f"{number}"), why=ChangeReason("user"))
            assert sync_git(store.root, store.history, environ=os.environ) == 1
        assert sync_git(store.root, store.history, environ=os.environ) == 0


def test_a_hook_or_a_setting_in_the_repository_runs_nothing(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory") as store:
        store.save(Draft("x", body="1"), why=ChangeReason("user"))
        sync_git(store.root, store.history, environ=os.environ)
        hooks = tmp_path / "memory" / ".history" / "git" / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / "reference-transaction").chmod(0o755)
        store.save(Draft("x", body="2"), why=ChangeReason("user"))
        assert sync_git(store.root, store.history, environ=os.environ) == 1
    assert not (tmp_path / "ran").exists()


def test_a_teams_directory_is_left_out(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", scope="team") as store:
        store.save(Draft("x", body="1"), why=ChangeReason("user"))
        assert sync_git(store.root, store.history, environ=os.environ) == 0

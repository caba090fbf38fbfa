"""Running git: bounded, and never a program of the working tree's."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lamina.disk.git import git_program, run_git

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a shell")


def program(directory: Path, script: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "git"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def run(path: str, where: Path, *, seconds: float = 20.0, **environ: str) -> bytes | None:
    return run_git(path, ("x",), git_dir=where, environ={"PATH": os.environ["PATH"], **environ}, seconds=seconds, stdin=b"in")


def test_a_git_in_the_working_tree_is_not_used(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    found = program(tree / "bin", "exit 0")
    assert git_program({"PATH": str(tree / "bin")}, outside=tree) is None
    assert git_program({"PATH": str(tree / "bin")}, outside=tmp_path / "other") == found
    assert git_program({"PATH": "bin:."}) is None, "a relative entry of the path is somebody else's"


def test_it_gets_what_is_piped_in_and_little_of_our_environment(tmp_path: Path) -> None:
    path = program(tmp_path, 'cat; echo " $GIT_DIR $SECRET $GIT_CONFIG_GLOBAL"')
    assert run(path, tmp_path, SECRET="key") == f"in {tmp_path}  {os.devnull}\n".encode()


def test_an_error_and_no_such_program_are_an_answer(tmp_path: Path) -> None:
    assert run(program(tmp_path, "exit 3"), tmp_path) is None
    assert run(str(tmp_path / "nothing"), tmp_path) is None


def test_it_is_ended_with_all_it_started(tmp_path: Path) -> None:
    path = program(tmp_path, "sleep 1000 & sleep 1000")
    began = time.monotonic()
    assert run(path, tmp_path, seconds=0.1) is None
    assert time.monotonic() - began < 500

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from lamina.prompt.git_status import (
    MOST_CHANGES,
    GitHead,
    GitRepository,
    comparison_settings,
    default_branch,
    find_repository,
    git_status,
    head_of,
    is_ref,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NO_PROGRAMS: Mapping[str, str] = {"PATH": ""}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(top: Path, *words: str) -> str:
    """Git as a person runs it, with nothing but the repository's own configuration."""
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(top),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "ann@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(["git", *words], cwd=top, env=own, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "a.txt").write_text("one\n")
    (made / "b.txt").write_text("one\n")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "first")
    return made


def status(cwd: Path) -> str:
    found = git_status(cwd, environ=os.environ, seconds=60)
    assert found is not None
    return found


@needs_git
@pytest.mark.spec("I4")
def test_branch_changes_and_last_commits_are_shown(top: Path) -> None:
    (top / "a.txt").write_text("two\n")
    (top / "b.txt").unlink()
    (top / "staged.txt").write_text("s")
    git(top, "add", "staged.txt")
    (top / ".gitignore").write_text("ignored\n")
    (top / "ignored").write_text("i")
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "exclude").write_text("excluded\n")
    (top / "excluded").write_text("e")
    (top / "new dir").mkdir()
    (top / "new dir" / "ü.txt").write_text("n")
    commit = git(top, "rev-parse", "--short", "HEAD")
    changes = [" M a.txt", " D b.txt", "A  staged.txt", "?? .gitignore", "?? new dir/"]
    assert status(top) == "\n".join(["Branch: main", "", "Changes:", *changes, "", "Last commits:", f"{commit} first"])


@needs_git
def test_a_clean_tree_has_no_changes_seen_from_below_too(top: Path) -> None:
    (top / "sub").mkdir()
    # Another time, the same content.
    os.utime(top / "a.txt", (1, 1))
    assert "Changes:\nnone\n" in status(top / "sub")


@needs_git
def test_packed_refs_and_objects_are_found(top: Path) -> None:
    git(top, "pack-refs", "--all")
    git(top, "gc", "-q")
    assert not (top / ".git" / "refs" / "heads" / "main").exists()
    assert status(top).endswith(" first")


@needs_git
def test_a_shallow_clone_shows_the_commits_it_has(top: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "second")
    git(top, "clone", "-q", "--depth", "1", f"file://{top}", str(top.parent / "shallow"))
    shown = status(top.parent / "shallow")
    assert shown.endswith(" second")
    assert "Main branch" not in shown


@needs_git
def test_a_worktree_shows_its_own_branch(top: Path) -> None:
    git(top, "worktree", "add", "-q", "-b", "feature", str(top.parent / "tree"))
    (top.parent / "tree" / "a.txt").write_text("changed\n")
    shown = status(top.parent / "tree")
    assert shown.startswith("Branch: feature\n")
    assert " M a.txt" in shown


@needs_git
def test_a_checked_out_commit_is_no_branch(top: Path) -> None:
    git(top, "checkout", "-q", "--detach")
    assert status(top).startswith("Branch: none (detached HEAD)\n")


@needs_git
def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a").write_text("a")
    assert git_status(tmp_path, environ=os.environ, seconds=60) == "Branch: main\nNo commits found.\n\nChanges:\n?? a"


@pytest.mark.parametrize("environ", [NO_PROGRAMS, {"PATH": "relative"}])
def test_without_a_git_program_the_branch_is_still_known(tmp_path: Path, environ: Mapping[str, str]) -> None:
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text(COMMIT)
    assert git_status(tmp_path, environ=environ) == "Branch: main"


def test_outside_a_repository_there_is_nothing(tmp_path: Path) -> None:
    assert git_status(tmp_path, environ=NO_PROGRAMS) is None


@needs_git
@pytest.mark.spec("I4")
def test_a_repository_of_many_changes_is_shown_in_part(top: Path) -> None:
    for number in range(MOST_CHANGES + 20):
        (top / f"new{number:03}").write_text("n")
    lines = status(top).splitlines()
    assert "… and 20 more" in lines


@needs_git
def test_when_time_is_up_what_is_missing_is_said(top: Path) -> None:
    slow = top.parent / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nsleep 600 | cat\n")
    (slow / "git").chmod(0o755)
    shown = git_status(top, environ={"PATH": f"{slow}{os.pathsep}/bin{os.pathsep}/usr/bin"}, seconds=0.05)
    assert shown == "Branch: main\n\nChanges:\n(incomplete: git did not finish in time)"


@needs_git
@pytest.mark.spec("F2")
def test_no_program_that_the_repository_names_is_run_and_nothing_is_written(top: Path) -> None:
    ran = top.parent / "ran"
    ran.mkdir()
    (top / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "attributes")
    configure_hostile(top, ran)
    # Same size, other time: git has to look at the content, which is when filters run.
    (top / "a.txt").write_text("two\n")
    (top / "b.txt").write_text("one\n")
    index = (top / ".git" / "index").read_bytes()
    before = sorted(path.name for path in (top / ".git").iterdir())
    assert " M a.txt" in status(top)
    assert list(ran.iterdir()) == []
    assert (top / ".git" / "index").read_bytes() == index
    assert sorted(path.name for path in (top / ".git").iterdir()) == before
    # The same repository runs them for who trusts it: the test can fail.
    subprocess.run(["git", "status"], cwd=top, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False)
    assert list(ran.iterdir()) != []


def configure_hostile(top: Path, ran: Path) -> None:
    program = top.parent / "evil"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'/x$$\ncat 2>/dev/null\n")
    program.chmod(0o755)
    names = ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"]
    names += ["diff.evil.command", "diff.external", "gpg.program", "core.pager", "pager.log", "pager.diff", "core.sshCommand"]
    names += ["core.editor", "core.askPass", "credential.helper", "alias.log", "core.alternateRefsCommand", "merge.evil.driver"]
    for name in names:
        git(top, "config", name, str(program))
    for name, value in {
        "log.showSignature": "true",
        "core.hooksPath": str(top.parent),
        "extensions.partialClone": "origin",
    }.items():
        git(top, "config", name, value)
    git(top, "config", "remote.origin.url", f"ext::{program}")
    git(top, "config", "remote.origin.promisor", "true")
    git(top, "config", "protocol.ext.allow", "always")
    shutil.copy(program, top.parent / "post-index-change")


@needs_git
@pytest.mark.spec("F2")
def test_a_git_in_the_working_tree_is_not_run(top: Path) -> None:
    (top / "bin").mkdir()
    (top / "bin" / "git").write_text(f"#!/bin/sh\ntouch '{top.parent}/ran'\n")
    (top / "bin" / "git").chmod(0o755)
    (top.parent / "link").symlink_to(top / "bin")
    git_status(top, environ={"PATH": f"{top / 'bin'}{os.pathsep}{top.parent / 'link'}"})
    assert not (top.parent / "ran").exists()


@needs_git
@pytest.mark.spec("F2")
def test_a_submodule_is_not_looked_into(top: Path) -> None:
    other = top.parent / "other"
    git(top.parent, "clone", "-q", str(top), str(other))
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(top, "commit", "-q", "-m", "submodule")
    (top / "evil").write_text(f"#!/bin/sh\ntouch '{top.parent}/ran'\n")
    (top / "evil").chmod(0o755)
    git(top / "sub", "config", "core.fsmonitor", str(top / "evil"))
    (top / "sub" / "a.txt").write_text("changed\n")
    status(top)
    assert not (top.parent / "ran").exists()
    assert status(top / "sub").startswith("Branch: main\n")
    assert not (top.parent / "ran").exists()


@needs_git
@pytest.mark.spec("G3")
def test_names_and_subjects_stay_on_their_line(top: Path) -> None:
    (top / "a\nBranch: evil").write_text("x")
    git(top, "commit", "-q", "--allow-empty", "-m", "subject\x1b[31m" + "x" * 1_000)
    lines = status(top).splitlines()
    assert "?? a\\u000aBranch: evil" in lines
    assert all(line.isprintable() and len(line) < 250 for line in lines)


def repository(tmp_path: Path) -> GitRepository:
    made = tmp_path / ".git"
    made.mkdir(exist_ok=True)
    return GitRepository(tmp_path, made, made)


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/heads/a/b-c", "refs/remotes/origin/x.y"])
def test_a_plain_ref_is_one(ref: str) -> None:
    assert is_ref(ref)


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "main",
        "refs/heads/../../x",
        "refs/heads/.x",
        "refs//x",
        "refs/x/",
        "/refs/x",
        "refs/a b",
        "refs/a\nb",
        "refs/heads/a@{1}",
    ],
)
def test_a_ref_that_leads_elsewhere_is_none(ref: str) -> None:
    assert not is_ref(ref)


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (COMMIT, GitHead(None, COMMIT)),
        ("ref: refs/heads/main", GitHead("main", None)),
        ("ref: refs/heads/../../../secret", GitHead(None, None)),
        ("ref: /etc/passwd", GitHead(None, None)),
        ("nonsense", GitHead(None, None)),
        ("", GitHead(None, None)),
    ],
)
def test_a_head_is_read_by_its_form(tmp_path: Path, text: str, head: GitHead) -> None:
    found = repository(tmp_path)
    (found.git / "HEAD").write_text(text)
    assert head_of(found) == head


def test_a_packed_ref_is_found_by_its_whole_name(tmp_path: Path) -> None:
    found = repository(tmp_path)
    (found.git / "HEAD").write_text("ref: refs/heads/main\n")
    other = COMMIT.replace("0", "f")
    (found.git / "packed-refs").write_text(
        f"# pack-refs\n{other} refs/heads/main2\n{other} x/refs/heads/main\n{COMMIT} refs/heads/main\n"
    )
    assert head_of(found) == GitHead("main", COMMIT)


def test_the_main_branch_is_the_one_origin_names(tmp_path: Path) -> None:
    found = repository(tmp_path)
    assert default_branch(found) is None
    (found.git / "refs" / "remotes" / "origin").mkdir(parents=True)
    (found.git / "refs" / "remotes" / "origin" / "HEAD").write_text("ref: refs/remotes/origin/trunk\n")
    assert default_branch(found) == "trunk"


def test_only_harmless_settings_are_taken_over(tmp_path: Path) -> None:
    found = repository(tmp_path)
    (found.git / "config").write_text(
        "[core]\n\tfileMode = false ; x\n  autocrlf=input\n\tfsmonitor = true\n\tsymlinks = /bin/sh\n\teditor = vi\n"
        '[filter "core"]\n\tignorecase = true\n[CORE]\n\ttrustctime = NO\n[core "x"]\n\tsymlinks = true\n'
    )
    assert comparison_settings(found) == {"core.filemode": "false", "core.autocrlf": "input", "core.trustctime": "no"}


@pytest.mark.parametrize("pointer", ["gitdir: {other}/.git", "gitdir: {other}/.git/worktrees/x", "gitdir:", "", "nonsense"])
def test_a_git_file_that_points_at_anothers_repository_does_not_count(tmp_path: Path, pointer: str) -> None:
    other = tmp_path.resolve() / "other"
    (other / ".git" / "worktrees" / "x").mkdir(parents=True)
    (other / ".git" / "HEAD").write_text("ref: refs/heads/private\n")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / ".git").write_text(pointer.format(other=other))
    assert find_repository(mine) is None

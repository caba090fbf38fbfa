"""Moving a project's memory and sessions to its new directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.disk.crash.harness import Kill, Say, every
from tests.disk.processes import needs_fork

from lamina.core.errors import InputError
from lamina.core.settings import Settings
from lamina.disk.paths.project import slug
from lamina.disk.transcripts.search import list_sessions
from lamina.maintenance.migrate.migrate import MoveReport, candidates, merge_memories, migrate, moved_from, refuse, root_commits
from lamina.maintenance.start_checks import learn_roots, run_start_checks
from lamina.memory.memory import Memory
from lamina.memory.store.project_identity import identify, read_identity, write_identity
from lamina.session.session import Session

from ..made import answered, project

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
PLAIN = Settings()
ROOT = "a" * 40


def save(home: Path, cwd: Path, name: str, body: str) -> None:
    with Memory.open(cwd, home=home, settings=PLAIN) as memory:
        memory.save(name, description=f"about {name}", body=body)


def names(home: Path, cwd: Path) -> dict[str, str]:
    with Memory.open(cwd, home=home, settings=PLAIN) as memory:
        return {topic.name: topic.body.strip() for topic in memory.topics()}


def talk(home: Path, cwd: Path, text: str) -> str:
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user(text)
        session.before_call()
        session.after_call(answered("yes"))
        (home / "projects" / slug(cwd) / session.id / "tool-results").mkdir(parents=True, exist_ok=True)
        (home / "projects" / slug(cwd) / session.id / "tool-results" / "x.txt").write_text("spilled")
        return session.id


def commit(directory: Path, text: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", text], cwd=directory, check=True)


def repository(directory: Path) -> Path:
    directory.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=directory, check=True)
    commit(directory, f"first of {directory.name}")
    commit(directory, "second")
    return directory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def old(tmp_path: Path, home: Path) -> Path:
    """A project with a memory, a session, and one of a subdirectory."""
    path = tmp_path / "old"
    (path / "src").mkdir(parents=True)
    save(home, path, "rule", "Tests first.")
    talk(home, path, "hello")
    identify(home, path)
    return path


def noted(home: Path, path: Path, *roots: str) -> None:
    own = read_identity(project(home, path))
    assert own is not None
    write_identity(project(home, path), type(own)(1, own.id, own.path, roots, own.place))


@needs_git
@pytest.mark.spec("B12")
def test_a_repository_that_moved_is_offered_its_memory_and_gets_it(tmp_path: Path, home: Path) -> None:
    before = repository(tmp_path / "before")
    save(home, before, "rule", "Tests first.")
    session = talk(home, before, "hello")
    (before / "src").mkdir()
    below = talk(home, before / "src", "from below")
    identify(home, before / "src")
    identify(home, before)
    learn_roots(home, before, os.environ)
    own = read_identity(project(home, before))
    assert own is not None
    assert own.roots == root_commits(before, environ=os.environ) != ()

    after = tmp_path / "elsewhere" / "after"
    shutil.copytree(before, after)  # another directory on the disk: only the root commit tells
    assert run_start_checks(after, home, PLAIN, environ=os.environ) == [], "the old path is still there"
    shutil.rmtree(before)
    [offer] = run_start_checks(after, home, PLAIN, environ=os.environ)
    assert str(before) in offer
    assert "lamina migrate" in offer

    roots = root_commits(after, environ=os.environ)
    [found] = candidates(home, after, roots or ())
    assert found.because == "the same root commit"
    refuse(home, found.known, after, merge=False)
    done = migrate(home, found.known, after, roots)
    assert (done.memories, done.sessions, done.left) == (1, 2, [])
    assert names(home, after) == {"rule": "Tests first."}
    assert [info.id for info in list_sessions([project(home, after)])] == [session]
    assert [info.id for info in list_sessions([project(home, after / "src")])] == [below]
    assert (project(home, after) / session / "tool-results" / "x.txt").read_text() == "spilled"
    new = read_identity(project(home, after))
    assert new is not None
    assert (new.id, new.path, new.was) == (own.id, str(after), (str(before),))
    assert not project(home, before).exists()
    assert not project(home, before / "src").exists()
    assert run_start_checks(after, home, PLAIN, environ=os.environ) == []
    with Session("offline", home=home, cwd=after, resume=session) as again:
        assert "hello" in str(again.messages)


@pytest.mark.spec("B12")
def test_a_directory_that_was_renamed_is_known_without_git(tmp_path: Path, home: Path, old: Path) -> None:
    new = tmp_path / "new"
    old.rename(new)
    [offer] = run_start_checks(new, home, PLAIN, environ=os.environ)
    assert "the same directory under another name" in offer


@needs_git
@pytest.mark.spec("B12")
def test_a_repository_cannot_claim_the_memory_of_one_that_is_there(tmp_path: Path, home: Path) -> None:
    real = repository(tmp_path / "real")
    save(home, real, "secret", "x")
    identify(home, real)
    learn_roots(home, real, os.environ)
    shutil.copytree(real, tmp_path / "clone")
    roots = root_commits(tmp_path / "clone", environ=os.environ)
    assert roots
    assert candidates(home, tmp_path / "clone", roots) == []
    with pytest.raises(InputError, match="still exists"):
        refuse(home, moved_from(home, str(real)), tmp_path / "clone", merge=False)


def test_two_candidates_are_no_offer(tmp_path: Path, home: Path) -> None:
    for name in ("one", "two"):
        path = tmp_path / name
        path.mkdir()
        save(home, path, "rule", name)
        identify(home, path)
        noted(home, path, ROOT)
        shutil.rmtree(path)
    new = tmp_path / "new"
    new.mkdir()
    talk(home, new, "x")
    identify(home, new)
    noted(home, new, ROOT)
    assert len(candidates(home, new, (ROOT,))) == 2
    assert run_start_checks(new, home, PLAIN, environ=os.environ) == []


def test_memories_that_are_there_are_not_replaced(tmp_path: Path, home: Path, old: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    save(home, new, "own", "Mine.")
    shutil.rmtree(old)
    with pytest.raises(InputError, match="--merge"):
        refuse(home, moved_from(home, str(old)), new, merge=False)
    done = migrate(home, moved_from(home, str(old)), new, None)
    assert done.left
    assert names(home, new) == {"own": "Mine."}


@pytest.mark.spec("B12")
def test_merging_keeps_both_sides_and_both_histories(tmp_path: Path, home: Path, old: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    save(home, old, "rule", "Tests first, always.")
    save(home, old, "only-old", "Old.")
    save(home, old, "same", "Same.")
    save(home, old, "gone", "Was here.")
    with Memory.open(old, home=home, settings=PLAIN) as memory:
        memory.remove("gone")
    save(home, new, "rule", "Tests last.")
    save(home, new, "same", "Same.")
    (project(home, old) / "memory" / "logs").mkdir()
    (project(home, old) / "memory" / "logs" / "day.md").write_text("- x\n")
    shutil.rmtree(old)
    known = moved_from(home, str(old))
    refuse(home, known, new, merge=True)
    counted = list[tuple[int, int]]()
    done = migrate(home, known, new, None, merge=True, tell=lambda at, of: counted.append((at, of)))
    assert done.left == []
    assert counted == [(0, 3), (1, 3), (2, 3)]
    assert names(home, new) == {
        "rule": "Tests last.",
        "rule (from old)": "Tests first, always.",
        "only-old": "Old.",
        "same": "Same.",
    }
    with Memory.open(new, home=home, settings=PLAIN) as memory:
        assert [version.action for version in memory.log("only-old")] == ["save"]
        assert memory.restore("gone").body == "Was here.\n"
        first = memory.log("rule (from old)")[-1]
        assert "Tests first." in (memory.content(first.id) or "")
    assert (project(home, new) / "memory" / "logs" / "day.md").read_text() == "- x\n"
    assert not project(home, old).exists()


@pytest.mark.spec("B12", "S5")
def test_merging_keeps_the_keys_of_a_memory_that_gets_another_name(tmp_path: Path, home: Path, old: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    save(home, old, "rule", "Tests first.")
    save(home, new, "rule", "Tests last.")
    memory = project(home, old) / "memory"
    (memory / "rule.md").write_text(
        "---\nname: rule\ndescription: d\nmetadata:\n  type: user\n  originSessionId: s-1\nmine: kept\n---\n\nTests first.\n"
    )
    shutil.rmtree(old)
    migrate(home, moved_from(home, str(old)), new, None, merge=True)
    with Memory.open(new, home=home, settings=PLAIN) as after:
        both = {topic.body.strip(): topic for topic in after.topics()}
    assert set(both) == {"Tests first.", "Tests last."}
    assert both["Tests first."].type == "user"
    assert both["Tests first."].fields["mine"] == "kept"
    assert both["Tests first."].fields["metadata"]["originSessionId"] == "s-1"


@pytest.mark.spec("B12", "Z12")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_merging_removes_nothing_that_it_could_not_take_over(tmp_path: Path, home: Path, old: Path) -> None:
    new, latin, long = tmp_path / "new", b"---\nname: caf\xe9\n---\nx\n", b"---\nname: long\n---\n" + b"word " * 60_000
    new.mkdir()
    save(home, old, "rule", "Tests first.")
    save(home, new, "other", "Tests last.")
    memory = project(home, old) / "memory"
    (memory / "latin.md").write_bytes(latin)
    (memory / "long.md").write_bytes(long)
    (tmp_path / "elsewhere.md").write_text("two names")
    os.link(tmp_path / "elsewhere.md", memory / "linked.md")
    os.symlink(tmp_path / "elsewhere.md", memory / "pointer.md")
    os.mkfifo(memory / "pipe.md")
    shutil.rmtree(old)
    done = migrate(home, moved_from(home, str(old)), new, None, merge=True)
    there = project(home, new) / "memory"
    assert names(home, new)["rule"] == "Tests first."
    assert (there / "latin.md").read_bytes() == latin
    assert (there / "long.md").read_bytes() == long
    assert (there / "linked.md").read_text() == "two names"
    assert (memory / "pointer.md").is_symlink()
    assert (memory / "pipe.md").exists()
    assert sorted(
        Path(left.split(" is not a regular file")[0]).name for left in done.left if "is not a regular file" in left
    ) == [
        "pipe.md",
        "pointer.md",
    ]


def test_an_open_session_stops_it(tmp_path: Path, home: Path, old: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    with Session("offline", home=home, cwd=old) as session:
        session.add_user("x")
        shutil.rmtree(old)
        with pytest.raises(InputError, match="open"):
            refuse(home, moved_from(home, str(old)), new, merge=False)


def test_nothing_is_known_of_a_path_that_never_was(home: Path, old: Path) -> None:
    with pytest.raises(InputError, match="--list"):
        moved_from(home, "/never/was/here")


@needs_git
def test_a_shallow_clone_has_no_root_that_counts(tmp_path: Path) -> None:
    path = repository(tmp_path / "deep")
    (path / ".git" / "shallow").write_text("")
    assert root_commits(path, environ=os.environ) is None
    assert root_commits(tmp_path, environ=os.environ) == ()


@needs_fork
@pytest.mark.spec("B12", "Z1")
@pytest.mark.parametrize("merge", [False, True], ids=["move", "merge"])
@pytest.mark.usefixtures("crash_points")
def test_stopped_anywhere_nothing_is_lost_and_a_second_call_finishes(tmp_path: Path, merge: bool) -> None:
    old, new, made = tmp_path / "old", tmp_path / "new", tmp_path / "made"
    old.mkdir()
    new.mkdir()
    save(made, old, "rule", "Tests first.")
    talk(made, old, "hello")
    identify(made, old)
    if merge:
        save(made, new, "own", "Mine.")
    shutil.rmtree(old)

    def prepare(directory: Path) -> None:
        shutil.copytree(made, directory / "home")

    def act(directory: Path, say: Say) -> None:
        home = directory / "home"
        migrate(home, moved_from(home, str(old)), new, None, merge=merge)
        say("done")

    expected = {"rule": "Tests first."} | ({"own": "Mine."} if merge else {})
    # A merge goes through the store, whose own writes are stopped anywhere in the tests of memory.
    for run in every(tmp_path, prepare, act, Kill(), step=4 if merge else 1):
        home = run.directory / "home"
        if project(home, old).is_dir():
            known = moved_from(home, str(old))
            refuse(home, known, new, merge=merge)
            assert migrate(home, known, new, None, merge=merge).left == [], run
        assert names(home, new) == expected, run
        assert len(list_sessions([project(home, new)])) == 1, run
        assert not project(home, old).exists(), run


@pytest.mark.spec("W2", "B12")
def test_two_daily_logs_of_one_day_are_joined(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for directory, text in ((old, "- 09:00 both\n- 10:00 old"), (new, "- 09:00 both\n- 11:00 new\n")):
        (directory / "logs/2026/03").mkdir(parents=True, mode=0o700)
        (directory / "logs/2026/03/2026-03-31.md").write_text(text)
    (old / "logs/2026/03/2026-03-30.md").write_text("- 09:00 before\n")
    done = MoveReport(str(old), str(new))
    merge_memories(old, new, done)
    assert done.left == []
    assert not old.exists()
    assert (new / "logs/2026/03/2026-03-30.md").read_text() == "- 09:00 before\n"
    assert (new / "logs/2026/03/2026-03-31.md").read_text() == "- 09:00 both\n- 11:00 new\n- 10:00 old\n"

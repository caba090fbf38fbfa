"""A forget is a job: stopped or failing anywhere, it tells the truth, and running it again finishes it."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from tests.disk.crash.harness import Extent, Fail, Fault, Kill, Run, Say, Short, every
from tests.disk.processes import needs_fork

from lamina.core.errors import DiskError
from lamina.core.settings import Settings
from lamina.disk.crash_points import watched
from lamina.disk.locks.lock_file import LifeLock
from lamina.disk.temp_files import is_temp
from lamina.disk.transcripts.store import lock_path
from lamina.maintenance.doctor.examination import examine
from lamina.maintenance.doctor.finding import Finding
from lamina.maintenance.doctor.fixes import mend
from lamina.maintenance.forget.forget import ForgetReport
from lamina.maintenance.forget.job import ForgetJob, job_path, list_jobs, plan_job, read_job, resume_jobs, run_job
from lamina.maintenance.start_checks import run_start_checks
from lamina.memory.memory import Memory

from ..made import COPIED, NAME, make_home, make_memory, make_session, project, texts

# Once and for good, before a call and in the middle of it.
FAULTS: tuple[Fault, ...] = (
    Kill(),
    Fail(errno.ENOSPC),
    Kill(torn=True),
    Fail(errno.ENOSPC, forever=True),
    Fail(errno.EIO),
    Fail(errno.EIO, forever=True),
    Short(),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    return tmp_path / "project"


def run(home: Path, cwd: Path) -> ForgetReport:
    job = ForgetJob(NAME, str(cwd))
    path = job_path(home, job)
    job, planned = plan_job(home, path, job, {})
    return run_job(home, path, job, planned, {})


def resume(home: Path) -> list[ForgetReport]:
    return [report for _, report in resume_jobs(home, {})]


def left_in(home: Path, cwd: Path) -> list[str]:
    """What a finished forget must not leave: the subject, copies of it, what cannot be searched, its own files."""
    everything = texts(home) + texts(cwd)
    git = project(home, cwd) / "memory" / ".history" / "git"
    wrong = {
        "the name": re.search("anna", everything, re.IGNORECASE),
        "a copied line": COPIED in everything,
        "git's copy": git.exists(),
        "a temporary file": any(is_temp(path.name) for top in (home, cwd) for path in top.rglob("*")),
        "the job": list_jobs(home),
    }
    return [what for what, there in wrong.items() if there]


def stopped_everywhere(base: Path, fault: Fault, *, step: int = 1) -> Iterator[tuple[Run, list[str]]]:
    """Meet the fault at each call that changes the disk, or at each of so many, and return what was wrong then, and after a second
    run."""
    cwd, made, tree = base / "project", base / "made", base / "tree"
    make_home(made, cwd)
    shutil.copytree(cwd, tree)

    def prepare(directory: Path) -> None:
        shutil.copytree(made, directory / "home")
        shutil.rmtree(cwd)
        shutil.copytree(tree, cwd)

    def act(directory: Path, say: Say) -> None:
        report = run(directory / "home", cwd)
        say("complete" if report.is_complete() else "not complete")
        say(" ".join(one.why for one in report.skipped))

    for met in every(base, prepare, act, fault, step=step):
        yield met, list(_violations(met, fault, cwd))
        shutil.rmtree(met.directory)


def _violations(met: Run, fault: Fault, cwd: Path) -> Iterator[str]:
    home = met.directory / "home"
    if met.said[:1] == ("complete",):
        yield from (f"complete, but there is {what}" for what in left_in(home, cwd))
    if met.said[:1] == ("not complete",) and not met.said[1]:
        yield "not complete, and no reason"
    full = isinstance(fault, Fail) and fault.code == errno.ENOSPC
    if full and met.error not in ("", "DiskFull"):
        yield f"the disk is full, and the error is {met.error}"
    if full and met.said[:1] == ("not complete",) and "disk is full" not in met.said[1]:
        yield f"the disk is full, and the reason is {met.said[1]!r}"
    again = run(home, cwd)
    if not again.is_complete():
        yield f"the second run is not complete: {again.skipped} {again.left}"
    yield from (f"after the second run there is {what}" for what in left_in(home, cwd))
    if not _spills_fit(home):
        yield "a transcript names another digest than its file has"
    with Memory.open(cwd, home=home, settings=Settings()) as memory:
        if {topic.name for topic in memory.topics()} != {"food", "plain"}:
            yield "other memories are gone"


def _spills_fit(home: Path) -> bool:
    found = list((home / "projects").glob("*/*/tool-results/*.txt"))
    logs = "".join(path.read_text() for path in (home / "projects").glob("*/*.jsonl"))
    return bool(found) and all(sha256(path.read_bytes()).hexdigest() in logs for path in found)


@needs_fork
@pytest.mark.spec("B11", "Z1", "Z12")
@pytest.mark.parametrize(
    "fault", [*FAULTS[:2], *(pytest.param(fault, marks=pytest.mark.exhaustive) for fault in FAULTS[2:])], ids=str
)
@pytest.mark.usefixtures("crash_points")
def test_stopped_or_failing_anywhere_it_tells_the_truth_and_a_second_run_finishes(tmp_path: Path, fault: Fault) -> None:
    tried = 0
    # bench/forget_faults.py meets all of them at every call, in twenty minutes.
    for met, wrong in stopped_everywhere(tmp_path, fault, step=1 if fault in FAULTS[:2] else 5):
        assert wrong == [], met
        tried += bool(met.point)
    assert tried > (20 if Extent.every else 0)


def test_interrupted_twice_it_is_finished_by_a_resume_and_known_to_doctor_until_then(home: Path, cwd: Path) -> None:
    """After the first run memories are gone whose lines are still copied elsewhere, after the second git's copy is gone too."""
    make_home(home, cwd)
    git = project(home, cwd) / "memory" / ".history" / "git"
    assert git.exists()
    with broken("tree.unlink", "rewrite.write"):
        first = run(home, cwd)
    assert not first.is_complete()
    assert [one.why for one in first.skipped if "input/output error" in one.why]
    [path] = list_jobs(home)
    assert path.stat().st_mode & 0o777 == 0o600
    assert unfinished(home, cwd) == [f"Forgetting {NAME!r} was interrupted or could not finish, so some of it is left."]
    with broken("rewrite.write"):
        assert not any(one.is_complete() for one in resume(home))
    assert (list_jobs(home), git.exists()) == ([path], False)
    [last] = resume(home)
    assert last.is_complete()
    assert left_in(home, cwd) == []
    assert (unfinished(home, cwd), resume(home)) == ([], [])


def test_copies_in_a_session_that_was_open_are_removed_once_it_is_closed(home: Path, cwd: Path) -> None:
    cwd.mkdir(exist_ok=True)
    transcript = make_session(home, cwd)
    make_memory(home, cwd)
    lock = LifeLock.acquire(lock_path(transcript))
    assert lock is not None
    report = run(home, cwd)
    lock.close()
    [skipped] = report.skipped
    assert "the session is open" in skipped.why
    assert report.unfinished
    assert not re.search("anna", texts(project(home, cwd) / "memory"), re.IGNORECASE)
    assert COPIED in transcript.read_text(), "only the job knows the lines of the memory that is gone"
    [found] = [one for one in examined(home, cwd) if one.kind == "unfinished-forget"]
    [fixed] = mend([found], now=0.0)
    assert fixed.ok, fixed
    assert left_in(home, cwd) == []


def test_a_session_that_starts_names_an_unfinished_forget(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    with broken("rewrite.write"):
        run(home, cwd)
    assert "lamina forget --resume" in " ".join(run_start_checks(cwd, home, Settings(), environ={}))
    resume(home)
    assert run_start_checks(cwd, home, Settings(), environ={}) == []


def test_what_a_forget_leaves_that_was_killed_while_it_began_is_found_and_removed(home: Path, cwd: Path) -> None:
    cwd.mkdir()
    temp = home / "forget" / ".lamina-0011223344556677.tmp"
    temp.parent.mkdir(parents=True)
    temp.write_text(NAME)
    [found] = [one for one in examined(home, cwd) if one.kind == "leftover"]
    assert (found.file, found.fix is not None) == (str(temp.parent), True)
    assert resume(home) == []
    assert not temp.exists()


def test_a_damaged_job_is_reported_and_the_same_command_starts_over(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    with broken("rewrite.write"):
        run(home, cwd)
    [path] = list_jobs(home)
    path.write_text('{"subject": 1}')
    with pytest.raises(DiskError, match=r"is damaged; remove it and run `lamina forget` with the subject again"):
        read_job(path)
    assert unfinished(home, cwd) == [f"{path.name} is damaged."]
    path.unlink()
    assert run(home, cwd).is_complete()


def test_names_and_lines_that_are_no_text_are_kept_in_the_job(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / os.fsdecode(b"caf\xe9")
    cwd.mkdir()
    root = make_memory(home, cwd)
    (root / "anna-lee.md").write_bytes((root / "anna-lee.md").read_bytes() + b"A long line with a byte that is \xe9 no text.\n")
    with broken("rewrite.write"):
        run(home, cwd)
    [path] = list_jobs(home)
    job = read_job(path)
    assert job is not None
    assert job.cwd == str(cwd)
    assert any("\udce9" in line for line in job.also)
    assert [one.is_complete() for one in resume(home)] == [True]


@contextmanager
def broken(*calls: str) -> Iterator[None]:
    """The disk fails at these calls, each time."""

    def fail(name: str, _: int) -> None:
        if name in calls:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with watched(fail):
        yield


def examined(home: Path, cwd: Path) -> tuple[Finding, ...]:
    environ = {"LAMINA_HOME": str(home), "HOME": str(home.parent)}
    return examine(cwd=cwd, environ=environ, now=0.0, managed=home / "managed.json").findings


def unfinished(home: Path, cwd: Path) -> list[str]:
    return [found.problem for found in examined(home, cwd) if found.kind == "unfinished-forget"]

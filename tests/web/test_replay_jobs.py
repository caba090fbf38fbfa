"""The replays of the page across restarts, without a browser."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.replay.kept_replays import KeptReplay, keep_replay
from lamina.replay.options import options_in
from lamina.replay.report import ReplayReport
from lamina.replay.variants import ALWAYS
from lamina.web.replay_jobs import Outcome, ReplayJob, ReplayJobs, _settings_key
from lamina.web.replay_view import _nothing
from lamina.web.words import Words

from . import patient
from .made_home import long_session
from .serving import environ_of


def kept(id: str, started: float, files: list[str], policies: list[str]) -> KeptReplay:
    return KeptReplay(id, files, policies, [], started, "done", len(files), "", ReplayReport(sessions=len(files)))


def test_a_choice_that_was_replayed_several_times_is_listed_once_with_its_newest_replay(tmp_path: Path) -> None:
    home = tmp_path / ".lamina"
    for ended in (
        kept("a1", 1.0, ["/one", "/two"], ["lean"]),
        kept("a2", 3.0, ["/two", "/one"], ["lean"]),
        kept("a3", 2.0, ["/one", "/two"], ["lean"]),
        kept("b1", 4.0, ["/one"], ["lean"]),
        kept("c1", 0.5, ["/one", "/two"], ["classic", "lean"]),
        kept("saving", 9.0, ["/one"], ["lean"]),
    ):
        keep_replay(home, ended)
    jobs = ReplayJobs(tmp_path, home, environ_of(tmp_path), time.time, lambda: False)
    assert [job.id for job in jobs.list()] == ["b1", "a2", "c1"]
    assert jobs.get("a1") is not None, "a link to an older one still works"
    jobs.close()


def test_the_same_settings_have_the_same_key_in_every_process(tmp_path: Path) -> None:
    wanted = options_in(tmp_path, tmp_path / ".lamina", environ=environ_of(tmp_path))
    _, policy = json.loads(_settings_key(wanted.settings(ALWAYS)))
    tools = policy["micro"]["clearable"]
    assert len(tools) > 2
    assert tools == sorted(tools), "the order of a set differs between processes"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ReplayJobs, ReplayJob]]:
    """A replay that is at its calls, with a temporary home in `tmp_path`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = tmp_path / ".claude/projects/-work-shop/c0000000-0000-4000-8000-000000000001.jsonl"
    long_session(path, "/work/shop", 500).write()
    jobs = ReplayJobs(tmp_path, tmp_path / ".lamina", environ_of(tmp_path), time.time, lambda: False)
    job = jobs.start([str(path)], ["lean"])
    patient.wait_for(lambda: job.progress.call)
    patient.wait_for(lambda: [*(tmp_path / "tmp").iterdir()])
    yield jobs, job
    jobs.close()


def process_of(job: ReplayJob) -> int:
    assert job._process is not None
    return job._process.pid


def test_a_replay_that_is_stopped_removes_its_temporary_home(calls: tuple[ReplayJobs, ReplayJob], tmp_path: Path) -> None:
    _, job = calls
    job.stop()
    patient.wait_for(lambda: not job.running)
    assert (job.outcome, job.stopping, job.problem) == ("stopped", True, "")
    assert not [*(tmp_path / "tmp").iterdir()]


def test_a_replay_ends_with_the_page(calls: tuple[ReplayJobs, ReplayJob], tmp_path: Path) -> None:
    jobs, job = calls
    jobs.close()
    assert job.outcome == "stopped"
    assert not [*(tmp_path / "tmp").iterdir()]


def test_a_replay_whose_process_is_killed_fails_with_a_sentence(calls: tuple[ReplayJobs, ReplayJob]) -> None:
    jobs, job = calls
    os.kill(process_of(job), signal.SIGKILL)
    patient.wait_for(lambda: not job.running)
    assert (job.outcome, job.problem) == ("failed", "its process ended unexpectedly")
    assert Words("zh")(job.problem) == "其进程意外结束"
    again = jobs.start(job.files, ["lean"])
    assert again is not job, "it can be started again"


def test_a_replay_that_is_stopped_while_it_waits_never_starts(calls: tuple[ReplayJobs, ReplayJob]) -> None:
    jobs, job = calls
    waiting = jobs.start(job.files, ["classic"])
    waiting.stop()
    job.stop()
    patient.wait_for(lambda: not waiting.running)
    assert (waiting.outcome, waiting._process) == ("stopped", None)


def test_a_replay_never_runs_for_ever_whatever_goes_wrong(
    calls: tuple[ReplayJobs, ReplayJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, job = calls
    job.stop()
    monkeypatch.setattr(ReplayJobs, "_replay", lambda *_: 1 / 0)
    broken = jobs.start(job.files, ["classic"])
    patient.wait_for(lambda: not broken.running)
    assert (broken.outcome, broken.problem) == ("failed", "its process ended unexpectedly")


@pytest.mark.parametrize(
    ("outcome", "report", "told"),
    [
        ("done", ReplayReport(sessions=2, silent=2), "The sessions report no usage"),
        ("done", ReplayReport(), "None of the chosen sessions could be replayed."),
        ("stopped", ReplayReport(), ""),  # none was tried
        ("stopped", ReplayReport(sessions=1), ""),  # before the rows that are compared
        ("running", ReplayReport(sessions=1, silent=1), ""),
    ],
)
def test_what_is_told_in_place_of_a_difference_is_true(outcome: Outcome, report: ReplayReport, told: str) -> None:
    job = ReplayJob("a1", ["/one"], [], [], started=0.0)
    job.outcome, job.report = outcome, report
    shown = _nothing(Words("en"), job)
    assert told in str(shown or "")
    assert (shown is None) == (not told)

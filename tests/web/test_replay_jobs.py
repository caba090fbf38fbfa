"""The replays of the page across restarts, without a browser."""

from __future__ import annotations

import json
import time
from pathlib import Path

from lamina.replay.kept_replays import KeptReplay, keep_replay
from lamina.replay.report import ReplayReport
from lamina.replay.run import options_in
from lamina.web.replay_jobs import ReplayJobs, _settings_key
from lamina.web.views_made import Stopped

from . import patient
from .made_home import make_home
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
    _, policy = json.loads(_settings_key(wanted))
    tools = policy["micro"]["clearable"]
    assert len(tools) > 2
    assert tools == sorted(tools), "the order of a set differs between processes"


def test_a_replay_lets_views_pass_before_each_call_and_ends_with_the_server(tmp_path: Path) -> None:
    path, calls = make_home(tmp_path, others=0), list[int]()

    def pause() -> None:
        calls.append(1)
        if len(calls) == 5:
            raise Stopped

    jobs = ReplayJobs(tmp_path, tmp_path / ".lamina", environ_of(tmp_path), time.time, lambda: False, pause)
    job = jobs.start([str(path)], ["lean"])
    patient.wait_for(lambda: not job.running)
    jobs.close()
    assert (job.outcome, len(calls)) == ("stopped", 5)

"""Replays in the background: one at a time, one session after the other, so that a view can show the table as it grows.

A replay runs in a separate process; it reads transcripts and writes only into a temporary home, which it removes. Its result is kept in
the home's cache, so that a link works after a restart; a read-only page keeps it in memory alone. Invariants: a job stops at once, and one
that a user composed ends after MOST_SECONDS; the report of a job is replaced and never changed, so that a view may read it at any time; the
same files under the same rows and settings are played once. Nothing runs that the user did not start.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import msgspec

from .. import __version__
from ..core.errors import LaminaError
from ..core.settings import Settings
from ..core.settings.table import DEFAULT_POLICY
from ..disk.regular_file import stamp
from ..language.text import Text, message
from ..replay.kept_replays import KeptReplay, keep_replay, kept_ids, kept_replay
from ..replay.options import options_in
from ..replay.process import ENDED, ReplayEnded, ReplayNews, ReplayOrder, ReplayProcess, ReplayProgress
from ..replay.report import ReplayReport
from ..replay.variants import ALWAYS, RECORDED, Variant, name_in_force, variants
from .views_made import Stopped

if TYPE_CHECKING:
    from ..replay.figures import ReplayedSession

Outcome: TypeAlias = Literal["running", "done", "stopped", "limited", "failed"]
# Jobs and results that are kept, and jobs that may wait for the one that runs.
MOST_JOBS = 12
MOST_KEPT = 5_000
MOST_WAITING = 3
# Seconds of a job that a user composed.
MOST_SECONDS = 600.0
SAVING = "saving"


class Busy(Exception):
    """Too many replays wait."""


class ReplayJob:
    """One replay: what it plays, how far it is, and what it found so far."""

    def __init__(
        self,
        id: str,
        files: Sequence[str],
        policies: Sequence[str],
        without: Sequence[str],
        *,
        started: float,
        in_force: str = DEFAULT_POLICY,
    ) -> None:
        self.id = id
        self.files = list(files)
        self.policies, self.without = list(policies), list(without)
        self.rows = [Variant(in_force, ALWAYS)] if id == SAVING else variants(policies, without, in_force=in_force)
        self.started = started
        self.begun = False  # no other replay is waited for
        self.done = 0
        self.outcome: Outcome = "running"
        self.problem = ""
        self.days, self.project = 0, ""  # of the overview's job: the period and the project it was started for
        self.report = ReplayReport()
        self.first = ReplayReport()  # the rows of the first session so far
        self.progress = ReplayProgress()
        self._lock = threading.Lock()
        self._process: ReplayProcess | None = None  # stays after its end
        self._asked: Literal["", "stopped", "limited"] = ""  # how it was told to end
        self.stamps: dict[str, str] = {}  # of the overview's job: see KeptReplay

    @classmethod
    def restored(cls, found: KeptReplay) -> ReplayJob:
        job = cls(found.id, found.files, found.policies, found.without, started=found.started)
        job.outcome, job.done, job.problem = cast(Outcome, found.outcome), found.done, found.problem
        job.report, job.days, job.project, job.stamps = found.report, found.days, found.project, found.stamps
        return job

    def ended(self) -> KeptReplay:
        parts = (self.started, self.outcome, self.done, self.problem, self.report, self.days, self.project, self.stamps)
        return KeptReplay(self.id, self.files, self.policies, self.without, *parts)

    @property
    def choice(self) -> tuple[tuple[str, ...], ...]:
        """The sessions, policies and layers that were chosen, in any order."""
        return tuple(tuple(sorted(chosen)) for chosen in (self.files, self.policies, self.without))

    @property
    def running(self) -> bool:
        return self.outcome == "running"

    @property
    def stopping(self) -> bool:
        return bool(self._asked)

    def stop(self, outcome: Literal["stopped", "limited"] = "stopped") -> None:
        """End the job at once; it becomes this outcome. The sessions that were finished stay."""
        with self._lock:
            self._asked = self._asked or outcome
            if self._process is not None:
                self._process.end()

    def work_with(self, process: ReplayProcess) -> None:
        """Name the process of the job, which ends with it."""
        with self._lock:
            self._process = process
        self.check()

    def end(self, outcome: Outcome, problem: str = "") -> None:
        """Become this outcome, or the one it was told while it ran."""
        if self._asked and outcome != "done":
            outcome, problem = self._asked, ""
        self.outcome, self.problem = outcome, problem

    def check(self) -> None:
        """Raise Stopped if the job was asked to end."""
        if self.stopping:
            raise Stopped

    def hear(self, news: ReplayNews) -> None:
        """Keep what the process tells about the session that it plays."""
        self.progress = news.progress or self.progress
        self.first = news.first or self.first

    @property
    def shown(self) -> ReplayReport:
        """The finished sessions, or the finished rows of the first one."""
        return self.report if self.report.sessions or self.report.skipped else self.first

    @property
    def state(self) -> list[object]:
        """The state that the event stream watches."""
        return [self.begun, self.done, self.outcome, self.stopping, self.progress, len(self.first.figures)]


class ReplayJobs:
    def __init__(
        self,
        cwd: Path,
        home: Path | None,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        stopping: Callable[[], bool],
        *,
        read_only: bool = False,
    ) -> None:
        self._cwd, self._home, self._environ = cwd, home, environ
        self._read_only = read_only
        self._clock, self._stopping = clock, stopping
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "lamina-replay")
        self._jobs: OrderedDict[str, ReplayJob] = OrderedDict()
        self._kept: OrderedDict[str, ReplayReport] = OrderedDict()

    def list(self) -> list[ReplayJob]:
        """Return the jobs that a user composed, the newest first, and of each choice only the newest."""
        ids = kept_ids(self._home) if self._home is not None else ()
        kept = [job for id in ids if (job := self.get(id)) is not None]
        with self._lock:
            jobs = sorted((*self._jobs.values(), *kept), key=lambda job: job.started)
        newest = {job.choice: job for job in jobs if job.id != SAVING}
        return sorted(newest.values(), key=lambda job: -job.started)[:MOST_JOBS]

    def get(self, id: str) -> ReplayJob | None:
        """Return a job of this run or an earlier one."""
        with self._lock:
            held = self._jobs.get(id)
            if held is not None or self._home is None or (found := kept_replay(self._home, id)) is None:
                return held
            held = self._jobs[id] = ReplayJob.restored(found)
            self._jobs.move_to_end(id, last=False)
            for session in found.report.played if id == SAVING else ():
                if session.name in found.stamps:
                    self._kept[found.stamps[session.name]] = _report_of(session)
            return held

    def start(self, files: Sequence[str], policies: Sequence[str], without: Sequence[str] = ()) -> ReplayJob:
        """Replay these files under these policies and without these layers, and with the settings in force.

        The same choice of unchanged files gets the job that played it. Raises Busy, and OSError for a missing file.
        """
        stamps = [(path, *stamp(os.stat(path))) for path in files]
        settings = self._settings()
        in_force = name_in_force(settings)
        id = _digest((sorted(stamps), sorted(policies), sorted(without), in_force, _settings_key(settings), __version__))
        known = self.get(id)
        if known is not None and known.outcome in ("running", "done"):
            return known
        if sum(job.running for job in [*self._jobs.values()] if job.id != SAVING) > MOST_WAITING:
            raise Busy
        return self._submit(ReplayJob(id, files, policies, without, started=self._clock(), in_force=in_force))

    def start_saving(self, files: Sequence[str], *, days: int, project: str = "") -> ReplayJob:
        """Find out what the settings in force would have saved. A run that is under way goes on."""
        before = self.get(SAVING)
        if before is not None and before.running:
            return before
        in_force = name_in_force(self._settings())
        job = ReplayJob(SAVING, files, [in_force], (), started=self._clock(), in_force=in_force)
        job.days, job.project = days, project
        return self._submit(job)

    def close(self) -> None:
        """Stop what runs, and wait until its temporary home is removed."""
        for job in [*self._jobs.values()]:
            job.stop()
        self._thread.shutdown(cancel_futures=True)

    def _submit(self, job: ReplayJob) -> ReplayJob:
        with self._lock:
            self._jobs[job.id] = job
            self._jobs.move_to_end(job.id)
            for id in [id for id, one in self._jobs.items() if not one.running][: max(0, len(self._jobs) - MOST_JOBS)]:
                del self._jobs[id]
        self._thread.submit(self._run, job)
        return job

    def _settings(self) -> Settings:
        return options_in(self._cwd, self._home, environ=self._environ).settings(ALWAYS)

    def _run(self, job: ReplayJob) -> None:
        limit = threading.Timer(MOST_SECONDS, job.stop, ["limited"])
        limit.daemon = True
        if job.id != SAVING:
            limit.start()
        job.begun = True
        try:
            job.check()
            self._replay(job)
            job.end("done")
        except Stopped:
            job.end("stopped")
        except (LaminaError, OSError, ReplayEnded) as error:
            job.end("failed", message(error))
        finally:
            limit.cancel()
            if job.running:
                job.end("failed", ENDED)
        if self._home is not None and not self._read_only and job.report.sessions:
            keep_replay(self._home, job.ended())

    def _replay(self, job: ReplayJob) -> None:
        """Raises Stopped, and ReplayEnded if the process ended by itself or was stopped."""
        settings = _settings_key(self._settings())
        place = str(self._cwd), str(self._home) if self._home is not None else None, dict(self._environ)
        with ReplayProcess(ReplayOrder(job.files, job.rows, *place), job.hear) as process:
            job.work_with(process)
            copies = process.find_copies()
            for path in job.files:
                job.check()
                if self._stopping():
                    raise Stopped
                copy = copies.get(path)
                played = ReplayReport(skipped=[copy]) if copy is not None else self._played(job, path, settings, process)
                grown = job.report.copied()
                grown.include(played)
                job.report, job.done, job.progress = grown, job.done + 1, ReplayProgress()

    def _played(self, job: ReplayJob, path: str, settings: str, process: ReplayProcess) -> ReplayReport:
        if job.id != SAVING:
            return process.play(path)
        try:
            key = _digest((path, stamp(os.stat(path)), job.rows[0].name, settings, __version__))
        except OSError as error:
            return ReplayReport(skipped=[Text("{path} skipped: {strerror}", path=path, strerror=error.strerror)])
        if (played := self._kept.get(key)) is None:
            played = process.play(path)
            played.played = [msgspec.structs.replace(one, points={}) for one in played.played]
            self._kept[key] = played
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if not played.skipped and not played.damaged:
            job.stamps[path] = key
        return played


def _report_of(session: ReplayedSession) -> ReplayReport:
    """Return the report of one session that was played before."""
    figures = {row: one.finished() for row, one in session.figures.items()}
    silent = int(not session.figures[RECORDED].calls)
    return ReplayReport(sessions=1, calls=session.calls, figures=figures, played=[session], silent=silent)


def _digest(value: object) -> str:
    return blake2b(repr(value).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _settings_key(settings: Settings) -> str:
    # How amounts are shown changes nothing that is played.
    values = [(row.key, held.value) for row, held in settings if row is not Settings.billing]
    # Sets have another order in each process.
    return msgspec.json.encode((values, settings.policy), order="deterministic", enc_hook=repr).decode()

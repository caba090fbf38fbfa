"""Replays in the background: one thread, one session after the other, so that a view can show the table as it grows.

A replay reads transcripts and writes only into a temporary home, which it removes. Its result is kept in the home's cache, so that a
link works after a restart; a read-only page keeps it in memory alone. Invariants: a job stops before its next call, and a job that a
user composed ends after MOST_SECONDS; the report of a job is replaced and never changed, so that a view may read it at any time; the
same files under the same rows and settings are played once. Nothing runs that the user did not start.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import msgspec

from .. import __version__
from ..core.errors import LaminaError
from ..core.settings import Settings
from ..replay.kept_replays import KeptReplay, keep_replay, kept_ids, kept_replay
from ..replay.report import ReplayReport
from ..replay.variants import ALWAYS, LAMINA, RECORDED, Variant, variants
from .views_made import Stopped

if TYPE_CHECKING:  # loaded by the first replay: the first view of the page does not wait for it
    from ..replay.figures import ReplayedSession
    from ..replay.play import Played
    from ..replay.run import ReplayOptions

Outcome: TypeAlias = Literal["running", "done", "stopped", "limited", "failed"]
# Jobs and results that are kept, and jobs that may wait for the one that runs.
MOST_JOBS = 12
MOST_KEPT = 5_000
MOST_WAITING = 3
# Seconds of a job that a user composed.
MOST_SECONDS = 600.0
# Seconds between two steps of the progress: more would make the page draw all the time.
PROGRESS = 0.4
SAVING = "saving"


class Busy(Exception):
    """Too many replays wait."""


class Progress(NamedTuple):
    policy: str = ""
    call: int = 0
    calls: int = 0


class ReplayJob:
    """One replay: what it plays, how far it is, and what it found so far."""

    def __init__(self, id: str, files: Sequence[str], policies: Sequence[str], without: Sequence[str], *, started: float) -> None:
        self.id = id
        self.files = list(files)
        self.policies, self.without = list(policies), list(without)
        self.rows = [Variant(LAMINA, ALWAYS)] if id == SAVING else variants(policies, without)
        self.started = started
        self.begun = False  # no other replay is waited for
        self.done = 0
        self.outcome: Outcome = "running"
        self.stopping = False
        self.problem = ""
        self.days, self.project = 0, ""  # of the overview's job: the period and the project it was started for
        self.report = ReplayReport()
        self.first = ReplayReport()  # the rows of the first session so far
        self.progress = Progress()
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
        pause: Callable[[], None] = lambda: None,
        *,
        read_only: bool = False,
    ) -> None:
        self._cwd, self._home, self._environ = cwd, home, environ
        self._read_only = read_only
        self._clock, self._stopping, self._pause = clock, stopping, pause
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "lamina-replay")
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
        stamps = [_stamp(path) for path in files]
        chosen = (sorted(stamps), sorted(policies), sorted(without), _settings_key(self._options()), __version__)
        id = _digest(chosen)
        known = self.get(id)
        if known is not None and known.outcome in ("running", "done"):
            return known
        if sum(job.running for job in [*self._jobs.values()] if job.id != SAVING) > MOST_WAITING:
            raise Busy
        return self._submit(ReplayJob(id, files, policies, without, started=self._clock()))

    def start_saving(self, files: Sequence[str], *, days: int, project: str = "") -> ReplayJob:
        """Find out what the settings in force would have saved. A run that is under way goes on."""
        before = self.get(SAVING)
        if before is not None and before.running:
            return before
        job = ReplayJob(SAVING, files, [self._options().settings(ALWAYS).policy_name], (), started=self._clock())
        job.days, job.project = days, project
        return self._submit(job)

    def close(self) -> None:
        """Stop what runs, and wait until its temporary home is removed."""
        for job in [*self._jobs.values()]:
            job.stopping = True
        self._worker.shutdown(cancel_futures=True)

    def _submit(self, job: ReplayJob) -> ReplayJob:
        with self._lock:
            self._jobs[job.id] = job
            self._jobs.move_to_end(job.id)
            for id in [id for id, one in self._jobs.items() if not one.running][: max(0, len(self._jobs) - MOST_JOBS)]:
                del self._jobs[id]
        self._worker.submit(self._run, job)
        return job

    def _options(self) -> ReplayOptions:
        from ..replay.run import options_in

        return options_in(self._cwd, self._home, environ=self._environ)

    def _run(self, job: ReplayJob) -> None:
        from ..replay.run import explain_copies

        until = time.monotonic() + MOST_SECONDS if job.id != SAVING else float("inf")
        job.begun = True
        try:
            wanted = self._followed(job, self._options(), until)
            copies = explain_copies([Path(path) for path in job.files])
            for path in job.files:
                self._check(job, until)
                copy = copies.get(Path(path))
                played = ReplayReport(skipped=[copy]) if copy is not None else self._played(job, path, wanted)
                grown = job.report.copied()
                grown.include(played)
                job.report, job.done, job.progress = grown, job.done + 1, Progress()
            job.outcome = "done"
        except Stopped:
            job.outcome = "stopped" if time.monotonic() < until else "limited"
        except (LaminaError, OSError) as error:
            job.outcome, job.problem = "failed", str(error)
        if self._home is not None and not self._read_only and job.report.sessions:
            keep_replay(self._home, job.ended())

    def _check(self, job: ReplayJob, until: float) -> None:
        if job.stopping or self._stopping() or time.monotonic() >= until:
            raise Stopped

    def _followed(self, job: ReplayJob, wanted: ReplayOptions, until: float) -> ReplayOptions:
        """Return the options with callbacks that keep the progress and stop the job."""
        told = 0.0

        def on_call(policy: str, call: int, calls: int) -> None:
            nonlocal told
            self._check(job, until)
            self._pause()
            if time.monotonic() - told > PROGRESS:
                told = time.monotonic()
                job.progress = Progress(policy, call, calls)

        def on_row(rows: Mapping[str, Played], calls: int) -> None:
            if not job.done:
                first = ReplayReport()
                first.take(job.files[0], dict(rows), calls)
                job.first = first

        return wanted._replace(variants=job.rows, on_call=on_call, on_row=on_row)

    def _played(self, job: ReplayJob, path: str, wanted: ReplayOptions) -> ReplayReport:
        from ..replay.run import replay

        if job.id != SAVING:
            return replay([Path(path)], wanted)
        try:
            key = _digest((_stamp(path), _settings_key(wanted), __version__))
        except OSError as error:
            return ReplayReport(skipped=[f"{path} skipped: {error.strerror}"])
        if (played := self._kept.get(key)) is None:
            played = replay([Path(path)], wanted)
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


def _stamp(path: str) -> tuple[str, int, int]:
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns


def _settings_key(wanted: ReplayOptions) -> str:
    settings = wanted.settings(ALWAYS)
    # How amounts are shown changes nothing that is played.
    values = [(row.key, held.value) for row, held in settings if row is not Settings.billing]
    # Sets have another order in each process.
    return msgspec.json.encode((values, settings.policy), order="deterministic", enc_hook=repr).decode()

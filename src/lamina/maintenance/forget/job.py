"""A forget as a job that is resumed until it is done (B11).

Owns `<home>/forget/<id>.json` (mode 0600): the request, and what the cleaned files no longer tell. These are the longer lines of
memories that are removed, and the copies that no search can check: git's repository is compressed, and a cache has its own format.

Invariants: the file is durable before anything is removed, and it is removed only when there is nothing left to do. Every step can
be repeated. The same request continues its job, so running the command again is enough.

A crash at any line leaves the file, or nothing to do. It contains the subject as long as the job is unfinished.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.files import read, remove, replace
from ...disk.settings_files import settings_in_force, user_home
from ...disk.temp_files import sweep_temps
from ...history.sessions import memories, sessions
from ...memory.store.index import INDEX
from ...memory.store.scopes import project_root
from ..kept_files import FORGET, KeptFiles, directories_with_temps, kept_files
from .forget import REBUILT, ForgetReport, LeftFile, forget, held_by_others, remains, unread_file, why_not
from .memories import copied_lines_of
from .subject import Subject, fold

# The lines of all memories that one subject removes; a larger file is not ours.
MOST_BYTES = 64 << 20
# The kinds of other agents' files that are counted. Their other files belong to one of these.
KIND_BY_SUFFIX = {".jsonl": "transcripts", ".md": "memories"}


class ForgetJob(msgspec.Struct, frozen=True):
    subject: str
    cwd: str
    everywhere: bool = False  # in every project
    anywhere: bool = False  # also inside longer words
    also: tuple[str, ...] = ()  # longer lines of removed memories, whose copies are removed too
    rebuilt: tuple[str, ...] = ()  # git repositories and caches to remove

    def matcher(self) -> Subject:
        return Subject(self.subject, anywhere=self.anywhere, also=self.also)


def job_path(home: Path, job: ForgetJob) -> Path:
    """Return the job's file. The same request has the same one; its name tells nothing about the subject."""
    project = "" if job.everywhere else str(project_root(Path(job.cwd)))
    request = json.dumps((fold(job.matcher().text), job.anywhere, project))
    return home / FORGET / f"{hashlib.sha256(request.encode()).hexdigest()[:16]}.json"


def list_jobs(home: Path) -> list[Path]:
    """Return the files of unfinished jobs."""
    try:
        return sorted(home / FORGET / name for name in os.listdir(home / FORGET) if name.endswith(".json"))
    except OSError:
        return []


def read_job(path: Path) -> ForgetJob | None:
    """Return the job, or None if there is none."""
    data = read(path, MOST_BYTES)
    if data is None:
        return None
    try:
        return msgspec.convert(json.loads(data), ForgetJob)
    except (ValueError, RecursionError, msgspec.ValidationError):
        raise DiskError(str(path), "is damaged", "remove it and run `lamina forget` with the subject again") from None


def plan_job(
    home: Path, path: Path, job: ForgetJob, environ: Mapping[str, str], pause: Callable[[], None] = lambda: None
) -> tuple[ForgetJob, ForgetReport]:
    """Return the job with everything there is to do, including what is left of an earlier run, and a report of it.

    `pause` is that of `forget`.
    """
    kept, earlier = _kept(home, job, _settings(home, job, environ), environ), read_job(path) or job
    also = copied_lines_of(kept.roots, job.matcher(), pause)
    job = msgspec.structs.replace(job, also=tuple(sorted({*also, *earlier.also})), rebuilt=earlier.rebuilt)
    report = forget(kept, job.matcher(), do=False, rebuilt=job.rebuilt, pause=pause)
    copies = {one.path for one in report.done if one.kind in REBUILT}
    return msgspec.structs.replace(job, rebuilt=tuple(sorted({*copies, *earlier.rebuilt}))), report


def find_left(home: Path, job: ForgetJob, planned: ForgetReport, environ: Mapping[str, str]) -> None:
    """Add to a plan its scope, what other agents keep of the subject, which no run removes, and what other projects hold."""
    subject, settings = Subject(job.subject, anywhere=job.anywhere), _settings(home, job, environ)
    planned.left = _held_by_others(home, job, subject, settings, environ)
    planned.scope = "all projects" if job.everywhere else str(project_root(job.cwd))
    if job.everywhere:
        return
    wide = msgspec.structs.replace(job, everywhere=True)
    kept = _kept(home, wide, settings, environ)
    theirs = [Path(left.path) for left in _held_by_others(home, wide, subject, settings, environ)]
    kinds = {path: KIND_BY_SUFFIX.get(path.suffix, "") for path in theirs if path.name != INDEX}
    kinds |= {Path(item.path): item.kind for item in forget(kept, job.matcher(), do=False).done}
    inside = {*(item.path for item in planned.done), *(left.path for left in (*planned.skipped, *planned.left))}
    kinds = {path: kind for path, kind in kinds.items() if str(path) not in inside}
    memory_kinds = {"memories", *(root.kind for root in kept.roots)}
    transcripts = {_session_of(path) for path, kind in kinds.items() if kind == "transcripts"}
    counts = {"sessions": len(transcripts), "memories": sum(kind in memory_kinds for kind in kinds.values())}
    planned.outside = {kind: count for kind, count in counts.items() if count}


def _session_of(transcript: Path) -> Path:
    """Return the directory of a session's files, of which the transcripts of its subagents are a part."""
    return transcript.parent.parent if transcript.parent.name == "subagents" else transcript.with_suffix("")


def run_job(home: Path, path: Path, job: ForgetJob, planned: ForgetReport, environ: Mapping[str, str]) -> ForgetReport:
    """Do what was planned, and report what was done and what is left. The job's file stays until nothing is left to do."""
    subject, settings = Subject(job.subject, anywhere=job.anywhere), _settings(home, job, environ)
    if planned.done or planned.skipped or settings.sources:
        # Names and lines may contain bytes that are no text; only this encoder keeps them.
        replace(path, json.dumps(msgspec.to_builtins(job)).encode())
    # Looked for before anything is removed: this makes an index of all sessions, which is removed with the rest.
    theirs = planned.left or _held_by_others(home, job, subject, settings, environ)
    kept = _kept(home, job, settings, environ)
    report = forget(kept, job.matcher(), do=True, rebuilt=job.rebuilt)
    tops = [home, *(root.path for root in kept.roots)]
    _sweep(tops, report)
    mine = {root.path for root in kept.roots} | {part for one in kept.sessions for part in (one.transcript, one.directory)}
    others = {*kept.others, *list_jobs(home)}
    report.left = theirs + remains(
        tops,
        subject,
        inside=lambda file: file in others or file in mine or not mine.isdisjoint(file.parents) or file.parent == home,
        skip=path,
    )
    again = any(one.in_scope for one in report.left) and bool(forget(kept, job.matcher(), do=False).done)
    report.unfinished = again or bool(report.skipped) or not all(one.readable for one in report.left)
    if not report.unfinished:
        _finish(path, report)
    return report


def resume_jobs(home: Path, environ: Mapping[str, str]) -> list[tuple[ForgetJob, ForgetReport]]:
    """Go on with all unfinished jobs, and remove the temporary files of those that were killed while they began."""
    done = [resumed for path in list_jobs(home) if (resumed := resume_job(home, path, environ)) is not None]
    for directory in directories_with_temps(home / FORGET):
        sweep_temps(directory)
    return done


def resume_job(home: Path, path: Path, environ: Mapping[str, str]) -> tuple[ForgetJob, ForgetReport] | None:
    """Go on with an unfinished job; None if it was finished in the meantime."""
    begun = read_job(path)
    if begun is None:
        return None
    job, planned = plan_job(home, path, begun, environ)
    return job, run_job(home, path, job, planned, environ)


def _settings(home: Path, job: ForgetJob, environ: Mapping[str, str]) -> Settings:
    return settings_in_force(job.cwd, home=home, environ=environ)


def _kept(home: Path, job: ForgetJob, settings: Settings, environ: Mapping[str, str]) -> KeptFiles:
    return kept_files(home, Path(job.cwd), settings, person=user_home(environ), everywhere=job.everywhere)


def _held_by_others(
    home: Path, job: ForgetJob, subject: Subject, settings: Settings, environ: Mapping[str, str]
) -> list[LeftFile]:
    if not settings.sources:
        return []
    cwd, variables = None if job.everywhere else job.cwd, {**environ, "LAMINA_HOME": str(home)}
    unread: list[str] = []
    kept = [one for one in memories(settings, cwd, environ=variables, unread=unread) if one.origin != "lamina"]
    found = sessions(settings, cwd, environ=variables, unread=unread)
    return held_by_others([*found, *kept], home, subject) + [unread_file(sentence) for sentence in unread]


def _sweep(tops: list[Path], report: ForgetReport) -> None:
    """Remove temporary files of writers that died or failed, this one included: they may contain the subject."""
    for directory in dict.fromkeys(found for top in tops for found in directories_with_temps(top)):
        try:
            sweep_temps(directory)
        except (DiskError, OSError) as error:
            report.skipped.append(LeftFile(str(directory), why_not(error)))


def _finish(path: Path, report: ForgetReport) -> None:
    try:
        remove(path)
    except DiskError as error:
        report.unfinished = True
        report.skipped.append(LeftFile(str(path), why_not(error)))

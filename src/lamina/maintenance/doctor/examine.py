"""`look`: everything that is wrong, found without changing anything.

Owns the order of the checks. Invariants: a check that cannot look is a finding of its own, and the others still run; nothing blocks,
whatever lies in the directories; the same disk gives the same findings. Checks that other rooms bring are entered in `_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.home.trust import while_trusted
from ...disk.paths.project import slug
from ...disk.settings_files import MANAGED_PATH, lamina_home, load_settings, user_home
from ...memory.store.history import DIRECTORY
from ...memory.store.modes import plan_write
from ...memory.store.scopes import TEAM, memory_place, project_root
from .daily import check_daily
from .dreams import check_dreams
from .files import leftovers, not_plain, not_private, not_read, twins
from .finding import AREAS, KINDS, Area, Finding, Severity
from .index import check_index
from .instructions import check_instructions
from .journal import check_trail
from .machine import check_machine
from .memory_snapshot import Reading, Where, is_topic, read_memory
from .sessions import Tell, check_home, check_sessions
from .settings import check_settings
from .topics import check_topics

_GRAVEST: tuple[Severity, ...] = ("error", "warning", "info")


class Surroundings(NamedTuple):
    """What a look is about. `home` is Lamina's, `person` the directory `~` stands for."""

    cwd: Path
    home: Path | None
    person: Path | None
    environ: Mapping[str, str]
    settings: Settings
    managed: Path
    now: float
    tell: Tell


class Report(msgspec.Struct, frozen=True):
    """`topics`: how many memories were read. `seen_all`: no check was kept from looking."""

    findings: tuple[Finding, ...]
    memory: tuple[str, ...]
    shared: tuple[str, ...]  # those of them that are a team's
    topics: int

    @property
    def seen_all(self) -> bool:
        return not any(found.kind == "unseen" for found in self.findings)


class Check(NamedTuple):
    area: Area
    what: str
    run: Callable[[], Iterable[Finding]]


def look(
    *, cwd: Path, environ: Mapping[str, str], now: float, managed: str | Path = MANAGED_PATH, tell: Tell = lambda _: None
) -> Report:
    """What is wrong for somebody who works in `cwd`, a real path. `managed` is the settings file of whoever runs the machine."""
    around = _surroundings(cwd, environ, now, Path(managed), tell)
    findings: list[Finding] = []
    readings: list[Reading] = []
    # One after another: where memory lies is known once the first check has run.
    for check in chain(_memory_checks(around, readings), _checks(around)):
        tell(f"looking at {check.what}")
        findings += _run(check)
    return _report(findings, readings)


def look_at_memory(*, cwd: Path, environ: Mapping[str, str], now: float, managed: str | Path = MANAGED_PATH) -> Report:
    """The part of `look` that is about memories: no session is read."""
    findings: list[Finding] = []
    readings: list[Reading] = []
    for check in _memory_checks(_surroundings(cwd, environ, now, Path(managed), lambda _: None), readings):
        findings += _run(check)
    return _report(findings, readings)


def _report(findings: list[Finding], readings: list[Reading]) -> Report:
    return Report(
        findings=tuple(sorted(findings, key=_order)),
        memory=tuple(str(each.where.path) for each in readings),
        shared=tuple(str(each.where.path) for each in readings if each.where.shared),
        topics=sum(len(each.pages) for each in readings),
    )


def _surroundings(cwd: Path, environ: Mapping[str, str], now: float, managed: Path, tell: Tell) -> Surroundings:
    home = lamina_home(environ)

    def load(trusted: bool) -> Settings:
        return load_settings(cwd=cwd, environ=environ, home=home, managed_path=managed, trusted=trusted)

    settings = while_trusted(home, cwd, load) if home is not None else load(False)
    return Surroundings(cwd, home, user_home(environ), environ, settings, managed, now, tell)


def _order(found: Finding) -> tuple[int, int, int, str, int]:
    kinds = list(KINDS)
    return AREAS.index(found.area), _GRAVEST.index(found.severity), kinds.index(found.kind), found.file, found.line or 0


def _run(check: Check) -> list[Finding]:
    """What a check found until it could not go on; then that it could not."""
    found: list[Finding] = []
    try:
        found.extend(check.run())
    except DiskError as error:
        text = f"{check.what[:1].upper()}{check.what[1:]} could not be looked at: {error.problem}."
        found.append(
            Finding(check.area, "unseen", text, error.remedy and f"{error.remedy[:1].upper()}{error.remedy[1:]}.", error.path)
        )
    return found


def _checks(around: Surroundings) -> Iterator[Check]:
    yield Check("instructions", "instruction files", lambda: _instructions(around))
    yield Check("settings", "settings", lambda: check_settings(around.settings, around.home))
    if around.home is not None:
        project = around.home / "projects" / slug(around.cwd)
        home = around.home
        yield Check("sessions", "the home directory", lambda: check_home(home, project))
        yield Check("sessions", "sessions", lambda: check_sessions(project, now=around.now, tell=around.tell))
    yield Check("machine", "installed programs", lambda: check_machine(around.settings, around.environ))


def _instructions(around: Surroundings) -> Iterator[Finding]:
    return check_instructions(
        cwd=around.cwd, home=around.home, person=around.person, settings=around.settings, managed=around.managed.parent
    )


def _memory_checks(around: Surroundings, readings: list[Reading]) -> Iterator[Check]:
    """One for each scope. What was read is put into `readings`."""
    places: list[Where] = []

    def find() -> Iterator[Finding]:
        places.extend(_places(around))
        return iter(())

    yield Check("memory", "the place of memory", find)
    for where in places:
        yield Check("memory", "team memory" if where.shared else "memory", partial(_memory, where, around, readings))


def _places(around: Surroundings) -> Iterator[Where]:
    if around.home is None:
        return
    settings = around.settings
    place = memory_place(cwd=around.cwd, home=around.home, settings=settings, user_home=around.person or around.home)
    project = project_root(around.cwd)
    modes = settings.memory_mode
    yield Where(place.path, project, writable=settings.memory and plan_write(modes["private"], "user") == "write")
    if place.team is not None:
        yield Where(place.team, project, shared=True, writable=settings.memory and plan_write(modes["team"], "user") == "write")


def _memory(where: Where, around: Surroundings, readings: list[Reading]) -> Iterator[Finding]:
    reading = read_memory(where, now=around.now)
    if reading is None:
        return
    readings.append(reading)
    yield from check_files(reading)
    yield from check_topics(reading, around.tell)
    yield from check_index(reading)
    yield from check_trail(reading)
    yield from check_daily(reading)
    yield from check_dreams(reading)


def check_files(reading: Reading) -> Iterator[Finding]:
    where, found = reading.where, reading.found
    # A team's directory below the private one is looked at as the team's; the repository of the history is git's business.
    entries = tuple(
        seen
        for seen in found.entries
        if (where.shared or seen.path.split("/")[0] != TEAM) and not seen.path.startswith(f"{DIRECTORY}/git/")
    )
    yield from not_read(found, where.path, "memory")
    yield from not_plain(
        [seen for seen in entries if seen.kind != "directory" or is_topic(seen.path)], where.path, "memory", shared=where.shared
    )
    yield from leftovers(entries, where.path, "memory", reading.now)
    yield from twins(entries, where.path, "memory")
    if not where.shared:
        yield from not_private(entries, where.path, "memory")
    for file in reading.unread:
        yield Finding("memory", "unreadable", f"{file} cannot be read.", "Check its permissions.", reading.full(file))
    if reading.passed_over:
        text = f"{reading.passed_over:,} memories were not read: there are too many, or they are too large together."
        yield Finding("memory", "too-many", text, "Merge or remove memories.", str(where.path))

"""`examine`: run all checks without changing anything.

Owns the order of the checks. Invariants: a check that cannot run becomes a finding, and the others still run. Nothing blocks,
whatever is in the directories. The same disk gives the same findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.home.trust import while_trusted
from ...disk.paths.project import slug
from ...disk.settings_files import MANAGED_PATH, lamina_home, load_settings, user_home
from ...language.wording import counted
from ...memory.store.modes import plan_write
from ...memory.store.scopes import locate_memory, project_root
from .files import check_files
from .finding import AREAS, KINDS, SEVERITIES, Area, Finding
from .home import check_forgets, check_space, check_writable
from .index import check_index
from .instructions import check_instructions
from .journal import check_dreams, check_journal
from .memory_snapshot import MemoryDirectory, MemorySnapshot, read_memory
from .plugins import check_plugins
from .sessions import Tell, check_home, check_sessions
from .settings import check_machine, check_settings
from .sources import check_sources
from .topics import check_daily, check_topics

DUPLICATES = frozenset({"identical", "same-body", "near-duplicate"})
DEAD_POINTERS = frozenset({"dead-pointer", "leads-out"})
STALE = frozenset({"stale-evidence", "relative-date"})
CONTRADICTED = frozenset({"stale-evidence", "same-name", "contradiction"})


class DoctorReport(msgspec.Struct, frozen=True):
    """The findings. `topics` is how many memories were read; `seen_all` tells whether every check could run."""

    findings: tuple[Finding, ...]
    memory: tuple[str, ...]
    shared: tuple[str, ...]  # the team directories among them
    topics: int

    @property
    def seen_all(self) -> bool:
        return not any(found.kind == "unseen" for found in self.findings)


def examine(
    *,
    cwd: Path,
    environ: Mapping[str, str],
    now: float,
    managed: str | Path = MANAGED_PATH,
    tell: Tell = lambda _: None,
    memory_only: bool = False,
) -> DoctorReport:
    """Run the checks for `cwd`, a real path. `managed` is the machine administrator's settings file."""
    examination = _Examination(cwd, environ, now, Path(managed), tell)
    examination.check_memory()
    if not memory_only:
        examination.check_rest()
    return examination.report()


class _Examination:
    """One run of the checks. `home` is Lamina's home, `person` the user's home directory."""

    def __init__(self, cwd: Path, environ: Mapping[str, str], now: float, managed: Path, tell: Tell) -> None:
        self.cwd, self.environ, self.now, self.managed, self.tell = cwd, environ, now, managed, tell
        self.home, self.person = lamina_home(environ), user_home(environ)
        self.settings = while_trusted(self.home, cwd, self._load) if self.home is not None else self._load(False)
        self.findings: list[Finding] = []
        self.snapshots: list[MemorySnapshot] = []

    def _load(self, trusted: bool) -> Settings:
        return load_settings(cwd=self.cwd, environ=self.environ, home=self.home, managed_path=self.managed, trusted=trusted)

    @contextmanager
    def _looking(self, area: Area, what: str) -> Iterator[list[Finding]]:
        """Collect the findings of a check; if it cannot go on, that becomes a finding."""
        self.tell(f"checking {what}")
        try:
            yield self.findings
        except DiskError as error:
            text = f"{what[:1].upper()}{what[1:]} could not be checked: {error.problem}."
            advice = error.remedy and f"{error.remedy[:1].upper()}{error.remedy[1:]}."
            self.findings.append(Finding(area, "unseen", text, error.path, advice=advice))

    def check_memory(self) -> None:
        """Check each scope: private memory, then team memory."""
        directories: list[MemoryDirectory] = []
        with self._looking("memory", "the memory directory"):
            directories += self._directories()
        for where in directories:
            with self._looking("memory", "team memory" if where.shared else "memory") as found:
                memory = read_memory(where, now=self.now)
                if memory is not None:
                    self.snapshots.append(memory)
                    found.extend(check_files(memory))
                    found.extend(check_topics(memory, self.tell))
                    for check in (check_index, check_journal, check_daily, check_dreams):
                        found.extend(check(memory))

    def _directories(self) -> Iterator[MemoryDirectory]:
        if self.home is None:
            return
        settings, project = self.settings, project_root(self.cwd)
        place = locate_memory(cwd=self.cwd, home=self.home, settings=settings, user_home=self.person or self.home)
        writable = {name: settings.memory and plan_write(mode, "user") == "write" for name, mode in settings.memory_mode.items()}
        yield MemoryDirectory(place.path, project, writable=writable["private"])
        if place.team is not None:
            yield MemoryDirectory(place.team, project, shared=True, writable=writable["team"])

    def check_rest(self) -> None:
        home, settings = self.home, self.settings
        with self._looking("instructions", "instruction files") as found:
            found.extend(
                check_instructions(cwd=self.cwd, home=home, person=self.person, settings=settings, managed=self.managed.parent)
            )
        with self._looking("settings", "settings") as found:
            found.extend(check_settings(settings, home))
        if home is not None:
            project = home / "projects" / slug(self.cwd)
            with self._looking("sessions", "the home directory") as found:
                found.extend(check_home(home, project))
                found.extend(check_forgets(home))
                found.extend(check_writable(home, project))
                found.extend(check_space(home))
            with self._looking("sessions", "sessions") as found:
                found.extend(check_sessions(project, now=self.now, tell=self.tell))
        with self._looking("sessions", "the sessions of other agents") as found:
            found.extend(check_sources(settings, self.environ))
        with self._looking("machine", "installed programs") as found:
            found.extend(check_machine(settings, self.environ))
        with self._looking("machine", "Lamina in other agents") as found:
            found.extend(check_plugins(self.cwd, self.environ))

    def report(self) -> DoctorReport:
        return DoctorReport(
            findings=tuple(sorted(self.findings, key=_order)),
            memory=tuple(str(each.where.path) for each in self.snapshots),
            shared=tuple(str(each.where.path) for each in self.snapshots if each.where.shared),
            topics=sum(len(each.pages) for each in self.snapshots),
        )


def _order(found: Finding) -> tuple[int, int, int, str, int]:
    kinds = list(KINDS)
    return AREAS.index(found.area), SEVERITIES.index(found.severity), kinds.index(found.kind), found.file, found.line or 0


class Pollution(msgspec.Struct, frozen=True):
    """Memory pollution in four figures: duplicates, dead pointers, stale and contradicted memories.

    Counted from the findings of `examine`, so `lamina doctor` names each of them. A memory is stale if its evidence has changed
    or it uses a relative date. The text itself is not understood: a memory is contradicted if its evidence is gone or differs,
    if it shares its name with another, of which only the first is found, or if a newer memory says the same with another value
    or a "not". `topics` is the number of memories read. A memory may count in several figures, but only once in each.
    """

    topics: int = 0
    duplicates: int = 0
    dead_pointers: int = 0
    stale: int = 0
    contradicted: int = 0

    def to_json(self) -> dict[str, int]:
        built: dict[str, int] = msgspec.to_builtins(self)
        return built

    def lines(self) -> list[str]:
        if not self.topics:
            return []
        return [
            f"Memory of this directory: {counted(self.topics, 'memory')}; {counted(self.duplicates, 'duplicate')}, "
            f"{counted(self.dead_pointers, 'dead pointer')}, {self.stale} stale, {self.contradicted} contradicted "
            "(run `lamina doctor` for details)"
        ]


def pollution(*, cwd: Path, environ: Mapping[str, str], now: float, managed: str | Path = MANAGED_PATH) -> Pollution:
    report = examine(cwd=cwd, environ=environ, now=now, managed=managed, memory_only=True)

    def files(kinds: frozenset[str]) -> int:
        return len({found.file for found in report.findings if found.kind in kinds})

    pointers = len({(found.file, found.line) for found in report.findings if found.kind in DEAD_POINTERS})
    return Pollution(report.topics, files(DUPLICATES), pointers, files(STALE), files(CONTRADICTED))

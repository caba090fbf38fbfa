"""A project with a separate home, to be damaged and checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lamina.disk.paths.project import slug
from lamina.maintenance.doctor.examination import DoctorReport, examine
from lamina.maintenance.doctor.finding import Finding
from lamina.maintenance.doctor.fixes import AppliedFix, mend_all
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft

# 2026-03-31, noon in any time zone near the tests.
NOW = 1_774_958_400.0
DAY = 86_400.0
ME = ChangeReason("user")


class Patient:
    """`home` and `cwd` lie in `base`; nothing else is looked at."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.cwd = Path(os.path.realpath(base)) / "project"
        self.person = base / "person"
        self.home = self.person / ".lamina"
        self.project = self.home / "projects" / slug(self.cwd)
        self.memory = self.project / "memory"
        for directory in (self.cwd, self.person, self.home, self.home / "projects", self.project, self.memory):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environ = {"HOME": str(self.person), "LAMINA_HOME": str(self.home), "PATH": os.environ.get("PATH", "")}

    def look(self, *, tell: Callable[[str], None] = lambda _: None) -> DoctorReport:
        return examine(cwd=self.cwd, environ=self.environ, now=NOW, managed=self.base / "managed" / "settings.json", tell=tell)

    def fix(self) -> tuple[list[AppliedFix], DoctorReport]:
        return mend_all(self.look, now=NOW)

    def found(self, kind: str) -> list[Finding]:
        return [found for found in self.look().findings if found.kind == kind]

    def kinds(self, *, area: str = "memory") -> set[str]:
        return {found.kind for found in self.look().findings if found.area == area}

    def write(self, file: str, text: str, *, mode: int = 0o600, age: float = 0.0) -> Path:
        """A file that nobody saved through the store."""
        path = self.memory / file
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, "utf-8")
        path.chmod(mode)
        os.utime(path, (NOW - age, NOW - age))
        return path

    def topic(
        self, file: str, body: str, *, description: str = "", name: str = "", kind: str = "project", age: float = 0.0
    ) -> Path:
        said = description or f"What {file} is about, in so many words"
        text = f"---\nname: {name or file.removesuffix('.md')}\ndescription: {said}\ntype: {kind}\n---\n\n{body}\n"
        return self.write(file, text, age=age)

    def index(self, text: str) -> None:
        self.write("MEMORY.md", text)

    def store(self, *, days_ago: float = 0.0) -> DirectoryStore:
        return DirectoryStore.open(self.memory, clock=lambda: NOW - days_ago * DAY, durability="process")

    def save(self, name: str, body: str, *, days_ago: float = 0.0, why: ChangeReason = ME) -> None:
        with self.store(days_ago=days_ago) as store:
            store.save(Draft(name, type="project", description=f"What {name} is about, in so many words", body=body), why=why)

    def transcript(self, session: str, data: bytes, *, age: float = 0.0) -> Path:
        path = self.project / f"{session}.jsonl"
        path.write_bytes(data)
        path.chmod(0o600)
        os.utime(path, (NOW - age, NOW - age))
        return path

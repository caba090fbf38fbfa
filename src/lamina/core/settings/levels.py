"""From what people wrote to levels: each file, the environment and the arguments as key → value, with findings for the rest.

Nothing here raises for what stands in a file. What lies in the working tree is held against the rights of each setting (F2):
an address, a path or a key is never taken from it, not even through its `env` object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from .kinds import Place, Read, bad, printable
from .row import Finding, Setting, Source, Variable
from .shapes import ChildEnvironment, Permissions, frozen_map
from .table import BY_KEY, BY_NAME, START_VARIABLES, VARIABLES, Table
from .variables import steers, variable_value

OURS = "lamina"
# A file of a hostile repository can hold any number of mistakes; a person reads the first few.
MOST_FINDINGS = 25
LONGEST_KEY = 80
# Likeness from which a misspelt key is worth a question: one or two letters off.
NEAR = 0.8
GROUPS = frozenset(key.rpartition(".")[0] for key in BY_KEY if key.count(".") > 1)
OWN_PREFIX = "LAMINA_"
TREE: frozenset[Source] = frozenset({"local", "project"})


# What is wrong with a directory, or None (G1). It needs the disk, so it is handed in.
Judge: TypeAlias = Callable[[str], str | None]


class Document(NamedTuple):
    """A settings file that was read: its JSON object and where it lies."""

    data: Mapping[str, Any]
    path: str = ""


class Given(NamedTuple):
    value: Any
    detail: str = ""  # the file or the variable
    variable: bool = False  # written as a variable, in the environment or in an `env` object (F3)


class Level(NamedTuple):
    source: Source
    values: Mapping[str, Given]
    findings: tuple[Finding, ...] = ()


def place(source: Source, detail: str) -> str:
    """Where something stands, for a sentence."""
    files = {"managed": "managed settings", "local": "local settings", "project": "project settings", "user": "your settings"}
    name = files.get(source, source)
    return f"{name}, {detail}" if detail else name


def finding(key: str, source: Source, detail: str, problem: str, remedy: str = "it is ignored") -> Finding:
    return Finding(key, source, f"Setting {key} ({place(source, printable(detail, 500))}): {problem}; {remedy}.")


class _Reader:
    """Gathers one level; it lives only while a source is read."""

    def __init__(
        self, source: Source, path: str, *, trusted: bool = True, names: bool = False, judge: Judge | None = None
    ) -> None:
        self.source: Source = source
        self.path = path
        self.trusted = trusted
        self.names = names  # Python names count as keys: arguments, not files
        self.judge = judge
        self.values: dict[str, Given] = {}
        self.findings: list[Finding] = []
        self.further = 0  # findings beyond those a person reads

    def level(self) -> Level:
        if self.further:
            self.findings.append(finding(OURS, self.source, self.path, f"{self.further:,} more findings", "mend the first ones"))
        return Level(self.source, self.values, tuple(self.findings))

    def note(self, key: str, problem: str, remedy: str = "it is ignored", *, detail: str = "") -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding(key, self.source, detail or self.path, problem, remedy))
        else:
            self.further += 1

    def take(self, row: Setting[Any], read: Read[Any], detail: str, *, variable: bool = False) -> None:
        if isinstance(row.kind, Place) and read.value is not None and self.judge is not None:
            refused = self.judge(read.value + row.kind.below)
            read = read if refused is None else bad(refused)
        for problem in read.problems:
            self.note(row.key, problem, detail=detail)
        if read.value is not None:
            self.values[row.key] = Given(read.value, detail, variable)

    def document(self, data: Mapping[str, Any]) -> None:
        for key, raw in data.items():
            if key == OURS and isinstance(raw, Mapping):
                self.own(raw, OURS)
            elif key == OURS:
                self.note(OURS, "must be an object")
            elif (row := self.row(key)) is not None:
                self.setting(row, raw)
            elif self.names:
                self.unknown(str(key))
            elif f"{OURS}.{key}" in BY_KEY:
                self.note(printable(key), "stands at the top", f'it belongs into the object "{OURS}" and is ignored')
        self.variables(data.get(Table.env.key))

    def row(self, key: object) -> Setting[Any] | None:
        if not isinstance(key, str):
            return None
        return BY_KEY.get(key) or (BY_NAME.get(key) or BY_KEY.get(f"{OURS}.{key}") if self.names else None)

    def own(self, data: Mapping[str, Any], prefix: str) -> None:
        for key, raw in data.items():
            full = f"{prefix}.{key}"
            if (row := BY_KEY.get(full)) is not None:
                self.setting(row, raw)
            elif isinstance(raw, Mapping) and full in GROUPS:
                self.own(raw, full)
            else:
                self.unknown(full)

    def unknown(self, key: str) -> None:
        from difflib import get_close_matches  # only a misspelt key needs it

        searched = len(self.findings) < MOST_FINDINGS and len(key) <= LONGEST_KEY
        near = get_close_matches(key, [*BY_KEY, *BY_NAME] if self.names else BY_KEY, 1, NEAR) if searched else []
        self.note(
            printable(key), "there is no such setting", f"did you mean {near[0]}? It is ignored" if near else "it is ignored"
        )

    def setting(self, row: Setting[Any], raw: object) -> None:
        if raw is None or row is Table.env or not self.admitted(row):
            return
        read = row.kind.read(raw)
        if self.source in TREE and isinstance(read.value, Permissions):
            read = self.rules_only(read)
        self.take(row, read, self.path)

    def admitted(self, row: Setting[Any], detail: str = "") -> bool:
        """F2. What may only lower a setting is admitted here and held against the person's own value where levels meet."""
        if self.source not in TREE:
            return True
        if row.tree == "never":
            self.note(row.key, "may not be set by files in the working tree", detail=detail)
            return False
        if row.tree == "trusted" and not self.trusted:
            self.note(row.key, "waits until you trust this directory", detail=detail)
            return False
        return True

    def rules_only(self, read: Read[Permissions]) -> Read[Permissions]:
        """Trusted or not, a working tree widens no directories and chooses no mode."""
        found = read.value
        if found is None or not (found.directories or found.mode):
            return read
        problem = "additionalDirectories and defaultMode may not be set by files in the working tree"
        return Read(msgspec.structs.replace(found, directories=(), mode=None), (*read.problems, problem))

    def variables(self, raw: object) -> None:
        """The `env` object: what names a setting counts as that setting in this file, the rest is for child processes."""
        if raw is None:
            return
        read = ChildEnvironment().read(raw)
        rest: dict[str, str] = {}
        for name, text in (read.value or {}).items():
            if (known := VARIABLES.get(name)) is not None:
                self.variable(known[0], known[1], text, detail=f"{self.path} env.{name}".strip())
            elif name.startswith(OWN_PREFIX):
                self.note(
                    f"env.{name}", "is read from the process environment only" if name in START_VARIABLES else "is not known"
                )
            elif self.source in TREE and steers(name):
                self.note(f"env.{name}", "may not be set by files in the working tree")
            else:
                rest[name] = text
        if (rest or read.problems) and self.admitted(Table.env):
            self.take(Table.env, Read(frozen_map(rest) if rest else None, read.problems), self.path)

    def variable(self, row: Setting[Any], variable: Variable, text: str, *, detail: str) -> None:
        read = variable_value(row, variable, text)
        if (read.value is not None or read.problems) and self.admitted(row, detail):
            self.take(row, read, detail, variable=True)

    def environment(self, environ: Mapping[str, str]) -> None:
        """The first of a setting's variables that says something counts: ours stand before the aliases."""
        for name in _own_first(environ):
            known = VARIABLES.get(name)
            if known is None:
                self.note(name, "no such variable is known")
            elif known[0].key not in self.values:
                self.variable(known[0], known[1], environ[name], detail=name)


def _own_first(environ: Mapping[str, str]) -> Iterator[str]:
    yield from (name for name in VARIABLES if name in environ)
    yield from (name for name in environ if name.startswith(OWN_PREFIX) and name not in VARIABLES and name not in START_VARIABLES)


def read_document(
    source: Source, given: Document | Mapping[str, Any] | None, *, trusted: bool = False, judge: Judge | None = None
) -> Level:
    """A settings file: managed, user, project or local."""
    document = given if isinstance(given, Document) else Document(given or {})
    reader = _Reader(source, document.path, trusted=trusted, judge=judge)
    reader.document(document.data)
    return reader.level()


def read_arguments(source: Source, given: Mapping[str, Any] | None, *, judge: Judge | None = None) -> Level:
    """What code or a command line says: keys or Python names, with None for "not said"."""
    reader = _Reader(source, "", names=True, judge=judge)
    reader.document({key: value for key, value in (given or {}).items() if value is not None})
    return reader.level()


def read_environment(environ: Mapping[str, str] | None, *, judge: Judge | None = None) -> Level:
    reader = _Reader("environment", "", judge=judge)
    reader.environment(environ or {})
    return reader.level()

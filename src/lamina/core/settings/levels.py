"""Read each source of settings (files, environment, arguments, flags) into a level: values by key, and findings for the rest.

Invalid content of a file never raises. Files in the working tree are limited by the rights of each setting: a URL, a path or an
API key is never read from them, not even through their `env` object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from ...language.text import Text
from ...language.wording import counted
from ..errors import setting_message
from ..flags import Flags, Mistyped, ask
from .collection_kinds import CHILD_ENVIRONMENT, Permissions, frozen_map
from .kinds import DIRECTORY, SWITCH, ReadValue, printable, truth, whole
from .table import BASH_LENGTH, BY_KEY, BY_NAME, OURS, OWN_PREFIX, SETTINGS, VARIABLES, Resolved, Setting, Source, Table, defaults

# A file in a hostile repository can contain any number of mistakes; a user reads only the first few.
MOST_FINDINGS = 25
LONGEST_KEY = 80
# Minimum similarity for a "did you mean" suggestion: one or two letters off.
NEAR = 0.8
GROUPS = frozenset(key.rpartition(".")[0] for key in BY_KEY if key.count(".") > 1)
TREE: frozenset[Source] = frozenset({"local", "project"})
PLACES = {
    "user": Text("your settings"),
    "managed": Text("managed settings"),
    "local": Text("local settings"),
    "project": Text("project settings"),
}
WAITS_FOR_TRUST = Text("waits until you trust this directory")
NOT_IN_TREE = Text("may not be set by files in the working tree")
# Read from the process environment alone: at startup, before the settings exist, or in tests.
START_VARIABLES = frozenset({"LAMINA_HOME", "LAMINA_FLAGS", "LAMINA_SELECTION", "LAMINA_SELECTION_FILE", "LAMINA_STRICT"})
# Claude Code's limit for the output of Bash. Its variable can lower this limit but not raise it.
BASH_CHARACTERS = 30_000

# Variables by which a program finds a server, a key, a certificate or the home directory. Lamina never reads them from a working
# tree, and never passes them from there to a child process.
_STEERING_STARTS = ("LAMINA_", "CLAUDE", "ANTHROPIC_", "OPENAI_", "AWS_", "AZURE_", "GOOGLE_", "XDG_")
_STEERING_ENDS = ("_URL", "_PROXY", "_ENDPOINT", "_HOST", "_KEY", "_TOKEN", "_SECRET", "_CA_BUNDLE", "_CA_CERTS")
_STEERING = frozenset({"HOME", "USERPROFILE", "SSL_CERT_FILE", "SSL_CERT_DIR"})

# Returns the problem with a directory, or None. It is passed in because it needs the disk.
Judge: TypeAlias = Callable[[str], str | None]


class Finding(msgspec.Struct, frozen=True):
    """A message about an ignored part of the settings. A finding never stops a session."""

    key: str
    source: str
    text: str
    problem: str = ""
    meant: str = ""  # the setting that a misspelt key is close to
    file: str = ""


class Document(msgspec.Struct, frozen=True):
    """The JSON object of a settings file, and the path of the file."""

    data: Mapping[str, Any]
    path: str = ""


class Level(msgspec.Struct, frozen=True):
    source: Source
    values: Mapping[str, Resolved]
    findings: tuple[Finding, ...] = ()
    by_variable: frozenset[str] = frozenset()  # keys set by a variable, in the environment or in an `env` object


def finding(key: str, source: Source, detail: str, problem: str, remedy: str = "it is ignored", meant: str = "") -> Finding:
    place = Text.whole(PLACES.get(source, source))
    if detail:
        place = Text("{place}, {detail}", place=place, detail=printable(detail, 500))
    file = detail.partition(" env.")[0] if source in PLACES else ""
    return Finding(key, source, setting_message(key, place, problem, remedy), problem, meant, file)


def _steers(name: str) -> bool:
    upper = name.upper()
    return upper in _STEERING or upper.startswith(_STEERING_STARTS) or upper.endswith(_STEERING_ENDS)


def _variable_value(row: Setting[Any], name: str, text: str) -> ReadValue[Any]:
    """Read the text of a variable. An empty text means false for a switch, and is ignored for any other setting."""
    if not text.strip() and (row.kind is not SWITCH or row.means == "not"):
        # An empty variable must not force memory on when the user has turned it off.
        return ReadValue(None)
    if name == BASH_LENGTH:
        length = whole(1).read_text(text)
        return ReadValue(length.value and frozen_map({"Bash": min(length.value, BASH_CHARACTERS)}), length.problems)
    value = truth(text)
    if row.means == "value" or value is None:
        return row.kind.read_text(text)
    return ReadValue(None if row.means == "off" and not value else not value)


class LevelReader(msgspec.Struct):
    """Reads one source into a level. A new reader is made for each source."""

    source: Source
    trusted: bool = True
    names: bool = False  # Python names are accepted as keys (arguments, not files)
    judge: Judge | None = None
    path: str = ""
    values: dict[str, Resolved] = {}
    by_variable: set[str] = set()
    findings: list[Finding] = []
    further: int = 0  # number of findings beyond MOST_FINDINGS

    def note(self, key: str, problem: str, remedy: str = "it is ignored", *, detail: str = "", meant: str = "") -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding(key, self.source, detail or self.path, problem, remedy, meant))
        else:
            self.further += 1

    def take(self, row: Setting[Any], reading: ReadValue[Any], detail: str) -> None:
        if row.kind is DIRECTORY and reading.value is not None and self.judge is not None:
            refused = self.judge(reading.value + row.below)
            reading = reading if refused is None else ReadValue(None, (refused,))
        for problem in reading.problems:
            self.note(row.key, problem, detail=detail)
        if reading.value is not None:
            self.values[row.key] = Resolved(reading.value, self.source, detail)

    def document(self, given: Document | Mapping[str, Any] | None) -> Level:
        """Read a settings file, or the arguments of code or a command line, where None means "not set"."""
        data = given.data if isinstance(given, Document) else given or {}
        if isinstance(given, Document):
            self.path = given.path
        if self.names:
            data = {key: raw for key, raw in data.items() if raw is not None}
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
                self.note(
                    printable(key), "is at the top level", Text('it is ignored, move it into the object "{ours}"', ours=OURS)
                )
        self.variables(data.get(Table.env.key))
        return self.level()

    def row(self, key: str) -> Setting[Any] | None:
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
        from difflib import get_close_matches  # imported here because only misspelt keys need it

        searched = len(self.findings) < MOST_FINDINGS and len(key) <= LONGEST_KEY
        near = "".join(get_close_matches(key, [*BY_KEY, *BY_NAME] if self.names else BY_KEY, 1, NEAR)) if searched else ""
        remedy = Text("did you mean {near}? It is ignored", near=near) if near else Text("it is ignored")
        self.note(printable(key), "there is no such setting", remedy, meant=near)

    def setting(self, row: Setting[Any], raw: object) -> None:
        if raw is None or row is Table.env or not self.admits(row):
            return
        reading = row.kind.read(raw)
        if self.source in TREE and isinstance(reading.value, Permissions) and (reading.value.directories or reading.value.mode):
            # Even a trusted working tree may neither add directories nor choose the mode.
            problem = "additionalDirectories and defaultMode may not be set by files in the working tree"
            reading = ReadValue(msgspec.structs.replace(reading.value, directories=(), mode=None), (*reading.problems, problem))
        self.take(row, reading, self.path)

    def admits(self, row: Setting[Any], detail: str = "") -> bool:
        """Whether this source may set the row. Values that may only be lowered pass here; resolution applies the limit."""
        if self.source in TREE and row.tree == "never":
            self.note(row.key, NOT_IN_TREE, detail=detail)
            return False
        if self.source in TREE and row.tree == "trusted" and not self.trusted:
            self.note(row.key, WAITS_FOR_TRUST, detail=detail)
            return False
        return True

    def variables(self, raw: object) -> None:
        """Read the `env` object: variables that name a setting set it at this level, the rest is for child processes."""
        if raw is None:
            return
        reading = CHILD_ENVIRONMENT.read(raw)
        others: dict[str, str] = {}
        for name, text in (reading.value or {}).items():
            if name in VARIABLES:
                self.variable(name, text, detail=f"{self.path} env.{name}".strip())
            elif name.startswith(OWN_PREFIX):
                start = name in START_VARIABLES
                self.note(f"env.{name}", "is read only from the process environment" if start else "is not a known variable")
            elif self.source in TREE and _steers(name):
                self.note(f"env.{name}", NOT_IN_TREE)
            else:
                others[name] = text
        if (others or reading.problems) and self.admits(Table.env):
            self.take(Table.env, ReadValue(frozen_map(others) if others else None, reading.problems), self.path)

    def variable(self, name: str, text: str, *, detail: str) -> None:
        row = VARIABLES[name]
        reading = _variable_value(row, name, text)
        if (reading.value is not None or reading.problems) and self.admits(row, detail):
            self.take(row, reading, detail)
            if reading.value is not None:
                self.by_variable.add(row.key)

    def environment(self, environ: Mapping[str, str]) -> Level:
        """Read the environment. If several variables of a setting are set, the first wins; Lamina's own come before the aliases."""
        for name, row in VARIABLES.items():
            if name in environ and row.key not in self.values:
                self.variable(name, environ[name], detail=name)
        for name in environ:
            if name.startswith(OWN_PREFIX) and name not in VARIABLES and name not in START_VARIABLES:
                self.note(name, "is not a known variable")
        return self.level()

    def flags(self, flags: Flags) -> Level:
        """Look up every setting that a flag may set. A value of the wrong type is ignored and reported."""
        for row in SETTINGS:
            # The sample has the flag's type. For a switch it is true, so a returned false is a real answer and not the sample.
            answer = ask(flags, row.key, row.kills or defaults()[row.key].value) if row.remote else None
            if isinstance(answer, Mistyped):
                self.note(row.key, Text("expected {says}, {problem}", says=row.kind.says, problem=answer.problem))
            elif answer is not None:
                self.take(row, row.kind.read(answer), "")
        for key in flags if isinstance(flags, Mapping) else ():
            if key in BY_KEY and not BY_KEY[key].remote:
                self.note(key, "may not be set by a remote flag")
            elif key not in BY_KEY and str(key).startswith(f"{OURS}."):
                self.note(printable(key), "there is no such setting")
        return self.level()

    def level(self) -> Level:
        if self.further:
            more = counted(self.further, "more problem")
            self.findings.append(finding(OURS, self.source, self.path, more, "fix the ones above first"))
        return Level(self.source, self.values, tuple(self.findings), frozenset(self.by_variable))

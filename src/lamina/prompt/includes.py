"""`@path` includes (I2): which ones a text names, what they lead to, and whether that may be loaded.

One resolver serves loading and asking: a path is resolved through all its links once, the verdict is about that real path, and that
real path is what is read, asked about and remembered. So a link cannot be refused without being asked about, nor be approved as one
file and loaded as another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from .markdown import mask_code

# The file itself is level 0.
DEEPEST = 5
# More than anyone writes on purpose; each costs a look at the disk.
MOST_PER_FILE = 100
LONGEST = 1_024

# At the start of a line, after white space, a quote or an emphasis: not in an address, after "(" or in a link. `\ ` is a space.
_INCLUDE = re.compile(r"(?:^|(?<=[\s\"'*_“‘«]))@(?P<path>(?:\\ |[^\s\"'`<>|])+)", re.MULTILINE)
_PUNCTUATION = ".,;:!?*…。，；：！？”’»"
_PAIRS = {")": "(", "]": "[", "}": "{"}

# Names that are meant as files even where they do not exist: anything else may be a person's handle, a decorator or a package.
_SUFFIXES = """.md .mdc .markdown .txt .rst .adoc .csv .json .jsonc .yaml .yml .toml .ini .cfg .xml .html .css .sql .sh .py .js
    .jsx .ts .tsx .go .rs .java .kt .c .h .cpp .cs .rb .php .swift .proto"""
_TEXT_SUFFIXES = frozenset(_SUFFIXES.split())
_EXPLICIT = ("./", "../", "~/", "/")

# What a repository never gets at by way of an include, asked or not: the system's own files, and what holds keys.
_SYSTEM = frozenset({"etc", "proc", "sys", "dev", "boot", "run"})
_KEY_NAMES = """.ssh .gnupg .aws .azure .kube .docker .password-store .git .env .netrc _netrc .pgpass .npmrc .pypirc .git-credentials
    id_rsa id_dsa id_ecdsa id_ed25519"""
_KEYS = frozenset(_KEY_NAMES.split())
# `.env.production` and whatever else a stage is called; forms to fill in hold nothing.
_ENVIRONMENT = re.compile(r"\.env\.(?!(?:example|sample|template|dist)$).+")


class IncludeTarget(NamedTuple):
    path: Path  # as it is spelled
    real: Path  # with all links resolved


class IncludeReach(NamedTuple):
    """What a file may load. A person's own files (managed, user) load anything; all others what lies inside these directories, and
    what was approved."""

    project: Path
    inside: tuple[Path, ...]
    exempt: bool = False


class ForbiddenInclude(NamedTuple):
    problem: str


def find_includes(text: str) -> list[str]:
    """The paths a text names, as spelled, in order, each once."""
    mask = mask_code(text) if "@" in text else ""
    return list(dict.fromkeys(_spelled(mask)))[:MOST_PER_FILE]


def _spelled(mask: str) -> Iterator[str]:
    for match in _INCLUDE.finditer(mask):
        if len(match["path"]) > LONGEST:
            continue
        path = match["path"].split("#", 1)[0].replace("\\ ", " ")
        if mask[match.start() - 1 : match.start()] == "_":
            path = path.removesuffix("_")
        path = _without_punctuation(path)
        if path.strip("./~ ") and path.isprintable() and "://" not in path and path.count("(") == path.count(")"):
            yield path


def _without_punctuation(path: str) -> str:
    """Without what belongs to the sentence around it; a bracket that is closed in the path belongs to the path."""
    while path and (path[-1] in _PUNCTUATION or path.count(path[-1]) > path.count(_PAIRS.get(path[-1], path[-1]))):
        path = path[:-1]
    return path


def meant_as_file(spelled: str) -> bool:
    return spelled.startswith(_EXPLICIT) or PurePosixPath(spelled).suffix.lower() in _TEXT_SUFFIXES


def resolve(spelled: str, *, beside: Path, person: Path | None) -> IncludeTarget | None:
    """What an include leads to. `beside` is the directory of the file that names it, `person` the one `~` stands for; None where
    that is not known."""
    if spelled.startswith("~/"):
        if person is None:
            return None
        path = person / spelled[2:]
    else:
        path = beside / spelled
    return target_of(Path(os.path.normpath(path)))


def target_of(path: Path) -> IncludeTarget:
    return IncludeTarget(path, Path(os.path.realpath(path)))


def judge_include(real: Path, reach: IncludeReach) -> Literal["load", "ask"] | ForbiddenInclude:
    if reach.exempt:
        return "load"
    if problem := _never(real, reach.project):
        return ForbiddenInclude(problem)
    return "load" if any(real.is_relative_to(directory) for directory in reach.inside) else "ask"


def _never(real: Path, project: Path) -> str | None:
    below = real.relative_to(project).parts if real.is_relative_to(project) else real.parts[1:]
    if any(part.casefold() in _KEYS or _ENVIRONMENT.fullmatch(part.casefold()) for part in below):
        return "may hold keys"
    top = _first_component(real)
    if top in _SYSTEM and top != _first_component(project):
        return "is the system's own"
    return None


def _first_component(path: Path) -> str:
    """macOS keeps /etc and its like under /private."""
    parts = path.parts[1:]
    return (parts[1] if parts[:1] == ("private",) and len(parts) > 1 else parts[0] if parts else "").casefold()

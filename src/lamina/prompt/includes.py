"""`@path` includes (I2): which ones a text names, what they lead to, and whether that may be loaded.

One resolver serves loading and asking: a path is resolved through all its links once, the verdict is about that real path, and that
real path is what is read, asked about and remembered. So a link cannot be refused without being asked about, nor be approved as one
file and loaded as another.

What is code or a comment includes nothing. Finding that is linear in the length of the text and no markdown parser: where it is in
doubt it calls a line code, so that nothing is included by accident.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

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


# A fence may stand in quotes and list items. A backtick fence has no further backtick in its line: that would be a code span.
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_INDENTED = ("    ", "\t")
_RUN = re.compile(r"`+")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")


def mask_code(text: str) -> str:
    """The same text with spaces where code is: same length, same lines."""
    if "`" not in text and "~~~" not in text and "    " not in text and "\t" not in text:
        return text
    paragraphs = groupby(_mask_blocks(text).split("\n"), key=lambda line: not line.strip())
    return "\n".join(_mask_spans("\n".join(lines)) for _, lines in paragraphs)


def _mask_blocks(text: str) -> str:
    lines: list[str] = []
    mark = ""  # of the fence we are in
    in_list, after_blank = False, True
    for line in text.split("\n"):
        is_code = bool(mark)
        if mark:
            closing = line.strip(" \t>")
            if len(closing) >= len(mark) and not closing.strip(mark[0]):
                mark = ""
        elif (opening := _FENCE.match(line)) is not None:
            mark, is_code = opening["mark"], True
        elif not line.strip():
            after_blank = True
        elif line.startswith(_INDENTED) and after_blank and not in_list:
            is_code = True
        else:
            after_blank = False
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[0] in " \t")
        lines.append(" " * len(line) if is_code else line)
    return "\n".join(lines)


def _mask_spans(paragraph: str) -> str:
    """A span opens with a run of backticks and closes with the next run of the same length in the paragraph."""
    runs = list(_RUN.finditer(paragraph))
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        by_length[len(run[0])].append(index)
    pieces: list[str] = []
    done = index = 0
    while index < len(runs):
        run = runs[index]
        same = by_length[len(run[0])]
        after = bisect_right(same, index)
        escaped = paragraph[run.start() - 1 : run.start()] == "\\"
        if not escaped and after < len(same):
            index = same[after]
            end = runs[index].end()
            pieces += [paragraph[done : run.start()], re.sub(r"[^\n]", " ", paragraph[run.start() : end])]
            done = end
        index += 1
    return "".join([*pieces, paragraph[done:]])


def without_comments(text: str) -> str:
    """Without HTML comments that stand on lines of their own; those inside a line, in code or never closed stay."""
    if "<!--" not in text:
        return text
    mask = mask_code(text)
    kept: list[str] = []
    done = at = 0
    while (start := mask.find("<!--", at)) >= 0 and (end := mask.find("-->", start + 4)) >= 0:
        at = end + 3
        # Up to three spaces before it: with four it would be code.
        before = text[max(0, start - 4) : start]
        indent = len(before) - before.rfind("\n") - 1 if "\n" in before else start
        rest = _REST_OF_LINE.match(text, at)
        if indent <= 3 and not before[len(before) - indent :].strip() and rest is not None:
            kept.append(text[done : start - indent])
            done = at = rest.end()
    return "".join([*kept, text[done:]])

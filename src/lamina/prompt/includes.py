"""`@path` includes: which ones a text names, what they resolve to, and whether they may be loaded.

One resolver serves both loading and approval. A path is resolved through all its links once; the verdict is about the
resolved path, and that path is read, shown for approval and remembered. So a link cannot be refused without an approval
request, nor be approved as one file and loaded as another.

Code and comments include nothing. Detecting them is linear in the length of the text and does not use a markdown parser.
When in doubt a line counts as code, so that nothing is included by accident.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

# The file itself is level 0.
DEEPEST = 5
# More than anyone writes on purpose; each include costs a disk lookup.
MOST_PER_FILE = 100
LONGEST = 1_024

# An include follows the start of a line, white space, a quote or an emphasis sign, so e-mail addresses, "(" and links don't
# match. `\ ` is a space.
_INCLUDE = r"(?m)(?:^|(?<=[\s\"'*_“‘«]))@(?P<path>(?:\\ |[^\s\"'`<>|])+)"
_PUNCTUATION = ".,;:!?*…。，；：！？”’»"
_PAIRS = {")": "(", "]": "[", "}": "{"}

# Suffixes that are meant as files even if the file does not exist. Other words may be a user name, a decorator or a package.
_SUFFIXES = """.md .mdc .markdown .txt .rst .adoc .csv .json .jsonc .yaml .yml .toml .ini .cfg .xml .html .css .sql .sh .py .js
    .jsx .ts .tsx .go .rs .java .kt .c .h .cpp .cs .rb .php .swift .proto"""
_TEXT_SUFFIXES = frozenset(_SUFFIXES.split())
_EXPLICIT = ("./", "../", "~/", "/")

# A repository can never include these, with or without approval: system files, and files that hold keys.
_SYSTEM = frozenset({"etc", "proc", "sys", "dev", "boot", "run"})
_KEY_NAMES = """.ssh .gnupg .aws .azure .kube .docker .password-store .git .env .netrc _netrc .pgpass .npmrc .pypirc .git-credentials
    id_rsa id_dsa id_ecdsa id_ed25519"""
_KEYS = frozenset(_KEY_NAMES.split())
# `.env.production` and any other stage; templates hold no secrets.
_ENVIRONMENT = r"\.env\.(?!(?:example|sample|template|dist)$).+"


class IncludeTarget(msgspec.Struct, frozen=True):
    path: Path  # as spelled in the text
    real: Path  # with all links resolved


class IncludeReach(msgspec.Struct, frozen=True):
    """The files that a file may load. Managed and user files load anything. All others load files inside these
    directories and what was approved."""

    project: Path
    inside: tuple[Path, ...]
    exempt: bool = False


class ForbiddenInclude(msgspec.Struct, frozen=True):
    problem: str


def find_includes(text: str) -> list[str]:
    """Return the paths that a text includes: as spelled, in order, without duplicates."""
    mask = mask_code(text) if "@" in text else ""
    return list(dict.fromkeys(_spelled(mask)))[:MOST_PER_FILE]


def _spelled(mask: str) -> Iterator[str]:
    for match in re.finditer(_INCLUDE, mask):
        if len(match["path"]) > LONGEST:
            continue
        path = match["path"].split("#", 1)[0].replace("\\ ", " ")
        if mask[match.start() - 1 : match.start()] == "_":
            path = path.removesuffix("_")
        # Remove the punctuation of the sentence. A bracket that is opened in the path belongs to the path.
        while path and (path[-1] in _PUNCTUATION or path.count(path[-1]) > path.count(_PAIRS.get(path[-1], path[-1]))):
            path = path[:-1]
        if path.strip("./~ ") and path.isprintable() and "://" not in path and path.count("(") == path.count(")"):
            yield path


def meant_as_file(spelled: str) -> bool:
    return spelled.startswith(_EXPLICIT) or PurePosixPath(spelled).suffix.lower() in _TEXT_SUFFIXES


def resolve(spelled: str, *, beside: Path, person: Path | None) -> IncludeTarget | None:
    """Resolve an include. `beside` is the directory of the file that names it and `person` the directory `~` stands for.
    Return None if `~` cannot be resolved."""
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
    inside = real.is_relative_to(reach.project)
    names = [part.casefold() for part in (real.relative_to(reach.project).parts if inside else real.parts[1:])]
    if any(name in _KEYS or re.fullmatch(_ENVIRONMENT, name) for name in names):
        return ForbiddenInclude("may hold keys")
    top = _first_component(real)
    if top in _SYSTEM and top != _first_component(reach.project):
        return ForbiddenInclude("is a system file")
    return "load" if any(real.is_relative_to(directory) for directory in reach.inside) else "ask"


def _first_component(path: Path) -> str:
    """Return the first directory name; macOS keeps /etc and similar directories under /private."""
    parts = path.parts[1:]
    return (parts[1] if parts[:1] == ("private",) and len(parts) > 1 else parts[0] if parts else "").casefold()


# A fence may be nested in quotes and list items. A second backtick run on the line would make it a code span, not a fence.
_FENCE = r"[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})"
_LIST_ITEM = r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"
_INDENTED = ("    ", "\t")
_RUN = re.compile(r"`+")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")


def mask_code(text: str) -> str:
    """Return the text with spaces in place of code; length and line breaks stay the same."""
    if "`" not in text and "~~~" not in text and "    " not in text and "\t" not in text:
        return text
    paragraphs = groupby(_mask_blocks(text).split("\n"), key=lambda line: not line.strip())
    return "\n".join(_mask_spans("\n".join(lines)) for _, lines in paragraphs)


def _mask_blocks(text: str) -> str:
    lines: list[str] = []
    mark = ""  # of the open fence
    in_list, after_blank = False, True
    for line in text.split("\n"):
        is_code = bool(mark)
        if mark:
            closing = line.strip(" \t>")
            if len(closing) >= len(mark) and not closing.strip(mark[0]):
                mark = ""
        elif (opening := re.match(_FENCE, line)) is not None:
            mark, is_code = opening["mark"], True
        elif not line.strip():
            after_blank = True
        elif line.startswith(_INDENTED) and after_blank and not in_list:
            is_code = True
        else:
            after_blank = False
            in_list = bool(re.match(_LIST_ITEM, line)) or (in_list and line[0] in " \t")
        lines.append(" " * len(line) if is_code else line)
    return "\n".join(lines)


def _mask_spans(paragraph: str) -> str:
    """Mask code spans: a span opens with a run of backticks and closes with the next run of the same length in the
    paragraph."""
    runs = list(_RUN.finditer(paragraph))
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        by_length[len(run[0])].append(index)
    pieces: list[str] = []
    masked = index = 0  # up to where the paragraph is in the pieces, and the next run
    while index < len(runs):
        run = runs[index]
        same = by_length[len(run[0])]
        after = bisect_right(same, index)
        escaped = paragraph[run.start() - 1 : run.start()] == "\\"
        if not escaped and after < len(same):
            index = same[after]
            end = runs[index].end()
            pieces += [paragraph[masked : run.start()], re.sub(r"[^\n]", " ", paragraph[run.start() : end])]
            masked = end
        index += 1
    return "".join([*pieces, paragraph[masked:]])


def without_comments(text: str) -> str:
    """Remove HTML comments on separate lines. Comments inside a line, in code, or never closed stay."""
    if "<!--" not in text:
        return text
    mask = mask_code(text)
    pieces: list[str] = []
    copied = after = 0  # up to where the text is in the pieces, and the end of the last comment
    while (start := mask.find("<!--", after)) >= 0 and (end := mask.find("-->", start + 4)) >= 0:
        after = end + 3
        # Up to three spaces of indent: with four it would be code.
        before = text[max(0, start - 4) : start]
        indent = len(before) - before.rfind("\n") - 1 if "\n" in before else start
        line_end = _REST_OF_LINE.match(text, after)
        if indent <= 3 and not before[len(before) - indent :].strip() and line_end is not None:
            pieces.append(text[copied : start - indent])
            copied = after = line_end.end()
    return "".join([*pieces, text[copied:]])

"""Evidence: the files and symbols a memory relies on, and whether they are unchanged.

The front matter holds a list that people can read and write:

    evidence:
      - src/db.py@9f86d081884c7d65             the file, unchanged
      - src/db.py#Pool.connect@9f86d081884c7d65    a symbol in it
      - docs/oncall.md                         the file exists, with any content

A path is relative to the project's root, with `/` between its parts. A whole file is fresh while its bytes are the same. A
symbol is fresh while its own lines are the same, even if the file around them has changed: its definition and the lines that
are indented below it. In a path, `#`, `%` and an `@` that would read as a digest are written `%23`, `%25` and `%40`.

An entry without a digest gets one when the memory is saved.

Invariants: nothing outside the root is opened, through a link or by spelling. Only regular files are opened, and nothing
blocks. The work is bounded whatever a memory names. Nothing here raises. Between the check of a path and its opening, a
program of the same user can put a link there; it could only learn whether a file has a certain digest or word.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ...disk.faults import AbsentIsFine, reporting
from ...disk.regular_file import open_regular
from ...language.text import CLAUSES, Text, joined

EvidenceState: TypeAlias = Literal["fresh", "stale", "unverifiable"]

# A memory relies on a few files; each costs a read at recall, and five memories are recalled at a time.
MOST_ANCHORS = 16
# Larger files are data, not source code; reading one takes about a millisecond per megabyte.
MOST_BYTES = 4 << 20
# 64 bits: enough to notice a change, short enough for a line that people read.
DIGEST_CHARS = 16
LONGEST_TEXT = 1_024

_DIGEST = re.compile(rf"@([0-9a-f]{{{DIGEST_CHARS}}})\Z")
_ESCAPED = re.compile("%(23|25|40)")
_BETWEEN_PARTS = re.compile(r"::|[.#]")
_DRIVE = re.compile(r"[A-Za-z]:")
_KEYWORDS = "def|class|func|fn|function|fun|sub|struct|interface|trait|impl|enum|type|module|namespace|const|let|var|val"
_DEFINITION = rf"^\s*(?:\w+\s+)*(?:{_KEYWORDS})\b"


class Anchor(NamedTuple):
    """One piece of evidence. `digest` is of the file, or of the symbol's lines, when the memory was written; empty if it was not
    recorded."""

    path: str
    symbol: str = ""
    digest: str = ""


class Evidence(NamedTuple):
    anchors: tuple[Anchor, ...] = ()
    # Entries that are not anchors, so they can't be checked.
    unreadable: tuple[str, ...] = ()


class Freshness(NamedTuple):
    state: EvidenceState
    why: str


class UnreadablePath(NamedTuple):
    """A path that may not or cannot be read."""

    why: str


# The content at an anchor's path; None if nothing exists there.
AnchorTarget: TypeAlias = bytes | UnreadablePath | None


# The text form


def anchor_text(anchor: Anchor) -> str:
    path = anchor.path.replace("%", "%25").replace("#", "%23")
    if _DIGEST.search(path):
        path = f"{path[: -DIGEST_CHARS - 1]}%40{path[-DIGEST_CHARS:]}"
    return path + (f"#{anchor.symbol}" if anchor.symbol else "") + (f"@{anchor.digest}" if anchor.digest else "")


def read_anchor(text: str) -> Anchor | None:
    """Parse an anchor; None if the text is not a path inside a project."""
    digest = _DIGEST.search(text)
    place = text[: digest.start()] if digest else text
    escaped, _, symbol = place.partition("#")
    path = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), escaped)
    if len(text) > LONGEST_TEXT or not _inside(path) or not symbol.isprintable() or symbol != symbol.strip():
        return None
    return Anchor(path, symbol, digest[1] if digest else "")


def _inside(path: str) -> bool:
    parts = path.split("/")
    odd = not path.isprintable() or path != path.strip() or "\\" in path or _DRIVE.match(path) is not None
    return not odd and all(parts) and not {".", "..", ".git"} & set(parts)


def read_evidence(texts: Iterable[str]) -> Evidence:
    """Parse the field `evidence:` of a topic. Anchors beyond `MOST_ANCHORS` are not checked."""
    anchors, unreadable = list[Anchor](), list[str]()
    for text in texts:
        anchor = read_anchor(text) if len(anchors) < MOST_ANCHORS else None
        if anchor is not None and anchor_text(anchor) == text:
            anchors.append(anchor)
        else:
            unreadable.append(text)
    return Evidence(tuple(anchors), tuple(unreadable))


# Recording


def pin_evidence(texts: Iterable[str], root: Path) -> tuple[str, ...]:
    """Return the entries with the digests that their files have now. An entry with a digest, or that can't be read, stays as it is.

    A full path below the root becomes relative to it.
    """
    return tuple(_pinned(text, root) for text in texts)


def _pinned(text: str, root: Path) -> str:
    entry = text.strip()
    if os.path.isabs(entry):
        with suppress(ValueError, OSError):
            entry = PurePath(entry).relative_to(os.path.realpath(root)).as_posix()
    anchor = read_anchor(entry.removeprefix("./"))
    target = read_target(anchor.path, root) if anchor is not None and not anchor.digest else None
    if anchor is None or not isinstance(target, bytes):
        return text
    lines = symbol_lines(target, anchor.symbol) if anchor.symbol else target
    return text if lines is None else anchor_text(anchor._replace(digest=short_file_digest(lines)))


# Checking


def judge_anchor(anchor: Anchor, target: AnchorTarget) -> Freshness:
    """Compare one anchor with the content at its path."""
    if isinstance(target, UnreadablePath):
        return Freshness("unverifiable", Text("{path} {problem}", path=anchor.path, problem=Text.whole(target.why)))
    if target is None:
        return Freshness("stale", Text("{path} no longer exists", path=anchor.path))
    same = not anchor.digest or is_recorded_version(anchor, target)
    if not anchor.symbol:
        return (
            Freshness("fresh", Text("{path} is unchanged", path=anchor.path))
            if same
            else Freshness("stale", Text("{path} has changed", path=anchor.path))
        )
    if symbol_lines(target, anchor.symbol) is None:
        return Freshness("stale", Text("{symbol} is no longer in {path}", symbol=anchor.symbol, path=anchor.path))
    if not anchor.digest:
        return Freshness("fresh", Text("{symbol} is still in {path}", symbol=anchor.symbol, path=anchor.path))
    if same:
        return Freshness("fresh", Text("{symbol} is unchanged in {path}", symbol=anchor.symbol, path=anchor.path))
    return Freshness("stale", Text("{symbol} in {path} has changed", symbol=anchor.symbol, path=anchor.path))


def is_recorded_version(anchor: Anchor, data: bytes) -> bool:
    """Tell whether the file, or the symbol's lines in it, are those of the recorded digest."""
    lines = symbol_lines(data, anchor.symbol) if anchor.symbol else None
    return anchor.digest in {short_file_digest(text) for text in (data, lines) if text is not None}


def symbol_lines(data: bytes, symbol: str) -> bytes | None:
    """Return the lines of a symbol: its definition and what is indented below it. None if a part of its name is not in the text.

    `Pool.connect` is looked for in the lines of `Pool` first. No language is parsed: a line with a keyword such as `def` or `func`
    before the name counts as its definition, else a line that opens a block, else the first line with the name."""
    lines = whole = data.decode("utf-8", "replace").splitlines()
    for part in (parts := [part for part in _BETWEEN_PARTS.split(symbol) if part]):
        word = _word(part)
        patterns = [re.compile(form) for form in (rf"{_DEFINITION}[^\n]*?{word}", rf"{word}.*[{{:]\s*$", word)]
        starts = (
            (scope, number)
            for scope in (lines, whole)
            for pattern in patterns
            for number, line in enumerate(scope)
            if pattern.search(line)
        )
        if (start := next(starts, None)) is None:
            return None
        lines = _block(start[0][start[1] :])
    return "\n".join(lines).encode() if parts else None


def _block(lines: list[str]) -> list[str]:
    """Return the first line and those below it that are indented further, blank, or begin with a bracket at its own indentation."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    end = 1
    for number, line in enumerate(lines[1:], 1):
        text = line.lstrip()
        if text and (len(line) - len(text) < indent or (len(line) - len(text) == indent and text[0] not in "{}()[]")):
            break
        if text:
            end = number + 1
    return lines[:end]


def _word(part: str) -> str:
    """Match a part as a word. A border is needed only next to a letter: `operator+` may precede anything."""
    borders = (r"(?<!\w)" if re.match(r"\w", part) else "", r"(?!\w)" if re.search(r"\w\Z", part) else "")
    return borders[0] + re.escape(part) + borders[1]


def short_file_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]


def combine_freshness(checked: Iterable[Freshness], unreadable: Iterable[str] = ()) -> Freshness:
    """Return the worst state: one change is reason enough to check again."""
    judgements = [
        *checked,
        *(Freshness("unverifiable", Text("{text!a} is not a path in the project", text=text[:80])) for text in unreadable),
    ]
    for state in ("stale", "unverifiable", "fresh"):
        reasons = [judgement.why for judgement in judgements if judgement.state == state]
        if reasons:
            return Freshness(state, joined(reasons, CLAUSES))
    return Freshness("unverifiable", "the memory lists no file as evidence")


# Reading


def check_evidence(evidence: Evidence, root: Path) -> Freshness:
    """Check the evidence against the project at `root`. Evidence without an anchor is unverifiable."""
    return check_each({"": evidence}, root)[""]


def check_each(evidence: Mapping[str, Evidence], root: Path) -> dict[str, Freshness]:
    """Check the evidence of many memories. Each file is read once, however many memories rely on it."""
    by_path: dict[str, list[tuple[str, Anchor]]] = {}
    for key, listed in evidence.items():
        for anchor in listed.anchors:
            by_path.setdefault(anchor.path, []).append((key, anchor))
    judged: dict[str, list[Freshness]] = {key: [] for key in evidence}
    for path, anchors in by_path.items():
        target = read_target(path, root)
        for key, anchor in anchors:
            judged[key].append(judge_anchor(anchor, target))
    return {key: combine_freshness(judged[key], listed.unreadable) for key, listed in evidence.items()}


def read_target(path: str, root: Path) -> AnchorTarget:
    """Read the bytes at `path` below `root`. A link may lead to another place in the root, never out of it."""
    if not _inside(path):
        return UnreadablePath("is not a path in the project")
    try:
        top = os.path.realpath(root)
        real = os.path.realpath(os.path.join(top, *path.split("/")))
        if not os.path.isdir(top):
            return UnreadablePath("can't be checked: the project directory does not exist")
        if not PurePath(real).is_relative_to(top):
            return UnreadablePath("leads out of the project")
        with AbsentIsFine(), reporting(real), open_regular(real) as file:
            data = file.read(MOST_BYTES + 1)
            return data if len(data) <= MOST_BYTES else UnreadablePath(Text("is larger than {limit} MB", limit=MOST_BYTES >> 20))
    except DiskError as error:
        return UnreadablePath(error.problem)
    except (OSError, ValueError):
        return UnreadablePath("can't be opened")
    return None

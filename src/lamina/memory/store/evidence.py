"""Evidence: the files and symbols a memory rests on, and whether they still say what they said (B8).

Owns the text form of an anchor and the judgement. In the front matter stands a list that people can read and write:

    evidence:
      - src/db.py@9f86d081884c7d65             the file as it was
      - src/db.py#Pool.connect@9f86d081884c7d65    a symbol in it
      - docs/oncall.md                         the file is there, whatever it says

A path is relative to the project's root, with `/` between its parts. A whole file is fresh while its bytes are the same; a symbol is
fresh while every part of its name is found as a word, even when the file around it has changed. `#`, `%` and an `@` that would read as
a digest are written `%23`, `%25` and `%40` in a path.

Invariants: nothing outside the root is opened, through a link or by spelling; only regular files are, and nothing blocks; the work is
bounded whatever a memory names; nothing here raises. Between the look at a path and its opening a program of the same user can put a
link there: what would be learnt is whether a file has a digest or a word.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ...disk.files import read_head
from ...disk.user_files import open_regular

EvidenceState: TypeAlias = Literal["fresh", "stale", "unverifiable"]

# A memory rests on a few files; each costs a read at recall, and five memories are recalled at a time.
MOST_ANCHORS = 16
# Larger files are data, not source; reading one takes about a millisecond a megabyte.
MOST_BYTES = 4 << 20
# 64 bits: enough to notice a change, short enough for a line that people read.
DIGEST_CHARS = 16
LONGEST_TEXT = 1_024

_DIGEST = re.compile(rf"@([0-9a-f]{{{DIGEST_CHARS}}})\Z")
_ESCAPED = re.compile("%(23|25|40)")
_BETWEEN_PARTS = re.compile(r"::|[.#]")
_DRIVE = re.compile(r"[A-Za-z]:")


class Anchor(NamedTuple):
    """`digest` is that of the whole file when the memory was written; empty where nobody took it."""

    path: str
    symbol: str = ""
    digest: str = ""


class Evidence(NamedTuple):
    anchors: tuple[Anchor, ...] = ()
    # What stands in the list and is no anchor: it can't be checked.
    unreadable: tuple[str, ...] = ()


class Freshness(NamedTuple):
    state: EvidenceState
    why: str


class UnreadablePath(NamedTuple):
    """A path that may not or cannot be read."""

    why: str


# What lies at an anchor's path; None where there is nothing.
AnchorTarget: TypeAlias = bytes | UnreadablePath | None


# The text form


def anchor_text(anchor: Anchor) -> str:
    path = anchor.path.replace("%", "%25").replace("#", "%23")
    if _DIGEST.search(path):
        path = f"{path[: -DIGEST_CHARS - 1]}%40{path[-DIGEST_CHARS:]}"
    return path + (f"#{anchor.symbol}" if anchor.symbol else "") + (f"@{anchor.digest}" if anchor.digest else "")


def read_anchor(text: str) -> Anchor | None:
    """None for what is no path inside a project."""
    digest = _DIGEST.search(text)
    place = text[: digest.start()] if digest else text
    escaped, _, symbol = place.partition("#")
    path = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), escaped)
    if len(text) > LONGEST_TEXT or not _inside(path) or not symbol.isprintable() or symbol != symbol.strip():
        return None
    return Anchor(path, symbol, digest[1] if digest else "")


def _inside(path: str) -> bool:
    parts = path.split("/")
    odd = not path.isprintable() or path != path.strip() or "\\" in path or _DRIVE.match(path) is not None
    return not odd and all(parts) and not {".", "..", ".git"} & set(parts)


def read_evidence(texts: Iterable[str]) -> Evidence:
    """The field `evidence:` of a topic. More than `MOST_ANCHORS` are not checked."""
    anchors, unreadable = list[Anchor](), list[str]()
    for text in texts:
        anchor = read_anchor(text) if len(anchors) < MOST_ANCHORS else None
        if anchor is not None and anchor_text(anchor) == text:
            anchors.append(anchor)
        else:
            unreadable.append(text)
    return Evidence(tuple(anchors), tuple(unreadable))


# The judgement


def judge_anchor(anchor: Anchor, target: AnchorTarget) -> Freshness:
    """One anchor against what lies at its path."""
    if isinstance(target, UnreadablePath):
        return Freshness("unverifiable", f"{anchor.path} {target.why}")
    if target is None:
        return Freshness("stale", f"{anchor.path} is gone")
    changed = bool(anchor.digest) and short_file_digest(target) != anchor.digest
    if not anchor.symbol:
        return Freshness("stale", f"{anchor.path} has changed") if changed else Freshness("fresh", f"{anchor.path} is as it was")
    if not holds_symbol(target, anchor.symbol):
        return Freshness("stale", f"{anchor.symbol} is no longer in {anchor.path}")
    return Freshness("fresh", f"{anchor.symbol} is in {anchor.path}" + (", which has changed" if changed else ""))


def holds_symbol(data: bytes, symbol: str) -> bool:
    """Whether every part of a name (`Pool.connect`: both) stands in the text as a word of its own."""
    text = data.decode("utf-8", "replace")
    parts = [part for part in _BETWEEN_PARTS.split(symbol) if part]
    return bool(parts) and all(re.search(_word(part), text) for part in parts)


def _word(part: str) -> str:
    """A border only where the name itself begins or ends in a letter: `operator+` may stand before anything."""
    borders = (r"(?<!\w)" if re.match(r"\w", part) else "", r"(?!\w)" if re.search(r"\w\Z", part) else "")
    return borders[0] + re.escape(part) + borders[1]


def short_file_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]


def combine_freshness(found: Iterable[Freshness], unreadable: Iterable[str] = ()) -> Freshness:
    """The worst of them: one thing that changed is enough to look again."""
    each = [*found, *(Freshness("unverifiable", f"{text[:80]!a} is no path in the project") for text in unreadable)]
    for state in ("stale", "unverifiable", "fresh"):
        reasons = [one.why for one in each if one.state == state]
        if reasons:
            return Freshness(state, "; ".join(reasons))
    return Freshness("unverifiable", "it names no file")


# Reading


def check_evidence(evidence: Evidence, root: Path) -> Freshness:
    """What the project at `root` says of the evidence now. Evidence without an anchor is unverifiable."""
    targets = {path: read_target(path, root) for path in dict.fromkeys(anchor.path for anchor in evidence.anchors)}
    return combine_freshness([judge_anchor(anchor, targets[anchor.path]) for anchor in evidence.anchors], evidence.unreadable)


def read_target(path: str, root: Path) -> AnchorTarget:
    """The bytes at `path` below `root`. A link may lead to another place in the root, never out of it."""
    if not _inside(path):
        return UnreadablePath("is no path in the project")
    try:
        top = os.path.realpath(root)
        real = os.path.realpath(os.path.join(top, *path.split("/")))
        if not os.path.isdir(top):
            return UnreadablePath("can't be looked for: the project is not there")
        if not PurePath(real).is_relative_to(top):
            return UnreadablePath("leads out of the project")
        fd = open_regular(real)
    except DiskError as error:
        return UnreadablePath(error.problem)
    except (OSError, ValueError):
        return UnreadablePath("can't be opened")
    if fd is None:
        return None
    try:
        data = read_head(fd, MOST_BYTES + 1)
    except OSError as error:
        return UnreadablePath(f"can't be read ({os.strerror(error.errno or 0).lower()})")
    finally:
        os.close(fd)
    return data if len(data) <= MOST_BYTES else UnreadablePath(f"is larger than {MOST_BYTES >> 20} MB")

"""The last replays of the page, one file each in `<home>/cache/replays`, so that a link to one works after a restart.

Owns these files. Invariants: at most MOST_KEPT of them, none larger than MOST_BYTES; a file that cannot be read, such as one of another
version, counts as missing. A crash leaves a whole file or none: losing one only means that the replay is run again.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from ..core.errors import LaminaError
from ..disk.files import read, remove, replace
from ..language.text import pack, unpack
from .report import ReplayReport

MOST_KEPT = 12
# A request is a point of some 200 bytes under each policy. A report over the limit keeps the charts of fewer sessions.
MOST_BYTES = 8 << 20
ID = re.compile(r"[0-9a-z]{1,32}")


class KeptReplay(msgspec.Struct, frozen=True):
    """A replay that has ended: the choice, the outcome and the report."""

    id: str
    files: list[str]
    policies: list[str]
    without: list[str]
    started: float
    outcome: str
    done: int
    problem: str
    report: ReplayReport
    days: int = 0
    project: str = ""
    stamps: dict[
        str, str
    ] = {}  # of the overview's replay: each session's file → the state of file and settings it was played with


def keep_replay(home: Path, ended: KeptReplay) -> None:
    """Write a replay, and remove the oldest beyond MOST_KEPT. A disk that refuses keeps none; the page still has it in memory."""
    with suppress(LaminaError, OSError, ValueError):
        place = home / "cache" / "replays"
        replace(place / f"{ended.id}.json", _encoded(ended), durability="process")
        for path in _newest_first(place)[MOST_KEPT:]:
            remove(path, durability="process")


def kept_ids(home: Path) -> list[str]:
    """Return the ids of the kept replays, the newest first."""
    return [path.stem for path in _newest_first(home / "cache" / "replays")[:MOST_KEPT]]


def kept_replay(home: Path, id: str) -> KeptReplay | None:
    """Return a kept replay, or None if its file is missing or unreadable."""
    if ID.fullmatch(id) is None:
        return None
    with suppress(LaminaError, OSError, msgspec.DecodeError):
        found = msgspec.json.decode(
            read(home / "cache" / "replays" / f"{id}.json", MOST_BYTES) or b"", type=KeptReplay, dec_hook=unpack
        )
        return found if found.id == id else None
    return None


def _encoded(ended: KeptReplay) -> bytes:
    """Return the file's content, with as many charts as fit. Raises ValueError if the rest is too long."""
    charts = sum(bool(one.points) for one in ended.report.played)
    while len(data := msgspec.json.encode(ended, enc_hook=pack)) > MOST_BYTES and charts:
        charts //= 2
        dearest = sorted((one for one in ended.report.played if one.points), key=lambda one: -one.cost)[:charts]
        names = {one.name for one in dearest}
        played = [one if one.name in names else msgspec.structs.replace(one, points={}) for one in ended.report.played]
        ended = msgspec.structs.replace(ended, report=msgspec.structs.replace(ended.report, played=played))
    if len(data) > MOST_BYTES:
        raise ValueError("too long")
    return data


def _newest_first(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            found = [
                (entry.stat(follow_symlinks=False).st_mtime_ns, Path(entry.path))
                for entry in entries
                if entry.is_file(follow_symlinks=False) and entry.name.endswith(".json") and ID.fullmatch(entry.name[:-5])
            ]
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)]

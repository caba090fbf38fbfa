"""What a dream is asked (D3): where the copy lies, what is in it, what else may be looked at. Pure; the words are in `prompts/`.

The lines with the copy and the day, and the list, have a fixed form: what answers without a model finds them there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...memory.store.index import LINE_CHARS, MOST_LINES
from ...memory.store.index import MOST_BYTES as INDEX_BYTES
from .bounds import MOST_BYTES, MOST_FILES
from .transcripts import MOST_HITS, MOST_SEARCHES

# As many answers as are shown of a dream (D4), so that all of it can be watched; the phases take a handful each.
ROUNDS = 30
LONGEST_PATH = 4_096
FINDING_CHARS = 300

_WORK = re.compile(r"^- You work on a copy of the memory directory: (?P<path>.+)$", re.MULTILINE)
_TODAY = re.compile(r"^- Today is (?P<today>\d{4}-\d\d-\d\d)\.", re.MULTILINE)
_LOG = re.compile(r"^- A daily log that no dream has seen: (?P<path>.+\.md)$", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)
_MORE = re.compile(r"^\(\d+ more are not in this list;", re.MULTILINE)
_LINE = re.compile(r"^- \[(?P<type>\w+)\] (?P<file>.+?\.md) \((?P<day>\d{4}-\d\d-\d\d)[^()]*\): (?P<about>.*)$", re.MULTILINE)


class Scene(NamedTuple):
    """What there is to look at."""

    work: Path
    project: Path
    today: str
    listed: Sequence[str] = ()  # a line for each memory
    left: int = 0  # memories that are not in the list
    found: Sequence[str] = ()  # what a look without a model found
    logs: Path | None = None
    transcripts: Sequence[Path] = ()
    team: Path | None = None
    unseen: Sequence[Path] = ()  # daily logs that no dream has seen, newest first


class Listed(NamedTuple):
    file: str
    day: str


class Asked(NamedTuple):
    """A directive, read again by who answers without a model."""

    work: str
    today: str
    listed: tuple[Listed, ...]
    more: bool  # there are memories that are not listed
    logs: tuple[str, ...] = ()  # daily logs that no dream has seen


def directive(scene: Scene) -> str:
    texts = prompt_sections(__file__, "dream")
    return texts["directive"].format(
        work=_path(scene.work),
        today=scene.today,
        places="".join(f"{line}\n" for line in _places(scene, texts)),
        manifest=_manifest(scene, texts),
        findings=_findings(scene, texts),
        rounds=ROUNDS,
        hits=MOST_HITS,
        searches=MOST_SEARCHES,
        line=LINE_CHARS,
        lines=MOST_LINES,
        kilobytes=INDEX_BYTES // 1_000,
        files=MOST_FILES,
        written=MOST_BYTES >> 10,
    )


def _places(scene: Scene, texts: Mapping[str, str]) -> list[str]:
    lines = [texts["project"].format(project=_path(scene.project))]
    if scene.logs is not None:
        lines.append(texts["logs"].format(logs=_path(scene.logs)))
        lines += [texts["log"].format(log=_path(path)) for path in scene.unseen]
    lines += [texts["transcripts"].format(transcripts=_path(place)) for place in scene.transcripts]
    if scene.team is not None:
        lines.append(texts["team"].format(team=_path(scene.team)))
    return lines


def _manifest(scene: Scene, texts: Mapping[str, str]) -> str:
    if not scene.listed:
        return texts["nothing"]
    said = str(fence("memory-index", "\n".join(scene.listed)))
    return f"{said}\n\n{texts['more'].format(left=scene.left)}" if scene.left else said


def _findings(scene: Scene, texts: Mapping[str, str]) -> str:
    if not scene.found:
        return ""
    rows = "\n".join(f"- {escape(printable(each, FINDING_CHARS))}" for each in scene.found)
    return f"\n{texts['findings'].format(list=rows)}\n"


def _path(path: Path) -> str:
    return escape(printable(str(path), LONGEST_PATH))


def read_directive(text: str) -> Asked:
    work, today, listed = _WORK.search(text), _TODAY.search(text), _LISTED.search(text)
    rows = _LINE.finditer(listed["list"]) if listed else ()
    return Asked(
        work["path"].strip() if work else "",
        today["today"] if today else "",
        tuple(Listed(row["file"], row["day"]) for row in rows),
        _MORE.search(text) is not None,
        tuple(found["path"] for found in _LOG.finditer(text)),
    )

"""A recalled memory as the model reads it (Q6, G3), and which memories a text has shown.

Owns the wording and the one heading by which what was sent is found again, so a view needs no other book of what it has seen. Invariants:
a memory can neither end its fence nor pose as another; the same memory, asked at the same time, gives the same bytes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...core.terms import normal
from ..store.evidence import Freshness
from ..store.topic import Topic, evidence_of

DAY = 86_400.0
# No system takes longer paths; a reason is one line.
LONGEST_PATH = 4_096
LONGEST_REASON = 500
# A memory is text: what a terminal or a server would take for a command, or for the end, is left out. Lines and tabs stay.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# No text of a memory can hold the opening tag, so a heading before it is ours.
_SENT = re.compile(r"^Contents of (?P<path>[^\n]+) \(a memory(?:, type \w+)?, saved [\w ]+\):\n<recalled-memory>$", re.MULTILINE)


class Cut(NamedTuple):
    text: str
    lines: int  # shown
    whole: bool


def cut(text: str, *, lines: int, size: int) -> Cut:
    """The first `lines` lines and at most `size` bytes, up to the end of a line where one is near."""
    rows = text.split("\n")
    kept = "\n".join(rows[:lines])
    data = kept.encode("utf-8", "replace")
    if len(data) > size:
        kept = data[:size].decode("utf-8", "ignore")
        end = kept.rfind("\n")
        kept = kept[:end] if end > len(kept) // 2 else kept
    return Cut(kept, kept.count("\n") + 1, len(kept) == len(text))


def shown(topic: Topic, path: Path, *, age: float, evidence: Freshness, lines: int, size: int) -> str:
    """One memory as a reminder of its own."""
    texts = prompt_sections(__file__, "recall")
    part = cut(_text(topic), lines=lines, size=size)
    kind = f", type {topic.type}" if topic.type else ""
    said = [Fenced(f"{heading(path)}{kind}, saved {age_words(age)}):\n{fence('recalled-memory', part.text)}")]
    notes = [] if part.whole else [texts["cut"].format(lines=part.lines)]
    if age > DAY:
        notes.append(texts["old"].format(age=age_words(age)))
    if evidence_of(topic):
        notes.append(texts[evidence.state].format(why=escape(printable(evidence.why, LONGEST_REASON))))
    if notes:
        said.append(Fenced("\n".join(notes)))
    return reminder([Fenced(texts["opening"]), *said])


def heading(path: Path) -> str:
    return f"Contents of {on_one_line(path)} (a memory"


def on_one_line(path: Path | str) -> str:
    """A path as a text names it."""
    text = str(path)
    return escape(text if text.isprintable() and len(text) <= LONGEST_PATH else printable(text, LONGEST_PATH))


def _text(topic: Topic) -> str:
    """What it is about, unless the text begins so, and the text."""
    body = plain(topic.body)
    about = topic.description.strip()
    return body if normal(body).startswith(normal(about.rstrip("."))) else f"{about}\n\n{body}".strip()


def plain(text: str) -> str:
    """The text of a memory without control characters."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def age_words(seconds: float) -> str:
    days = int(seconds // DAY)
    return "today" if days < 1 else "1 day ago" if days == 1 else f"{days} days ago"


def paths_in(texts: Iterable[str]) -> frozenset[str]:
    """The files whose memories these texts have shown, each as a heading names it."""
    return frozenset(found["path"] for text in texts if "<recalled-memory>" in text for found in _SENT.finditer(text))

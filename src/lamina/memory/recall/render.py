"""Rendering of recalled memories for the model, and detection of the memories a text has shown.

One heading marks every sent memory, so a view needs no other record of what was shown. Invariants: a memory can neither end
its fence nor imitate another one; the same memory at the same time gives the same bytes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...language.terms import normal
from ...language.wording import counted
from ..store.evidence import Freshness
from ..store.scopes import path_text
from ..store.topic import Topic, evidence_of, origin_of, without_bookkeeping

DAY = 86_400.0
# A reason is one line.
LONGEST_REASON = 500
# A memory is text: characters that a terminal or server could take for a command or an end are removed. Lines and tabs stay.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# A memory's text cannot contain the opening tag, so a heading in front of the tag is ours.
_SENT = re.compile(r"^Contents of (?P<path>[^\n]+) \(a memory(?:, type \w+)?, saved [\w ]+\):\n<recalled-memory>$", re.MULTILINE)


class CutText(NamedTuple):
    text: str
    lines: int  # shown
    whole: bool


def cut_text(text: str, *, lines: int, size: int) -> CutText:
    """Return the first `lines` lines and at most `size` bytes, cut at a line end if one is near."""
    rows = text.split("\n")
    kept = "\n".join(rows[:lines])
    data = kept.encode("utf-8", "replace")
    if len(data) > size:
        kept = data[:size].decode("utf-8", "ignore")
        end = kept.rfind("\n")
        kept = kept[:end] if end > len(kept) // 2 else kept
    return CutText(kept, kept.count("\n") + 1, len(kept) == len(text))


def render_memory(topic: Topic, path: Path, *, age: float, evidence: Freshness, lines: int, size: int) -> str:
    """Render one memory as a separate reminder."""
    texts = prompt_sections(__file__, "recall")
    part = cut_text(_text(topic), lines=lines, size=size)
    kind = f", type {topic.type}" if topic.type else ""
    parts = [
        Fenced(f"Contents of {path_text(path)} (a memory{kind}, saved {age_text(age)}):\n{fence('recalled-memory', part.text)}")
    ]
    notes = [] if part.whole else [texts["cut"].format(lines=part.lines)]
    if age > DAY:
        notes.append(texts["old"].format(age=age_text(age)))
    if origin := origin_of(topic):
        notes.append(texts["origin"].format(origin=escape(printable(origin, LONGEST_REASON))))
    if evidence_of(topic):
        notes.append(texts[evidence.state].format(why=escape(printable(evidence.why, LONGEST_REASON))))
    if notes:
        parts.append(Fenced("\n".join(notes)))
    return reminder([Fenced(texts["opening"]), *parts])


def _text(topic: Topic) -> str:
    """Return the name, the description, unless the body begins with it, and the body."""
    body, about = readable_text(topic.body), readable_text(topic.description)
    repeated = normal(body).startswith(normal(about.rstrip(".")))
    head = [f"name: {readable_text(topic.name)}", *([] if repeated else [f"description: {about}"])]
    return "\n".join(head) + f"\n\n{body}"


def readable_text(text: str) -> str:
    """Return a memory's text without control characters and without the comments of an import."""
    return _CONTROL.sub("", without_bookkeeping(text.replace("\r\n", "\n").replace("\r", "\n"))).strip()


def age_text(seconds: float) -> str:
    days = int(seconds // DAY)
    return "today" if days < 1 else f"{counted(days, 'day')} ago"


def find_shown_paths(texts: Iterable[str]) -> frozenset[str]:
    """Return the files whose memories these texts have shown, as spelled in the headings."""
    return frozenset(found["path"] for text in texts if "<recalled-memory>" in text for found in _SENT.finditer(text))

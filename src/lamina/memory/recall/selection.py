"""Letting a model choose memories (Q3, Q4): the list it is shown, what it is asked, how its answer is read, and who answers without one.

Owns the form of both sides. Invariants: a name counts only if it stands in the list that was shown; the list and the message are data and
cannot end their fence; whatever comes back, reading it never raises. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from ...core.blocks import Wire
from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ..store.scan import Header
from .rank import Corpus, Document
from .threshold import LOOKED_AT, clear_fits

PURPOSE = "select"
# Five file names and the JSON around them.
MOST_TOKENS = 256
# Of a message that is longer the beginning says what it is about.
MOST_CHARS = 8_000
SCHEMA: Wire = {
    "type": "object",
    "properties": {"selected_memories": {"type": "array", "items": {"type": "string"}}},
    "required": ["selected_memories"],
    "additionalProperties": False,
}
_LINE = re.compile(r"^- \[(?:\w+)\] (?P<file>.+?\.md) \(\d{4}-[\d:TZ.+-]+\): (?P<about>.*)$", re.MULTILINE)


class _Answer(msgspec.Struct):
    selected_memories: list[str]


def line_of(header: Header) -> str:
    """Q3: `- [type] file (ISO time): description`, on one line."""
    moment = datetime.fromtimestamp(min(header.modified, 253_402_300_799.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = header.description or header.name
    return f"- [{header.type or 'memory'}] {printable(header.file, 400)} ({moment}): {about}"


def request(model: str, manifest: Sequence[Header], words: str, *, tools: Iterable[str], most: int) -> Wire:
    texts, names = prompt_sections(__file__, "recall"), sorted(tools)
    in_use = texts["tools in use"].format(names=escape(printable(", ".join(names), 1_000))) + "\n\n" if names else ""
    listed = fence("memory-index", "\n".join(map(line_of, manifest)))
    said = [{"type": "text", "text": listed}, {"type": "text", "text": f"The message:\n{escape(words[:MOST_CHARS])}"}]
    return {
        "model": model,
        "max_tokens": MOST_TOKENS,
        "system": [{"type": "text", "text": texts["select"].format(most=most, tools=in_use)}],
        "messages": [{"role": "user", "content": said}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


def read_answer(text: str, shown: Collection[str], most: int) -> tuple[str, ...] | None:
    """The first names that were shown; None for what is no answer: no such JSON, or names of nothing."""
    try:
        named = msgspec.json.decode(text.strip(), type=_Answer).selected_memories
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    chosen = tuple(dict.fromkeys(name for name in named if name in shown))[:most]
    return chosen if chosen or not named else None


def answer(asked: Wire) -> list[Wire]:
    """The ranker in the model's place (O1): what it can see is the list and the message."""
    listed, said = (str(block["text"]) for block in asked["messages"][0]["content"])
    rows = [Document(row["file"], row["file"].removesuffix(".md"), row["about"]) for row in _LINE.finditer(listed)]
    words = said.partition("\n")[2]
    ranked = Corpus(rows).rank(words, LOOKED_AT)
    fits = clear_fits(words, ranked, [rows[each.at].name for each in ranked], len(rows))
    chosen = _Answer([rows[fit.ranked.at].file for fit in fits])
    return [{"type": "text", "text": msgspec.json.encode(chosen).decode()}]

"""From a message to the memories that stand beside it: the ranker or a model chooses, and what was chosen is read (Q1, Q3, Q4).

Owns the order, and the form of what a model is asked and answers. Decides with `plan` and `rank`; reads files, writes nothing.
Invariants: what is brought was open to the message, at most as many as the policy allows, each once; a model that fails, dawdles or
answers nonsense is replaced by the ranker, and that is said. A name counts only if it stands in the list that was shown; the list and the
message are data and cannot end their fence; whatever comes back, reading it never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.fence import escape, fence
from ...core.policy import SurfacingPolicy
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ..store.scopes import path_text
from ..store.topic_files import MOST_IN_MANIFEST, TopicHeader, choose_manifest
from .library import STALE_SHARE, MemoryLibrary, Recalled
from .plan import RecallQuestion, SeenMemories, filter_open
from .rank import LOOKED_AT, Corpus, SearchDocument, clear_fits, explain
from .render import age_text, cut_text, render_memory, strip_controls

ChosenBy: TypeAlias = Literal["local", "model"]
# The ranker's reasons name terms; so many characters of them say enough.
REASON_CHARS = 200
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


class _SelectedMemories(msgspec.Struct):
    selected_memories: list[str]


class SurfacedMemory(NamedTuple):
    """A memory as it is put in: its file, its path as texts name it, why, the text, and what other readers call its parts."""

    file: str
    path: str
    why: str
    text: str
    facts: Wire


class RecallChoice(NamedTuple):
    brought: tuple[SurfacedMemory, ...] = ()
    by: ChosenBy = "local"
    model: str = ""
    instead: str = ""  # why the ranker chose in a model's place


# Sends a request; the answer's text, or why there is none.
Ask: TypeAlias = Callable[[Wire], "SelectorReply"]


class SelectorReply(NamedTuple):
    text: str = ""
    failed: str = ""


def choose_by_ranker(
    memory: MemoryLibrary, asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy, *, instead: str = ""
) -> RecallChoice:
    """Choose what clearly fits; often nothing."""
    headers = memory.headers()
    found = memory.ranked(headers, asked.words, LOOKED_AT)
    fits = clear_fits(asked.words, [ranked for _, ranked in found], [header.name for header, _ in found], len(headers))
    mine = {headers[fit.ranked.at].file: fit for fit in fits}
    wanted = _open(memory, [headers[fit.ranked.at] for fit in fits], asked, seen)[: policy.files]
    # One after the other: the turn waits, and five small files take 0.5 ms so and 1.0 ms in five threads.
    read = [each for header in wanted if (each := memory.read(header)) is not None]
    # B8: a stale memory comes behind others that fit about as well.
    share = {"stale": STALE_SHARE}
    ordered = sorted(read, key=lambda each: -mine[each.topic.file].words * share.get(each.evidence.state, 1.0))
    whys = (explain(mine[each.topic.file].ranked)[:REASON_CHARS] for each in ordered)
    return RecallChoice(tuple(_brought(memory, *each, policy) for each in zip(ordered, whys, strict=True)), instead=instead)


def choose_by_model(
    memory: MemoryLibrary, asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy, *, model: str, ask: Ask
) -> RecallChoice:
    """Let a model choose from the list, and the ranker where it does not."""
    from concurrent.futures import ThreadPoolExecutor

    headers = memory.headers()
    listed = choose_manifest(
        _open(memory, headers, asked, seen), lambda rest, room: best_of(memory, headers, rest, asked.words, room)
    )
    if not listed:
        return RecallChoice((), "model", model)
    said = ask(selection_request(model, listed, asked.words, tools=asked.tools, most=policy.files))
    names = None if said.failed else read_answer(said.text, {header.file for header in listed}, policy.files)
    if names is None:
        return choose_by_ranker(memory, asked, seen, policy, instead=said.failed or "its answer names no memory of the list")
    heads = {header.file: header for header in listed}
    # At once: the disk may be a slow one. What is gone meanwhile is left out.
    with ThreadPoolExecutor(max(1, len(names)), "lamina-recall") as pool:
        read = filter(None, pool.map(memory.read, [heads[name] for name in names]))
        return RecallChoice(tuple(_brought(memory, each, f"chosen by {model}", policy) for each in read), "model", model)


def _open(memory: MemoryLibrary, headers: Sequence[TopicHeader], asked: RecallQuestion, seen: SeenMemories) -> list[TopicHeader]:
    return filter_open(headers, lambda file: path_text(memory.where(file)), seen, asked.tools)


def best_of(
    memory: MemoryLibrary, headers: list[TopicHeader], rest: Sequence[TopicHeader], words: str, room: int
) -> list[TopicHeader]:
    """The ranker's best of what the newest leave; the newest of the rest where it finds fewer."""
    left = {header.file: header for header in rest}
    ranked = [header for header, _ in memory.ranked(headers, words, room + MOST_IN_MANIFEST) if header.file in left]
    return [*ranked, *(header for header in rest if header not in set(ranked))][:room]


def _brought(memory: MemoryLibrary, each: Recalled, why: str, policy: SurfacingPolicy) -> SurfacedMemory:
    path = memory.where(each.topic.file)
    text = render_memory(each.topic, path, age=each.age, evidence=each.evidence, lines=policy.lines, size=policy.file_bytes)
    content = cut_text(strip_controls(each.topic.body), lines=policy.lines, size=policy.file_bytes).text
    header = f"A memory, saved {age_text(each.age)}"
    facts = {"path": str(path), "content": content, "mtimeMs": int(each.topic.modified * 1000), "header": header}
    return SurfacedMemory(each.topic.file, path_text(path), why, text, facts)


# What a model is asked


def manifest_line(header: TopicHeader) -> str:
    """`- [type] file (ISO time): description`, on one line."""
    moment = datetime.fromtimestamp(min(header.modified, 253_402_300_799.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = header.description or header.name
    return f"- [{header.type or 'memory'}] {printable(header.file, 400)} ({moment}): {about}"


def selection_request(model: str, manifest: Sequence[TopicHeader], words: str, *, tools: Iterable[str], most: int) -> Wire:
    texts, names = prompt_sections(__file__, "recall"), sorted(tools)
    in_use = texts["tools in use"].format(names=escape(printable(", ".join(names), 1_000))) + "\n\n" if names else ""
    listed = fence("memory-index", "\n".join(map(manifest_line, manifest)))
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
        named = msgspec.json.decode(text.strip(), type=_SelectedMemories).selected_memories
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    chosen = tuple(dict.fromkeys(name for name in named if name in shown))[:most]
    return chosen if chosen or not named else None


def answer(asked: Wire) -> list[Wire]:
    """The ranker in the model's place: what it can see is the list and the message."""
    listed, said = (str(block["text"]) for block in asked["messages"][0]["content"])
    rows = [SearchDocument(row["file"], row["file"].removesuffix(".md"), row["about"]) for row in _LINE.finditer(listed)]
    words = said.partition("\n")[2]
    ranked = Corpus(rows).rank(words, LOOKED_AT)
    fits = clear_fits(words, ranked, [rows[each.at].name for each in ranked], len(rows))
    chosen = _SelectedMemories([rows[fit.ranked.at].file for fit in fits])
    return [{"type": "text", "text": msgspec.json.encode(chosen).decode()}]

"""Selection: the ranker or a model chooses the memories for a message, and the chosen ones are read.

`plan` and `rank` decide; this module owns the order of steps, and the form of the model's request and answer. It reads files
and writes nothing. Invariants: every selected memory was open to the message, appears once, and their number stays within
the policy. If a model fails, is slow or answers nonsense, the ranker takes over, and the result records it. A name counts
only if it is on the list that was shown. The list and the message are data and cannot end their fence. Reading an answer
never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.decoding import UNDECODABLE
from ...core.fence import escape, fence
from ...core.policy import SurfacingPolicy
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ..store.scopes import path_text
from ..store.topic import HIDDEN
from ..store.topic_files import MOST_IN_MANIFEST, TopicHeader, choose_manifest
from .library import STALE_SHARE, MemoryLibrary, Recalled
from .plan import RecallQuestion, SeenMemories, filter_open
from .rank import Corpus, SearchDocument, explain
from .render import age_text, cut_text, readable_text, render_memory
from .threshold import LOOKED_AT, ClearFit, clear_fits

ChosenBy: TypeAlias = Literal["local", "model"]
# The ranker's reasons list terms; this many characters are enough.
REASON_CHARS = 200
PURPOSE = "select"
# Five file names and the JSON around them.
MOST_TOKENS = 256
# For a longer message, the beginning is enough to know its subject.
MOST_CHARS = 8_000
SCHEMA: Wire = {
    "type": "object",
    "properties": {"selected_memories": {"type": "array", "items": {"type": "string"}}},
    "required": ["selected_memories"],
    "additionalProperties": False,
}
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.!?](?=\S))+[.!?。！？]*")
_LINE = re.compile(r"^- \[(?:\w+)\] (?P<file>.+?\.md) \(\d{4}-[\d:TZ.+-]+\): (?P<about>.*)$", re.MULTILINE)


class _SelectedMemories(msgspec.Struct):
    selected_memories: list[str]


class SurfacedMemory(NamedTuple):
    """A memory as shown to the model: its file, its path as spelled in texts, the reason, the text, and the attachment
    fields."""

    file: str
    path: str
    why: str
    text: str
    facts: Wire
    hidden: bool = False  # its file has characters that nobody sees


class RecallChoice(NamedTuple):
    brought: tuple[SurfacedMemory, ...] = ()
    by: ChosenBy = "local"
    model: str = ""
    instead: str = ""  # why the ranker chose instead of a model


# Sends a request and returns the answer's text, or the reason for its absence.
Ask: TypeAlias = Callable[[Wire], "SelectorReply"]


class SelectorReply(NamedTuple):
    text: str = ""
    failed: str = ""


def choose_by_ranker(
    memory: MemoryLibrary, asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy, *, instead: str = ""
) -> RecallChoice:
    """Choose the memories that clearly fit, which is often an empty choice."""
    mine: dict[str, ClearFit] = {}
    fitting: dict[str, TopicHeader] = {}
    for words in searched_texts(asked.words):
        found, total = memory.search(words, LOOKED_AT)
        headers = [header for header, _ in found]
        for fit in clear_fits(words, [ranked for _, ranked in found], [header.name for header in headers], total):
            header = headers[fit.ranked.at]
            mine.setdefault(header.file, fit)
            fitting.setdefault(header.file, header)
    wanted = _open(memory, list(fitting.values()), asked, seen)[: policy.files]
    # Read them one after the other: the turn waits, and five small files take 0.5 ms this way and 1.0 ms in five threads.
    read = [each for header in wanted if (each := memory.read(header)) is not None]
    # A stale memory comes after others that fit about as well.
    share = {"stale": STALE_SHARE}
    ordered = sorted(read, key=lambda each: -mine[each.topic.file].evidence * share.get(each.evidence.state, 1.0))
    whys = (explain(mine[each.topic.file].ranked)[:REASON_CHARS] for each in ordered)
    return RecallChoice(tuple(_brought(memory, *each, policy) for each in zip(ordered, whys, strict=True)), instead=instead)


def searched_texts(message: str) -> list[str]:
    """Return the questions of a message that also says something else, and the message. The rest would hide what they are about."""
    sentences = [sentence for found in _SENTENCE.findall(message) if (sentence := found.strip())]
    questions = [sentence for sentence in sentences if sentence.endswith(("?", "？"))]
    return [" ".join(questions), message] if 0 < len(questions) < len(sentences) else [message]


def choose_by_model(
    memory: MemoryLibrary, asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy, *, model: str, ask: Ask
) -> RecallChoice:
    """Let a model choose from the list, with the ranker as a fallback."""
    from concurrent.futures import ThreadPoolExecutor

    headers = memory.headers()
    listed = choose_manifest(_open(memory, headers, asked, seen), lambda rest, room: best_of(memory, rest, asked.words, room))
    if not listed:
        return RecallChoice((), "model", model)
    reply = ask(selection_request(model, listed, asked.words, tools=asked.tools, most=policy.files))
    names = None if reply.failed else read_answer(reply.text, {header.file for header in listed}, policy.files)
    if names is None:
        return choose_by_ranker(memory, asked, seen, policy, instead=reply.failed or "its answer names no memory on the list")
    heads = {header.file: header for header in listed}
    # Read them in parallel, since the disk may be slow. Memories that were removed in the meantime are left out.
    with ThreadPoolExecutor(max(1, len(names)), "lamina-recall") as pool:
        read = filter(None, pool.map(memory.read, [heads[name] for name in names]))
        return RecallChoice(tuple(_brought(memory, each, f"chosen by {model}", policy) for each in read), "model", model)


def _open(memory: MemoryLibrary, headers: Sequence[TopicHeader], asked: RecallQuestion, seen: SeenMemories) -> list[TopicHeader]:
    return filter_open(headers, lambda file: path_text(memory.where(file)), seen, asked.tools)


def best_of(memory: MemoryLibrary, rest: Sequence[TopicHeader], words: str, room: int) -> list[TopicHeader]:
    """Return the ranker's best of the older memories, filled up with the newest of the rest if it finds too few."""
    left = {header.file: header for header in rest}
    ranked = [header for header, _ in memory.search(words, room + MOST_IN_MANIFEST).found if header.file in left]
    return [*ranked, *(header for header in rest if header not in set(ranked))][:room]


def _brought(memory: MemoryLibrary, each: Recalled, why: str, policy: SurfacingPolicy) -> SurfacedMemory:
    path = memory.where(each.topic.file)
    text = render_memory(each.topic, path, age=each.age, evidence=each.evidence, lines=policy.lines, size=policy.file_bytes)
    content = cut_text(readable_text(each.topic.body), lines=policy.lines, size=policy.file_bytes).text
    header = f"A memory, saved {age_text(each.age)}"
    facts = {"path": str(path), "content": content, "mtimeMs": int(each.topic.modified * 1000), "header": header}
    return SurfacedMemory(each.topic.file, path_text(path), why, text, facts, HIDDEN in each.topic.problems)


# The model's request


def manifest_line(header: TopicHeader) -> str:
    """Format a memory as `- [type] file (ISO time): description`, on one line."""
    moment = datetime.fromtimestamp(min(header.modified, 253_402_300_799.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = header.description or header.name
    return f"- [{header.type or 'memory'}] {printable(header.file, 400)} ({moment}): {about}"


def selection_request(model: str, manifest: Sequence[TopicHeader], words: str, *, tools: Iterable[str], most: int) -> Wire:
    texts, names = prompt_sections(__file__, "recall"), sorted(tools)
    in_use = texts["tools in use"].format(names=escape(printable(", ".join(names), 1_000))) + "\n\n" if names else ""
    listed = fence("memory-index", "\n".join(map(manifest_line, manifest)))
    content = [{"type": "text", "text": listed}, {"type": "text", "text": f"The message:\n{escape(words[:MOST_CHARS])}"}]
    return {
        "model": model,
        "max_tokens": MOST_TOKENS,
        "system": [{"type": "text", "text": texts["select"].format(most=most, tools=in_use)}],
        "messages": [{"role": "user", "content": content}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


def read_answer(text: str, shown: Collection[str], most: int) -> tuple[str, ...] | None:
    """Return the first names that were on the list. None for an invalid answer: no such JSON, or only unknown names. Text around
    the JSON, such as a code block, is ignored: some servers do not enforce the schema."""
    try:
        named = msgspec.json.decode(text[max(0, text.find("{")) : text.rfind("}") + 1], type=_SelectedMemories).selected_memories
    except UNDECODABLE:
        return None
    chosen = tuple(dict.fromkeys(name for name in named if name in shown))[:most]
    return chosen if chosen or not named else None


def answer(asked: Wire) -> list[Wire]:
    """Answer in the model's place with the ranker, from the list and the message in the request."""
    listed, said = (str(block["text"]) for block in asked["messages"][0]["content"])
    rows = [SearchDocument(row["file"], row["file"].removesuffix(".md"), row["about"]) for row in _LINE.finditer(listed)]
    words = said.partition("\n")[2]
    ranked = Corpus(rows).rank(words, LOOKED_AT)
    fits = clear_fits(words, ranked, [rows[each.at].name for each in ranked], len(rows))
    chosen = _SelectedMemories([rows[fit.ranked.at].file for fit in fits])
    return [{"type": "text", "text": msgspec.json.encode(chosen).decode()}]

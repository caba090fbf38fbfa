"""A recorded conversation as a script: its inputs and answers in order, with the usage each answer reported.

Reads one transcript of Lamina, Claude Code, Codex or pi. Invariant: the script is the conversation as if nothing had ever been
removed from it, and spilled results are read back from their files. Content that the recorded program removed is kept apart (`gone`),
for the "recorded" row. Its summaries, what it restored after them and the memories it recalled are left out: those are decisions, and
a replay makes its own.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ..conversation.compaction.probes import Fact, drawn, judged, texts_of
from ..core.blocks import Block, Text, ToolResult, ToolUse, Wire, text, tool_result, tool_use
from ..core.errors import InputError
from ..core.log import Log
from ..core.records import (
    Attachment,
    Boundary,
    Clear,
    Event,
    Foreign,
    Message,
    Record,
    Revoke,
    Snapshot,
    Span,
    Spill,
    is_placeholder,
)
from ..core.usage import Usage
from ..core.view import Item
from ..disk.files import read
from ..disk.session_files.spills import DIRECTORY
from ..disk.transcripts.jsonl import Health
from ..history import sessions as sources
from ..history.codex import SUMMARY_CALL
from ..history.session_stats import SideCost
from .figures import ReplayFigures
from .repeated_reads import path_of

# Recalled memories; a replay recalls its own.
MEMORIES = "attachment:relevant_memories"
INSTRUCTIONS = "attachment:instructions"
# The index within Lamina's first reminder; its text is fenced, so the pattern cannot match inside it.
_INDEX = re.compile(
    r"^# Memory index\n[^\n]*(?:\n\nContents of [^\n]+:\n<memory-index>\n.*?\n</memory-index>)+\n\n", re.MULTILINE | re.DOTALL
)
# The model that Claude Code names for answers of its own, such as an error message.
SYNTHETIC = "<synthetic>"
# Tools of pi, Codex and other agents, and those of Lamina that do the same.
SAME_TOOLS = {
    "read": "Read",
    "read_file": "Read",
    "view": "Read",
    "edit": "Edit",
    "edit_file": "Edit",
    "str_replace": "Edit",
    "apply_patch": "Edit",
    "write": "Write",
    "write_file": "Write",
    "bash": "Bash",
    "shell": "Bash",
    "exec_command": "Bash",
    "grep": "Grep",
    "glob": "Glob",
    "find": "Glob",
}
# Bytes of a spilled result that is read back; no provider takes a request with a larger one.
MOST_RESULT = 8 << 20
NO_CONVERSATION = "the file has no model answer"
# Probe at a quarter, half, three quarters and the end, so that forgetting early and forgetting late look different.
POINTS = 4


class RecordedInput(NamedTuple):
    """Input before the next answer: from the user, from tools, or injected context (`context` is its kind)."""

    time: str
    blocks: tuple[Block, ...]
    context: str = ""


class RecordedAnswer(NamedTuple):
    time: str  # of its last record, so when the answer was complete
    blocks: tuple[Block, ...]
    model: str
    usage: Usage | None

    @property
    def sent(self) -> bool:
        """Whether a model gave it. A program also records answers of its own."""
        return not is_placeholder(self.model) and (self.usage is None or self.usage.prompt > 0)

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


Step: TypeAlias = RecordedInput | RecordedAnswer


class RecordedView(NamedTuple):
    """Changes that the recorded program made to its own view."""

    compactions: int
    auto: int  # automatic ones among them
    clearings: int
    gone: dict[str, int]  # record → the first step that no longer saw it
    results_gone: dict[str, int]  # tool_use id of a cleared result → the first step that no longer saw it
    summaries: tuple[tuple[int, Item], ...]  # each with the first step that saw it
    side: tuple[Usage, ...]  # usage of its background calls, if recorded
    summary_calls: int  # those among them that wrote a summary


class ReplayScript(NamedTuple):
    model: str  # the model with the most answers
    ttl: str  # of the recorded cache marks
    steps: tuple[Step, ...]
    items: tuple[tuple[int, Item], ...]  # the source of probe facts, each with its step number
    system: list[Wire] | None  # as recorded; None if unknown
    tools: list[Wire]
    recorded: RecordedView
    damage: str | None  # a message if part of the file could not be read

    @property
    def answers(self) -> dict[int, RecordedAnswer]:
        """The answers to requests, by step number."""
        return {at: step for at, step in enumerate(self.steps) if isinstance(step, RecordedAnswer) and step.sent}

    def results_gone(self) -> dict[str, int]:
        """Return the calls whose results the recorded program removed from view, with the first step that no longer saw them."""
        gone = {
            block.tool_use_id if isinstance(block, ToolResult) else block.id: self.recorded.gone[item.uuid]
            for _, item in self.items
            if item.uuid in self.recorded.gone
            for block in item.blocks
            if isinstance(block, ToolResult | ToolUse)
        }
        return {**gone, **self.recorded.results_gone}

    def spread(self, count: int, *, skip: int = 0) -> list[int]:
        """Return at most `count` answer steps, spread evenly up to the end of the session, without the first `skip`."""
        points = list(self.answers)[skip:]
        wanted = min(count, len(points))
        return [points[(number * len(points) - 1) // wanted] for number in range(1, wanted + 1)]


def read_script(path: Path) -> ReplayScript:
    """Read the script of a transcript; InputError if it is not a recorded conversation."""
    health = Health()
    records = _own([record for record in sources.read(path, health=health) if not isinstance(record, Foreign)])
    originals = _originals(path, records)
    snapshot = next((record for record in reversed(records) if isinstance(record, Snapshot)), None)
    whole = list(_whole(records if snapshot is not None else _with_our_names(records), originals))
    log = Log.load(lambda: whole)
    if log.newer is not None:
        raise InputError(str(path), "was written by a newer version of Lamina", "upgrade Lamina")
    made = _ScriptBuilder(records, originals)
    for item in log.view.items:
        made.add(item)
    answers = [step for step in made.steps if isinstance(step, RecordedAnswer) and step.sent]
    if not answers:
        raise InputError(str(path), NO_CONVERSATION, "pass a transcript of Lamina, Claude Code, Codex or pi")
    return ReplayScript(
        model=_mostly([answer.model for answer in answers]),
        ttl=_lifetime(answers),
        steps=tuple(made.steps),
        items=tuple(made.items),
        system=snapshot.system if snapshot is not None else None,
        tools=snapshot.tools if snapshot is not None else _tools(answers),
        recorded=made.recorded(),
        damage=health.sentence(str(path)),
    )


def _own(records: list[Record]) -> list[Record]:
    """Treat a subagent's transcript, which has only sidechain records, as a main conversation."""
    if any(isinstance(record, Message) and not record.sidechain for record in records):
        return records
    flat = (Message, Attachment, Boundary)
    return [msgspec.structs.replace(record, sidechain=False) if isinstance(record, flat) else record for record in records]


def _with_our_names(records: Sequence[Record]) -> list[Record]:
    """Give the tools of other agents the names of Lamina's, since the layers know tools by name."""
    return [
        msgspec.structs.replace(record, blocks=tuple(_renamed(block) for block in record.blocks))
        if isinstance(record, Message) and record.role == "assistant"
        else record
        for record in records
    ]


def _renamed(block: Block) -> Block:
    if not isinstance(block, ToolUse) or block.name not in SAME_TOOLS:
        return block
    return tool_use(block.id, SAME_TOOLS[block.name], block.input)


def _originals(path: Path, records: Sequence[Record]) -> dict[str, str]:
    """Return the whole text of spilled results by call, from the session's own directory; missing or changed files are left out."""
    found: dict[str, str] = {}
    for spill in (record for record in records if isinstance(record, Spill) and 0 < record.size <= MOST_RESULT):
        data = read(path.with_suffix("") / DIRECTORY / os.path.basename(spill.path), MOST_RESULT)
        if data is not None and sha256(data).hexdigest() == spill.sha256:
            found[spill.tool_use_id] = data.decode("utf-8", "replace")
    return found


def _unspilled(block: Block, originals: Mapping[str, str]) -> Block:
    if not isinstance(block, ToolResult) or block.tool_use_id not in originals:
        return block
    return tool_result(block.tool_use_id, originals[block.tool_use_id], is_error=block.is_error)


def _whole(records: Sequence[Record], originals: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records without layer decisions. A compaction stays as a link of the tree, since later records hang on it."""
    for record in records:
        match record:
            case Message() if originals and record.role == "user":
                yield msgspec.structs.replace(record, blocks=tuple(_unspilled(block, originals) for block in record.blocks))
            case Boundary():
                yield Foreign("compaction", record.uuid, record.logical_parent, record.time, record.sidechain)
            case Clear() | Spill() | Span() | Revoke():
                pass
            case _:
                yield record


class _ScriptBuilder:
    """Builds the steps from view items. Blocks of one answer are joined even if results are between them."""

    def __init__(self, records: Sequence[Record], spilled: Container[str]) -> None:
        self._records = records
        self._spilled = spilled
        self._order = {uuid: at for at, record in enumerate(records) if (uuid := getattr(record, "uuid", None)) is not None}
        self._models = {record.uuid: record.model or "" for record in records if isinstance(record, Message)}
        self.steps: list[Step] = []
        self._answers: dict[str, int] = {}  # message id → its step
        self._began: list[int] = []  # step → position of its first record in the file
        self._summaries: list[Item] = []
        self._behind_summary = False
        self.items: list[tuple[int, Item]] = []

    def add(self, item: Item) -> None:
        if item.kind == "summary":
            self._summaries.append(item)
            self._behind_summary = True
            return
        attached = item.kind.startswith("attachment:")
        if item.kind == MEMORIES or item.synthetic or (attached and self._behind_summary):
            return
        self._behind_summary = self._behind_summary and attached
        if item.kind == INSTRUCTIONS:
            item = msgspec.structs.replace(item, blocks=_without_index(item.blocks))
        if item.role == "assistant":
            # A part of a longer session may begin with an answer, whose request is not in the file.
            if self.steps:
                self.items.append((self._answer(item), item))
        elif item.blocks:
            context = item.kind.removeprefix("attachment:") if attached else ""
            self.items.append((self._step(item, RecordedInput(item.time, item.blocks, context)), item))

    def _answer(self, item: Item) -> int:
        at = self._answers.get(item.key) if item.key is not None else None
        if at is None:
            at = self._step(item, RecordedAnswer(item.time, item.blocks, self._models.get(item.uuid, ""), item.usage))
            if item.key is not None:
                self._answers[item.key] = at
            return at
        before = self.steps[at]
        assert isinstance(before, RecordedAnswer)
        # The last record of an answer has the complete usage.
        usage = item.usage or before.usage
        self.steps[at] = before._replace(time=max(before.time, item.time), blocks=(*before.blocks, *item.blocks), usage=usage)
        return at

    def _step(self, item: Item, step: Step) -> int:
        self.steps.append(step)
        # Out-of-order results must not move a step before its predecessor.
        self._began.append(max(self._order.get(item.uuid, 0), self._began[-1] if self._began else 0))
        return len(self.steps) - 1

    def recorded(self) -> RecordedView:
        boundaries = [record for record in self._records if isinstance(record, Boundary) and not record.sidechain]
        gone: dict[str, int] = {}
        everything = [*(item for _, item in self.items), *self._summaries]
        for boundary in boundaries:
            place, kept = self._order[boundary.uuid], set(boundary.kept)
            since = self._first_step_after(place)
            for item in everything:
                if item.uuid not in kept and self._order.get(item.uuid, 0) < place:
                    gone.setdefault(item.uuid, since)
        clears = [record for record in self._records if isinstance(record, Clear) and record.markers]
        cleared = {call: self._first_step_after(self._order[record.uuid]) for record in clears for call in record.markers}
        # The recorded model saw only their previews.
        cleared |= {call: at for at, item in self.items for call in _results(item) if call in self._spilled}
        summaries = tuple((self._first_step_after(self._order.get(item.uuid, 0)), item) for item in self._summaries)
        auto = sum(one.trigger == "auto" for one in boundaries)
        forks = [record.data for record in self._records if isinstance(record, Event) and record.name == "fork"]
        side = tuple(SideCost.of_event(data).usage for data in forks)
        written = sum(data.get("purpose") == SUMMARY_CALL for data in forks)
        return RecordedView(len(boundaries), auto, len(clears), gone, cleared, summaries, side, written)

    def _first_step_after(self, place: int) -> int:
        return bisect_right(self._began, place)


def _results(item: Item) -> list[str]:
    return [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]


def _without_index(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Remove the recorded memory index: a replay with memory sends the current one, a replay without memory sends none."""
    changed = (text(_INDEX.sub("", block.text)) if isinstance(block, Text) else block for block in blocks)
    return tuple(block for block in changed if not isinstance(block, Text) or block.text.strip())


def _mostly(models: Sequence[str]) -> str:
    return max(filter(None, dict.fromkeys(models)), key=models.count, default="")


def _lifetime(answers: Sequence[RecordedAnswer]) -> str:
    """Return the lifetime of most recorded cache writes, so that recording and replay pay the same prices."""
    used = [answer.usage for answer in answers if answer.usage is not None]
    return "1h" if sum(usage.cache_write_1h for usage in used) * 2 > sum(usage.cache_write for usage in used) else "5m"


def _tools(answers: Sequence[RecordedAnswer]) -> list[Wire]:
    """Return the called tools by name; their descriptions are not in the transcript."""
    names = dict.fromkeys(call.name for answer in answers for call in answer.calls)
    return [{"name": name, "description": "As recorded.", "input_schema": {"type": "object"}} for name in names]


class Probe(NamedTuple):
    """Facts and files of the conversation so far, checked against the context at a few fixed points.

    Probes come from the script alone, so every policy gets the same ones: facts of everything so far, and the files used so
    far. A fact counts as kept if its exact string is in what the model would be sent.
    """

    facts: tuple[Fact, ...]
    files: tuple[str, ...]


def probes_of(script: ReplayScript) -> dict[int, Probe]:
    """Return the probes by step."""
    return {point: _probe(script, point) for point in script.spread(POINTS)}


def _probe(script: ReplayScript, point: int) -> Probe:
    items = [item for at, item in script.items if at <= point]
    calls = [call for at, answer in script.answers.items() if at <= point for call in answer.calls]
    files = dict.fromkeys(path for call in calls if (path := path_of(call)) is not None)
    return Probe(tuple(drawn(items)), tuple(files))


def look_for(probe: Probe, view: Iterable[Item]) -> ReplayFigures:
    shown = tuple(texts_of(view))
    context = "\n".join(shown)
    return ReplayFigures(
        facts=len(probe.facts),
        facts_in_context=judged(probe.facts, shown, reachable=False).in_context,
        files=len(probe.files),
        files_in_context=sum(path in context for path in probe.files),
    )

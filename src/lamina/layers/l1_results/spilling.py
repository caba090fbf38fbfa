"""Spilling one result: its file, its records, and the fallback when the disk cannot be written.

Nothing is appended to the log here. The caller appends the records together with the message, so both are one write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ...conversation import triggers
from ...conversation.state import Conversation
from ...conversation.window.count import appended
from ...conversation.window.features import measure_all
from ...core.blocks import Block, ToolResult, Wire, tool_result
from ...core.errors import DiskError
from ...core.reach import Reach
from ...core.records import Event, Record, Spill
from ...disk.faults import reporting
from ...disk.files import read_head
from ...disk.session_files.spills import WrittenResult, open_result, open_spills, sweep_results, take_over
from ...disk.temp_files import Durability
from ...language.text import Text
from .plan import ResultBudget
from .preview import cut, head_of, last_lines, once_preview, persisted, rest_of
from .reopen import LoggedResults, is_mixed
from .source import BYTES_PER_CHARACTER, CHUNK, Tape, is_json, tape_of

# The scan for secrets takes about half a millisecond per kilobyte, so only this many bytes are scanned.
SCANNED = 16 << 10


class PreviewRoom(msgspec.Struct, frozen=True):
    """The maximum size of a preview, and what the model can open by itself."""

    characters: int
    bytes: int
    reach: Reach
    end_percent: int  # the share of the preview that shows the end of the result
    once: bool = False  # the result is shown once before its preview replaces it
    named: Callable[[str], str] = str  # how a path is shown to the model


class SpilledResult(msgspec.Struct, frozen=True):
    path: str
    size: int
    sha256: str
    preview: str
    secrets: tuple[str, ...]  # kinds of secrets found; the private file keeps them unchanged


def spill(
    session: Path, tool_use_id: str, tape: Tape, *, json: bool, preview: PreviewRoom, durability: Durability
) -> SpilledResult:
    """Write a result to its file. On DiskError nothing was written, and the tape still has the beginning."""
    with open_spills(session) as spills:
        written = spills.write(tool_use_id, tape, suffix=".json" if json else ".txt", durability=durability)
    return _spilled(tool_use_id, written, tape.head, preview)


def adopt(session: Path, tool_use_id: str, file: str, *, preview: PreviewRoom) -> SpilledResult:
    """Spill a result that is already in a file of the session (the output of a command)."""
    written = take_over(session, tool_use_id, file)
    return _spilled(tool_use_id, written, _read_part(written, 0, CHUNK), preview)


def _read_part(written: WrittenResult, start: int, most: int) -> bytes:
    fd = open_result(written.path)
    try:
        with reporting(written.path):
            os.lseek(fd, start, os.SEEK_SET)
            return read_head(fd, most)
    finally:
        os.close(fd)


def _spilled(call: str, written: WrittenResult, head: bytes, preview: PreviewRoom) -> SpilledResult:
    end_characters, end_bytes = (size * preview.end_percent // 100 for size in (preview.characters, preview.bytes))
    most, most_bytes = preview.characters - end_characters, preview.bytes - end_bytes
    beginning = head_of(head, most, whole=len(head) == written.size)
    # What the beginning shows is not shown again.
    room = min(end_bytes, end_characters * BYTES_PER_CHARACTER, written.size - len(beginning.text.encode()))
    end = last_lines(_read_part(written, written.size - room, room), end_characters) if room > 0 else ""
    path = os.fspath(written.path)
    preview_text = (once_preview if preview.once else persisted)(
        beginning,
        end=end,
        most=most,
        most_bytes=most_bytes,
        size=written.size,
        path=preview.named(path),
        rest=rest_of(call, preview.reach),
    )
    # A result that is shown once is in the transcript too, so its file tells nothing new.
    return SpilledResult(path, written.size, written.sha256, preview_text, () if preview.once else _secrets(head))


def _secrets(head: bytes) -> tuple[str, ...]:
    from ...memory.store.secrets import redact  # only a session that spills pays for loading the secret patterns

    return redact(head[:SCANNED].decode("utf-8", "replace")).kinds


# Text with more characters than this per remaining token cannot fit, so it is not counted. Only runs of spaces come close.
MOST_PER_TOKEN = 16
# Characters per token of ordinary text: the first size a cut tries before its tokens are counted.
PER_TOKEN = 4
# Each try is shorter by the excess of the last one.
TRIES = 8
# Enough for the file of a result that is shown once: the transcript has the text too.
PROCESS: Durability = "process"
IN_MEMORY = "this session is in memory only and has no files"


class ResultsState:
    """The state of layer 1 in one conversation."""

    def __init__(self) -> None:
        self.trouble = False  # the last write failed, and the user was notified
        self.swept = False
        self.cut: set[str] = set()  # results of which only the beginning is left: no file may claim to be the complete one
        self.entered: dict[bytes, Block] = {}  # digest of a result as the caller passed it → the block logged for it
        self.known: LoggedResults | None = None
        self.settled: frozenset[str] = frozenset()  # results of the unsent message that were already checked together


class Spilling:
    """Spills results of one message.

    `kept` are the results that stay in the message, `coming` is the number to spill. If the disk fails, the results to spill
    share the room that is left."""

    def __init__(self, c: Conversation, budget: ResultBudget, *, kept: Sequence[Block] = (), coming: int = 1) -> None:
        self.records: list[Record] = []
        self._c = c
        self._state = c.layer_state(ResultsState)
        self._budget = budget
        self._beside = list(kept)
        self._most: int | None = None  # tokens that these results may take, once that is known
        self._coming = coming

    def block(self, block: ToolResult, tool: str, file: str | None = None) -> ToolResult:
        """Spill a result and return the block to log. `file` is a file that already holds the complete result."""
        if file is not None and not block.is_error and self._c.directory is not None:
            spilled = self._adopted(block.tool_use_id, tool, file)
            return block if spilled is None else tool_result(block.tool_use_id, spilled.preview)
        tape = tape_of(block.text, keep=most_that_fits(self._c))
        replacement = self.tape(
            block.tool_use_id, tape, tool, is_error=block.is_error, json=is_json(block.text), mixed=is_mixed(block)
        )
        if not is_mixed(block):
            return replacement
        return tool_result(block.tool_use_id, _with_text(block, replacement.text), is_error=block.is_error)

    def tape(self, call: str, tape: Tape, tool: str, *, is_error: bool, json: bool, mixed: bool = False) -> ToolResult:
        """Spill a result and return its preview, or as much of it as fits if the disk cannot be written."""
        spilled = self._written(call, tape, tool, json=json, mixed=mixed)
        if isinstance(spilled, SpilledResult):
            return tool_result(call, spilled.preview, is_error=is_error)
        return self._without_disk(call, tape, tool, spilled, is_error=is_error)

    def show_once(self, block: ToolResult, tool: str) -> None:
        """Save a result and record the preview that will replace it. If the disk cannot be written, it stays whole."""
        tape = tape_of(block.text, keep=most_that_fits(self._c))
        self._written(block.tool_use_id, tape, tool, json=is_json(block.text), once=True)

    def spill_logged(self, block: ToolResult, tool: str) -> None:
        """Spill a result that is logged but not sent yet. If the disk cannot be written, it stays whole."""
        tape = tape_of(block.text, keep=most_that_fits(self._c))
        self._written(block.tool_use_id, tape, tool, json=is_json(block.text))

    def _written(
        self, call: str, tape: Tape, tool: str, *, json: bool, mixed: bool = False, once: bool = False
    ) -> SpilledResult | str:
        """Return the spilled result, or the reason why it could not be written."""
        c = self._c
        if c.directory is None:
            return IN_MEMORY
        room, durability = (self._once_room(), PROCESS) if once else (self._room(tool), _durability(c))
        try:
            if not self._state.swept:  # the leftovers of crashed writers, before the first spill of the session
                self._state.swept = True
                sweep_results(c.directory)
            spilled = spill(c.directory, call, tape, json=json, preview=room, durability=durability)
        except DiskError as error:
            self._trouble(error)
            return str(error)
        self._state.trouble = False
        self._record(call, tool, spilled, mixed=mixed, once=once)
        return spilled

    def _adopted(self, call: str, tool: str, file: str) -> SpilledResult | None:
        assert self._c.directory is not None
        try:
            spilled = adopt(self._c.directory, call, file, preview=self._room(tool))
        except DiskError as error:
            self._trouble(error)
            return None
        self._record(call, tool, spilled)
        return spilled

    def _record(self, call: str, tool: str, spilled: SpilledResult, *, mixed: bool = False, once: bool = False) -> None:
        """Add the decision and its event, to be appended with the message.

        A mixed result keeps its images, so a preview cannot replace all of it: it gets an event and no decision."""
        c = self._c
        uuid, parent, time = c.head()
        data: Wire = {"tool_use_id": call, "tool": tool, "path": spilled.path, "bytes": spilled.size, "sha256": spilled.sha256}
        if spilled.secrets:
            data["secrets"] = list(spilled.secrets)
        if not mixed:
            self.records.append(
                Spill(uuid, parent, time, call, spilled.preview, spilled.path, spilled.size, spilled.sha256, once)
            )
            data |= {"decision": uuid, **({"once": True} if once else {})}
        self._add_event("spill", data)

    def _add_event(self, name: str, data: Wire) -> None:
        uuid, parent, time = self._c.head()
        self.records.append(Event(uuid, parent, time, name, data))

    def _room(self, tool: str) -> PreviewRoom:
        return PreviewRoom(
            self._budget.preview_of(tool), self._budget.preview_weight, self._c.prompt.reach, self._budget.end_percent
        )

    def _once_room(self) -> PreviewRoom:
        c = self._c
        most = min(c.policy.once.preview, self._budget.single // 2)
        return PreviewRoom(
            max(1, most),
            self._budget.preview_weight,
            c.prompt.reach,
            self._budget.end_percent,
            once=True,
            named=c.name_for_model,
        )

    def _trouble(self, error: DiskError) -> None:
        if not self._state.trouble:
            self._state.trouble = True
            self._c.notify(f"{error} Until this is fixed, large tool results stay in the conversation and are cut if necessary.")
            self._add_event("spill_failed", {"why": str(error), "path": error.path})

    def _without_disk(self, call: str, tape: Tape, tool: str, why: str, *, is_error: bool) -> ToolResult:
        text, least = tape.wind(), self._budget.preview_of(tool)
        self._coming -= 1
        # Reserve room for at least the beginning of each result that follows, at two characters per token.
        limit = self._c.limits.blocking - self._coming * least // 2
        block = self._fitting(call, text, limit, is_error=is_error) if tape.whole else None
        if block is None:
            block = self._cut(call, text, limit, least, why, is_error=is_error, whole=tape.whole)
            self._state.cut.add(call)
            self._add_event("result_cut", {"tool_use_id": call, "tool": tool, "why": why, "kept": len(block.text)})
            if why == IN_MEMORY and not self._state.trouble:
                self._state.trouble = True
                self._c.notify(Text("A tool result was too large for the context window and was cut: {why}.", why=why))
        self._beside.append(block)
        return block

    def _fitting(self, call: str, text: str, limit: int, *, is_error: bool) -> ToolResult | None:
        if len(text) > limit * MOST_PER_TOKEN:
            return None
        block = tool_result(call, text, is_error=is_error)
        return block if self._excess([*self._beside, block], limit) <= 0 else None

    def _cut(self, call: str, text: str, limit: int, least: int, why: str, *, is_error: bool, whole: bool) -> ToolResult:
        room = -self._excess(self._beside, limit)
        most = max(least, min(len(text), room * PER_TOKEN))
        for _ in range(TRIES):
            block = tool_result(call, cut(text, most, why, whole=whole), is_error=is_error)
            over = self._excess([*self._beside, block], limit)
            if over <= 0 or most <= least:
                return block
            most = max(least, min(most - over, most * 9 // 10))
        return tool_result(call, cut(text, least, why, whole=whole), is_error=is_error)

    def _excess(self, blocks: Sequence[Block], limit: int) -> int:
        """Return by how many tokens these results are too large.

        The request must stay below `limit`. If the conversation is compacted automatically, the results alone must leave room for
        a summary, or they would be compacted away before the model sees them."""
        c = self._c
        total = tokens_with(c, blocks)
        over = total - limit + 1
        if not c.autocompact:
            return over
        if self._most is None:
            self._most = triggers.most_unseen(c) - measure_all(unsent_results(c), c.memo).plain
        return max(over, total - c.count.judged - self._most)


def _durability(c: Conversation) -> Durability:
    """Return the durability of the transcript: its records refer to the file."""
    return "full" if c.settings.transcript_durability == "full" else "process"


def most_that_fits(c: Conversation) -> int:
    """Return the maximum bytes of a result that could ever be shown. No more of a stream is held in memory."""
    return c.limits.blocking * MOST_PER_TOKEN


def tokens_with(c: Conversation, blocks: Sequence[Block]) -> int:
    """Return the token count of the next request with these blocks added."""
    return appended(c.count, measure_all(blocks)).judged


def unsent_results(c: Conversation) -> Iterator[ToolResult]:
    """Yield the results after the last answer, newest first: no request has contained them. Synthetic results are left alone."""
    for item in reversed(c.log.view.items):
        if item.role == "assistant":
            return
        if not item.synthetic:
            yield from (block for block in item.blocks if isinstance(block, ToolResult))


def _with_text(block: ToolResult, text: str) -> list[Wire]:
    """Return the parts of a mixed result with one text in place of all its text parts, at the position of the first."""
    parts: list[Wire] = []
    placed = False
    for part in block.content:
        assert isinstance(part, dict)
        if part.get("type") != "text":
            parts.append(part)
        elif not placed:
            parts.append({"type": "text", "text": text})
            placed = True
    return parts

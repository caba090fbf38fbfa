"""A long piece of work and the proof that nothing of it fell through: what the tests of long sessions share.

`Work` is a model that calls tools, turn after turn, and tools whose results are of every kind; it remembers what it handed in. `prove`
reads the transcript from its top and follows the view record by record, so what it says rests on the log alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.session.plain import Session

from lamina.conversation.isolate import take_job_results
from lamina.core.blocks import ToolResult
from lamina.core.log import Log
from lamina.core.receipts import Told, open_receipt, read_receipt
from lamina.core.records import Attachment, Boundary, Clear, Event, Message, Record, Revoke, Span, Spill
from lamina.core.view import Item
from lamina.disk.transcripts.store import TranscriptReader, read_transcript
from lamina.layers.l1_results.reopen import open_spill
from lamina.layers.l4_compact.expand import stands_for
from lamina.session.base import working
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Step

from .compacting import SUMMARY
from .noting import by_rules
from .words import Wire, refused

WINDOW = 40_000
PATIENCE = 120.0
# Longer than a temporary directory usually is.
PATH_CHARS = 120
TOOLS: list[Wire] = [
    {"name": name, "description": f"{name} does its work.", "input_schema": {"type": "object"}}
    for name in ("Read", "Bash", "Grep", "TodoWrite")
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Decision = Boundary | Clear | Span


class Output(NamedTuple):
    content: Any
    is_error: bool = False


def lines(number: int, size: int) -> str:
    line = f"{number}: a line that says what result {number} is about\n"
    return line * (size // len(line) + 1)


# What a tool returns, by the number of its call: every kind comes round every dozen calls.
OUTPUTS: tuple[Callable[[int], Output], ...] = (
    lambda number: Output(""),
    lambda number: Output(lines(number, 1_500)),
    lambda number: Output(lines(number, 2_500)),
    lambda number: Output(lines(number, 60_000)),
    lambda number: Output(f"result {number}"),
    lambda number: Output(f"{number}: no such file\n" * 20, is_error=True),
    lambda number: Output([{"type": "text", "text": f"picture {number}"}, image()]),
    lambda number: Output({"number": number, "rows": [[number, "cell"] for _ in range(60)]}),
    lambda number: Output(f"第{number}号结果：这里没有什么特别的内容。" * 60),
    lambda number: Output(bytes(range(256)) * 200 + b"%d" % number),
    lambda number: Output(lines(number, 3_500)),
    lambda number: Output(lines(number, 2_000).encode()),
)


def called(number: int) -> tuple[str, Wire, str]:
    return TOOLS[number % 7 % len(TOOLS)]["name"], {"file_path": f"/w/src/file{number}.py"}, f"toolu_{number:04}"


def image() -> Wire:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def playing(
    notes: Callable[[Received], Step | str | None] = by_rules, summary: Step | str = SUMMARY
) -> Callable[[Received], Any]:
    """A server that keeps notes and writes summaries; what the conversation hears is queued."""

    def answer(received: Received) -> Step | str | None:
        if received.fork:
            return summary if received.fork.startswith("summary") else notes(received)
        return None

    return answer


class Work:
    def __init__(
        self,
        session: Session,
        server: MessagesServer,
        *,
        thinking: bool = False,
        outputs: Sequence[Callable[[int], Output]] = OUTPUTS,
        goes_on: Work | None = None,
    ) -> None:
        self.session = session
        self.server = server
        self.given: dict[str, Output] = dict(goes_on.given) if goes_on is not None else {}
        self.asked: list[str] = list(goes_on.asked) if goes_on is not None else []
        self._thinking = thinking
        self._outputs = outputs

    def turns(self, count: int, *, rounds: int = 5, together: int = 2) -> None:
        for _ in range(count):
            self.turn(rounds=rounds, together=together)

    def turn(self, *, rounds: int = 5, together: int = 2) -> None:
        number = len(self.asked) + 1
        self.asked.append(f"Task {number}: look at what is there and say what it means.")
        self.session.add_user(self.asked[-1])
        for _ in range(rounds):
            self._round(together)
        self._ask(text=f"Done with task {number}.")
        self.session.end_turn()

    def _round(self, together: int) -> None:
        first = len(self.given)
        numbers = range(first, first + together)
        calls = [called(number) for number in numbers]
        self._ask(text=f"I look at {together} more.", tool_use=calls)
        for number, (_, _, name) in zip(numbers, calls, strict=True):
            output = self.given[name] = self._outputs[number % len(self._outputs)](number)
            self.session.add_tool_result(name, output.content, is_error=output.is_error)

    def _ask(self, **answer: Any) -> None:
        if self._thinking:
            answer["thinking"] = f"I think about {len(self.given)} results."
        self.server.reply(**answer)
        self.session.ask()
        settle(self.session)


def of_fixed_length(directory: Path) -> Path:
    """Return a directory in this one whose path always has the same length: requests name it, and layers decide by their size."""
    made = directory / "d".ljust(PATH_CHARS - len(str(directory)) - 1, "d")
    made.mkdir()
    return made


def settle(session: Session) -> None:
    """What works in the background is waited for, so that a run gives the same decisions twice."""
    with working(session) as c:
        assert c.background.wait("notes", PATIENCE)
        assert c.background.wait("summary", PATIENCE)
        take_job_results(c)


def records(session: Session) -> list[Record]:
    assert session.path is not None
    return list(read_transcript(session.path))


def decisions(session: Session) -> list[Decision]:
    return [record for record in records(session) if isinstance(record, Decision)]


def how(decision: Decision) -> str:
    """clearing, notes, summary, ahead, rules, snip or collapse."""
    match decision:
        case Clear():
            return "clearing"
        case Boundary():
            return str(decision.receipt["by"])
        case Span():
            return decision.kind


def events(session: Session, name: str) -> list[Wire]:
    return [record.data for record in records(session) if isinstance(record, Event) and record.name == name]


def without_decisions(written: Iterable[Record]) -> list[Wire]:
    """The conversation as if nobody had decided anything but which results are spilled: folded here a second time, on purpose."""
    written = list(written)
    previews = {record.tool_use_id: record.preview for record in written if isinstance(record, Spill)}
    messages: list[Wire] = []
    for record in written:
        if not isinstance(record, Message | Attachment) or record.by is not None:
            continue
        role = record.role if isinstance(record, Message) else "user"
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        for block in record.blocks:
            call = getattr(block, "tool_use_id", "")
            messages[-1]["content"].append({**block.wire, "content": previews[call]} if call in previews else block.wire)
    return messages


def blocks_of(messages: Iterable[Wire]) -> list[Wire]:
    return [block for message in messages for block in message["content"]]


# The proof


class Stage(NamedTuple):
    """A decision, and what was in view before it."""

    decision: Decision
    before: tuple[Item, ...]


def stages(written: Sequence[Record]) -> Iterator[Stage]:
    """Every decision in the order they were made; between two of them nothing leaves the view."""
    log = Log()
    for index, record in enumerate(written):
        before = tuple(log.view.items)
        if not log.add(record):
            assert isinstance(record, Revoke), f"{record} is no extension"
            log.refold(partial(list, written[: index + 1]))
        if isinstance(record, Decision):
            yield Stage(record, before)
        elif not getattr(record, "by", None):
            assert [item.uuid for item in log.view.items[: len(before)]] == [item.uuid for item in before], record


def prove(session: Session, work: Work) -> list[str]:
    """B1: every record in view has exactly one fate at each decision, and what left can be opened again. How they were made."""
    made: list[str] = []
    written = records(session)
    assert session.path is not None
    for decision, before in stages(written):
        told = open_receipt(read_receipt(decision.uuid, decision.receipt), [item.uuid for item in before])
        gone = [item for item in before if told[item.uuid].fate != "kept"]
        assert gone, decision
        assert stands_for(TranscriptReader(session.path), decision.uuid) == gone
        if isinstance(decision, Clear):
            prove_cleared(decision, before, told, work)
        made.append(how(decision))
    assert session.path is not None
    prove_given(written, session.path.with_suffix(""), work)
    return made


def prove_cleared(decision: Clear, before: tuple[Item, ...], told: dict[str, Told], work: Work) -> None:
    """A marker names a file, and the file holds what the model had seen before, or all of a result that was spilled."""
    shown = {block.tool_use_id: block for item in before for block in item.blocks if isinstance(block, ToolResult)}
    for call, marker in decision.markers.items():
        path = Path(marker.partition("result is in ")[2].partition(" and can be read")[0])
        assert path.is_file(), marker
        held = path.read_bytes()
        block = shown[call]
        if held != (block.text.encode() if isinstance(block.content, str) else canonical_bytes(block.content)):
            assert held == raw(work.given[call].content), call
    cleared = {item.uuid for item in before for block in item.blocks if getattr(block, "tool_use_id", "") in decision.markers}
    assert {uuid for uuid, one in told.items() if one.fate == "cleared"} == cleared | set(decision.attachments)


def prove_given(log: list[Record], directory: Path | None, work: Work) -> None:
    """Every result that was handed in is in the transcript or in a file that the transcript names, byte for byte."""
    spilled = {record.tool_use_id: record for record in log if isinstance(record, Spill)}
    entered = {
        block.tool_use_id: block
        for record in log
        if isinstance(record, Message)
        for block in record.blocks
        if isinstance(block, ToolResult)
    }
    for call, output in work.given.items():
        if call in spilled:
            held = open_spill(spilled[call], directory)
            assert (held if isinstance(held, bytes) else held.encode()) == raw(output.content), call
        elif output.content == "":
            assert entered[call].text == "" or "no output" in entered[call].text, "unmarked where spilling is off"
        elif isinstance(output.content, list):
            assert entered[call].content == output.content
        else:
            assert entered[call].text.encode() == raw(output.content), call
        assert entered[call].is_error is output.is_error


def raw(content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode()
    return content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode()


def canonical_bytes(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def check_requests(server: MessagesServer, window: int = WINDOW, *, refusals: int = 0) -> None:
    """No request was refused (but as many as a test expects), none is over the window, each keeps the API's rules. The prefix rule
    is the plugin's."""
    refused_by_server = [one for one in server.requests if one.refused]
    assert len(refused_by_server) == refusals, [(one.index, one.status, one.error) for one in refused_by_server]
    for received in server.requests:
        assert received.use is None or received.use.total <= window
        if received.wire == "messages" and not received.fork:
            assert refused(received.body) == []

"""Random histories, sensible and nonsensical, and small builders for written ones.

A history is drawn as a list of steps, each an operation and three small numbers, and built from them without further randomness.
This is fast, and hypothesis shrinks a failure to the few steps that matter. The numbers choose among existing records (a parent, a
call, a decision): usually what a real program would choose, sometimes anything.

Tests use `Builder` to write a history by hand, and `histories()` to draw random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from lamina.core.blocks import Wire, read_content
from lamina.core.log import Log
from lamina.core.record_lines import Envelope, read_record, write_record
from lamina.core.records import (
    Attachment,
    Boundary,
    Break,
    Checkpoint,
    Clear,
    Event,
    Foreign,
    Forked,
    Message,
    Newer,
    Pin,
    Record,
    Revoke,
    Rewind,
    Snapshot,
    Span,
    Spill,
)
from lamina.core.usage import Usage

ENVELOPE = Envelope("session", "/work", "0.0.0")
SIDE_ENVELOPE = Envelope("session", "/work", "0.0.0", sidechain=True, agent_id="side")
PICTURE: Wire = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def examples(count: int) -> settings:
    """Set the number of examples in a normal run; it grows in proportion if HYPOTHESIS_PROFILE asks for more."""
    usual = settings.default
    return settings(max_examples=max(1, count * (usual.max_examples if usual is not None else 100) // 100))


def use(call: str, **more: Any) -> Wire:
    return {"type": "tool_use", "id": call, "name": "Read", "input": {"path": call}, **more}


def result(call: str, content: Any = "done", **more: Any) -> Wire:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def words(value: str) -> Wire:
    return {"type": "text", "text": value}


def thought(value: str, signature: str | None = "signed") -> Wire:
    return {"type": "thinking", "thinking": value, **({"signature": signature} if signature is not None else {})}


def grown(records: Sequence[Record]) -> Log:
    """Return a log to which the records were added one by one, as in a live session."""
    log = Log()
    for count in range(len(records)):
        grow(log, records, count)
    return log


def grow(log: Log, records: Sequence[Record], at: int) -> None:
    """Add the record at this position, and refold if the log requires it."""
    if not log.add(records[at]):
        log.refold(lambda: records[: at + 1])


def loaded(records: Sequence[Record]) -> Log:
    return Log.load(lambda: records)


def reread(records: Iterable[Record]) -> list[Record]:
    """Write and read the records, as a resume does. Records that only other programs write are passed through."""
    ours = (Foreign, Newer)
    return [record if isinstance(record, ours) else read_record(msgspec.json.decode(written(record))) for record in records]


def written(record: Record) -> bytes:
    return write_record(record, SIDE_ENVELOPE if getattr(record, "sidechain", False) else ENVELOPE)


def texts(log: Log) -> list[str]:
    """Summarize the view: a letter for the role, and the words, ids or markers."""
    return [f"{message['role'][0]}: {_short(block)}" for message in log.view.messages() for block in message["content"]]


def _short(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"call {block['id']}"
        case "tool_result":
            return f"{block['tool_use_id']} = {block['content']}"
        case kind:
            return str(kind)


class Builder:
    """Records in the order of writing. Each method adds one after the last message and returns its id."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.last: str | None = None  # the message that the next one follows
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"r{self._count}"

    @property
    def time(self) -> str:
        return f"2026-03-01T10:{self._count // 60 % 60:02}:{self._count % 60:02}.000Z"

    def put(self, record: Record, *, moves: bool = True) -> str:
        self.records.append(record)
        uuid = record.uuid or ""
        if moves:
            self.last = uuid
        return uuid

    def said(self, content: str | list[Wire], *, parent: Any = ..., **more: Any) -> str:
        return self.put(Message(self.uuid(), self._parent(parent), self.time, "user", read_content(content), **more))

    def answer(self, *blocks: Wire, key: str | None = None, parent: Any = ..., **more: Any) -> str:
        """Add one record; several records of one answer share a key."""
        return self.put(
            Message(self.uuid(), self._parent(parent), self.time, "assistant", read_content(blocks), message_id=key, **more)
        )

    def results(self, *calls: str, parent: Any = ..., content: Any = "done", **more: Any) -> str:
        return self.said([result(call, content) for call in calls], parent=parent, **more)

    def attached(self, text: str, *, parent: Any = ..., kind: str = "reminder", **more: Any) -> str:
        return self.put(Attachment(self.uuid(), self._parent(parent), self.time, kind, read_content(text), **more))

    def boundary(self, *kept: str, parent: Any = ...) -> str:
        return self.put(Boundary(self.uuid(), self._parent(parent), self.time, "auto", 100_000, kept))

    def summary(self, text: str = "what was said", *, by: str | None = None, parent: Any = ...) -> str:
        return self.said(text, parent=parent, summary=True, by=by)

    def spill(self, call: str, preview: str = "preview", *, once: bool = False) -> str:
        return self.put(Spill(self.uuid(), self.last, self.time, call, preview, "/spill", 9, "0" * 64, once), moves=False)

    def clear(self, *calls: str, attachments: tuple[str, ...] = (), marker: str = "cleared") -> str:
        markers = {call: f"{marker} {call}" for call in calls}
        return self.put(Clear(self.uuid(), self.last, self.time, markers, attachments), moves=False)

    def shorten(self, record: str, short: str = "short") -> str:
        found = (one for one in self.records if isinstance(one, Message) and one.uuid == record)
        blocks = [words(short) if block.wire["type"] == "text" else block.wire for one in found for block in one.blocks]
        return self.put(Clear(self.uuid(), self.last, self.time, {}, shortened={record: blocks}), moves=False)

    def span(self, *ids: str, text: str = "snipped", kind: str = "snip") -> str:
        return self.put(Span(self.uuid(), self.last, self.time, kind, ids, text), moves=False)

    def pin(self, target: str | None = None, text: str | None = None) -> str:
        return self.put(Pin(self.uuid(), self.last, self.time, target, text), moves=False)

    def snapshot(self, system: str = "be brief") -> str:
        return self.put(Snapshot(self.uuid(), self.last, self.time, [words(system)], [], {}), moves=False)

    def revoke(self, target: str) -> str:
        return self.put(Revoke(self.uuid(), self.last, self.time, target), moves=False)

    def rewind(self, target: str | None) -> str:
        uuid = self.put(Rewind(self.uuid(), self.last, self.time, target), moves=False)
        self.last = target
        return uuid

    def foreign(self, kind: str = "progress", *, parent: Any = ...) -> str:
        return self.put(Foreign(kind, self.uuid(), self._parent(parent), self.time))

    def _parent(self, given: Any) -> str | None:
        return self.last if given is ... else given


class Step(msgspec.Struct, frozen=True):
    """One drawn operation; the numbers choose among existing records."""

    name: str
    a: int
    b: int
    c: int


# The possible blocks of an answer, by number; the common ones come first.
def _answer_block(number: int, call: str, old_call: str) -> Wire:
    shapes: list[Callable[[], Wire]] = [
        lambda: words(f"words {number}"),
        lambda: use(call),
        lambda: use(call),
        lambda: thought(f"thought {number}"),
        lambda: thought("unsigned", None),
        lambda: thought("unsigned", ""),
        lambda: {"type": "redacted_thinking", "data": "secret"},
        lambda: words("  \n"),
        lambda: use(old_call),
        lambda: {"type": "server_tool_use", "id": f"s{call}", "name": "web_search", "input": {}},
        lambda: {"type": "web_search_tool_result", "tool_use_id": f"s{old_call}", "content": []},
        lambda: {"type": "server_tool_use", "id": f"s{old_call}", "name": "web_search", "input": {}},
        lambda: {"type": "novelty", "payload": [number, None]},
        lambda: PICTURE,
        lambda: result(old_call, "an answer cannot hold a result"),
        lambda: use(call, input="no object"),
    ]
    return shapes[number % len(shapes)]()


def _said_blocks(number: int, call: str) -> list[Wire]:
    shapes: list[Callable[[], list[Wire]]] = [
        lambda: [words(f"said {number}")],
        lambda: [words("look"), PICTURE],
        lambda: [words("")],
        list,
        lambda: [words("odd"), use(call), thought("not a person's"), {"type": "novelty", "n": number}],
        lambda: [{"type": "web_search_tool_result", "tool_use_id": f"s{call}", "content": []}, words(" ")],
    ]
    return shapes[number % len(shapes)]()


def _result_content(number: int) -> Any:
    return ("done", [words("done"), PICTURE], "", [], [words("")], "x" * 50)[number % 6]


class Chance(Builder):
    """A builder driven by numbers.

    A tidy one adds everything after the last message. It answers only existing calls, and not again after a compaction. It decides
    only about existing results, and writes a summary right after its boundary.
    """

    def __init__(self, *, tidy: bool = False) -> None:
        super().__init__()
        self.tidy = tidy
        self.nodes: list[str] = []
        self.calls: list[tuple[str, str]] = []  # tool_use id, record
        self.given: list[str] = []  # tool_use ids with a result
        self.closed: set[str] = set()  # those of them before a compaction
        self.keys: list[str] = []
        self.decisions: list[str] = []

    def run(self, steps: Sequence[Step]) -> list[Record]:
        for step in steps:
            OPERATIONS[step.name](self, step.a, step.b, step.c)
        return self.records

    def put(self, record: Record, *, moves: bool = True) -> str:
        uuid = super().put(record, moves=moves)
        if isinstance(record, Message | Attachment | Boundary):
            self.nodes.append(uuid)
        if isinstance(record, Boundary | Clear | Span | Spill | Pin | Snapshot):
            self.decisions.append(uuid)
        return uuid

    def where(self, number: int) -> str | None:
        """Choose a parent, usually the last message."""
        way, pick = number % 32, number // 32
        if self.tidy or way < 26 or not self.nodes:
            return self.last
        if way < 29:
            return self.nodes[-1 - pick % min(5, len(self.nodes))]
        if way == 29:
            return self.nodes[pick * 7 % len(self.nodes)]
        if way == 30:
            return f"gone{number}"
        return None if pick % 2 else f"r{self._count + 2}"

    def call(self, number: int) -> str:
        """Choose an existing call, usually one of the last."""
        if not self.calls or number % 16 == 15:
            return f"t{len(self.calls) + 1}"  # not made yet, or never
        return self.calls[-1 - (number % 16) % min(4, len(self.calls))][0]

    def result(self, number: int) -> str:
        return self.given[-1 - number % min(4, len(self.given))] if self.given else "none"

    def node(self, number: int) -> str:
        return self.nodes[-1 - number % min(12, len(self.nodes))] if self.nodes else "gone"

    def say(self, a: int, b: int, c: int) -> None:
        flags = {0: {"meta": True}, 1: {"silent": True}}.get(b % 16, {})
        self.said(_said_blocks(a if a % 2 else 0, self.call(b)), parent=self.where(c), **flags)

    def reply(self, a: int, b: int, c: int) -> None:
        """Add an answer of one to three blocks, in one record or in one record each."""
        self.keys.append(f"m{len(self.keys)}")
        key = self.keys[-1] if b % 16 else None
        numbers = [a, a // 16 + b, b][: 1 + c % 3]
        parts = [[number] for number in numbers] if a % 4 else [numbers]
        parent = self.where(c)
        for part in parts:
            parent = self._reply_part(part, key, parent, b)

    def more(self, a: int, b: int, c: int) -> None:
        """Add another block to an existing answer."""
        key = self.keys[-1 - b % min(3, len(self.keys))] if self.keys else "m0"
        self._reply_part([a], key, self.where(c), b)

    def _reply_part(self, numbers: list[int], key: str | None, parent: str | None, b: int) -> str:
        blocks = []
        for number in numbers:
            call = f"t{len(self.calls) + 1}"
            block = _answer_block(number, call, self.call(b))
            if block["type"] == "tool_use" and block["id"] == call:
                self.calls.append((call, f"r{self._count + 1}"))
            blocks.append(block)
        usage = Usage(100 + len(self.records), output_tokens=5) if b % 3 else None
        reason = ("tool_use", "end_turn", None)[b % 3]
        return self.answer(*blocks, key=key, parent=parent, usage=usage, stop_reason=reason, silent=b % 64 == 63)

    def give(self, a: int, b: int, c: int) -> None:
        """Add a result after the last message, after its call, or anywhere; synthetic, repeated, with text, or without a call."""
        call = self.call(a)
        own = dict(self.calls).get(call)
        if self.tidy and (own is None or call in self.closed):
            return
        parent = own if own is not None and b % 3 == 0 and not self.tidy else self.where(c)
        blocks = [result(call, _result_content(b), **({"is_error": True} if b % 5 == 0 else {}))]
        if c % 7 == 0 and not self.tidy:
            blocks.append(result(self.call(b), "another"))
        if c % 5 == 0:
            blocks.insert(b % 2, words("by the way"))
        self.given += [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        self.said(blocks, parent=parent, synthetic=b % 11 == 0)

    def attach(self, a: int, b: int, c: int) -> None:
        by = self.decisions[-1] if self.decisions and b % 4 == 0 else None
        self.attached("" if a % 8 == 7 else f"reminder {a}", parent=self.where(c), by=by)

    def other(self, a: int, b: int, c: int) -> None:
        """Add records that never affect the view: some are links, some reuse an existing id."""
        parent = self.where(c)
        uuid = self.node(a) if b % 16 == 0 else self.uuid()
        records: list[Record] = [
            Foreign("progress", uuid, parent, self.time),
            Foreign("queue-operation"),
            Newer(9, uuid, parent, self.time),
            Event(uuid, parent, self.time, "spent", {"tokens": a}),
            Break(uuid, parent, self.time, "branch", a, b),
            Checkpoint(uuid, parent, self.time, self.node(b), a, {"n": b}),
            Forked(uuid, parent, self.time, "other", "/other"),
        ]
        record = records[a % len(records)] if b % 3 else records[0]
        self.put(record, moves=isinstance(record, Foreign) and record.uuid is not None)

    def side(self, a: int, b: int, c: int) -> None:
        """Add the message of a subagent to the same file."""
        uuid = self.node(a) if b % 16 == 0 else self.uuid()
        record = Message(uuid, self.where(c), self.time, "user", read_content(f"aside {a}"), sidechain=True)
        self.put(record, moves=b % 4 == 0)

    def kept(self, a: int, b: int) -> list[str]:
        newest = self.nodes[-(a % 5) :] if a % 5 else []
        return [uuid for index, uuid in enumerate(newest) if index != b % 7]

    def compact(self, a: int, b: int, c: int) -> None:
        """Add a complete compaction. Lamina's records name their boundary, those of other programs do not."""
        self.closed.update(self.given)
        boundary = self.boundary(*self.kept(a, b), parent=self.where(c))
        by = boundary if b % 2 else None
        if b % 5 == 0 and not self.tidy:
            self.attached("instructions", by=by)
        self.summary(f"summary {a}", by=by)
        if b % 3 == 0:
            self.attached("a file", kind="file", by=by)

    def half(self, a: int, b: int, c: int) -> None:
        """Add a compaction that was cut off after its boundary; the next record may depend on it or not."""
        before = self.last
        self.boundary(*self.kept(a, b), parent=self.where(c))
        if b % 2:
            self.last = before

    def sum(self, a: int, b: int, c: int) -> None:
        self.summary(f"stray summary {a}", by=self.decisions[-1] if self.decisions and b % 2 else None, parent=self.where(c))

    def decide(self, a: int, b: int, c: int) -> None:
        pick = self.result if self.tidy else self.call
        calls = tuple(dict.fromkeys(pick(number) for number in (a, b)[: 1 + c % 2]))
        before = self.last
        self.last = self.where(c)
        match c % 5:
            case 0:
                self.spill(calls[0], f"preview {a}")
            case 2 if a % 2:
                self.shorten(self.node(b), f"short {a}")
            case 1 | 2:
                self.clear(*calls, attachments=(self.node(b),) if b % 3 == 0 else (), marker=f"cleared {a}")
            case 3:
                ids = dict.fromkeys(self.node(number) for number in range(a % 8, a % 8 + 1 + b % 4))
                self.span(*ids, text=" " if b % 9 == 0 else "snip")
            case _:
                self.pin(self.node(a), "text") if a % 2 else self.snapshot(f"system {a}")
        self.last = before

    def show_once(self, a: int, b: int, c: int) -> None:
        """Decide that a result is shown once, and usually add the result."""
        if self.tidy and self.call(a) not in dict(self.calls):
            return
        self.spill(self.call(a), f"preview {a}", once=True)
        if b % 4:
            self.give(a, b, c)

    def undo(self, a: int, b: int, c: int) -> None:
        recent = self.decisions[-1 - a % min(4, len(self.decisions))] if self.decisions else "gone"
        target = {0: self.node(b), 1: f"r{self._count + 2}"}.get(c % 16, recent)
        self.revoke(target)

    def back(self, a: int, b: int, c: int) -> None:
        targets = {0: None, 1: "gone", 2: self.decisions[-1] if self.decisions else None}
        self.rewind(targets.get(c % 16, self.node(a)))

    def again(self, a: int, b: int, c: int) -> None:
        """Reuse an existing id for the same record, a changed one, or one of another kind."""
        if not self.records:
            return
        old = self.records[-1 - a % min(8, len(self.records))]
        uuid = old.uuid or self.uuid()
        if b % 4 == 0:
            self.put(old, moves=False)
        elif b % 4 == 1 and isinstance(old, Message):
            call = f"t{len(self.calls) + 1}"
            self.calls.append((call, uuid))
            blocks = (*old.blocks, *read_content([words("again"), use(call)]))
            self.put(msgspec.structs.replace(old, blocks=blocks), moves=False)
        elif b % 4 == 2:
            self.put(Clear(uuid, self.where(c), self.time, {self.call(a): "cleared again"}), moves=False)
        else:
            self.put(Message(uuid, self.where(c), self.time, "user", read_content("another with this id")), moves=False)


Operation = Callable[[Chance, int, int, int], None]
OPERATIONS: dict[str, Operation] = {
    "say": Chance.say,
    "reply": Chance.reply,
    "more": Chance.more,
    "give": Chance.give,
    "attach": Chance.attach,
    "decide": Chance.decide,
    "once": Chance.show_once,
    "compact": Chance.compact,
    "half": Chance.half,
    "sum": Chance.sum,
    "undo": Chance.undo,
    "back": Chance.back,
    "other": Chance.other,
    "side": Chance.side,
    "again": Chance.again,
}
# The frequency of each operation. Conversation dominates, so that the other operations have something to act on.
WEIGHTS = {
    "say": 3,
    "reply": 6,
    "more": 3,
    "give": 6,
    "attach": 2,
    "decide": 3,
    "once": 3,
    "compact": 1,
    "half": 1,
    "sum": 1,
    "undo": 1,
    "back": 1,
    "other": 1,
    "side": 1,
    "again": 1,
}
_NAMES = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
_NUMBERS = st.integers(0, 255)


def steps(names: Sequence[str] = _NAMES, *, most: int = 30) -> st.SearchStrategy[list[Step]]:
    """Draw few or many steps. By default hypothesis draws about six, too few for decisions to interact."""
    one = st.builds(Step, st.sampled_from(names), _NUMBERS, _NUMBERS, _NUMBERS)
    return st.lists(one, min_size=1, max_size=most // 4) | st.lists(one, min_size=most // 2, max_size=most)


def histories(*, most: int = 30, names: Sequence[str] = _NAMES) -> st.SearchStrategy[list[Record]]:
    """Any history at all."""
    return steps(names, most=most).map(lambda drawn: Chance().run(drawn))


def plain_histories(*, most: int = 30) -> st.SearchStrategy[list[Record]]:
    """Histories as a single program writes them: no branches, broken links or undos; results may arrive late or twice."""
    names = [name for name in _NAMES if name in ("say", "reply", "more", "give", "attach", "decide", "once", "compact")]
    return steps(names, most=most).map(lambda drawn: Chance(tidy=True).run(drawn))

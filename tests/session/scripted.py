"""A session and everything that can be done to it, in any order; after every step what was promised of it is looked at.

The model is in hand: its usage is counted by another rule than the session's own, so a count that went astray is seen. Notes and
summaries are made by the local functions. What comes next never depends on a clock or on a thread: work in the background is waited
for before anything is compared.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace
from tests.session.plain import Session
from tests.session.words import pins_of

from lamina.conversation import forks
from lamina.core.cache import count_block
from lamina.core.effects import drive
from lamina.core.errors import InputError, NothingToSend, Overloaded, ServerFault, UndoOrder, UsageError, WindowFull
from lamina.core.log import Log
from lamina.core.policy import CLASSIC, LEAN, ColdPolicy, OncePolicy
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Attachment, Boundary, Clear, Message, Pin, Record, Revoke, Span, Spill
from lamina.core.settings import Settings
from lamina.fork.fork import run_fork
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import working

from .breaking import InHand
from .long import OUTPUTS, Output, Work, prove_given, records, settle, without_decisions
from .words import Wire, answer, extends, refused, said, thinking, unmarked

WINDOW = 8_000
SYSTEM = "Be careful. " * 20
TOOLS: list[Wire] = [
    {"name": name, "description": f"{name} does its work.", "input_schema": {"type": "object"}}
    for name in ("Read", "Bash", "Grep", "mcp__a__b")
]
SWITCHES = ("spill", "size_clearing", "auto_compact", "collapse", "idle_clearing", "session_notes", "notes_compaction")
# Ids that are made anew differ between two runs; a fold names itself by the beginning of one.
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b")
# Below this a count is mostly what nobody measures message by message.
COUNTABLE = 1_500
# A count learnt before and one learnt after a kill differ by the letters of new ids.
MADE_ANEW = 12
Decided = TypeVar("Decided", bound=Boundary | Clear | Span | Spill)
EXPECTED = (WindowFull, NothingToSend, InputError, UndoOrder, UsageError)


def honest(request: Wire) -> int:
    rows = [*request.get("tools", ()), *request.get("system", ())]
    rows += [block for message in request["messages"] for block in message["content"]]
    return sum(count_block(block) for block in rows)


def same(request: Wire) -> str:
    told = {name: request.get(name) for name in ("model", "system", "tools", "messages", "cache_edits")}
    return UUID.sub("ID", json.dumps(told))


# Little stays, so that a pause changes much.
COLD = ColdPolicy(clear=True, repeated=True, keep_results=1, keep_reads=1, keep_inputs=0, keep_thinking=0)


class Script(Work):
    """`given` and `asked` are what the proofs of long.py look at."""

    def __init__(self, home: Path, *, lean: bool = False, once: bool = False, cold: bool = False, **switches: bool) -> None:
        self.home = home / "home"
        self.backup = home / "backup"
        self.provider = self.model("model-1")
        self.policy = replace(
            LEAN if lean else CLASSIC,
            once=OncePolicy(from_chars=700 if once else 0, preview=200),
            cold=COLD if cold else ColdPolicy(),
        )
        self.switches: dict[str, bool] = dict(switches)
        self.given: dict[str, Output] = {}
        self.asked: list[str] = []
        self.rows: list[Wire] | None = None
        self.last: Wire | None = None
        self.number = self.year = self.models = 0
        self.opened_again = False  # what it sent before a compaction that nobody answered is not known then
        self.session = self.open()

    def open(self, **more: Any) -> Session:
        self.home.mkdir(parents=True, exist_ok=True)
        options: Wire = {"system": SYSTEM, "tools": TOOLS, "window": WINDOW, "policy": self.policy, "max_tokens": 400, **more}
        session = Session(self.provider, home=self.home, cwd=self.home, settings=Settings(**self.switches), **options)
        self.set_clock(session)
        return session

    @staticmethod
    def model(name: str) -> InHand:
        provider = InHand(name)
        provider.capabilities = replace(provider.capabilities, cache_edits=True)
        return provider

    def step(self, kind: str, pick: int) -> None:
        with suppress(*EXPECTED):
            getattr(self, f"do_{kind}")(pick)
        self.check()

    def check(self) -> None:
        """The view is the fold of the log; no layer had to step aside."""
        with working(self.session) as c:
            whole = Log.load(c.store.read)
            assert unmarked(self.session.messages) == unmarked(whole.view.messages())
            assert c.log.view.pins == whole.view.pins
            assert c.log.view.flat.open_calls == whole.view.flat.open_calls
            assert "layer_failed" not in c.log.events, c.log.events["layer_failed"]

    # What a loop does

    def do_user(self, pick: int) -> None:
        self.number += 1
        words = f"Question {self.number}? " + ("word " * (pick % 90), "问题很多。" * (pick % 60))[pick % 2]
        self.session.add_user(words)
        self.asked.append(words)

    def do_answer(self, pick: int) -> None:
        request = self.send()
        self.number += 1
        calls = (0, 1, 1, 2, 7)[pick % 5]
        blocks: list[Any] = [thinking("hm " * (pick % 40))] if pick % 3 == 0 else []
        if not calls or pick % 2:
            blocks.append(f"I say {self.number}. " * (1 + pick % 20))
        for at in range(calls):
            tool = TOOLS[(pick + at) % len(TOOLS)]["name"]
            name = f"toolu_{self.number}_{at}"
            blocks.append({"type": "tool_use", "id": name, "name": tool, "input": {"file_path": f"/w/f{self.number}.py"}})
        usage = {"input_tokens": honest(request) - 1, "cache_creation_input_tokens": 1, "output_tokens": 20 + len(blocks)}
        made = answer(f"m{self.number}", *blocks, usage=usage) | {"model": self.provider.model}
        if "cache_edits" in request and pick % 9:
            made["cache_edits"] = {"deleted": request["cache_edits"]["delete"]}
        self.session.after_call(made)
        if pick % 4:
            settle(self.session)

    def do_result(self, pick: int) -> None:
        for name in self.session.status.open_calls[: 1 + pick % 8]:
            self.number += 1
            output = OUTPUTS[(pick + self.number) % len(OUTPUTS)](self.number)
            self.session.add_tool_result(name, output.content, is_error=output.is_error)
            if self.session.settings.spill or not isinstance(output.content, bytes):
                self.given[name] = output  # without a file, bytes that are no text are not kept as they are

    def do_turn(self, pick: int) -> None:
        for kind, number in (("user", pick), ("answer", pick | 1), ("result", 7), ("answer", 5 * pick)):
            self.step(kind, number)

    def send(self) -> Wire:
        """A request, and what is promised of every one."""
        fork = self.handed_over()
        made = len(decided(self.session, Boundary, Clear, Span, Spill))
        request = copy.deepcopy(self.session.before_call())
        assert refused(request) == []
        reason = request.get("extra_headers", {}).get("x-lamina-break")
        assert reason != "unexplained"
        if self.last is not None:
            if reason is None:
                assert extends(self.last, request)
                assert self.last["model"] == request["model"]
            else:
                broken = not extends(self.last, request) or self.last["model"] != request["model"]
                assert broken or self.opened_again, f"{reason} broke nothing"
        if fork is not None and made == len(decided(self.session, Boundary, Clear, Span, Spill)):
            assert extends(fork, request), "what a fork repeats is what its parent sends"
        count = honest(request)
        assert count <= WINDOW
        if count >= COUNTABLE:
            assert count / 2 <= self.session.window_state.tokens <= count * 2, (self.session.window_state.tokens, count)
        shown = unmarked(request["messages"])
        assert all(any(pin in words for words in said(shown)) for pin in self.carried())
        self.last, self.opened_again = request, False
        return request

    def carried(self) -> list[str]:
        """Texts that were pinned before the last compaction that stands."""
        written = records(self.session)
        revoked = {record.target for record in written if isinstance(record, Revoke)}
        compacted = [at for at, record in enumerate(written) if isinstance(record, Boundary) and record.uuid not in revoked]
        before = written[: compacted[-1]] if compacted else []
        return [record.text for record in before if isinstance(record, Pin) and record.text and record.uuid not in revoked]

    def handed_over(self) -> Wire | None:
        with working(self.session) as c:
            if not c.log.view.items or c.log.view.flat.open_calls:
                return None
            handed = forks.hand_over(c)
            return {**handed.head, "messages": list(handed.messages)}

    # What is decided by hand

    def do_compact(self, pick: int) -> None:
        self.taken_back(pick, lambda: self.session.compact("Keep the names." if pick % 2 else "").boundary)

    def do_part(self, pick: int) -> None:
        items = self.items()
        pivot = Pivot("from" if pick % 2 else "up_to", items[pick // 2 % len(items)]) if items else None
        self.taken_back(pick, lambda: self.session.compact(pivot=pivot).boundary)

    def do_snip(self, pick: int) -> None:
        items = self.items()
        if items:
            first = pick % len(items)
            last = min(len(items) - 1, first + pick % 5)
            self.taken_back(pick, lambda: self.session.hide_messages(items[first], items[last]))

    def items(self) -> list[str]:
        with working(self.session) as c:
            return [item.uuid for item in c.log.view.items]

    def taken_back(self, pick: int, do: Callable[[], str]) -> None:
        before = unmarked(self.session.messages)
        made = do()
        if made and pick % 3 == 0:
            self.session.undo(made)
            assert unmarked(self.session.messages) == before

    def do_pin(self, pick: int) -> None:
        items = self.items()
        if pick % 2 or not items:
            self.session.pin(f"Never do {pick}.")
        else:
            self.session.pin(message=items[pick // 2 % len(items)])

    def do_undo(self, pick: int) -> None:
        self.session.undo()

    def do_unpin(self, pick: int) -> None:
        pins = list(pins_of(self.session))
        if pins:
            self.session.undo(pins[pick % len(pins)])

    def do_expand(self, pick: int) -> None:
        for made in decided(self.session, Boundary, Clear, Span):
            page = self.session.expand(made.uuid)
            assert page.text.strip()
            assert self.session.expand(made.uuid, page_number=page.pages).number == page.pages

    def do_preview(self, pick: int) -> None:
        before = len(records(self.session)) if self.session.path and self.session.path.exists() else 0
        self.session.preview_compaction()
        assert before in (0, len(records(self.session)))

    # What happens to it

    def do_resume(self, pick: int) -> None:
        settle(self.session)
        shown, pins, tokens = unmarked(self.session.messages), pins_of(self.session), self.session.window_state.tokens
        name = self.session.id
        self.session.close()
        self.session, self.opened_again = self.open(resume=name), True
        assert unmarked(self.session.messages) == shown
        assert pins_of(self.session) == pins
        assert abs(self.session.window_state.tokens - tokens) <= max(MADE_ANEW, tokens // (4 if self.models else 10)), (
            self.session.window_state.tokens,
            tokens,
        )

    def do_kill(self, pick: int) -> None:
        """Killed and opened again at the same place: the next request is the one that would have been sent."""
        settle(self.session)
        shutil.rmtree(self.backup, ignore_errors=True)
        shutil.copytree(self.home, self.backup)
        name = self.session.id
        wanted, broken = self.next_request()
        tokens = self.session.window_state.tokens
        self.session.abort()
        shutil.rmtree(self.home)
        shutil.move(self.backup, self.home)
        self.session = self.open(resume=name)
        self.check()
        found, announced = self.next_request()
        assert found == wanted
        # What nobody answered may have been sent or not: a break before it may be announced twice, one behind it not at all.
        assert announced >= broken or self.last is None
        assert abs(self.session.window_state.tokens - tokens) <= MADE_ANEW + tokens // (10 if self.models else 100), (
            self.session.window_state.tokens,
            tokens,
        )
        self.last = None  # it was sent twice; what follows starts with the second

    def next_request(self) -> tuple[str, bool]:
        try:
            request = self.session.before_call()
        except EXPECTED as error:
            return type(error).__name__, False
        return same(request), "x-lamina-break" in request.get("extra_headers", {})

    def do_fork(self, pick: int) -> None:
        """A fork that shares the prefix, with calls left open or not; its request is valid."""
        with working(self.session) as c:
            if not c.log.view.items:
                return
            with suppress(Overloaded, ServerFault):
                drive(run_fork(forks.hand_over(c), "Say what matters.", purpose="extract"), forks.side(c))
        assert refused(self.provider.requests[-1]) == []

    def do_branch(self, pick: int) -> None:
        """The transcript resumed elsewhere while it is live: a session of its own, and the first one is none the wiser."""
        assert self.session.path is not None
        if not self.session.path.exists():
            return
        with self.open(resume=self.session.id) as other:
            assert other.id != self.session.id
            assert unmarked(other.messages) == unmarked(self.session.messages)
            other.add_user("hello")
            assert refused(other.before_call()) == []

    def do_model(self, pick: int) -> None:
        if self.session.status.open_calls:
            return
        self.models += 1  # each reports by its own measure; where one began is not written down
        self.provider = self.model(f"model-{1 + self.models}")
        self.session.switch_model(self.provider)

    def do_sync(self, pick: int) -> None:
        """The caller's own list in new objects: nothing that was said is said again; or one word more."""
        written = records(self.session) if self.session.path and self.session.path.exists() else []
        if self.session.status.open_calls or any(getattr(record, "synthetic", False) for record in written):
            return
        rows = without_decisions(written)
        for block in (block for row in rows for block in row["content"] if block["type"] == "tool_result"):
            if block["tool_use_id"] not in self.given:
                return
            content = self.given[block["tool_use_id"]].content
            block["content"] = content if isinstance(content, str | list) else block["content"]
            if not isinstance(content, str | list) and block["content"].startswith("<persisted"):
                return
        before = unmarked(self.session.messages)
        self.session.sync(copy.deepcopy(rows))
        assert unmarked(self.session.messages) == before

    def do_pause(self, pick: int) -> None:
        self.year = 2000 + pick % 90
        self.set_clock(self.session)

    def set_clock(self, session: Session) -> None:
        if year := self.year:
            with working(session) as c:
                c.clock = lambda: f"{year}-01-01T00:00:00.000Z"

    def do_switch(self, pick: int) -> None:
        name = SWITCHES[pick % len(SWITCHES)]
        self.switches[name] = not getattr(Settings(**self.switches), name)
        with working(self.session) as c:
            c.settings = Settings(**self.switches, instructions=False, memory=False)

    def do_fault(self, pick: int) -> None:
        faults = (None, None, Overloaded("busy"), ServerFault("broken"))
        fault = faults[pick % len(faults)]
        self.provider.fault = (lambda _: fault) if fault is not None else None

    # The end

    def prove(self) -> None:
        """Every decision accounts for every record that was in view; every result is there; all of it is taken back byte for byte."""
        settle(self.session)
        assert self.session.path is not None
        if not self.session.path.exists():
            return
        self.do_result(7)
        written = records(self.session)
        fates(written)
        prove_given(written, self.session.path.with_suffix(""), self)
        entered = {str(block.wire.get("text")) for record in written if isinstance(record, Message) for block in record.blocks}
        assert entered >= set(self.asked)
        for _ in written:
            try:
                self.session.undo()
            except UsageError:
                break
        assert unmarked(self.session.messages) == unmarked(undecided(written))


def undecided(written: list[Record]) -> list[Wire]:
    """The conversation had nobody decided anything but which results are spilled: said again in a row, in a log of its own."""
    log, last = Log(), None
    for record in written:
        if isinstance(record, Spill):
            log.add(record)
        elif isinstance(record, Message | Attachment) and record.by is None:
            log.add(replace(record, parent=last))
            last = record.uuid
    return log.view.messages()


def decided(session: Session, *kinds: type[Decided]) -> list[Decided]:
    if session.path is None or not session.path.exists():
        return []
    return [record for record in records(session) if isinstance(record, kinds)]


def fates(written: list[Record]) -> None:
    log = Log()
    for index, record in enumerate(written):
        before = [item.uuid for item in log.view.items]
        if not log.add(record):
            log.refold(partial(list, written[: index + 1]))
        if isinstance(record, Boundary | Clear | Span):
            told = open_receipt(read_receipt(record.uuid, record.receipt), before)
            assert any(one.fate != "kept" for one in told.values()), record

"""Reads Codex's rollouts (`sessions/yyyy/mm/dd/rollout-<time>-<thread>.jsonl`), for lists and as records.

The conversation is in `response_item` lines; `event_msg` lines repeat its texts and are left out. Developer messages,
AGENTS.md and the environment are context, not the user's words. A `compacted` line replaces the whole history. Usage is summed
over `token_usage_record` lines, one per response; files of older versions have only running totals in `token_count`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ..core.blocks import Block, Role, ToolResult, ToolUse, Wire, read_block, text
from ..core.decoding import UNDECODABLE
from ..core.errors import InputError
from ..core.records import WINDOW_EVENT, Attachment, Boundary, Event, Message, Record
from ..core.usage import Usage, count_of
from .content_kinds import input_chars
from .scan import Scan, ScannedTurn, is_injected, price_of
from .trail import Trail

# Fields lie at most this deep inside a payload.
DEEPEST = 4
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
# Events that state the size of the window.
STATING_WINDOW = ("token_count", "task_started")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
NO_TRAIL = Trail()
# The purpose of calls that have no answer in the file.
SIDE_CALL = "other"


def scan_row(scan: Scan, turns: list[ScannedTurn], row: Mapping[str, Any]) -> None:
    kind, payload, time = row.get("type"), row.get("payload"), _str(row.get("timestamp"))
    if not isinstance(payload, Mapping):
        scan.skipped += 1
        return
    scan.noted(time=time)
    match kind:
        case "session_meta":
            scan.noted(cwd=_str(payload.get("cwd")), id=_str(payload.get("id")))
            scan.parent = scan.parent or _str(_find(payload, "parent_thread_id", DEEPEST).get("parent_thread_id"))
        case "turn_context":
            scan.model = _str(payload.get("model")) or scan.model
        case "response_item":
            scan.follow(follow_trail(scan.trail, payload, time), answered=payload.get("role") != "user")
            _hold(scan, payload)
            words = _words(payload, injected=False)
            if payload.get("role") == "user":
                scan.said(turns, "user", words, time)
            elif payload.get("role") == "assistant":
                scan.said(turns, "assistant", words, time)
        case "compacted":
            scan.answering = ""
            scan.compacted()
            history = payload.get("replacement_history")
            items = history if isinstance(history, list) else [{"content": payload.get("message")}]
            scan.holds("summary", sum(len(_words(item)) for item in items if isinstance(item, Mapping)))
        case "token_usage_record":
            scan.model = _str(payload.get("model")) or scan.model
            scan.itemised = True
            _use(scan, read_tokens(payload), alone=True)
            scan.answering = ""
        case "event_msg" if payload.get("type") in STATING_WINDOW:
            info = payload.get("info")
            if isinstance(info, Mapping):
                if (total := read_tokens(info.get("total_token_usage"))) is not None:
                    scan.ran_to(total)
                _use(scan, read_tokens(info.get("last_token_usage")), alone=False)
            scan.window = read_window(payload) or scan.window
        case _:
            pass


def follow_trail(trail: Trail, item: Mapping[str, Any], time: str) -> Trail:
    """Return the trail after an item. Context and results are left out: a fork may have other context, and calls have ids."""
    kind, role = item.get("type"), item.get("role")
    id = _str(item.get("encrypted_content")) or _str(item.get("call_id")) or _str(item.get("id"))
    if kind == "message" and role == "user":
        words = _words(item, injected=False)
        return trail.asked(words) if words else trail
    if kind in CALLS or role == "assistant" or (kind == "reasoning" and id):
        return trail.answered(_words(item), id, time)
    return trail


def _use(scan: Scan, usage: Usage | None, *, alone: bool) -> None:
    """Count the usage of the answer that is being read; `alone` if it counts without one."""
    if usage is not None and scan.answering:
        scan.answered(scan.answering, scan.model, usage)
    elif usage is not None and alone:
        scan.paid_without_answer(usage)


def _answer(scan: Scan, chars: int) -> None:
    """Count a part of an answer. A part after a result belongs to a new one."""
    if not scan.answering or scan.resulted:
        scan.answering, scan.resulted = scan.trail.digest, False
    scan.answered(scan.answering, scan.model, None, chars=chars)


def _hold(scan: Scan, item: Mapping[str, Any]) -> None:
    """Count what an item adds to the window."""
    kind, role = item.get("type"), item.get("role")
    if kind == "message" and role != "assistant":
        scan.answering = ""
    if kind in OUTPUTS:
        scan.resulted = True
        scan.returned(_str(item.get("call_id")), sum(len(block.text) for block in _result(item) if isinstance(block, ToolResult)))
    elif kind in CALLS:
        for block in _call(item):
            if isinstance(block, ToolUse):
                _answer(scan, chars := input_chars(block.input))
                scan.called(block.id, block.name)
                scan.holds("call", chars)
    elif role == "assistant":
        if chars := len(_words(item)):
            _answer(scan, chars)
        scan.holds("assistant", chars)
    elif role == "user":
        scan.holds("user", len(_words(item, injected=False)))
        scan.holds("memory", len(_words(item, injected=True)))
    elif kind == "message":
        scan.holds("memory", len(_words(item)))


def read_tokens(payload: object) -> Usage | None:
    """Read a count of tokens. Cached tokens are a part of the input, and reasoning is a part of the output."""
    found = _find(payload, "input_tokens", DEEPEST)
    given, output = count_of(found.get("input_tokens")), count_of(found.get("output_tokens"))
    cached = min(given, count_of(found.get("cached_input_tokens")))
    return Usage(given - cached, cached, 0, 0, output) if given else None


def read_window(payload: object) -> int:
    """Read the size of the window; 0 if it is not stated."""
    return count_of(_find(payload, "model_context_window", DEEPEST).get("model_context_window"))


def _find(value: object, name: str, depth: int) -> Mapping[str, Any]:
    """Return the outermost object that has this field; versions of Codex nest it differently."""
    if not isinstance(value, Mapping):
        return {}
    if name in value:
        return value
    parts = (part for key, part in value.items() if not key.startswith("total"))  # running totals are not one response
    inner = (_find(part, name, depth - 1) for part in parts) if depth else iter(())
    return next(filter(None, inner), {})


class CodexReader:
    """Turns the rows of a rollout into records, in order."""

    def __init__(
        self, count: int = 0, last: str | None = None, model: str | None = None, window: int = 0, trail: Trail = NO_TRAIL
    ) -> None:
        """Begin at the start of a file, or after `count` records, of which `last` is the newest."""
        self._count = count
        self._leaf = last
        self._model = model
        self._window = window
        self._trail = trail
        self._answer: str | None = None  # the message id of the current answer
        self._held: list[Record] = []  # the records since it began: its usage may come after its results
        self._noted = Usage()  # of all answers
        self._total: Usage | None = None  # the running total
        self._summed = not count  # whether `_noted` and `_total` are those of the whole file, and nothing else counts its calls

    def read(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Record]:
        for row in rows:
            yield from self.add(row)
        yield from self.finish()

    @property
    def state(self) -> tuple[int, str | None, str | None, int, Trail]:
        """The state from which another reader can go on; between two turns no answer is open."""
        return self._count, self._leaf, self._model, self._window, self._trail

    def add(self, row: Mapping[str, Any]) -> Iterator[Record]:
        payload, time = row.get("payload"), _str(row.get("timestamp"))
        if isinstance(payload, Mapping):
            yield from self._row(row.get("type"), payload, time)

    def finish(self) -> Iterator[Record]:
        """Yield the records of an answer that is still open, and the calls that only the running total counts."""
        yield from self._release()
        if self._total is not None and self._summed:
            yield from self._side_call(self._total - self._noted, "")

    def _row(self, kind: object, payload: Mapping[str, Any], time: str) -> Iterator[Record]:
        match kind:
            case "turn_context":
                self._model = _str(payload.get("model")) or self._model
            case "response_item":
                yield from self._item(payload, time)
            case "token_usage_record":
                self._model = _str(payload.get("model")) or self._model
                self._summed = False
                usage = read_tokens(payload)
                if self._answer is None and usage is not None:
                    yield from self._side_call(usage, time)
                self._note_usage(usage)
                yield from self._release()
            case "event_msg" if payload.get("type") in STATING_WINDOW:
                yield from self._note_window(read_window(payload), time)
                if isinstance(info := payload.get("info"), Mapping):
                    # Older versions have no other count. It may be repeated, so it replaces and is never added.
                    self._total = read_tokens(info.get("total_token_usage")) or self._total
                    self._note_usage(read_tokens(info.get("last_token_usage")))
            case "compacted":
                yield from self._release()
                yield from self._compacted(payload, time)
            case _:
                pass

    def _item(self, item: Mapping[str, Any], time: str) -> Iterator[Record]:
        kind, role = item.get("type"), item.get("role")
        self._trail = follow_trail(self._trail, item, time)
        if kind in OUTPUTS:
            yield from self._add(self._message("user", _result(item), time))
            return
        if kind == "message" and role != "assistant":
            yield from self._release()
            words = _words(item, injected=False) if role == "user" else ""
            context = _words(item, injected=True) if role == "user" else _words(item)
            if context:
                self._count += 1
                found = Attachment(f"codex-{self._count}", self._leaf, time, "instructions", _text(context))
                self._leaf = found.uuid
                yield found
            yield from self._add(self._message("user", _text(words), time))
            return
        blocks = _text(_words(item)) if kind == "message" else _call(item) if kind in CALLS else ()
        if not blocks:
            return
        if self._answer is None or any(isinstance(one, Message) and one.role == "user" for one in self._held):
            yield from self._release()
            self._answer = f"codex-answer-{self._trail.digest}"
        yield from self._add(self._message("assistant", blocks, time))

    def _message(self, role: Role, blocks: tuple[Block, ...], time: str) -> Message | None:
        if not blocks:
            return None
        self._count += 1
        answer = role == "assistant"
        return Message(
            f"codex-{self._count}",
            self._leaf,
            time,
            role,
            blocks,
            message_id=self._answer if answer else None,
            model=self._model if answer else None,
        )

    def _add(self, message: Message | None) -> Iterator[Record]:
        """Add a message: while an answer is open, it waits for the answer's usage."""
        if message is None:
            return
        self._leaf = message.uuid
        if self._answer is not None:
            self._held.append(message)
        else:
            yield message

    def _note_window(self, tokens: int, time: str) -> Iterator[Record]:
        """Record the size of the window where it changes; while an answer is open, the record waits with it."""
        if tokens in (0, self._window):
            return
        self._window = tokens
        stated = Event(f"codex-window-{self._count}", self._leaf, time, WINDOW_EVENT, {"tokens": tokens})
        if self._answer is not None:
            self._held.append(stated)
        else:
            yield stated

    def _side_call(self, usage: Usage, time: str) -> Iterator[Record]:
        """Record a call that has no answer in the file, such as one that writes a summary."""
        if usage.total:
            self._count += 1
            data = {"purpose": SIDE_CALL, "usd": price_of(self._model or "", usage), "input": usage.input_tokens}
            counts = {"cache_read": usage.cache_read, "cache_write": usage.cache_write, "output": usage.output_tokens}
            yield Event(f"codex-call-{self._count}", self._leaf, time, "fork", {**data, **counts})

    def _note_usage(self, usage: Usage | None) -> None:
        if usage is None:
            return
        for at, one in enumerate(self._held):
            if isinstance(one, Message) and one.role == "assistant":
                self._held[at] = msgspec.structs.replace(one, usage=usage, model=self._model)

    def _release(self) -> Iterator[Record]:
        held, self._held, self._answer = self._held, [], None
        used = (one.usage for one in held if isinstance(one, Message) and one.usage is not None)
        self._noted += next(used, Usage())  # each record of an answer repeats its usage
        yield from held

    def _compacted(self, payload: Mapping[str, Any], time: str) -> Iterator[Record]:
        """A compaction keeps nothing: the line has the new history, or the summary alone."""
        self._count += 1
        boundary = Boundary(f"codex-{self._count}", self._leaf, time, "auto")
        self._leaf = boundary.uuid
        yield boundary
        history = payload.get("replacement_history")
        items = [item for item in history if isinstance(item, Mapping)] if isinstance(history, list) else []
        for item in items or [{"type": "message", "role": "user", "content": _str(payload.get("message"))}]:
            for record in (*self._item(item, time), *self._release()):
                yield msgspec.structs.replace(record, summary=True) if isinstance(record, Message) else record


def _words(item: Mapping[str, Any], *, injected: bool | None = None) -> str:
    """Return the text of a message; with `injected`, only the parts that a program inserted, or only the others."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n\n".join(part for part in texts if isinstance(part, str) and injected in (None, is_injected(part)))


def _text(words: str) -> tuple[Block, ...]:
    return (text(words),) if words else ()


def _call(item: Mapping[str, Any]) -> tuple[Block, ...]:
    given = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except UNDECODABLE:
            given = {"input": given}
    name = _str(item.get("name")) or ("shell" if item.get("type") == "local_shell_call" else "tool")
    return _block({"type": "tool_use", "id": _str(item.get("call_id")) or _str(item.get("id")), "name": name, "input": given})


def _result(item: Mapping[str, Any]) -> tuple[Block, ...]:
    output = item.get("output", item.get("tools"))
    if isinstance(output, Mapping):
        output = output.get("content", output.get("output"))
    if isinstance(output, list):
        output = "\n".join(_str(part.get("text")) for part in output if isinstance(part, Mapping))
    content = output if isinstance(output, str) else ""
    return _block({"type": "tool_result", "tool_use_id": _str(item.get("call_id")), "content": content})


def _block(wire: Wire) -> tuple[Block, ...]:
    try:
        return (read_block(wire),)
    except InputError:
        return ()


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""

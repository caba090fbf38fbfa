"""Reads Codex's rollouts (`sessions/yyyy/mm/dd/rollout-<time>-<thread>.jsonl`), for lists and as records.

The conversation is in `response_item` lines; `event_msg` lines repeat its texts and are left out. Developer messages,
AGENTS.md and the environment are context, not the user's words. A `compacted` line replaces the whole history; the last item of the new
one is the summary. Usage is summed over `token_usage_record` lines, one per response; files of older versions have only running totals in
`token_count`. A fork costs what its own lines hold: the answers of its base are read without usage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ..core.blocks import Block, Role, ToolResult, ToolUse, Wire, read_block, text
from ..core.decoding import UNDECODABLE
from ..core.errors import InputError
from ..core.records import WINDOW_EVENT, Attachment, Boundary, Event, Message, Record
from ..core.usage import Usage, count_of
from ..disk.transcripts.jsonl import Health, decode_object, raw_lines, whole_objects
from .content_kinds import KEPT_MESSAGE, input_chars
from .scan import IMAGE_CHARS, Scan, ScannedTurn, is_injected, price_of
from .trail import Trail

# Fields lie at most this deep inside a payload.
DEEPEST = 4
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
# The tools of calls that do not name one.
UNNAMED = {"local_shell_call": "shell", "tool_search_call": "tool_search"}
# Events that state the size of the window.
STATING_WINDOW = ("token_count", "task_started")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
NO_TRAIL = Trail()
# What Codex writes before and after a picture in a message.
_IMAGE_TAG = re.compile(r"\s*</?image\b[^>]*>\s*")
# The purposes of calls that have no answer in the conversation: one that wrote a summary, and any other.
SUMMARY_CALL, SIDE_CALL = "summary", "other"
# What Codex calls a run of `codex exec`.
EXEC = "exec"
# The model of answers that another file holds and counts.
BASE_MODEL = "<base>"


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
            scan.itemised = scan.itemised or is_itemised(payload)
        case "turn_context":
            scan.model = _str(payload.get("model")) or scan.model
        case "response_item" if wrote_summary(row):
            scan.answering = ""
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
            *restored, summary = new_history(payload)
            for item in restored:
                _hold_message(scan, item)
            scan.holds("summary", len(_words(summary)))
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


def is_unattended(path: Path) -> bool:
    """Whether `codex exec` started the last turn of a rollout. Older versions tell only who started the session."""
    starter = ""
    for _, raw in raw_lines(path, 0, Health()):
        if b'"session_meta"' in raw or b'"task_started"' in raw:
            payload = (decode_object(raw) or {}).get("payload")
            if isinstance(payload, Mapping):
                if isinstance(turn := payload.get("turn_attribution"), Mapping):
                    starter = _str(turn.get("turn_trigger"))  # editors may name nothing
                else:
                    starter = _str(payload.get("source")) or starter
    return starter == EXEC


def is_itemised(meta: Mapping[str, Any]) -> bool:
    """Whether a file has a record of usage per call. Its running totals may include those of a base."""
    return meta.get("history_mode") == "paginated"


def wrote_summary(row: Mapping[str, Any]) -> bool:
    """Whether an item is the answer to a request for a summary, which `compacted` repeats."""
    metadata = row.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("compaction_output") is True


def new_history(compacted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items that a compaction puts in the place of the history. The last one is the summary."""
    history = compacted.get("replacement_history")
    items: list[Mapping[str, Any]] = [item for item in history if isinstance(item, Mapping)] if isinstance(history, list) else []
    return items or [{"type": "message", "role": "user", "content": compacted.get("message")}]


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
        chars = sum(len(block.text) for block in _result(item) if isinstance(block, ToolResult))
        scan.returned(_str(item.get("call_id")), chars + IMAGE_CHARS * len(_image_urls(_output(item))))
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
    elif kind == "message":
        _hold_message(scan, item)


def _hold_message(scan: Scan, item: Mapping[str, Any]) -> None:
    words, context = split_words(item)
    scan.holds("user", len(words) + IMAGE_CHARS * len(_image_urls(item.get("content"))))
    scan.holds("memory", len(context))


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
        self._summarised = False  # whether the current call wrote a summary
        self._in_base = False  # whether the rows are those of a base, whose calls count there
        self._summed = not count  # whether `_noted` and `_total` are those of the whole file, and nothing else counts its calls

    def read(self, lines: Iterable[tuple[int, bytes]], health: Health) -> Iterator[Record]:
        """Read whole lines with their offsets, which are negative in a base."""
        for offset, raw in lines:
            yield from self.add_line(offset, raw, health)
        yield from self.finish()

    def add_line(self, offset: int, raw: bytes, health: Health) -> Iterator[Record]:
        self._in_base = offset < 0
        for row in whole_objects(offset, raw, health):
            yield from self.add(row)

    @property
    def state(self) -> tuple[int, str | None, str | None, int, Trail]:
        """The state from which another reader can go on; between two turns no answer is open."""
        return self._count, self._leaf, self._model, self._window, self._trail

    def add(self, row: Mapping[str, Any]) -> Iterator[Record]:
        payload, time = row.get("payload"), _str(row.get("timestamp"))
        if isinstance(payload, Mapping) and row.get("type") == "response_item" and wrote_summary(row):
            yield from self._release()
            self._summarised = True
        elif isinstance(payload, Mapping):
            yield from self._row(row.get("type"), payload, time)

    def finish(self) -> Iterator[Record]:
        """Yield the records of an answer that is still open, and the calls that only the running total counts."""
        yield from self._release()
        if self._total is not None and self._summed:
            yield from self._side_call(self._total - self._noted, "")

    def _row(self, kind: object, payload: Mapping[str, Any], time: str) -> Iterator[Record]:
        match kind:
            case "session_meta":
                yield from self._release()  # nothing in a fork belongs to the last answer of its base
                self._summed = self._summed and not is_itemised(payload)
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
            words, context = split_words(item)
            yield from self._attach("instructions", _text(context), time)
            yield from self._add(self._message("user", (*_text(words), *_images(item.get("content"))), time))
            return
        blocks = _text(_words(item)) if kind == "message" else _call(item) if kind in CALLS else ()
        if not blocks:
            return
        if self._answer is None or any(isinstance(one, Message) and one.role == "user" for one in self._held):
            yield from self._release()
            self._answer = f"codex-answer-{self._trail.digest}"
        yield from self._add(self._message("assistant", blocks, time))

    def _attach(self, kind: str, blocks: tuple[Block, ...], time: str) -> Iterator[Record]:
        if blocks:
            self._count += 1
            attachment = Attachment(f"codex-{self._count}", self._leaf, time, kind, blocks)
            self._leaf = attachment.uuid
            yield attachment

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
            model=(BASE_MODEL if self._in_base else self._model) if answer else None,
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
        """Record a call that has no answer in the conversation, such as one that writes a summary."""
        purpose, self._summarised = SUMMARY_CALL if self._summarised else SIDE_CALL, False
        if usage.total and not self._in_base:
            self._count += 1
            data = {"purpose": purpose, "usd": price_of(self._model or "", usage), "input": usage.input_tokens}
            counts = {"cache_read": usage.cache_read, "cache_write": usage.cache_write, "output": usage.output_tokens}
            yield Event(f"codex-call-{self._count}", self._leaf, time, "fork", {**data, **counts})

    def _note_usage(self, usage: Usage | None) -> None:
        if usage is None or self._in_base:
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
        """A compaction keeps nothing: the line has the new history, or the summary alone. What else the history has is restored context."""
        self._count += 1
        boundary = Boundary(f"codex-{self._count}", self._leaf, time, "auto")
        self._leaf = boundary.uuid
        yield boundary
        *restored, summary = new_history(payload)
        for record in self._add(self._message("user", _text(_words(summary)), time)):
            yield msgspec.structs.replace(record, summary=True) if isinstance(record, Message) else record
        for item in restored:
            words, context = split_words(item)
            yield from self._attach("instructions", _text(context), time)
            yield from self._attach(KEPT_MESSAGE, (*_text(words), *_images(item.get("content"))), time)


def split_words(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the user's words in a message, and the context in it."""
    if item.get("role") == "user":
        return _words(item, injected=False), _words(item, injected=True)
    return "", _words(item)


def _words(item: Mapping[str, Any], *, injected: bool | None = None) -> str:
    """Return the text of a message; with `injected`, only the parts that a program inserted, or only the others."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    metadata = item.get("internal_chat_message_metadata_passthrough")
    kinds = metadata.get("content_item_kinds") if isinstance(metadata, Mapping) else None
    named = zip_longest(parts, kinds[: len(parts)] if isinstance(kinds, list) else ())
    texts = [(text, kind) for part, kind in named if isinstance(part, Mapping) and isinstance(text := part.get("text"), str)]
    if _image_urls(content):
        texts = [(text, kind) for text, kind in texts if not _IMAGE_TAG.fullmatch(text)]
    return "\n\n".join(text for text, kind in texts if injected in (None, is_injected(text) or _is_context(kind)))


def _is_context(kind: object) -> bool:
    """Whether Codex names a part of a message as something else than the user's. Older versions name no kinds."""
    return isinstance(kind, str) and kind != "unknown" and not kind.startswith("user.")


def _image_urls(content: object) -> list[str]:
    """Return the pictures among the parts of a message or a result."""
    parts = content if isinstance(content, list) else []
    return [url for part in parts if isinstance(part, Mapping) and isinstance(url := part.get("image_url"), str)]


def _images(content: object) -> tuple[Block, ...]:
    return tuple(block for url in _image_urls(content) for block in _block({"type": "image", "source": _source(url)}))


def _source(url: str) -> Wire:
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data} if data else {"type": "url", "url": url}


def _text(words: str) -> tuple[Block, ...]:
    return (text(words),) if words else ()


def _call(item: Mapping[str, Any]) -> tuple[Block, ...]:
    given = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except UNDECODABLE:
            given = {"input": given}
    name, server = _str(item.get("name")) or UNNAMED.get(_str(item.get("type")), "tool"), _str(item.get("namespace"))
    name = f"{server}__{name}" if server.startswith("mcp__") else name  # as older versions and other agents name it
    return _block({"type": "tool_use", "id": _str(item.get("call_id")) or _str(item.get("id")), "name": name, "input": given})


def _result(item: Mapping[str, Any]) -> tuple[Block, ...]:
    output = _output(item)
    content: str | list[Wire] = output if isinstance(output, str) else ""
    if isinstance(output, list):
        texts = [text for part in output if isinstance(part, Mapping) and (text := _str(part.get("text")))]
        images = [block.wire for block in _images(output)]
        content = [*({"type": "text", "text": text} for text in texts), *images] if images else "\n".join(texts)
    return _block({"type": "tool_result", "tool_use_id": _str(item.get("call_id")), "content": content})


def _output(item: Mapping[str, Any]) -> object:
    if isinstance(tools := item.get("tools"), list):
        return msgspec.json.encode(tools).decode()
    output = item.get("output")
    return output.get("content", output.get("output")) if isinstance(output, Mapping) else output


def _block(wire: Wire) -> tuple[Block, ...]:
    try:
        return (read_block(wire),)
    except InputError:
        return ()


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""

"""Lossless conversion between the Messages API and Chat Completions.

A block is converted to its native chat form only if that form converts back to the same block. Otherwise it is sent as JSON inside a
tag, as text, and the tag converts back. In the other direction, a chat part or field without a block form is kept as a `chat_part`
or `chat_fields` block, which converts back to itself. Text that looks like one of these tags is tagged too.

Only the order inside one message changes, where Chat Completions cannot express it: results before text, text before calls. One
canonical message becomes one or more chat messages, independent of its neighbours, so a growing conversation converts only its new
messages. Thinking is not sent unless the server accepts it back (`reasoning`); it stays in the log.

The result is normalized without changing its meaning: a result with a single text is a string, `is_error: false` is left out, and
arguments are compact JSON.

`ChatRows` converts a caller's growing list of chat messages. Callers pass the same list again and again, a little longer each time. Rows
that are the same objects as last time keep their converted messages, which are then the same objects too. So the cost grows only with the
new rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from operator import is_
from typing import Any, NamedTuple

import msgspec

from ..core.blocks import Wire, unmarked
from ..core.decoding import UNDECODABLE
from ..core.errors import InputError
from ..core.reply import plain
from .stream import UNPARSED, read_input

TAG = "<lamina:"
ERROR = "<lamina:error/>"
_BLOCK = re.compile(r"<lamina:block>(.*)</lamina:block>", re.DOTALL)
_SEE = re.compile(r"<lamina:see>(.*)</lamina:see>", re.DOTALL)
_HERE = re.compile(r"<lamina:here>(.*)</lamina:here>", re.DOTALL)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)

# The file name of a document without a title, because the chat form requires one.
UNTITLED = "document.pdf"


def chat_messages(message: Wire, *, reasoning: bool = False) -> list[Wire]:
    """Convert one canonical message to chat messages."""
    role, content = message["role"], message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(unmarked(block)) for block in content]
    if role == "assistant":
        return [_assistant(blocks, reasoning)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    others = [block for block in blocks if block.get("type") != "tool_result"]
    out: list[Wire] = []
    attachments: list[Wire] = []  # parts that a tool message cannot contain; they go into the user message after it
    for block in results:
        tool_message, attached = _result(block)
        out.append(tool_message)
        attachments += attached
    if others or attachments or not results:
        parts = [*attachments, *(part_of(block) for block in others if block.get("type") != "chat_fields")]
        out.append({"role": str(role), "content": _content(parts), **_fields(others)})
    return out


def messages_from_chat(chat: Iterable[Mapping[str, Any]]) -> list[Wire]:
    """Convert chat messages to canonical messages; system messages keep their place, with the role `system`."""
    out: list[Wire] = []
    open_calls: list[str] = []
    for index, raw in enumerate(chat):
        message = {key: value for key, value in raw.items() if value not in (None, [])}
        match message.get("role"):
            case "assistant":
                blocks = _assistant_blocks(message, index)
                open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
                out.append({"role": "assistant", "content": blocks})
            case "tool":
                result = _result_block(message, open_calls, index)
                if not _only_results(out):
                    out.append({"role": "user", "content": []})
                out[-1]["content"].append(result)
            case "user" if _only_results(out):
                parts = _put_back(_parts(message.get("content")), out[-1]["content"])
                out[-1]["content"] += _plain_blocks(message, parts)
            case str() as role:
                blocks = _plain_blocks(message, _parts(message.get("content")))
                out.append({"role": "system" if role in ("system", "developer") else "user", "content": blocks})
            case _:
                raise InputError(f"messages[{index}]", "a chat message needs a 'role'")
    return out


# ── one block, one part ────────────────────────────────────────────────────────────


def part_of(block: Wire) -> Wire:
    """Return the native part of a block if it converts back, otherwise the block as JSON in a tag."""
    part = _native_part(block)
    if part is not None and (block_of(part) if block.get("type") == "chat_part" else _native_block(part)) == block:
        return part
    return {"type": "text", "text": f"<lamina:block>{msgspec.json.encode(block).decode()}</lamina:block>"}


def block_of(part: Wire) -> Wire:
    """Return the block of a part if it converts back, otherwise a block that contains the part itself."""
    block = _native_block(part)
    if block is not None and part_of(block) == part:
        return block
    return {"type": "chat_part", "part": part}


def _native_part(block: Wire) -> Wire | None:
    source = block.get("source")
    match block.get("type"), source.get("type") if isinstance(source, dict) else None:
        case "text", _:
            text = block["text"]
            return None if text.startswith(TAG) else {"type": "text", "text": text}
        case "image", "base64":
            return {"type": "image_url", "image_url": {"url": _data_url(block["source"])}}
        case "image", "url":
            return {"type": "image_url", "image_url": {"url": block["source"].get("url")}}
        case "document", "base64":
            return {"type": "file", "file": {"filename": block.get("title", UNTITLED), "file_data": _data_url(block["source"])}}
        case "chat_part", _:
            part: Wire | None = block.get("part")
            return part
        case _:
            return None


def _native_block(part: Wire) -> Wire | None:
    kind, value = part.get("type"), part.get(str(part.get("type")))
    if kind == "text" and isinstance(value, str):
        if tag := _BLOCK.fullmatch(value):
            try:
                block = msgspec.json.decode(tag[1])
            except UNDECODABLE:
                block = None
            if isinstance(block, dict) and isinstance(block.get("type"), str):
                return block
        return {"type": "text", "text": value}
    if kind == "image_url" and isinstance(value, dict) and isinstance(value.get("url"), str):
        return {"type": "image", "source": _source(value["url"]) or {"type": "url", "url": value["url"]}}
    if kind == "file" and isinstance(value, dict) and isinstance(value.get("file_data"), str):
        source, title = _source(value["file_data"]), value.get("filename", UNTITLED)
        if source is not None:
            return {"type": "document", "source": source, **({} if title == UNTITLED else {"title": title})}
    return None


def _data_url(source: Wire) -> str:
    return f"data:{source.get('media_type')};base64,{source.get('data')}"


def _source(url: str) -> Wire | None:
    url_parts = _DATA_URL.fullmatch(url)
    return {"type": "base64", "media_type": url_parts[1], "data": url_parts[2]} if url_parts else None


# ── whole messages ────────────────────────────────────────────────────────────


def _fields(blocks: list[Wire]) -> Wire:
    fields: Wire = {}
    for block in blocks:
        if block.get("type") == "chat_fields":
            fields |= block.get("fields") or {}
    return fields


def _content(parts: list[Wire]) -> str | list[Wire]:
    """Return a single text as a plain string, the form that every server accepts."""
    if len(parts) == 1 and parts[0].get("type") == "text" and len(parts[0]) == 2:
        text: str = parts[0]["text"]
        return text
    return parts or ""


def _assistant(blocks: list[Wire], reasoning: bool) -> Wire:
    quiet = ("thinking", "redacted_thinking", "tool_use", "chat_fields")
    parts = [part_of(block) for block in blocks if block.get("type") not in quiet]
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    message: Wire = {"role": "assistant", "content": _content(parts) if parts or not calls else None, **_fields(blocks)}
    thoughts = "\n\n".join(block["thinking"] for block in blocks if block.get("type") == "thinking")
    if reasoning and thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: Wire) -> Wire:
    value = block.get("input")
    raw = value.get(UNPARSED) if isinstance(value, dict) and len(value) == 1 else None
    arguments = raw if isinstance(raw, str) else msgspec.json.encode(value if value is not None else {}).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def _result(block: Wire) -> tuple[Wire, list[Wire]]:
    """Return the tool message, and the parts (images, files) that follow in a user message."""
    ref, content = block["tool_use_id"], block.get("content") or ""
    items = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts: list[Wire] = []
    attachments: list[Wire] = []
    for number, item in enumerate(items):
        part = part_of(dict(unmarked(item)))
        if part["type"] != "text":
            attachments += [{"type": "text", "text": f"<lamina:here>{ref}#{number}</lamina:here>"}, part]
            part = {"type": "text", "text": f"<lamina:see>{ref}#{number}</lamina:see>"}
        parts.append(part)
    value = _content(parts)
    if block.get("is_error"):
        value = f"{ERROR}\n{value}" if isinstance(value, str) else [{"type": "text", "text": ERROR}, *value]
    return {"role": "tool", "tool_call_id": ref, "content": value}, attachments


def _parts(content: object) -> list[Wire]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, list | tuple):
        return [dict(part) if isinstance(part, Mapping) else {"type": "text", "text": str(part)} for part in content]
    return []


def _plain_blocks(message: Wire, parts: list[Wire]) -> list[Wire]:
    blocks = [block_of(part) for part in parts]
    fields = {key: value for key, value in message.items() if key not in ("role", "content")}
    if message["role"] not in ("user", "system"):
        fields["role"] = message["role"]
    return [{"type": "chat_fields", "fields": fields}, *blocks] if fields else blocks


def _assistant_blocks(message: Wire, index: int) -> list[Wire]:
    blocks: list[Wire] = []
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thoughts, str):
        blocks.append({"type": "thinking", "thinking": thoughts, "signature": ""})
    converted = ("role", "content", "tool_calls", *(("reasoning_content", "reasoning") if blocks else ()))
    fields = {key: value for key, value in message.items() if key not in converted}
    if fields:
        blocks.append({"type": "chat_fields", "fields": fields})
    blocks += [block_of(part) for part in _parts(message.get("content"))]
    for number, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments", function.get("input"))
        value = read_input(arguments) if isinstance(arguments, str) else arguments or {}
        ident = call.get("id") or f"call_{index}_{number}"
        blocks.append({"type": "tool_use", "id": ident, "name": function.get("name") or "", "input": value})
    return blocks


def _result_block(message: Wire, open_calls: list[str], index: int) -> Wire:
    ident = message.get("tool_call_id") or (open_calls[0] if open_calls else None)
    if not isinstance(ident, str):
        raise InputError(f"messages[{index}]", "a tool message needs a 'tool_call_id'")
    if ident in open_calls:
        open_calls.remove(ident)
    parts = _parts(message.get("content"))
    head = parts[0]["text"] if parts and parts[0].get("type") == "text" else ""
    is_error = head == ERROR or head.startswith(ERROR + "\n")
    if is_error:
        parts = [*_parts(head[len(ERROR) + 1 :]), *parts[1:]]
    blocks = [block_of(part) for part in parts]
    single = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    content: Any = blocks[0]["text"] if single else blocks or ""
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **({"is_error": True} if is_error else {})}


def _only_results(out: list[Wire]) -> bool:
    """Whether the last message contains only results, so that a user message may join it: the Messages API has one for both."""
    return bool(out) and out[-1]["role"] == "user" and all(block["type"] == "tool_result" for block in out[-1]["content"])


def _reference(pattern: re.Pattern[str], part: Wire) -> str | None:
    """Return the target of a part that is just a reference, else None."""
    reference = pattern.fullmatch(part["text"]) if part.keys() == {"type", "text"} else None
    return reference[1] if reference else None


def _put_back(parts: list[Wire], results: list[Wire]) -> list[Wire]:
    """Move images and files from the user message to the results that refer to them; return the other parts."""
    places = {
        name: (result["content"], number)
        for result in results
        if isinstance(result["content"], list)
        for number, item in enumerate(result["content"])
        # A real reference is still a chat part here; a text that only looks like one was tagged and is a text block by now.
        if item.get("type") == "chat_part" and (name := _reference(_SEE, item["part"])) is not None
    }
    others: list[Wire] = []
    place = None
    for part in parts:
        name = _reference(_HERE, part)
        if place is not None:
            place[0][place[1]] = block_of(part)
            place = None
        elif name in places:
            place = places.pop(name)
        else:
            others.append(part)
    return others


class Start(NamedTuple):
    """The start of an answer. The rows before and after it can be converted independently."""

    row: int
    message: int


class ChatRows:
    def __init__(self) -> None:
        self._rows: list[object] = []
        self._messages: list[Wire] = []
        self._starts: list[Start] = []

    def canonical(self, rows: Sequence[object]) -> list[Wire]:
        """Convert the rows. System messages keep their places."""
        # The number of leading rows that are the same objects.
        same = sum(1 for _ in takewhile(bool, map(is_, self._rows, rows)))
        while self._starts and self._starts[-1].row >= same:
            self._starts.pop()
        row, message = self._starts.pop() if self._starts else Start(0, 0)
        new = [_plain(index, raw) for index, raw in enumerate(rows[row:], start=row)]
        fresh = messages_from_chat(new)
        answers = [index for index, raw in enumerate(new, start=row) if raw.get("role") == "assistant"]
        converted = [index for index, wire in enumerate(fresh, start=message) if wire["role"] == "assistant"]
        self._starts += map(Start, answers, converted)
        self._rows = list(rows)
        self._messages = [*self._messages[:message], *fresh]
        return self._messages


def _plain(index: int, row: object) -> Mapping[str, Any]:
    """Return a row as a mapping. It may be a dict or an SDK object, as in `messages.append(response.choices[0].message)`."""
    where = f"messages[{index}]"
    raw = plain(row) if hasattr(row, "model_dump") else row
    if not isinstance(raw, Mapping):
        raise InputError(where, f"a message must be an object with a role and content, not {type(row).__name__}")
    content, calls = raw.get("content"), raw.get("tool_calls")
    if not (content is None or isinstance(content, str) or _objects(content)):
        raise InputError(f"{where}.content", "must be a string or a list of parts")
    if not (calls is None or (_objects(calls) and all(isinstance(call.get("function", {}), Mapping) for call in calls))):
        raise InputError(f"{where}.tool_calls", "must be a list of calls")
    return {**raw, "tool_calls": [_named(call, index, number) for number, call in enumerate(calls)]} if calls else raw


def _named(call: Mapping[str, Any], index: int, number: int) -> Mapping[str, Any]:
    """Add an id to a call without one. It is derived from the position, so it is the same each time the list is read."""
    return call if call.get("id") else {**call, "id": f"call_{index}_{number}"}


def _objects(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, Mapping) for part in value)

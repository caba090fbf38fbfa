"""The provider for servers with the Chat Completions API (OpenAI, Ollama, vLLM, llama.cpp, …), through the official SDK.

The cost of `render` grows only with the new messages: each canonical message is converted once and then found by its identity. This
is safe because message dicts are shared and never changed. The chat messages are shared between requests in the same way.

The address of a server decides which parameter names it gets (`max_completion_tokens` at OpenAI and Azure, `max_tokens`
elsewhere). A rejection corrects this once per parameter: for example, a server that rejects `stream_options` gets the request again
without it.

`ChatStream` translates the chunks of a stream into events of the Messages API. Servers differ: some send no call ids, no indices or no
usage, send complete calls at once, or finish an answer with tool calls with `stop`. Missing values are generated in a stable way. A stream
without a finish reason is left unfinished, so it counts as broken. The same code reads a complete response as a single chunk.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.errors import BadRequest, InputError, StreamBroken
from ..core.reply import Reply, plain
from ..core.usage import count_of
from . import Capabilities
from .conversion import chat_messages
from .sdk import SdkProvider, host_of
from .stream import StreamState, Translator, translated

log = logging.getLogger("lamina.providers")

# Keys with the same meaning in both APIs.
SAME = ("temperature", "top_p", "service_tier", "extra_headers", "extra_query", "timeout")
# Keys that are converted, or that have no meaning here.
HANDLED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "stop_sequences", "metadata", "output_config"}
    | {"thinking", "betas", "context_management", "diagnostics", "cache_control", "extra_body", "stream", *SAME}
)

# Number of converted messages kept in addition to the current request's (of a fork or a branch) before the rest is dropped.
SPARE_MESSAGES = 1_000


class Dialect(msgspec.Struct, frozen=True):
    """The parameters that this server accepts."""

    max_tokens: str = "max_tokens"
    usage_in_stream: bool = True
    reasoning: bool = False  # accepts `reasoning_content` as input


class OpenAIProvider(SdkProvider):
    name = "openai"
    sync_class = "OpenAI"
    async_class = "AsyncOpenAI"
    method = "chat.completions.create"
    own_url = "https://api.openai.com/v1"

    def __init__(self, model: str, *, send_reasoning: bool = False, **options: Any) -> None:
        """`send_reasoning`: the server accepts thinking as `reasoning_content`. `options` are those of SdkProvider."""
        super().__init__(model, **options)
        self._dialect = msgspec.structs.replace(dialect_at(self._address), reasoning=send_reasoning)
        self._converted: dict[int, tuple[Wire, list[Wire]]] = {}
        self._tools: tuple[object, list[Wire]] | None = None

    def _default_capabilities(self) -> Capabilities:
        return Capabilities("chat")

    def render(self, request: Wire) -> Wire:
        dialect = self._dialect
        kwargs: Wire = {"model": request["model"], "messages": self._messages(request)}
        if request.get("max_tokens") is not None:
            kwargs[dialect.max_tokens] = request["max_tokens"]
        if self._tools is None or self._tools[0] is not request.get("tools"):
            self._tools = (request.get("tools"), chat_tools(request.get("tools") or []))
        if tools := self._tools[1]:
            kwargs["tools"] = tools
            kwargs |= chat_tool_choice(request.get("tool_choice"))
        if request.get("stop_sequences"):
            kwargs["stop"] = list(request["stop_sequences"])
        if (form := response_format(request.get("output_config"))) is not None:
            kwargs["response_format"] = form
        kwargs |= {key: request[key] for key in SAME if request.get(key) is not None}
        body = {**(request.get("extra_body") or {}), **{key: value for key, value in request.items() if key not in HANDLED}}
        return {**kwargs, "extra_body": body} if body else kwargs

    def read(self, response: object) -> Reply:
        raw = plain(response)
        if not raw.get("choices"):
            problem = "this is not a completion (it has no 'choices')"
            raise InputError("response", problem, "pass the response of chat.completions.create()")
        state, stream = StreamState(), ChatStream()
        try:
            for event in (*translated(stream, raw, state), *stream.close()):
                state.feed(event)
            return state.reply(request_id=getattr(response, "_request_id", None))
        except StreamBroken as error:
            raise InputError("response", f"the completion is incomplete ({error})", "pass the SDK's response object") from error

    def _streamed(self, request: Wire) -> Wire:
        options = {"stream_options": {"include_usage": True}} if self._dialect.usage_in_stream else {}
        return {**self.render(request), "stream": True, **options}

    def _translator(self) -> Translator:
        return ChatStream()

    def _adapt(self, error: BadRequest) -> bool:
        changed = adapted(self._dialect, str(error))
        self._dialect, before = changed, self._dialect
        return changed != before

    def _messages(self, request: Wire) -> list[Wire]:
        out: list[Wire] = []
        system = request.get("system")
        blocks: list[Wire] = [{"text": system}] if isinstance(system, str) else system if isinstance(system, list) else []
        if text := "\n\n".join(block["text"] for block in blocks if block.get("text")):
            out.append({"role": "system", "content": text})
        messages: list[Wire] = request["messages"]
        if len(self._converted) > 2 * len(messages) + SPARE_MESSAGES:
            live = {id(message) for message in messages}
            self._converted = {key: pair for key, pair in self._converted.items() if key in live}
        for message in messages:
            # The source is kept with its conversion, so that its id cannot be reused by another dict.
            pair = self._converted.get(id(message))
            if pair is None:
                pair = (message, chat_messages(message, reasoning=self._dialect.reasoning))
                self._converted[id(message)] = pair
            out += pair[1]
        return out


def dialect_at(base_url: str | None) -> Dialect:
    host = host_of(base_url, default="api.openai.com")
    own = host.endswith((".openai.com", ".openai.azure.com"))
    return Dialect(max_tokens="max_completion_tokens" if own else "max_tokens")


def adapted(dialect: Dialect, message: str) -> Dialect:
    """Return the dialect for the next try after a rejection, or the same one if the rejection is about something else."""
    if dialect.usage_in_stream and "stream_options" in message:
        return msgspec.structs.replace(dialect, usage_in_stream=False)
    if dialect.max_tokens == "max_tokens" and "max_completion_tokens" in message:
        return msgspec.structs.replace(dialect, max_tokens="max_completion_tokens")
    return dialect


def chat_tools(tools: list[Wire]) -> list[Wire]:
    out: list[Wire] = []
    for tool in tools:
        if "function" in tool:
            out.append(tool)
            continue
        if "input_schema" not in tool:
            _warn_left_out(str(tool.get("name") or tool.get("type")))
            continue
        function = {"name": tool["name"], "parameters": tool["input_schema"]}
        function |= {key: tool[key] for key in ("description", "strict") if tool.get(key) is not None}
        out.append({"type": "function", "function": function})
    return out


@functools.lru_cache(maxsize=256)
def _warn_left_out(name: str) -> None:
    log.warning("Tool %s runs on Anthropic's servers and has no schema, so it is not sent to this provider.", name)


def chat_tool_choice(choice: Mapping[str, Any] | None) -> Wire:
    if choice is None:
        return {}
    more = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    match choice.get("type"):
        case "any":
            return {"tool_choice": "required", **more}
        case "tool":
            return {"tool_choice": {"type": "function", "function": {"name": choice["name"]}}, **more}
        case "none":
            return {"tool_choice": "none", **more}
        case _:
            return {"tool_choice": "auto", **more}


def response_format(output: Mapping[str, Any] | None) -> Wire | None:
    """Convert the JSON schema in `output_config`, if there is one."""
    form = (output or {}).get("format")
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": form["schema"], "strict": True}}


STOP_REASONS = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}

TEXT = "text"
THINKING = "thinking"


class ChatStream:
    """A translator: feed it chunks, then close it. Both return events."""

    def __init__(self) -> None:
        self._id = ""
        self._started = False
        self._count = 0
        self._open: tuple[str, int] | None = None  # the text or thinking block being written
        self._calls: dict[int, int] = {}  # the server's index of a call → the index of its block
        self._ids: dict[int, str] = {}
        self._last_call = -1
        self._finish: str | None = None
        self._refused = False
        self._usage: Wire = {}

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]:
        events: list[Wire] = [] if self._started else [self._start(raw)]
        if isinstance(usage := raw.get("usage"), Mapping):
            self._usage = messages_usage(usage)
        for choice in list(raw.get("choices") or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            thoughts = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(thoughts, str) and thoughts:
                events += self._write(THINKING, thoughts)
            for kind, text in _texts(delta.get("content")):
                events += self._write(kind, text)
            if isinstance(refusal := delta.get("refusal"), str) and refusal:
                self._refused = True
                events += self._write(TEXT, refusal)
            for position, call in enumerate(delta.get("tool_calls") or ()):
                events += self._call(call, position)
            self._finish = choice.get("finish_reason") or self._finish
        return events

    def close(self) -> Iterable[Wire]:
        if self._finish is None or self._finish == "error":
            return []
        stop = STOP_REASONS.get(self._finish, self._finish)
        if self._refused:
            stop = "refusal"
        elif stop in ("end_turn", "tool_use"):
            stop = "tool_use" if self._calls else "end_turn"
        ends = [*([self._open[1]] if self._open else ()), *self._calls.values()]
        return [
            *({"type": "content_block_stop", "index": index} for index in ends),
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": self._usage},
            {"type": "message_stop"},
        ]

    def _start(self, raw: Mapping[str, Any]) -> Wire:
        self._started = True
        self._id = str(raw.get("id") or "")
        message: Wire = {"id": self._id, "type": "message", "role": "assistant", "model": raw.get("model") or "", "content": []}
        return {"type": "message_start", "message": message}

    def _write(self, kind: str, text: str) -> list[Wire]:
        events: list[Wire] = []
        if self._open is None or self._open[0] != kind:
            if self._open is not None:
                events.append({"type": "content_block_stop", "index": self._open[1]})
            self._open = (kind, self._count)
            self._count += 1
            block = {"type": kind, kind: ""} | ({"signature": ""} if kind == THINKING else {})
            events.append({"type": "content_block_start", "index": self._open[1], "content_block": block})
        events.append({"type": "content_block_delta", "index": self._open[1], "delta": {"type": f"{kind}_delta", kind: text}})
        return events

    def _call(self, call: Mapping[str, Any], position: int) -> list[Wire]:
        function = call.get("function") or {}
        place = self._place(call, position)
        events: list[Wire] = []
        if place not in self._calls:
            self._ids[place] = str(call.get("id") or f"call_{self._id or 'answer'}_{place}")
            self._calls[place] = self._count
            self._count += 1
            block = {"type": "tool_use", "id": self._ids[place], "name": str(function.get("name") or ""), "input": {}}
            events.append({"type": "content_block_start", "index": self._calls[place], "content_block": block})
        self._last_call = place
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if isinstance(arguments, str) and arguments:
            delta = {"type": "input_json_delta", "partial_json": arguments}
            events.append({"type": "content_block_delta", "index": self._calls[place], "delta": delta})
        return events

    def _place(self, call: Mapping[str, Any], position: int) -> int:
        """Return the call that a piece belongs to. A new id with a used index is a new call, since some servers always send 0."""
        index, ident = call.get("index"), call.get("id")
        if isinstance(index, int) and (not ident or self._ids.get(index, ident) == ident):
            return index
        for place, used in self._ids.items():
            if ident and used == ident:
                return place
        if not ident and self._last_call >= 0 and not (call.get("function") or {}).get("name"):
            return self._last_call
        return max([-1, *self._calls]) + 1


def _texts(content: object) -> list[tuple[str, str]]:
    """Return the texts of a delta. Some servers send a list of parts that includes thinking."""
    if isinstance(content, str):
        return [(TEXT, content)] if content else []
    texts: list[tuple[str, str]] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append((TEXT, part["text"]))
        elif isinstance(part, Mapping) and part.get("type") == THINKING:
            texts += [(THINKING, text) for _, text in _texts(part.get(THINKING))]
    return texts


def messages_usage(raw: Mapping[str, Any]) -> Wire:
    """Convert chat usage to the Messages API, where `input_tokens` does not include cached tokens."""
    details = raw.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    prompt = count_of(raw.get("prompt_tokens"))
    cached = min(prompt, count_of(details.get("cached_tokens")) or count_of(raw.get("prompt_cache_hit_tokens")))
    written = min(prompt - cached, count_of(details.get("cache_write_tokens")))
    return {
        "input_tokens": prompt - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": count_of(raw.get("completion_tokens")),
    }

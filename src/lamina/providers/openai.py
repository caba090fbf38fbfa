"""The provider for servers with the Chat Completions API (OpenAI, Ollama, vLLM, llama.cpp, …), through the official SDK.

The cost of `render` grows only with the new messages: each canonical message is converted once and then found by its identity. This
is safe because message dicts are shared and never changed. The chat messages are shared between requests in the same way.

The address of a server decides which parameter names it gets (`max_completion_tokens` at OpenAI and Azure, `max_tokens`
elsewhere). A rejection corrects this once per parameter: for example, a server that rejects `stream_options` gets the request again
without it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.errors import BadRequest, InputError, StreamBroken
from ..core.reply import Reply, plain
from . import Capabilities
from .chat_stream import ChatStream
from .clients import host_of
from .conversion import chat_messages
from .sdk import SdkProvider
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
        if request.get("tools") and (tools := self._chat_tools(request["tools"])):
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
        if text := "\n\n".join(_system_texts(request.get("system"))):
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

    def _chat_tools(self, tools: list[Wire]) -> list[Wire]:
        if self._tools is None or self._tools[0] is not tools:
            self._tools = (tools, chat_tools(tools))
        return self._tools[1]


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


def _system_texts(system: object) -> list[str]:
    if isinstance(system, str):
        return [system] if system else []
    return [block["text"] for block in system if block.get("text")] if isinstance(system, list) else []

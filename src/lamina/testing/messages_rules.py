"""Request checks of the Messages API, in its order: the envelope, tools and settings, every block, tool pairing.

Each rule yields a Problem; the first one becomes the response. The paths (`messages.3.content.0`) and the first words of a
message are those of the real API, because programs look for them; the rest is our own wording. Cache marks are checked when the
prompt is read (`core.cache`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core.cache import CACHE_EDITS_BETA
from .api_json import Problem, bad
from .context_edits import edit_problems

CONTEXT_BETA = "context-management-2025-06-27"

_REQUIRED = ("model", "max_tokens", "messages")
_TOP_LEVEL = frozenset(
    {*_REQUIRED, "system", "tools", "tool_choice", "thinking", "stop_sequences", "stream", "metadata", "temperature", "top_k"}
    | {"top_p", "cache_control", "cache_edits", "container", "context_management", "diagnostics", "fallbacks", "inference_geo"}
    | {"mcp_servers", "output_config", "output_format", "service_tier", "speed", "user_profile_id", "workspace_id"}
)
_FIELDS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
}
_MESSAGE_KEYS = frozenset({"role", "content"})
_SYSTEM_KEYS = _MESSAGE_KEYS | {"output_config", "clear_at"}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_USUAL_CALL = frozenset({"type", "id", "name", "input"})
_USUAL_RESULT = frozenset({"type", "tool_use_id", "content"})
_NEEDED: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "image": {"source": dict},
    "document": {"source": dict},
}
_SHAPES: dict[str, tuple[type, ...]] = {
    "messages": (list,),
    "system": (str, list),
    "tools": (list,),
    "tool_choice": (dict,),
    "thinking": (dict,),
    "metadata": (dict,),
    "diagnostics": (dict,),
    "context_management": (dict,),
    "output_config": (dict,),
    "cache_edits": (dict,),
}
_NAMES: dict[type, str] = {str: "a valid string", list: "a valid list", dict: "an object"}
# Types that the API accepts and whose fields we do not check: server tools, search results, compaction and the like.
_OTHER_TYPES = re.compile(
    r"(server_tool_use|mcp_tool_use|mcp_tool_listing|search_result|container_upload|compaction|fallback|browser_state"
    r"|tool_addition|tool_removal|tool_reference|\w+_tool_result)$"
)
_ASSISTANT_ONLY = frozenset({"thinking", "redacted_thinking", "tool_use"})
_USER_ONLY = frozenset({"tool_result", "image", "document"})
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# Models that accept system messages in the middle of a conversation.
_TAKES_SYSTEM = re.compile(r"opus-4-8|-5(-|$)")
MIN_THINKING = 1_024


def problems(body: Any, betas: Collection[str], *, models: Collection[str] | None, cache_edits: bool) -> Iterator[Problem]:
    if not isinstance(body, Mapping):
        yield bad("The request body is not a JSON object")
        return
    yield from _envelope(body, betas, cache_edits)
    if models is not None and body["model"] not in models:
        yield Problem(404, f"model: {body['model']}")
    yield from _tools(body)
    yield from _thinking_settings(body)
    yield from edit_problems(body)
    yield from _system(body)
    yield from _messages(body)
    yield from pairing(body["messages"])
    yield from active_thinking(body)


def _envelope(body: Mapping[str, Any], betas: Collection[str], cache_edits: bool) -> Iterator[Problem]:
    for name in _REQUIRED:
        if body.get(name) is None:
            yield bad(f"{name}: Field required")
    for name in body:
        if name not in _TOP_LEVEL:
            yield bad(f"{name}: Extra inputs are not permitted")
    if "context_management" in body and CONTEXT_BETA not in betas:
        yield bad(f"context_management: Extra inputs are not permitted; it needs the beta {CONTEXT_BETA}")
    if "cache_edits" in body and (not cache_edits or CACHE_EDITS_BETA not in betas):
        yield bad("cache_edits: Extra inputs are not permitted")
    if not isinstance(body["model"], str) or not body["model"]:
        yield bad("model: Input should be a valid string")
    tokens = body["max_tokens"]
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        yield bad("max_tokens: Input should be a valid integer")
    elif tokens < 0:
        yield bad("max_tokens: Input should be greater than or equal to 0")
    for name, kinds in _SHAPES.items():
        if body.get(name) is not None and not isinstance(body[name], kinds):
            yield bad(f"{name}: Input should be {' or '.join(_NAMES[kind] for kind in kinds)}")
    if not body["messages"]:
        yield bad("messages: at least one message is required")


def _tools(body: Mapping[str, Any]) -> Iterator[Problem]:
    names: set[str] = set()
    for at, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict):
            yield bad(f"tools.{at}: Input should be an object")
        elif tool.get("type") in (None, "custom"):
            if not _TOOL_NAME.fullmatch(str(tool.get("name") or "")):
                yield bad(f"tools.{at}.custom.name: String should match pattern '^{_TOOL_NAME.pattern}$'")
            schema = tool.get("input_schema")
            if not isinstance(schema, Mapping):
                yield bad(f"tools.{at}.custom.input_schema: Field required")
            elif schema.get("type") != "object":
                yield bad(f"tools.{at}.custom.input_schema.type: Input should be 'object'")
        if (name := str(tool.get("name"))) in names:
            yield bad(f"tools: Tool names must be unique, but {name} appears twice")
        names.add(name)
    choice = body.get("tool_choice")
    if choice is not None and not names:
        yield bad("tool_choice may only be specified while providing tools")
    if isinstance(choice, Mapping) and choice.get("type") == "tool" and choice.get("name") not in names:
        yield bad(f"Tool '{choice.get('name')}' not found in provided tools")


def _thinking_settings(body: Mapping[str, Any]) -> Iterator[Problem]:
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < MIN_THINKING:
        yield bad(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING}")
    elif budget >= body["max_tokens"]:
        yield bad("`max_tokens` must be greater than `thinking.budget_tokens`")
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool"):
        yield bad("Thinking may not be enabled when tool_choice forces tool use")


def _system(body: Mapping[str, Any]) -> Iterator[Problem]:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    for at, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield bad(f"system.{at}.type: Input should be 'text'")
        yield from _block(block, f"system.{at}", "system")


def _messages(body: Mapping[str, Any]) -> Iterator[Problem]:
    messages: Sequence[Any] = body["messages"]
    last = len(messages) - 1
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            yield from _other_role(role, at, messages, str(body["model"]))
        if unknown := message.keys() - (_SYSTEM_KEYS if role == "system" else _MESSAGE_KEYS):
            yield bad(f"messages.{at}.{min(unknown)}: Extra inputs are not permitted")
        content = message.get("content")
        if role == "system":
            yield from _turn_control(message, at)
            if content is None and message.get("output_config"):
                continue
        if not content and not (at == last and role == "assistant"):
            yield bad(f"messages.{at}: all messages must have non-empty content except for the optional final assistant message")
        if isinstance(content, str):
            if content.isspace():
                yield bad("messages: text content blocks must contain non-whitespace text")
        elif not isinstance(content, list):
            yield bad(f"messages.{at}.content: Input should be a valid list")
        else:
            for index, block in enumerate(content):
                if not _fine(block, role):
                    yield from _block(block, f"messages.{at}.content.{index}", str(role))
    if messages[0]["role"] != "user":
        yield bad('messages: first message must use the "user" role')
    yield from _prefill(messages[last])


def _other_role(role: object, at: int, messages: Sequence[Any], model: str) -> Iterator[Problem]:
    if role != "system":
        yield bad(f"messages.{at}.role: Input should be 'user' or 'assistant'")
    elif not _TAKES_SYSTEM.search(model):
        yield bad('messages: Unexpected role "system". Use the top-level `system` field with this model')
    elif at == 0 or messages[at - 1].get("role") == "assistant":
        yield bad(f"messages.{at}: a system message must follow a user message")
    elif at + 1 < len(messages) and messages[at + 1].get("role") == "user":
        yield bad(f"messages.{at}: a system message must be the last one or come before an assistant message")


def _turn_control(message: Mapping[str, Any], at: int) -> Iterator[Problem]:
    """Check the settings that a system message may have for the turn after it."""
    config = message.get("output_config")
    if config is not None and not isinstance(config, dict):
        yield bad(f"messages.{at}.output_config: Input should be an object")
    elif config and (unknown := config.keys() - {"effort"}):
        yield bad(f"messages.{at}.output_config.{min(unknown)}: Extra inputs are not permitted")
    elif config and config.get("effort") not in (None, *_EFFORTS):
        yield bad(f"messages.{at}.output_config.effort: Input should be {', '.join(map(repr, _EFFORTS))}")
    if message.get("clear_at") not in (None, "next_user_message", "never"):
        yield bad(f"messages.{at}.clear_at: Input should be 'next_user_message' or 'never'")


def _prefill(message: Mapping[str, Any]) -> Iterator[Problem]:
    content = message.get("content")
    if message.get("role") != "assistant" or not content:
        return
    text = content if isinstance(content, str) else content[-1].get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield bad("messages: final assistant content cannot end with trailing whitespace")


def _fine(block: Any, role: object) -> bool:
    """Quickly accept common blocks in their usual form, most of a long conversation. Others are checked in detail."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        text = block.get("text")
        return isinstance(text, str) and text != "" and not text.isspace() and block.keys() <= _FIELDS["text"]
    if kind == "tool_use":
        usual = role == "assistant" and block.keys() == _USUAL_CALL and isinstance(block["input"], dict)
        return usual and isinstance(block["id"], str) and isinstance(block["name"], str) and block["id"] != ""
    if kind == "tool_result":
        usual = role == "user" and block.keys() == _USUAL_RESULT and isinstance(block["tool_use_id"], str)
        return usual and isinstance(block["content"], str) and block["content"] != ""
    return False


def _block(block: Any, path: str, role: str) -> Iterator[Problem]:
    kind = str(block.get("type")) if isinstance(block, dict) else ""
    fields = _FIELDS.get(kind)
    if fields is None:
        if not _OTHER_TYPES.match(kind):
            yield bad(f"{path}: Input tag {kind!r} found using 'type' does not match any of the expected tags")
        return
    if not block.keys() <= fields:
        yield bad(f"{path}.{kind}.{min(block.keys() - fields)}: Extra inputs are not permitted")
    for name, wanted in _NEEDED[kind].items():
        if block.get(name) is None:
            yield bad(f"{path}.{kind}.{name}: Field required")
        elif not isinstance(block[name], wanted):
            yield bad(f"{path}.{kind}.{name}: Input should be {_NAMES[wanted]}")
    if (kind in _ASSISTANT_ONLY and role != "assistant") or (kind in _USER_ONLY and role != "user"):
        yield bad(f"{path}: `{kind}` blocks are not allowed in {role} messages")
    if kind == "text":
        yield from _text(block, path)
    elif kind == "tool_result":
        yield from _result(block, path)


def _text(block: Mapping[str, Any], path: str) -> Iterator[Problem]:
    text = block["text"]
    where = path.split(".", 1)[0]
    if not text:
        if block.get("cache_control") is not None:
            yield bad(f"{path}.text: cache_control cannot be set for empty text blocks")
        yield bad(f"{where}: text content blocks must be non-empty")
    elif text.isspace() and where == "messages":
        yield bad("messages: text content blocks must contain non-whitespace text")


def _result(block: Mapping[str, Any], path: str) -> Iterator[Problem]:
    content = block.get("content")
    if not content and block.get("is_error"):
        yield bad(f"{path}.tool_result: content cannot be empty if `is_error` is true")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield bad(f"{path}.tool_result.content: Input should be a valid string or a valid list")
        return
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield bad(f"{path}.tool_result.content.{index}: Input should be an object with a type")
        if part.get("type") == "text" and not part.get("text"):
            yield bad("messages: text content blocks must be non-empty")
        if part.get("cache_control") is not None and index < len(content) - 1:
            yield bad(f"{path}.tool_result.content.{index}.cache_control: only the last part of a result can carry a cache mark")


def pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Check that each call has exactly one result at the start of the next message, and that each result has its call.

    Consecutive messages of one role count as one message, so the state below covers such a row.
    """
    row = ""
    calls_at = 0
    open_calls: dict[str, None] = {}  # of the last assistant row
    answered: set[str] = set()  # at the head of this user row
    seen: set[str] = set()
    head = True
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "system":
            continue
        if role != row:
            if role == "assistant":
                yield from _unanswered(calls_at, open_calls, answered)
                calls_at, open_calls = at, {}
            else:
                answered, head = set(), True
            row = role
        content = message.get("content")
        if not isinstance(content, list):
            head = False
            continue
        for index, block in enumerate(content):
            kind = block["type"]
            if kind == "tool_use":
                name = block["id"]
                if name in seen:
                    yield bad(f"messages.{at}.content.{index}: `tool_use` ids must be unique, but {name} was used before")
                seen.add(name)
                open_calls[name] = None
            elif kind == "tool_result":
                name = block["tool_use_id"]
                yield from _result_problems(f"messages.{at}.content.{index}", name, open_calls, answered)
                if head:
                    answered.add(name)
            else:
                head = False
    yield from _unanswered(calls_at, open_calls, answered if row == "user" else set())


def _result_problems(path: str, name: str, open_calls: Mapping[str, None], answered: Collection[str]) -> Iterator[Problem]:
    if name not in open_calls:
        yield bad(
            f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
            "A result must be in the message right after its `tool_use` block."
        )
    if name in answered:
        yield bad(f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}")


def _unanswered(at: int, open_calls: Mapping[str, None], answered: Collection[str]) -> Iterator[Problem]:
    if missing := [name for name in open_calls if name not in answered]:
        yield bad(
            f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
            "The next message must begin with a result for each."
        )


def active_thinking(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that the thinking that led to a tool call is still there within the tool round."""
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    messages = body["messages"]
    results = _row_start(messages, len(messages), "user")
    calls = _row_start(messages, results, "assistant")
    if calls == results or results == len(messages) or _first(messages[results]) != "tool_result":
        return
    kind = _first(messages[calls])
    if kind not in ("thinking", "redacted_thinking"):
        yield bad(
            f"messages.{calls}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
            "While `thinking` is enabled, the last `assistant` message of a tool round begins with its thinking."
        )


def _row_start(messages: Sequence[Mapping[str, Any]], end: int, role: str) -> int:
    """Return the start of the run of messages of this role that ends at `end`."""
    while end > 0 and messages[end - 1]["role"] == role:
        end -= 1
    return end


def _first(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return str(content[0]["type"]) if isinstance(content, list) and content else "text"

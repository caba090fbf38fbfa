"""Providers send requests to models.

Decides   how a canonical request is written for a server, whether a failed call is retried, what a call cost
Does      one call: streams it, assembles the answer, turns every failure into one of Lamina's errors
Costs     the import of an SDK at the first call (1–2 s, in a thread while the user is typing); nothing before
Switch    `provider="offline"` needs no SDK, no key and no network
Spec      O2, M5

A request always has the form of the Messages API. `render` turns it into the keyword arguments of the SDK's `create()`, and
listeners get events of the Messages API from every provider. A refusal by the model is an answer (`stop_reason` "refusal") and is
kept; only a server that rejects the request itself raises Refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ..core.blocks import Wire
from ..core.errors import SettingError
from ..core.reply import Reply
from ..language.text import Text

OnEvent: TypeAlias = Callable[[dict[str, Any]], None]

# The model for `provider="anthropic"` without a model name.
DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5-5"
DEFAULT_OPENAI_MODEL = "gpt-6.1-sol"

NAMES = ("anthropic", "openai", "offline")
_HOW = "use anthropic:MODEL, openai:MODEL or offline"


class Capabilities(msgspec.Struct, frozen=True):
    """The features of a provider and its server. Layers check them before use."""

    wire: Literal["messages", "chat"]
    cache_marks: bool = False
    cache_ttl_1h: bool = False
    cache_edits: bool = False
    context_management: bool = False
    diagnostics: bool = False
    thinking: bool = False
    binds_thinking: bool = False  # thinking counts only while everything before it stays the same


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def render(self, request: Wire) -> Wire:
        """Return keyword arguments for the SDK's `create()`. Message dicts are shared and never changed."""
        ...

    def read(self, response: object) -> Reply:
        """Read the SDK's response object, or its JSON."""
        ...

    def ask(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: Event | None = None) -> Reply:
        """Send the request and return the reply.

        Once `abort` is set, no further request is sent, no retry delay is started, and the next event of a stream raises Aborted.
        Callers that must not wait for that event abandon the call (fork/model_call.py).
        """
        ...

    async def ask_async(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None) -> Reply: ...


# Short model names in Claude Code's settings, so that its settings files work unchanged.
SHORT_NAMES = {
    "default": DEFAULT_ANTHROPIC_MODEL,
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "opusplan": "claude-opus-5-5",
    "fable": "claude-fable-5-2",
}


class Named(msgspec.Struct, frozen=True):
    provider: str
    model: str


def read_spec(spec: str, *, base_url: str | None = None) -> Named:
    """Parse `anthropic:MODEL`, `openai:MODEL`, `offline`, or a model name that identifies its provider."""
    from .models import normal_name

    head, _, model = spec.strip().partition(":")
    if head in NAMES:
        if head == "anthropic":
            return Named(head, model or DEFAULT_ANTHROPIC_MODEL)
        return Named(head, model or (DEFAULT_OPENAI_MODEL if head == "openai" else "offline"))
    name = normal_name(spec)
    if name in SHORT_NAMES:
        return Named("anthropic", SHORT_NAMES[name])
    if name.startswith("claude"):
        return Named("anthropic", spec.strip())
    if name.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")) or (base_url and name):
        return Named("openai", spec.strip())
    raise SettingError("provider", repr(spec), "the provider of this model is unknown", _HOW)


def configured(environ: Mapping[str, str] | None = None) -> str:
    """Return the name of the provider that the environment selects, or `offline` without a key or base URL."""
    env = os.environ if environ is None else environ
    if env.get("ANTHROPIC_API_KEY") or env.get("ANTHROPIC_AUTH_TOKEN"):
        return "anthropic"
    if env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"):
        return "openai"
    return "offline"


def open_provider(
    spec: str,
    *,
    client: Any = None,
    async_client: Any = None,
    api_key: str | None = None,
    base_url: str | None = None,
    environ: Mapping[str, str] | None = None,
    **options: Any,
) -> Provider:
    """Open the provider that `spec` names. It receives `options`: max_retries, timeout, capabilities, waits, …

    Without a key, client or base URL for it this raises SettingError; it never falls back to another provider.
    """
    env = os.environ if environ is None else environ
    named = read_spec(spec, base_url=base_url or env.get("OPENAI_BASE_URL"))
    clients = {"client": client, "async_client": async_client, **options}
    match named.provider:
        case "anthropic":
            from .anthropic import AnthropicProvider

            base_url = base_url or env.get("ANTHROPIC_BASE_URL") or None
            token = None
            if api_key is None:
                api_key = env.get("ANTHROPIC_API_KEY") or None
                token = env.get("ANTHROPIC_AUTH_TOKEN") or None
            _need_key("ANTHROPIC_API_KEY", spec, api_key or token or base_url or client or async_client)
            return AnthropicProvider(named.model, api_key=api_key, auth_token=token, base_url=base_url, **clients)
        case "openai":
            from .openai import OpenAIProvider

            base_url = base_url or env.get("OPENAI_BASE_URL") or None
            api_key = api_key or env.get("OPENAI_API_KEY") or None
            _need_key("OPENAI_API_KEY", spec, api_key or base_url or client or async_client)
            if base_url is not None and spec.strip() == "openai":
                from .served import served_model

                served = served_model(base_url, key=api_key)
                named = msgspec.structs.replace(named, model=served.name) if served is not None else named
            return OpenAIProvider(named.model, api_key=api_key, base_url=base_url, **clients)
        case _:
            from .offline import OfflineProvider

            provider: Provider = OfflineProvider()
            return provider


def _need_key(variable: str, spec: str, access: object) -> None:
    if access is None:
        remedy = Text("set {variable}, or use offline, which needs no key", variable=variable)
        raise SettingError("provider", repr(spec), "no API key found", remedy)

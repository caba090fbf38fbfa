"""Providers: who answers a request.

Decides   how a canonical request is worded for a server, whether a failed call is sent again, what a call cost
Does      one call: streams it, puts the answer together, turns every fault into one of our errors
Costs     an SDK's import at the first call (1–2 s, in a thread where a person is typing); nothing before
Switch    `provider="offline"` needs no SDK, no key and no network
Spec      O2, M5

A request has the form of the Messages API whoever answers it; `render` turns it into the keyword arguments of the SDK's own
`create()`, and listeners get events of the Messages API from every provider. A refusal is an answer (`stop_reason` "refusal"),
kept as such; only a server that rejects the request itself raises Refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from ..core.blocks import Wire
from ..core.errors import SettingError
from ..core.reply import Reply

OnEvent: TypeAlias = Callable[[dict[str, Any]], None]

# Taken for `provider="anthropic"` without a model.
DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5-5"
DEFAULT_OPENAI_MODEL = "gpt-6.1-sol"

NAMES = ("anthropic", "openai", "offline")
_HOW = "write anthropic:MODEL, openai:MODEL or offline"


class Capabilities(msgspec.Struct, frozen=True):
    """What a provider and its server can do; the layers ask before they use it."""

    wire: Literal["messages", "chat"]
    cache_marks: bool = False
    cache_ttl_1h: bool = False
    cache_edits: bool = False
    context_management: bool = False
    diagnostics: bool = False
    thinking: bool = False


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def render(self, request: Wire) -> Wire:
        """Keyword arguments for the SDK's own `create()`; message dicts are shared, never changed."""
        ...

    def read(self, response: object) -> Reply:
        """The SDK's response object, or its JSON."""
        ...

    def ask(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: Event | None = None) -> Reply:
        """Once `abort` is set: no further request, no pause, and Aborted at the next event of a stream. Whoever must not wait for
        that event leaves the call (fork/model_call.py)."""
        ...

    async def ask_async(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None) -> Reply: ...


# What settings of Claude Code may say instead of a model's name: its directory works in place.
SHORT_NAMES = {
    "default": DEFAULT_ANTHROPIC_MODEL,
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "opusplan": "claude-opus-5-5",
    "fable": "claude-fable-5-2",
}


class Named(NamedTuple):
    provider: str
    model: str


def read_spec(spec: str, *, base_url: str | None = None) -> Named:
    """`anthropic:MODEL`, `openai:MODEL`, `offline`, or a model's name that only one provider can mean."""
    from .models import normal_name

    head, _, rest = spec.strip().partition(":")
    if head in NAMES:
        if head == "anthropic":
            return Named(head, rest or DEFAULT_ANTHROPIC_MODEL)
        return Named(head, rest or (DEFAULT_OPENAI_MODEL if head == "openai" else "offline"))
    name = normal_name(spec)
    if name in SHORT_NAMES:
        return Named("anthropic", SHORT_NAMES[name])
    if name.startswith("claude"):
        return Named("anthropic", spec.strip())
    if name.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")) or (base_url and name):
        return Named("openai", spec.strip())
    raise SettingError("provider", repr(spec), "does not say who serves this model", _HOW)


def configured(environ: Mapping[str, str] | None = None) -> str:
    """The provider the environment asks for, by name; `offline` where there is no key and no server."""
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
    """The provider a setting names. `options` go to it: max_retries, timeout, capabilities, waits, …

    A name with neither key, client nor base URL is a SettingError: it is never replaced by another provider.
    """
    env = os.environ if environ is None else environ
    named = read_spec(spec, base_url=base_url or env.get("OPENAI_BASE_URL"))
    given = {"client": client, "async_client": async_client, **options}
    match named.provider:
        case "anthropic":
            from .anthropic import AnthropicProvider

            base_url = base_url or env.get("ANTHROPIC_BASE_URL") or None
            token = None
            if api_key is None:
                api_key = env.get("ANTHROPIC_API_KEY") or None
                token = env.get("ANTHROPIC_AUTH_TOKEN") or None
            _need_key("ANTHROPIC_API_KEY", spec, api_key or token or base_url or client or async_client)
            return AnthropicProvider(named.model, api_key=api_key, auth_token=token, base_url=base_url, **given)
        case "openai":
            from .openai import OpenAIProvider

            base_url = base_url or env.get("OPENAI_BASE_URL") or None
            api_key = api_key or env.get("OPENAI_API_KEY") or None
            _need_key("OPENAI_API_KEY", spec, api_key or base_url or client or async_client)
            if base_url is not None and spec.strip() == "openai":
                from .served import served_model

                served = served_model(base_url, key=api_key)
                named = named._replace(model=served.name) if served is not None else named
            return OpenAIProvider(named.model, api_key=api_key, base_url=base_url, **given)
        case _:
            from .offline import OfflineProvider

            provider: Provider = OfflineProvider()
            return provider


def _need_key(variable: str, spec: str, found: object) -> None:
    if found is None:
        remedy = f"set {variable}, or choose offline, which needs none"
        raise SettingError("provider", repr(spec), "there is no key for it", remedy)

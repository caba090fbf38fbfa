"""Opens the provider of a session, and computes its thresholds and the fixed part of its requests. Fills the table of offline functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from ..conversation.request import Prompt
from ..conversation.window.thresholds import ModelFacts, Thresholds, thresholds, window_for
from ..core.blocks import Wire
from ..core.errors import InputError, SettingError
from ..core.inputs import Given
from ..core.policy import Policy
from ..core.records import Snapshot
from ..core.settings import Settings
from ..layers.l2_micro import step as micro
from ..providers import DEFAULT_ANTHROPIC_MODEL, DEFAULT_OPENAI_MODEL, Provider, configured, open_provider, read_spec
from ..providers.offline import DEFAULT_TABLE, Local, OfflineProvider

# An answer this long fits every known model and stays below the length at which SDKs insist on streaming.
DEFAULT_MAX_TOKENS = 8_000
EXAMPLES = {"anthropic": DEFAULT_ANTHROPIC_MODEL, "openai": DEFAULT_OPENAI_MODEL}
OFFLINE_MODULES = {
    "notes": "lamina.layers.l3_notes.offline",
    "summary": "lamina.layers.l4_compact.offline",
    "select": "lamina.memory.recall.selection",
    "extraction": "lamina.layers.l5_extract.offline",
    "agent_summary": "lamina.layers.l7_agents.summary",
    "dream": "lamina.layers.l6_dream.offline",
}


def offline(own: Mapping[str, Local] = DEFAULT_TABLE) -> OfflineProvider:
    """Return an offline provider with a function for every purpose. Functions in `own` take precedence."""
    return OfflineProvider({**{purpose: _load_on_use(module) for purpose, module in OFFLINE_MODULES.items()}, **own})


def _load_on_use(module: str) -> Local:
    def answer(request: Wire) -> list[Wire]:
        local: Callable[[Wire], list[Wire]] = import_module(module).answer
        return local(request)

    return answer


def provider_for(provider: str | Provider, client: Any) -> Provider:
    """Return the provider with this name, using the client or a key from the environment.

    Without either, the provider can still render requests and read responses; it only cannot make calls.
    """
    if not isinstance(provider, str):
        if not hasattr(provider, "capabilities"):
            raise InputError("provider", f"must be a string such as 'anthropic:MODEL', not {type(provider).__name__}")
        return provider
    maker, _, model = (part.strip() for part in provider.partition(":"))
    # A server at OPENAI_BASE_URL names its own model.
    if maker in EXAMPLES and not model and not (provider.strip() == "openai" and os.environ.get("OPENAI_BASE_URL")):
        raise InputError("provider", f"{provider!r} names no model", f"use {maker}:MODEL, such as {maker}:{EXAMPLES[maker]}")
    named = read_spec(provider)
    if client is None and named.provider != "offline":
        with suppress(SettingError):  # no key found; rendering requests and reading responses needs none
            return open_provider(provider)
    if named.provider == "anthropic":
        from ..providers.anthropic import AnthropicProvider

        return AnthropicProvider(named.model, client=client)
    if named.provider == "openai":
        from ..providers.openai import OpenAIProvider

        return OpenAIProvider(named.model, client=client)
    return offline()


def open_chosen_provider(spec: str | None, settings: Settings) -> Provider:
    """Open the provider named by `spec`, by the settings or by the available API keys, else the offline stand-in."""
    environ = dict(os.environ)
    keys = {"ANTHROPIC_API_KEY": settings.anthropic_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    places = {"ANTHROPIC_BASE_URL": settings.anthropic_base_url, "OPENAI_BASE_URL": settings.openai_base_url}
    environ |= {name: key.reveal() for name, key in keys.items() if key is not None}
    environ |= {name: place for name, place in places.items() if place is not None}
    named = spec or settings.model or settings.provider or configured(environ)
    return open_provider(named, base_url=settings.base_url, environ=environ)


def limits_for(
    provider: Provider, policy: Policy, settings: Settings, *, window: int | None, options: Wire, notices: list[str]
) -> Thresholds:
    """Return the thresholds for the provider's window. Problems with the numbers are added to `notices`."""
    facts = _facts(provider.model)
    asked = window if window is not None else settings.context_window
    chosen = window_for(
        provider.model,
        explicit=window,
        setting=settings.context_window,
        beta_1m="context-1m" in f"{options.get('betas')} {options.get('extra_headers')}",
        known=facts,
        stated=None if facts or asked is not None else getattr(provider, "stated_window", lambda: None)(),
        default=policy.window.default_window,
    )
    limits = thresholds(
        chosen.tokens,
        chosen.max_output,
        policy.window,
        settings.autocompact_percent,
        compact_in=settings.auto_compact_window,
    )
    notices += [*chosen.findings, *limits.findings]
    if chosen.source == "default" and provider.name != "offline" and not facts:
        from ..providers.models import nearest

        name = nearest(provider.model)
        notices.append(
            f"Unknown model {provider.model}{f', did you mean {name}?' if name else '.'} Lamina assumes a window of "
            f"{chosen.tokens:,} tokens, and its cost in dollars is unknown. Set LAMINA_CONTEXT_WINDOW if its window differs."
        )
    return limits


def prompt_for(
    provider: Provider, before: Snapshot | None, given: Given, settings: Settings, policy: Policy, limits: Thresholds
) -> Prompt:
    """Return the fixed part of each request. Arguments that were not given keep the values of `before`, the resumed session's prompt."""
    options = given.options if given.options is not None else before.options if before else None
    if options is None or before is None:
        tools = given.tools or (before.tools if before else []) or []
        own = micro.options(settings, provider.capabilities, policy, limits=limits, tools=tools, given=options)
        options = {**own, **(options or {})}
    return Prompt(
        provider.model,
        given.max_tokens or (before.max_tokens if before else 0) or DEFAULT_MAX_TOKENS,
        given.system if given.system is not None else before.system if before else [],
        given.tools if given.tools is not None else before.tools if before else [],
        options,
        given.first_ttl if provider.capabilities.wire == "messages" else None,
    )


def no_wider(window: int | None, model: str) -> int | None:
    """Limit a window that was requested for another model to the size this model is known to support."""
    own = window_for(model, known=_facts(model))
    return min(window, own.tokens) if window is not None and own.source == "model" else window


def _facts(model: str) -> dict[str, ModelFacts]:
    from ..providers.models import known

    info = known(model)
    if info is None or info.window is None:
        return {}
    return {model: ModelFacts(info.window, info.max_output, info.needs_header_for_1m)}

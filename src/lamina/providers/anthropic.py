"""The provider for Anthropic and other servers with the Messages API, through the official SDK.

`render` keeps the request, but moves keys for which the SDK's `create()` has no parameter to places that every SDK version accepts:
betas go into the header, other keys (sampling options, `context_management`, `diagnostics`) into `extra_body`. The bytes on the
wire are the same. Server-side context editing and cache diagnostics are sent only to servers known to support them.

Newer models bind a thinking block to everything before it. After a clearing, a compaction or an undo they reject the block, unless
the request asks them to drop such blocks. Lamina asks this of models known to bind, and of any other model after its first
rejection. It does so in every request of the provider, because a fork shares the cache of the conversation and must send the same.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Self

import msgspec

from ..core.blocks import Wire
from ..core.cache import CACHE_EDITS_BETA
from ..core.errors import BadRequest
from ..core.reply import Reply, read_response
from . import Capabilities
from .models import known, normal_name
from .sdk import SdkProvider, host_of

# Parameters that every version of `messages.create()` has.
CREATE = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "metadata", "stop_sequences", "thinking"}
    | {"service_tier", "stream", "timeout", "extra_headers", "extra_query", "extra_body"}
)

# Keys that need a beta header. Each is also the name of the capability that tells whether the server supports it.
BETAS = {
    "context_management": "context-management-2025-06-27",
    "diagnostics": "cache-diagnosis-2026-04-07",
    "cache_edits": CACHE_EDITS_BETA,
}
EDIT_BETAS = {"compact_20260112": "compact-2026-01-12"}
BETA_1M = "context-1m-2025-08-07"
ONE_MILLION = "[1m]"

# The models that check the content before a thinking block (platform documentation, "Prefix checks on thinking blocks", autumn
# 2026), the text of the rejection, and the request option that drops such a block instead.
BINDS = re.compile(r"claude-((fable|mythos)-5-[12]|(opus|sonnet|haiku)-5-5)$")
BOUND = "bound to a different conversation"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
DROP: Wire = {"prefix_mismatch_behavior": "drop_block"}


class AnthropicProvider(SdkProvider):
    name = "anthropic"
    sync_class = "Anthropic"
    async_class = "AsyncAnthropic"
    method = "messages.create"
    own_url = "https://api.anthropic.com"

    def __init__(self, model: str, **options: Any) -> None:
        """`options` are those of SdkProvider."""
        super().__init__(model, **options)
        self._note_binding(model)

    def _note_binding(self, model: str) -> None:
        """Note whether the model binds its thinking, and whether to request dropping from the start. Other servers may not know the
        beta, so they get it only once needed."""
        binds = BINDS.fullmatch(normal_name(model)) is not None
        self.capabilities = msgspec.structs.replace(self.capabilities, binds_thinking=binds)
        self._drops_bound = binds and is_own(self._address)

    def with_model(self, model: str) -> Self:
        other = super().with_model(model)
        other._note_binding(model)
        return other

    def _default_capabilities(self) -> Capabilities:
        return capabilities_at(self._address)

    def render(self, request: Wire) -> Wire:
        return render(dropping_bound(request) if self._drops_bound else request, self.capabilities)

    def _adapt(self, error: BadRequest) -> bool:
        """Change the next request after a rejection, each way once: leave out a rejected key, or ask to drop bound thinking."""
        message = str(error)
        if BOUND in message and not self._drops_bound:
            self._drops_bound = True
            self.capabilities = msgspec.structs.replace(self.capabilities, binds_thinking=True)
            return True
        refused = [key for key in BETAS if f"{key}: Extra inputs" in message and getattr(self.capabilities, key)]
        self.capabilities = msgspec.structs.replace(self.capabilities, **dict.fromkeys(refused, False))
        return bool(refused)

    def read(self, response: object) -> Reply:
        return read_response(response)


def capabilities_at(base_url: str | None) -> Capabilities:
    """Return the known capabilities of the server at this address. Every server accepts cache marks, even one without a cache."""
    own = is_own(base_url)
    return Capabilities("messages", cache_marks=True, cache_ttl_1h=own, context_management=own, diagnostics=own, thinking=True)


def is_own(base_url: str | None) -> bool:
    host = host_of(base_url, default="api.anthropic.com")
    return host == "anthropic.com" or host.endswith(".anthropic.com")


def dropping_bound(request: Wire) -> Wire:
    """Return the request with the option to drop thinking that is bound to another conversation.

    Models that bind use adaptive thinking by default, so setting it explicitly changes nothing else. If thinking is disabled, the
    option is not allowed.
    """
    thinking = request.get("thinking") or {"type": "adaptive"}
    if thinking.get("type") == "disabled" or "block_binding" in thinking:
        return request
    betas = [*(request.get("betas") or ()), BINDING_BETA]
    return {**request, "thinking": {**thinking, "block_binding": DROP}, "betas": betas}


def render(request: Wire, capabilities: Capabilities) -> Wire:
    kwargs: Wire = {}
    body: Wire = dict(request.get("extra_body") or {})
    betas: list[str] = list(request.get("betas") or ())
    for key, value in request.items():
        if key in ("betas", "extra_body") or value is None or (key in ("system", "tools") and not value):
            continue
        if key in BETAS:
            if not getattr(capabilities, key):
                _warn_left_out(key)
                continue
            betas += [BETAS[key], *(EDIT_BETAS[kind] for kind in _edits(value) if kind in EDIT_BETAS)]
        (kwargs if key in CREATE else body)[key] = value
    model = str(kwargs.get("model") or "")
    if model.lower().endswith(ONE_MILLION):  # requests the long window
        kwargs["model"] = model[: -len(ONE_MILLION)]
        entry = known(model)
        betas += [BETA_1M] if entry is None or entry.needs_header_for_1m else []
    if body:
        kwargs["extra_body"] = body
    if betas:
        headers: dict[str, str] = kwargs.get("extra_headers") or {}
        own = [part.strip() for name, value in headers.items() if name.lower() == "anthropic-beta" for part in value.split(",")]
        others = {name: value for name, value in headers.items() if name.lower() != "anthropic-beta"}
        kwargs["extra_headers"] = {**others, "anthropic-beta": ",".join(dict.fromkeys([*own, *betas]))}
    return kwargs


@functools.lru_cache(maxsize=256)
def _warn_left_out(key: str) -> None:
    import logging

    logging.getLogger("lamina.providers").warning("This server is not known to support %r, so it is left out of requests.", key)


def _edits(value: object) -> list[str]:
    edits = value.get("edits") if isinstance(value, dict) else None
    return [str(edit.get("type")) for edit in edits or () if isinstance(edit, dict)]

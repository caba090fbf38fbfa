"""Anthropic, and every server that speaks the Messages API, through the official SDK.

`render` leaves the request as it is and moves what the SDK's `create()` has no parameter for to where every version takes it:
betas into the header, other keys (sampling options, `context_management`, `diagnostics`) into `extra_body`. The bytes on the wire
are the same. Server-side context editing and cache diagnostics are sent only to servers known to have them.

Newer models bind a thinking block to everything before it: after a clearing, a compaction or an undo the block is refused, unless
the request asks for such blocks to be dropped. That is asked of models known to bind, and of any other from its first refusal on,
in every request that goes through the provider: a fork shares the conversation's cache and must send the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Self

import msgspec

from ..core.blocks import Wire
from ..core.cache import CACHE_EDITS_BETA
from ..core.errors import BadRequest
from ..core.reply import Reply, read_response
from . import Capabilities
from .clients import host_of
from .models import known, normal_name
from .sdk import SdkProvider

# The parameters every version of `messages.create()` has.
CREATE = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "metadata", "stop_sequences", "thinking"}
    | {"service_tier", "stream", "timeout", "extra_headers", "extra_query", "extra_body"}
)

# Keys that need a beta header; each is also the name of the capability that says whether the server has it.
BETAS = {
    "context_management": "context-management-2025-06-27",
    "diagnostics": "cache-diagnosis-2026-04-07",
    "cache_edits": CACHE_EDITS_BETA,
}
EDIT_BETAS = {"compact_20260112": "compact-2026-01-12"}
BETA_1M = "context-1m-2025-08-07"
ONE_MILLION = "[1m]"

# The models that check what stands before a thinking block (platform documentation, "Prefix checks on thinking blocks", autumn
# 2026), the words of the refusal, and the request to drop such a block instead.
BINDS = re.compile(r"claude-((fable|mythos)-5-[12]|(opus|sonnet|haiku)-5-5)$")
BOUND = "bound to a different conversation"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
DROP: Wire = {"prefix_mismatch_behavior": "drop_block"}


class AnthropicProvider(SdkProvider):
    name = "anthropic"
    sync_class = "Anthropic"
    async_class = "AsyncAnthropic"

    def __init__(self, model: str, **options: Any) -> None:
        """`options` are those of SdkProvider."""
        super().__init__(model, **options)
        self._drops_bound = self._binds(model)

    def _binds(self, model: str) -> bool:
        """Elsewhere than at Anthropic's own address the beta may be unknown: there it is sent once it is needed."""
        return is_own(self._address) and BINDS.fullmatch(normal_name(model)) is not None

    def with_model(self, model: str) -> Self:
        other = super().with_model(model)
        other._drops_bound = self._binds(model)
        return other

    def _default_capabilities(self) -> Capabilities:
        return capabilities_at(self._address)

    def render(self, request: Wire) -> Wire:
        return render(dropping_bound(request) if self._drops_bound else request, self.capabilities)

    def _adapt(self, error: BadRequest) -> bool:
        """Each of these happens once: a refused key is left out from then on, and bound thinking is asked to be dropped."""
        message = str(error)
        if BOUND in message and not self._drops_bound:
            self._drops_bound = True
            return True
        refused = [key for key in BETAS if f"{key}: Extra inputs" in message and getattr(self.capabilities, key)]
        self.capabilities = msgspec.structs.replace(self.capabilities, **dict.fromkeys(refused, False))
        return bool(refused)

    def read(self, response: object) -> Reply:
        return read_response(response)

    def _create(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = client.messages.create
        return create


def capabilities_at(base_url: str | None) -> Capabilities:
    """What is known of the server at this address. Every server takes cache marks: those without a cache ignore them."""
    own = is_own(base_url)
    return Capabilities("messages", cache_marks=True, cache_ttl_1h=own, context_management=own, diagnostics=own, thinking=True)


def is_own(base_url: str | None) -> bool:
    host = host_of(base_url, default="api.anthropic.com")
    return host == "anthropic.com" or host.endswith(".anthropic.com")


def dropping_bound(request: Wire) -> Wire:
    """The request with the wish that thinking bound to another conversation is dropped. Models that bind think adaptively where
    nothing is said, so saying it changes nothing else. Where thinking is off there is no place for the wish."""
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
                _say_left_out(key)
                continue
            betas += [BETAS[key], *(EDIT_BETAS[kind] for kind in _edits(value) if kind in EDIT_BETAS)]
        (kwargs if key in CREATE else body)[key] = value
    betas += _name_model(kwargs)
    if body:
        kwargs["extra_body"] = body
    if betas:
        kwargs["extra_headers"] = _with_betas(kwargs.get("extra_headers") or {}, betas)
    return kwargs


@functools.lru_cache(maxsize=256)
def _say_left_out(key: str) -> None:
    import logging

    logging.getLogger("lamina.providers").warning("This server is not known to take %r: it is left out of requests.", key)


def _edits(value: object) -> list[str]:
    edits = value.get("edits") if isinstance(value, dict) else None
    return [str(edit.get("type")) for edit in edits or () if isinstance(edit, dict)]


def _name_model(kwargs: Wire) -> list[str]:
    """`[1m]` is our way to ask for the long window; the server wants a header, or nothing where it is the model's own."""
    model = str(kwargs.get("model") or "")
    if not model.lower().endswith(ONE_MILLION):
        return []
    kwargs["model"] = model[: -len(ONE_MILLION)]
    found = known(model)
    return [BETA_1M] if found is None or found.needs_header_for_1m else []


def _with_betas(headers: dict[str, str], betas: list[str]) -> dict[str, str]:
    kept = {name: value for name, value in headers.items() if name.lower() != "anthropic-beta"}
    before = [part.strip() for name, value in headers.items() if name.lower() == "anthropic-beta" for part in value.split(",")]
    return {**kept, "anthropic-beta": ",".join(dict.fromkeys([*before, *betas]))}

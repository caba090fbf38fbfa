"""A model of a provider's prompt cache: what a request reads, writes and pays in full, without a network.

All pure apart from the entries a cache object holds; the clock is always an argument.

- `prompt_reader`: a request as a row of blocks (tools, system, messages), each with its digest, tokens and mark.
- `caches`: `CacheModel`, the cache of the Messages API: explicit marks, two lifetimes, a look-back of 20 blocks, three levels;
  and `PrefixCache`, which needs no marks: OpenAI's (steps of 128 tokens from 1,024), and the ideal one to compare with.

The headers below are how a request says which conversation it belongs to and that it breaks its prefix on purpose. A provider
ignores them; the server in `lamina.testing` reads them.
"""

from __future__ import annotations

from .caches import CacheModel, CacheUse, PrefixCache, minimum_tokens, openai_cache
from .prompt_reader import (
    CACHE_EDITS_BETA,
    HOUR,
    MAX_MARKS,
    MINUTES_5,
    Count,
    Piece,
    Prompt,
    PromptReader,
    count_block,
    keeps_thinking,
    shown,
)

# The conversation a request belongs to. A side call that shares nothing with it names a conversation of its own.
SESSION_HEADER = "x-lamina-session"
# A fork's name: its first request starts with a request of the conversation it was forked from, then it goes its own way.
FORK_HEADER = "x-lamina-fork"
# "reason" or "reason;decision=ID": this request does not start with the previous one, on purpose (K3).
BREAK_HEADER = "x-lamina-break"

__all__ = [
    "BREAK_HEADER",
    "CACHE_EDITS_BETA",
    "FORK_HEADER",
    "HOUR",
    "MAX_MARKS",
    "MINUTES_5",
    "SESSION_HEADER",
    "CacheModel",
    "CacheUse",
    "Count",
    "Piece",
    "PrefixCache",
    "Prompt",
    "PromptReader",
    "count_block",
    "keeps_thinking",
    "minimum_tokens",
    "openai_cache",
    "shown",
]

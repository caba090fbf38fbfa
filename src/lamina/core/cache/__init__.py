"""A model of a provider's prompt cache. It computes what a request reads, writes and pays in full, without a network.

The only state is the entries of a cache object; the clock is always an argument.

- `prompt_reader` reads a request into a sequence of blocks (tools, system, messages), each with its digest, tokens and cache mark.
- `caches` contains `CacheModel`, the cache of the Messages API (explicit marks, two lifetimes, a look-back of 20 blocks, three
  levels), and `PrefixCache`, which needs no marks: OpenAI's cache (steps of 128 tokens from 1,024), or an ideal one for comparison.

The headers below tell which conversation a request belongs to, and announce intended cache breaks. Providers ignore them; the
server in `lamina.testing` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    common_start,
    count_block,
    keeps_thinking,
    shown,
)

# The conversation a request belongs to. A side call that shares no prefix with it uses a separate name.
SESSION_HEADER = "x-lamina-session"
# The name of a fork. Its first request starts with a request of the conversation it was forked from; later ones diverge.
FORK_HEADER = "x-lamina-fork"
# "reason" or "reason;decision=ID": this request intentionally does not start with the previous one.
BREAK_HEADER = "x-lamina-break"
# The id of the first result that is shown once, percent-encoded. The next request repeats everything before it.
ONCE_HEADER = "x-lamina-once"


def once_value(unseen: Iterable[str]) -> str:
    """Return the value of ONCE_HEADER. Results shown once are in order of arrival, so the first one comes first."""
    from urllib.parse import quote

    return quote(next(iter(unseen)), safe="")


__all__ = [
    "BREAK_HEADER",
    "CACHE_EDITS_BETA",
    "FORK_HEADER",
    "HOUR",
    "MAX_MARKS",
    "MINUTES_5",
    "ONCE_HEADER",
    "SESSION_HEADER",
    "CacheModel",
    "CacheUse",
    "Count",
    "Piece",
    "PrefixCache",
    "Prompt",
    "PromptReader",
    "common_start",
    "count_block",
    "keeps_thinking",
    "minimum_tokens",
    "once_value",
    "openai_cache",
    "shown",
]

"""The fixed part of a request (`Prompt`) and the state of the last one: its prefix, what it left in the provider's cache, cache
edits and refused blocks.

A `Prompt` is replaced as a whole. Only `exchange.py` writes `LastRequest`. A resumed conversation reconstructs it from the log:
the last request is the one that the last answer replied to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import msgspec

from ..core.blocks import Wire, canonical
from ..core.log import Log, seeded
from ..core.prefix import Reason, Sent, base_chain
from ..core.reach import reach_of, tool_names
from ..core.records import Boundary, Message, Record
from ..disk.transcripts.store import LiveTranscript, TranscriptStore
from ..prompt.break_causes import CacheBreak
from ..prompt.cache_marks import marked_last

# Lifetime of an unused cache entry, unless the session sets another.
DEFAULT_TTL = "5m"
# Options that are part of a provider's cache key.
KEYED_OPTIONS = ("thinking", "tool_choice", "betas", "context_management")


def cache_keys(model: str, options: Wire) -> bytes:
    """Return the values that two requests must share, besides their prefix, to share a cache entry."""
    return canonical([model, *(options.get(name) for name in KEYED_OPTIONS)])


class Prompt:
    def __init__(
        self,
        model: str,
        max_tokens: int,
        system: list[Wire],
        tools: list[Wire],
        options: Wire,
        ttl: str | None,
        local: frozenset[str] = frozenset(),
    ) -> None:
        self.model = model
        self.max_tokens = max_tokens
        self.system = system
        self.tools = tools
        self.options = options
        self.ttl = ttl  # of the cache marks; None: no marks
        self.base = base_chain(tools, system)
        self.keys = cache_keys(model, options)
        self.local = local  # names of tools that read local files
        self.reach = reach_of(tools, local)
        self.tool_names = frozenset(tool_names(tools))
        self.head = self._marked()

    def with_ttl(self, ttl: str | None) -> Prompt:
        """Return the same prompt with other cache marks. Nothing is hashed again, since a prefix does not include its marks."""
        other = copy(self)
        other.ttl = ttl
        other.head = other._marked()
        return other

    def with_local(self, local: frozenset[str]) -> Prompt:
        """Return the same prompt, of which these tools read local files."""
        other = copy(self)
        other.local, other.reach = local, reach_of(self.tools, local)
        return other

    def _marked(self) -> Wire:
        head: Wire = {"model": self.model, "max_tokens": self.max_tokens}
        for name, blocks in (("system", self.system), ("tools", self.tools)):
            if blocks:
                head[name] = marked_last(blocks, self.ttl) if self.ttl else blocks
        return head


class ConfirmedEdits(msgspec.Struct, frozen=True):
    ids: tuple[str, ...]  # deleted for the first time
    ignored: bool  # the provider does not support cache edits


class CacheEdits:
    """Deletions in the provider's cache: which tool results are marked, and which deletions a response has confirmed.

    A deletion belongs to the cache entry it was made in. A request that reads this entry need not repeat it; one that finds the
    cache cold must. Which case applies is unknown beforehand, so every request names all deletions; repeating one does no harm. A
    mark is *open* until a response lists it as deleted. A failed call changes nothing.
    """

    def __init__(self) -> None:
        self.marked: dict[str, bool] = {}  # tool_use id → confirmed
        self.sent: tuple[str, ...] = ()  # named in the current request
        self.off = False  # the provider does not support it

    @property
    def open(self) -> bool:
        return not all(self.marked.get(call, True) for call in self.sent)

    def mark(self, calls: Iterable[str]) -> None:
        self.marked |= dict.fromkeys(calls, False)

    def reset(self) -> None:
        """Forget all marks, after another kind of clearing or if the provider does not support cache edits."""
        self.marked, self.sent = {}, ()

    def prune(self, still: Container[str]) -> None:
        """Drop marks whose results have left the view, or were cleared there."""
        self.marked = {call: confirmed for call, confirmed in self.marked.items() if call in still}

    def resume(self, marked: Iterable[str], *, confirmed: bool, off: bool) -> None:
        """Restore the state of the resumed session."""
        self.marked, self.sent, self.off = dict.fromkeys(marked, confirmed), (), off

    def send(self, supported: bool = True) -> tuple[str, ...]:
        """Return the deletions for the next request; none if the provider does not support them."""
        self.sent = tuple(self.marked) if supported and not self.off else ()
        return self.sent

    def confirm(self, note: Any) -> ConfirmedEdits:
        """Read which edits the response confirms. `note` is the response's own field, None if it has none."""
        sent, self.sent = self.sent, ()
        if not sent:
            return ConfirmedEdits((), False)
        listed = note.get("deleted") if isinstance(note, Mapping) else None
        deleted = {str(call) for call in listed} if isinstance(listed, list | tuple) else set()
        if deleted.isdisjoint(sent):
            self.off = True
            self.reset()
            return ConfirmedEdits((), True)
        new = tuple(call for call in sent if call in deleted and not self.marked.get(call, True))
        self.marked |= dict.fromkeys(new, True)
        return ConfirmedEdits(new, False)


class RefusedBlocks:
    """The blocks that are left out of requests, by digest."""

    def __init__(self) -> None:
        self.blocks: set[bytes] = set()
        self.known = False  # whether the log was read for them
        self.first: int | None = None  # if the next request is the first without them: the first block that differs


# Cache misses kept for inspection; the log has them all.
MAX_FINDINGS = 100


class LastRequest:
    def __init__(self) -> None:
        self.sent: Sent | None = None
        self.chain: Sequence[bytes] = ()
        self.keys = b""
        self.model = ""
        # Id and block digests of its answer, to recognise the same answer if it is recorded twice.
        self.answer: tuple[str, ...] | None = None
        # Reasons why the next request may differ from this one; each change of the view adds one.
        self.announced: list[Reason] = []
        self.breaks = 0
        # Tokens its answer left in the provider's cache, the time, its marks' lifetime, and the break announced for the current call.
        self.readable = 0
        # Estimated tokens of its blocks that an automatic cache holds and the next request does not repeat (a result shown once).
        self.unstable = 0
        self.answered_at = ""
        self.ttl: str | None = None
        self.break_reason: Reason | None = None
        self.findings: deque[CacheBreak] = deque(maxlen=MAX_FINDINGS)

    def remember(self, prompt: Prompt, chain: Sequence[bytes], links: int) -> None:
        """Store the request about to be sent: its prompt and the digest chain of its messages, of which the next repeats `links`."""
        self.sent = Sent(prompt.base, links, chain[links - 1] if links else b"", len(prompt.tools))
        self.chain, self.keys, self.model = chain, prompt.keys, prompt.model
        self.announced.clear()
        self.answer = None


def read_last_request(live: LiveTranscript, store: TranscriptStore, prompt: Prompt) -> LastRequest:
    """Reconstruct the last request of a resumed log."""
    last = LastRequest()
    flat, snapshot, due = live.log.view.flat, live.log.view.snapshot, live.log.due
    links = flat.links_before_last_answer()
    if snapshot is None or not (links or due is not None):
        return last
    chain: Sequence[bytes] = flat.chain[:links]
    if due is not None:
        chain = _chain_at_last_answer(live, store)
        last.announced.append(due)
    if chain:
        last.sent, last.chain = (
            Sent(base_chain(snapshot.tools, snapshot.system), len(chain), chain[-1], len(snapshot.tools)),
            chain,
        )
    last.model = snapshot.model or prompt.model
    last.keys = cache_keys(last.model, snapshot.options)
    return last


def _chain_at_last_answer(live: LiveTranscript, store: TranscriptStore) -> Sequence[bytes]:
    """Fold the records up to the last answer, to learn what was sent before a later change.

    If a compaction removed those records from memory, the chain is unknown. The next request certainly differs, since a summary now
    comes first, but the position of the difference cannot be told.
    """
    unknown = (b"",)
    log, partly = live.log, bool(live.start or live.state)  # partly: records before the last compaction are not loaded
    if log.last_answer is None:
        return unknown if partly or log.due == "compaction" else ()
    before: list[Record] = []
    for record in store.read(live.start):
        if isinstance(record, Message) and log.last_answer in (record.message_id, record.uuid):
            break
        before.append(record)
    if partly and not any(isinstance(record, Boundary) for record in before):
        return unknown  # the answer was kept by the compaction, and its request predates it
    flat = Log.load(lambda: before, lambda: seeded(live.state)).view.flat
    return flat.chain[: flat.stable_links]

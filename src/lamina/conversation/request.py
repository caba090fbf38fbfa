"""What stands before the messages of a request, and the request sent last: its prefix, what its answer left in the provider's cache, and
why the next one may differ.

A `Prompt` is replaced as a whole. `LastRequest` is written by `exchange.py` alone. A resumed conversation finds it again in the log:
what was last sent is what its last answer replied to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.blocks import Wire, canonical
from ..core.log import Log, seeded
from ..core.prefix import Reason, Sent, base_chain
from ..core.records import Boundary, Message, Record
from ..disk.transcripts.store import LiveTranscript, TranscriptStore
from ..prompt.break_causes import CacheBreak
from ..prompt.cache_marks import marked_last

# How long a provider keeps a cache entry that nobody asks for, unless a session says otherwise.
DEFAULT_TTL = "5m"
# Options that are part of a provider's cache key.
KEYED_OPTIONS = ("thinking", "tool_choice", "betas", "context_management")


def cache_keys(model: str, options: Wire) -> bytes:
    """Return what two requests must share, besides their prefix, to share a cache entry."""
    return canonical([model, *(options.get(name) for name in KEYED_OPTIONS)])


class Prompt:
    def __init__(
        self, model: str, max_tokens: int, system: list[Wire], tools: list[Wire], options: Wire, ttl: str | None
    ) -> None:
        self.model = model
        self.max_tokens = max_tokens
        self.system = system
        self.tools = tools
        self.options = options
        self.ttl = ttl  # of the cache marks; None: no marks
        self.base = base_chain(tools, system)
        self.keys = cache_keys(model, options)
        self.head: Wire = {"model": model, "max_tokens": max_tokens}
        for name, blocks in (("system", system), ("tools", tools)):
            if blocks:
                self.head[name] = marked_last(blocks, ttl) if ttl else blocks


class ConfirmedEdits(NamedTuple):
    ids: tuple[str, ...]  # deleted for the first time
    ignored: bool  # the provider has no idea of what it was asked


class CacheEdits:
    """Deletions in the provider's cache: which results are marked, and which of them a response has confirmed (M4).

    A deletion lives in the cache entry it was made in. A request that reads that entry need not name it again, one that finds the cache
    cold must, and nobody knows beforehand which it will be: so every request names all of them, and naming one twice is the same as
    naming it once. A mark is *open* until a response lists it as deleted. A call that fails changes nothing.
    """

    def __init__(self) -> None:
        self.marked: dict[str, bool] = {}  # tool_use id → confirmed
        self.sent: tuple[str, ...] = ()  # named in the request under way
        self.off = False  # this provider does not do it

    @property
    def open(self) -> bool:
        return not all(self.marked.get(call, True) for call in self.sent)

    def mark(self, calls: Iterable[str]) -> None:
        self.marked |= dict.fromkeys(calls, False)

    def reset(self) -> None:
        """After a clearing of another kind, or at a provider that cannot do it."""
        self.marked, self.sent = {}, ()

    def prune(self, still: Container[str]) -> None:
        """Drop marks whose results have left the view, or were cleared there."""
        self.marked = {call: done for call, done in self.marked.items() if call in still}

    def resume(self, marked: Iterable[str], *, confirmed: bool, off: bool) -> None:
        """Take over what the log knows of the session before."""
        self.marked, self.sent, self.off = dict.fromkeys(marked, confirmed), (), off

    def send(self, supported: bool = True) -> tuple[str, ...]:
        """Return what the next request names; nothing where the provider does not do it."""
        self.sent = tuple(self.marked) if supported and not self.off else ()
        return self.sent

    def confirm(self, note: Any) -> ConfirmedEdits:
        """What the response says of the edits its request carried; `note` is its own key, None where it has none."""
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
    """The blocks that are left out, by their digests."""

    def __init__(self) -> None:
        self.blocks: set[bytes] = set()
        self.known = False  # whether the log was asked
        self.first: int | None = None  # the next request is the first without them, and this is the first block that differs


# Cache misses kept for inspection; the log has them all.
MAX_FINDINGS = 100


class LastRequest:
    def __init__(self) -> None:
        self.sent: Sent | None = None
        self.chain: Sequence[bytes] = ()
        self.keys = b""
        self.model = ""
        # The answer to it, to recognise it when it is handed in again: its id and the digests of its blocks.
        self.answer: tuple[str, ...] | None = None
        # Why the next request may differ from this one: a decision that changes the view names itself here.
        self.announced: list[Reason] = []
        self.breaks = 0
        # What its answer left readable in the provider's cache, when, and the break announced before the call under way.
        self.readable = 0
        self.answered_at = ""
        self.break_reason: Reason | None = None
        self.findings: deque[CacheBreak] = deque(maxlen=MAX_FINDINGS)

    def remember(self, prompt: Prompt, chain: Sequence[bytes]) -> None:
        """Keep what is about to be sent: the prompt, and the chain of digests of its messages."""
        self.sent = Sent(prompt.base, len(chain), chain[-1] if chain else b"", len(prompt.tools))
        self.chain, self.keys, self.model = chain, prompt.keys, prompt.model
        self.announced.clear()
        self.answer = None


def read_last_request(live: LiveTranscript, store: TranscriptStore, prompt: Prompt) -> LastRequest:
    """Return what a resumed log last sent."""
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
    """Fold what was sent before a decision changed it, from the records of that time. Where those are no longer read, a compaction has
    put a summary first: that it differs is known, where is not."""
    unknown = (b"",)
    log, partly = live.log, bool(live.start or live.state)  # partly: what stands before the last compaction is not read
    if log.last_answer is None:
        return unknown if partly or log.due == "compaction" else ()
    before: list[Record] = []
    for record in store.read(live.start):
        if isinstance(record, Message) and log.last_answer in (record.message_id, record.uuid):
            break
        before.append(record)
    if partly and not any(isinstance(record, Boundary) for record in before):
        return unknown  # an answer that was kept: it stands before the compaction, and so does what it replied to
    flat = Log.load(lambda: before, lambda: seeded(live.state)).view.flat
    flat.messages()
    return flat.chain

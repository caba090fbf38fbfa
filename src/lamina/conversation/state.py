"""The state of one conversation, and the one way to change it.

`enter` writes records to the store first and then lets log and count follow: what is in memory never runs ahead of the log.
Nothing here is global, so any number of conversations live in one process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from threading import Event as Abort
from typing import Any, TypeVar

from ..core.blocks import Wire, canonical
from ..core.budget import limits_of
from ..core.checkpoint import seeded
from ..core.effects import Ask
from ..core.errors import DiskError
from ..core.ids import new_id
from ..core.log import Log
from ..core.policy import Policy
from ..core.prefix import Reason, Sent, base_chain
from ..core.records import Attachment, Boundary, Checkpoint, Event, Message, Record, Revoke
from ..core.reply import Reply
from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.transcripts.store import LiveTranscript, TranscriptStore, load_live
from ..fork.background import Background
from ..fork.budget import LOCAL, Meter
from ..fork.host import Host
from ..prompt.break_causes import CacheBreak
from ..prompt.cache_marks import marked_last
from ..providers import Capabilities
from .window.count import Count, appended, replaced
from .window.features import Memo, measure_all
from .window.recount import known_count, recount, shortened
from .window.thresholds import Thresholds

# Breaks of the cache kept for a person to see; the log has them all.
MAX_FINDINGS = 100

# Options that are part of a provider's cache key.
KEYED_OPTIONS = ("thinking", "tool_choice", "betas", "context_management")


def cache_keys(model: str, options: Wire) -> bytes:
    return canonical([model, *(options.get(name) for name in KEYED_OPTIONS)])


T = TypeVar("T")


def _learnt(live: LiveTranscript) -> Count | None:
    """What the session before had learnt of tokens when it last changed the view, so that a resumed one counts and decides the same."""
    newest = next((event for event in reversed(live.log.events.values()) if "count" in event.data), None)
    known = known_count(newest.data) if newest is not None else None
    return known or known_count(live.state)


def _counted(live: LiveTranscript, memo: Memo, model: str) -> Count:
    """What another model reported does not measure what this one reads (T10)."""
    count, snapshot = recount(live.log.view, memo, _learnt(live)), live.log.view.snapshot
    return replaced(count, count.view) if snapshot is not None and snapshot.model not in ("", model) else count


def seconds_between(before: str, now: str) -> float:
    """Never less than nothing: a clock that went back has not gone back in the conversation."""
    try:
        return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds())
    except (ValueError, TypeError):  # no time, or only one of them names its zone
        return 0.0


class Prompt:
    """What stands before the messages: frozen, replaced as a whole."""

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


class Conversation:
    def __init__(
        self,
        *,
        store: TranscriptStore,
        live: LiveTranscript,
        prompt: Prompt,
        policy: Policy,
        limits: Thresholds,
        settings: Settings,
        capabilities: Capabilities,
        directory: Path | None,
        home: Path | None,
        cwd: Path,
        notices: list[str],
        ask_side: Callable[[Ask, Abort], Reply],
        clock: Callable[[], str],
    ) -> None:
        self.store = store
        self.log = live.log
        self.start = live.start  # where in the store the live part begins
        self.prompt = prompt
        self.policy = policy
        self.limits = limits
        self.settings = settings
        self.capabilities = capabilities  # of the provider that answers now
        self.directory = directory  # the session's own files; None: a session in memory, which writes none
        self.home = home
        self.cwd = cwd
        self.notices = notices  # sentences for the person
        # Answers calls beside the conversation, from any thread, and counts those of background work (B9).
        self.ask_side = Meter(ask_side, home=home, project=str(cwd), session=directory.name if directory is not None else "")
        self.clock = clock
        self.host = Host()
        self.background = Background(allowed=self._within_budget)
        self.resumed: Wire = live.state  # what the checkpoint knew that this session was resumed from
        self.remembered: dict[str, Callable[[], Any]] = {}  # what a room wants to find in the next checkpoint, by its name
        self._rooms: dict[type, Any] = {}
        self.memo = Memo()
        self.count: Count = _counted(live, self.memo, prompt.model)
        self.spent = Usage()
        # The answer to the request before, to know it when it is handed in again: its id and the digests of its blocks.
        self.answer: tuple[str, ...] | None = None
        # The request before: its links, the chain they are part of, its cache keys.
        self.sent: Sent | None = None
        self.sent_chain: Sequence[bytes] = ()
        self.sent_keys = b""
        self.sent_model = ""
        # Why the next request may differ from the last one: a decision that changes the view names itself here (K3).
        self.announced: list[Reason] = []
        self.breaks = 0
        # What the last call left readable in the provider's cache, when, and the break announced before the call under way (K2).
        self.readable = 0
        self.answered_at = ""
        self.break_reason: Reason | None = None
        self.findings: deque[CacheBreak] = deque(maxlen=MAX_FINDINGS)
        self._recall_last_request()

    def _recall_last_request(self) -> None:
        """What a resumed log last sent is what its last answer replied to."""
        flat, snapshot = self.log.view.flat, self.log.view.snapshot
        links = flat.links_before_last_answer()
        if snapshot is not None and (links or self.log.due is not None):
            base = base_chain(snapshot.tools, snapshot.system)
            chain: Sequence[bytes] = flat.chain[:links]
            if self.log.due is not None:
                chain = self._chain_at_last_answer()
                self.announced.append(self.log.due)
            if chain:
                self.sent, self.sent_chain = Sent(base, len(chain), chain[-1], len(snapshot.tools)), chain
            self.sent_model = snapshot.model or self.prompt.model
            self.sent_keys = cache_keys(self.sent_model, snapshot.options)

    def _chain_at_last_answer(self) -> Sequence[bytes]:
        """What was sent before a decision changed it, folded again from the records of that time. Where those are no longer read, a
        compaction has put a summary first: that it differs is known, where is not."""
        unknown = (b"",)
        partly = bool(self.start or self.resumed)  # what stands before the last compaction is not read
        if self.log.last_answer is None:
            return unknown if partly or self.log.due == "compaction" else ()
        before: list[Record] = []
        for record in self.store.read(self.start):
            if isinstance(record, Message) and self.log.last_answer in (record.message_id, record.uuid):
                break
            before.append(record)
        if partly and not any(isinstance(record, Boundary) for record in before):
            return unknown  # an answer that was kept: it stands before the compaction, and so does what it replied to
        flat = Log.load(lambda: before, lambda: seeded(self.resumed)).view.flat
        flat.messages()
        return flat.chain

    @property
    def autocompact(self) -> bool:
        """Whether the window is kept from filling up without a person's word."""
        return self.settings.compaction and self.settings.auto_compact

    def layer_state(self, kind: type[T]) -> T:
        """A step's own state: the one instance of its class that belongs to this conversation."""
        found: T | None = self._rooms.get(kind)
        if found is None:
            found = self._rooms[kind] = kind()
        return found

    def notify(self, *sentences: str) -> None:
        """Add sentences for the user."""
        self.notices.extend(sentences)

    def notify_once(self, *sentences: str) -> None:
        """Add sentences for the user, unless they were added before."""
        self.notices.extend(dict.fromkeys(one for one in sentences if one not in self.notices))

    def record_event(self, name: str, data: Wire) -> None:
        """K5: something a layer did or left undone, for the log and for whoever watches."""
        uuid, parent, time = self.head()
        self.append([Event(uuid, parent, time, name, data)])

    def _within_budget(self, job: str) -> bool:
        """Whether background work may begin (B9). That it may not is said once a day; what a model does not answer costs nothing."""
        if self.prompt.model == LOCAL:
            return True
        meter = self.ask_side
        out = meter.refused(limits_of(self.settings))
        if (problem := meter.ledger.problem) is not None and meter.first("problem"):
            self.notify(f"{problem} Until then this session counts its background work for itself.")
        if out is not None and meter.first(out.what):
            self.notify(out.sentence())
            self.record_event(
                "budget", {"ran_out": out.what, "used": out.used, "limit": out.limit, "day": meter.ledger.day, "job": job}
            )
        return out is None

    def idle(self) -> float:
        """Seconds since the last answer, by the log's own times; 0 where there is none."""
        answer = next((item for item in reversed(self.log.view.items) if item.role == "assistant"), None)
        return seconds_between(answer.time, self.clock()) if answer is not None else 0.0

    def reload(self, *, everything: bool = False) -> int:
        """Read the log again from where its last valid checkpoint allows, or from the top: what was compacted leaves memory,
        what was undone comes back. Returns a generation that differs from the new view's."""
        live = LiveTranscript(Log.load(self.store.read), 0, {}) if everything else load_live(self.store)
        self.log, self.start = live.log, live.start
        return self.log.view.generation - 1

    def head(self) -> tuple[str, str | None, str]:
        """uuid, parent and time of a new record."""
        return new_id(), self.log.tree.leaf, self.clock()

    def append(self, records: Sequence[Record], *, reason: Reason | None = None) -> None:
        """Write records, then follow them. `reason` announces that they change what was already sent."""
        self.store.append(records)
        view, generation, voided = self.log.view, self.log.view.generation, self.log.view.voided
        extends = True
        for record in records:
            extends = self.log.add(record) and extends
        try:
            if any(isinstance(record, Revoke | Checkpoint) for record in records):
                generation = self.reload()
            elif not extends:
                self.log.refold(lambda: self.store.read(self.start))
        except DiskError:
            # What was said is still in memory; only what an undo would bring back is not.
            if any(isinstance(record, Revoke) for record in records):
                raise
            self.log.prune()
        if reason is not None:
            self.announced.append(reason)
        if self.log.view is view and view.generation != generation and view.voided == voided:
            self.count = shortened(self.count, view, self.memo)
        elif self.log.view.generation != generation:
            self.count = replaced(self.count, measure_all([block for _, block in self.log.view.blocks()], self.memo))
        else:
            added = [block for record in records if isinstance(record, Message | Attachment) for block in record.blocks]
            self.count = appended(self.count, measure_all(added, self.memo))
        for record in records:
            if isinstance(record, Event):
                self._observe(record)

    def _observe(self, event: Event) -> None:
        """Whoever watches is code of the host's: where it fails the person is told, and what was entered stays entered."""
        if self.host.observer is not None:
            try:
                self.host.observer(event.name, event.data)
            except Exception as error:  # noqa: BLE001  # whatever it is, the conversation does not depend on it
                self.notify_once(f"The host's observer failed: {type(error).__name__}: {error}")

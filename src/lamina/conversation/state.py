"""The state of one conversation, and the one way to change it.

`append` writes records to the store first and then lets log and count follow: what is in memory never runs ahead of the log. Fields
are assigned in this package alone, through the methods below and the functions beside them; everybody else reads. Nothing here is
global, so any number of conversations live in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from threading import Event as Abort
from typing import Any, TypeVar

import msgspec

from ..core.blocks import Block, Wire
from ..core.budget import limits_of
from ..core.effects import Ask
from ..core.errors import DiskError
from ..core.log import Log
from ..core.policy import Policy
from ..core.prefix import Reason
from ..core.records import Attachment, Checkpoint, Event, Message, Record, Revoke, new_id
from ..core.reply import Reply
from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.transcripts.store import LiveTranscript, TranscriptStore, load_live
from ..fork.background import LOCAL, Background, Meter
from ..fork.host import Host, Source
from ..providers import Capabilities
from .request import DEFAULT_TTL, CacheEdits, Prompt, RefusedBlocks, read_last_request
from .side_usage import SideUsage
from .window.count import Count, answered, appended, known_count, recount, replaced, shortened
from .window.features import Memo, measure_all
from .window.thresholds import Thresholds

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
        self.notices = notices  # sentences for the user
        # Answers calls beside the conversation, from any thread, and counts those of background work (B9).
        self.ask_side = Meter(ask_side, home=home, project=str(cwd), session=directory.name if directory is not None else "")
        self.clock = clock
        self.host = Host()
        self.restorables: dict[tuple[str, str], Source] = {}  # by kind and key, newest last
        self.background = Background(allowed=self._within_budget)
        self.resumed: Wire = live.state  # what the checkpoint knew that this session was resumed from
        self.checkpointed: dict[str, Callable[[], Any]] = {}  # what a layer wants to find in the next checkpoint, by its name
        self._layer_states: dict[type, Any] = {}
        self.memo = Memo()
        self.count: Count = _counted(live, self.memo, prompt.model)
        self.spent = Usage()
        self.side = SideUsage()
        self.last = read_last_request(live, store, prompt)
        self.refused = RefusedBlocks()
        self.cache_edits = CacheEdits()
        self.cut_pins: set[str] = set()  # pins the user was told about because they are shown cut

    def use_clock(self, clock: Callable[[], str]) -> None:
        """Take the times of new records from another clock: a replay's."""
        self.clock = clock

    def use_settings(self, settings: Settings, policy: Policy, limits: Thresholds) -> None:
        """Decide by other settings from now on; decisions that were made stay."""
        self.settings, self.policy, self.limits = settings, policy, limits

    # What is lent and kept for others

    def lend(self, host: Host) -> None:
        """Take what the loop on top lends to the layers: one frozen value, in place of the one before."""
        self.host = host

    def register_restorable(self, kind: str, key: str, text: Source | None) -> None:
        """Have a text back in view behind every compaction; None takes it away."""
        self.restorables.pop((kind, key), None)
        if text is not None:
            self.restorables[kind, key] = text

    def layer_state(self, kind: type[T]) -> T:
        """Return a layer's own state: the one instance of its class that belongs to this conversation."""
        found: T | None = self._layer_states.get(kind)
        if found is None:
            found = self._layer_states[kind] = kind()
        return found

    def checkpoint_with(self, name: str, value: Callable[[], Any]) -> None:
        """Put `value()` into every checkpoint from now on, under `name`; a resumed session finds it in `resumed`."""
        self.checkpointed[name] = value

    # Sentences and events

    def notify(self, *sentences: str) -> None:
        """Add sentences for the user."""
        self.notices.extend(sentences)

    def notify_once(self, *sentences: str) -> None:
        """Add sentences for the user, unless they were added before."""
        self.notices.extend(dict.fromkeys(one for one in sentences if one not in self.notices))

    def withdraw(self, sentences: Iterable[str]) -> None:
        """Take back sentences that no longer hold."""
        self.notices[:] = [one for one in self.notices if one not in set(sentences)]

    def record_event(self, name: str, data: Wire) -> None:
        """Record something a layer did or left undone, for the log and for whoever watches (K5)."""
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
            told = {"ran_out": out.what, "used": out.used, "limit": out.limit, "day": meter.ledger.day, "job": job}
            self.record_event("budget", told)
        return out is None

    # The prompt and the count

    def replace_prompt(self, system: list[Wire], tools: list[Wire], *, model: str | None = None) -> None:
        """Change what stands before the messages. The next request is a break, and is announced as one."""
        old = self.prompt
        ttl = (old.ttl or DEFAULT_TTL) if self.capabilities.wire == "messages" else None
        self.prompt = Prompt(model or old.model, old.max_tokens, system, tools, old.options, ttl)

    def switch_model(self, model: str, capabilities: Capabilities, limits: Thresholds) -> None:
        """Go on with another model: what the old one reported no longer measures what this one reads (T10)."""
        self.capabilities, self.limits = capabilities, limits
        self.replace_prompt(self.prompt.system, self.prompt.tools, model=model)
        self.count = replaced(self.count, self.count.view)

    def count_answer(self, before: Count, usage: Usage, blocks: Sequence[Block], *, final: bool) -> None:
        """Calibrate the count with what an answer reports of the request it replied to, whose count was `before`."""
        self.spent += usage
        self.count = answered(before, usage, measure_all(blocks, self.memo), final=final)

    def expect_fewer_tokens(self, tokens: int) -> None:
        """The next request holds so many tokens less; its usage says exactly how many."""
        if self.count.measured is not None:
            self.count = msgspec.structs.replace(self.count, measured=max(0, self.count.measured - tokens))

    @property
    def autocompact(self) -> bool:
        """Whether the window is kept from filling up without being asked."""
        return self.settings.compaction and self.settings.auto_compact

    def idle(self) -> float:
        """Seconds since the last answer, by the log's own times; 0 where there is none."""
        answer = next((item for item in reversed(self.log.view.items) if item.role == "assistant"), None)
        return seconds_between(answer.time, self.clock()) if answer is not None else 0.0

    # The log

    def reload(self, *, everything: bool = False) -> int:
        """Read the log again from where its last valid checkpoint allows, or from the top: what was compacted leaves memory,
        what was undone comes back. Returns a generation that differs from the new view's."""
        live = LiveTranscript(Log.load(self.store.read), 0, {}) if everything else load_live(self.store)
        self.log, self.start = live.log, live.start
        return self.log.view.generation - 1

    def head(self) -> tuple[str, str | None, str]:
        """Return uuid, parent and time of a new record."""
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
            self.last.announced.append(reason)
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
        """The observer is code of the host's: where it fails the user is told, and what was appended stays appended."""
        if self.host.observer is not None:
            try:
                self.host.observer(event.name, event.data)
            except Exception as error:  # noqa: BLE001  # whatever it is, the conversation does not depend on it
                self.notify_once(f"The host's observer failed: {type(error).__name__}: {error}")

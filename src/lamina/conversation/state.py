"""The state of one conversation, and the one way to change it.

`append` writes records to the store first and updates log and count afterwards, so memory never runs ahead of the stored log.
Only this package assigns the fields, through the methods below and the functions in its other modules; all other code reads them.
Nothing is global, so one process can hold any number of conversations.
"""

from __future__ import annotations

import os
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
from ..core.policy import Policy
from ..core.prefix import Reason
from ..core.reach import FILE_TOOLS
from ..core.records import Attachment, Checkpoint, Event, Message, Record, Revoke, new_id
from ..core.reply import Reply
from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.session_files.spills import DIRECTORY, short_name
from ..disk.transcripts.store import LiveTranscript, TranscriptStore, load_live, load_whole
from ..fork.background import LOCAL, Background, Meter
from ..fork.host import Host, Source
from ..providers import Capabilities
from ..providers.models import Cost
from .request import DEFAULT_TTL, CacheEdits, Prompt, RefusedBlocks, read_last_request
from .window.count import Count, answered, appended, count_log, measured_before, replaced, settled, shortened
from .window.features import Memo, measure_all
from .window.thresholds import Thresholds

T = TypeVar("T")


class SideUsage:
    """Usage and cost of side calls (forks). They never count towards the conversation's window."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost = Cost()
        self.forks = 0

    def add(self, usage: Usage, cost: Cost) -> None:
        self.usage += usage
        self.cost += cost
        self.forks += 1


def _counted(live: LiveTranscript, memo: Memo, model: str) -> Count:
    """Count the view. Numbers that another model reported are dropped, because they do not apply to this one.

    The model without a server has no tokens of its own, so a session that is opened with it keeps them: to edit it, for example.
    """
    count, snapshot = count_log(live.log, memo, live.state), live.log.view.snapshot
    return replaced(count, count.view) if snapshot is not None and snapshot.model not in ("", model) and model != LOCAL else count


def seconds_between(before: str, now: str) -> float:
    """Return the seconds between two ISO times, or 0 if the clock went backwards or a time is invalid."""
    try:
        return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds())
    except (ValueError, TypeError):  # not a time, or only one of the two has a time zone
        return 0.0


class Conversation:
    """The state of one conversation. All changes go through its methods."""

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
        free_ttl: bool = False,
    ) -> None:
        self.store = store
        self.log = live.log
        self.start = live.start  # offset in the store where the live part begins
        self.prompt = prompt
        self.free_ttl = free_ttl  # the policy sets the lifetime of cache marks; False: the caller fixed it
        self.policy = policy
        self.limits = limits
        self.settings = settings
        self.capabilities = capabilities  # of the current provider
        self.directory = directory  # the session's files; None for a session in memory
        self.home = home
        self.cwd = cwd
        self.notices = notices  # messages for the user
        # Makes side calls from any thread, and counts those of background work.
        self.ask_side = Meter(ask_side, home=home, project=str(cwd), session=directory.name if directory is not None else "")
        self.clock = clock
        self.host = Host()
        self.restorables: dict[tuple[str, str], Source] = {}  # by kind and key, newest last
        self.background = Background(allowed=self._within_budget)
        self.resumed: Wire = live.state  # the state in the checkpoint this session was resumed from
        self.checkpointed: dict[str, Callable[[], Any]] = {}  # functions that return the layers' state for the next checkpoint
        self._layer_states: dict[type, Any] = {}
        self.failures: dict[str, int] = {}  # how often each layer failed in this session
        self.memo = Memo()
        self.count: Count = _counted(live, self.memo, prompt.model)
        self.spent = Usage()
        self.side = SideUsage()
        self.last = read_last_request(live, store, prompt)
        self.refused = RefusedBlocks()
        self.cache_edits = CacheEdits()
        self.requested: str | None = None  # instructions of a compaction that the model asked for; None: it asked for none
        self.cut_pins: set[str] = set()  # shortened pins that the user was notified of

    def use_clock(self, clock: Callable[[], str]) -> None:
        """Use another clock for new records, such as a replay's."""
        self.clock = clock

    def use_capabilities(self, capabilities: Capabilities) -> None:
        """Use what the provider has learned about its server since the last call."""
        self.capabilities = capabilities

    def use_settings(self, settings: Settings, policy: Policy, limits: Thresholds) -> None:
        """Use other settings from now on. Decisions already made stay."""
        self.settings, self.policy, self.limits = settings, policy, limits

    # State of the host and the layers

    def lend(self, host: Host) -> None:
        """Set what the agent loop offers to the layers. It replaces the previous host."""
        self.host = host
        offered = FILE_TOOLS.intersection(tool.name for tool in host.tool_runner.tools) if host.tool_runner is not None else ()
        self.prompt = self.prompt.with_local(frozenset((*offered, *host.file_tools, host.read_tool)) - {""})

    def register_restorable(self, kind: str, key: str, text: Source | None) -> None:
        """Show a text again after every compaction; None unregisters it."""
        self.restorables.pop((kind, key), None)
        if text is not None:
            self.restorables[kind, key] = text

    def request_compaction(self, instructions: str | None) -> None:
        """Compact before the next call; None withdraws the request."""
        self.requested = instructions

    def layer_state(self, kind: type[T]) -> T:
        """Return a layer's state: the one instance of this class that belongs to the conversation."""
        found: T | None = self._layer_states.get(kind)
        if found is None:
            found = self._layer_states[kind] = kind()
        return found

    def checkpoint_with(self, name: str, value: Callable[[], Any]) -> None:
        """Store `value()` in every future checkpoint under `name`. A resumed session finds it in `resumed`."""
        self.checkpointed[name] = value

    def name_for_model(self, path: str) -> str:
        """Return the path of a stored result as the model sees it: a short name, if our own Read tool runs its calls."""
        runner = self.host.tool_runner
        known = runner is not None and runner.find_result is not None and any(tool.name == "Read" for tool in runner.tools)
        own = self.directory is not None and os.path.dirname(path) == str(self.directory / DIRECTORY)
        return short_name(path) if known and own else path

    # Notices and events

    def notify(self, *sentences: str) -> None:
        """Add notices for the user."""
        self.notices.extend(sentences)

    def notify_once(self, *sentences: str) -> None:
        """Add notices for the user, unless they are there already."""
        self.notices.extend(dict.fromkeys(one for one in sentences if one not in self.notices))

    def withdraw(self, sentences: Iterable[str]) -> None:
        """Remove notices that no longer apply."""
        self.notices[:] = [one for one in self.notices if one not in set(sentences)]

    def record_event(self, name: str, data: Wire) -> None:
        """Record an event of a layer, for the log and the host's observer."""
        uuid, parent, time = self.head()
        self.append([Event(uuid, parent, time, name, data)])

    def _within_budget(self, job: str) -> bool:
        """Return whether today's budget allows a background job. A refusal is reported once a day; offline work is free."""
        if self.prompt.model == LOCAL:
            return True
        meter = self.ask_side
        out = meter.refused(limits_of(self.settings))
        if (problem := meter.ledger.problem) is not None and meter.first("problem"):
            self.notify(f"{problem} Until then, this session counts its background work on its own.")
        if out is not None and meter.first(out.what):
            self.notify(out.sentence(self.settings.billing))
            told = {"ran_out": out.what, "used": out.used, "limit": out.limit, "day": meter.ledger.day, "job": job}
            self.record_event("budget", told)
        return out is None

    # The prompt and the count

    def replace_prompt(self, system: list[Wire], tools: list[Wire]) -> None:
        """Change the system prompt and the tools. The next request breaks the cache and is recorded as a break."""
        old = self.prompt
        self.prompt = Prompt(old.model, old.max_tokens, system, tools, old.options, old.ttl, old.local)

    def use_ttl(self, ttl: str) -> None:
        """Use another lifetime for cache marks. Marks are not part of the prefix, so nothing breaks."""
        self.prompt = self.prompt.with_ttl(ttl)

    def switch_model(self, model: str, capabilities: Capabilities, limits: Thresholds) -> None:
        """Continue with another model. The token counts that the old one reported are dropped."""
        self.capabilities, self.limits = capabilities, limits
        old = self.prompt
        ttl = (old.ttl or DEFAULT_TTL) if capabilities.wire == "messages" else None
        self.prompt = Prompt(model, old.max_tokens, old.system, old.tools, old.options, ttl, old.local)
        self.count = replaced(self.count, self.count.view)

    def count_answer(self, before: Count, usage: Usage, blocks: Sequence[Block], *, final: bool) -> None:
        """Calibrate the count with the usage of an answer. `before` is the count of the request it replied to.

        The answer itself is counted already: results that it saw whole may be previews since.
        """
        self.spent += usage
        self.count = measured_before(answered(before, usage, measure_all(blocks, self.memo), final=final), self.count.view)

    def expect_fewer_tokens(self, tokens: int) -> None:
        """Lower the count by an estimate of what the provider will drop. The next usage corrects it."""
        if self.count.measured is not None:
            self.count = msgspec.structs.replace(self.count, measured=max(0, self.count.measured - tokens))

    @property
    def autocompact(self) -> bool:
        """Whether the conversation is compacted automatically."""
        return self.settings.compaction and self.settings.auto_compact

    def idle(self) -> float:
        """Return the seconds since the last answer, by the log's times; 0 if there was none."""
        answer = next((item for item in reversed(self.log.view.items) if item.role == "assistant"), None)
        return seconds_between(answer.time, self.clock()) if answer is not None else 0.0

    # The log

    def reload(self, *, everything: bool = False) -> LiveTranscript:
        """Read the log again, from its last valid checkpoint or from the top.

        Compacted records leave memory, and undone changes are reverted.
        """
        live = LiveTranscript(load_whole(self.store), 0, {}) if everything else load_live(self.store)
        self.log, self.start = live.log, live.start
        return live

    def head(self) -> tuple[str, str | None, str]:
        """Return uuid, parent and time of a new record."""
        return new_id(), self.log.tree.leaf, self.clock()

    def append(self, records: Sequence[Record], *, reason: Reason | None = None) -> None:
        """Write records, then update log, view and count. Pass a `reason` if they change messages that were already sent."""
        self.store.append(records, self.log.moved)
        view, generation, voided = self.log.view, self.log.view.generation, self.log.view.voided
        view.settled.clear()
        extends, live = True, None
        for record in records:
            extends = self.log.add(record) and extends
        try:
            if any(isinstance(record, Revoke | Checkpoint) for record in records):
                live = self.reload()
            elif not extends:
                self.log.refold(lambda: self.store.read(self.start))
        except DiskError:
            # The conversation is still in memory. Only an undo needs records from disk, so only an undo fails.
            if any(isinstance(record, Revoke) for record in records):
                raise
            self.log.prune()
        if reason is not None:
            self.last.announced.append(reason)
        if live is not None and any(isinstance(record, Revoke) for record in records):
            # What was measured before the undone decision counts again.
            self.count = _counted(live, self.memo, self.prompt.model)
        elif self.log.view is view and view.generation != generation and view.voided == voided:
            self.count = shortened(self.count, view, self.memo)
        elif live is not None or self.log.view.generation != generation:
            self.count = replaced(self.count, measure_all([block for _, block in self.log.view.blocks()], self.memo))
        else:
            added = [block for record in records if isinstance(record, Message | Attachment) for block in record.blocks]
            self.count = appended(self.count, measure_all(added, self.memo))
            if view.settled:
                whole, preview = (measure_all(blocks, self.memo) for blocks in zip(*view.settled, strict=True))
                self.count = settled(self.count, whole, preview)
        for record in records:
            if isinstance(record, Event):
                self._observe(record)

    def _observe(self, event: Event) -> None:
        """Call the host's observer. If it fails, notify the user; the records stay appended."""
        if self.host.observer is not None:
            try:
                self.host.observer(event.name, event.data)
            except Exception as error:  # noqa: BLE001  # the conversation does not depend on the observer
                self.notify_once(f"The host's observer failed: {type(error).__name__}: {error}")

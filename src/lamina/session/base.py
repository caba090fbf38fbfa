"""What Session and AsyncSession share: opening, what is said, what can be seen, the end. Nothing here waits for a model."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .. import turn
from ..conversation.isolate import take_job_results
from ..conversation.request import Prompt
from ..conversation.state import Conversation
from ..conversation.window.thresholds import Thresholds
from ..core.blocks import RedactedThinking, Text, Thinking, ToolResult, ToolUse, Wire, read_content
from ..core.effects import Ask
from ..core.errors import InputError, ProviderError, SessionClosed, SettingError, StreamBroken
from ..core.inputs import Given, read_given
from ..core.policy import Policy, named_policy
from ..core.reply import Reply
from ..core.settings import Settings
from ..disk.settings_files import lamina_home
from ..fork.host import Host
from ..layers.l1_results import step as results
from ..layers.l1_results.step import HandedIn
from ..layers.l2_micro import step as micro
from ..layers.recall.state import SELECT
from ..providers import Provider, open_provider
from ..providers.models import Cost, cost
from ..providers.offline import DEFAULT_TABLE
from .edits import SessionEdits
from .inspect import Inspection
from .open import AgentOf, OpenedTranscript, SessionPlace, open_again, open_new
from .provider import limits_for, no_wider, offline, provider_for
from .sync import MessageListSync

if TYPE_CHECKING:
    from ..providers.chat_rows import ChatRows

# An answer this long fits every known model and stays below the length at which SDKs insist on streaming.
DEFAULT_MAX_TOKENS = 8_000
# A look at the settings files takes as long as a fifth of a request's preparation; a model's answer takes longer than this.
LOOK_AGAIN_SECONDS = 0.05


class SessionLock:
    """A session's lock, taken and given back. Whoever waited for a session that was closed meanwhile is told so."""

    __slots__ = ("_check", "_lock")

    def __init__(self, lock: threading.RLock, check: Callable[[], None]) -> None:
        self._lock = lock
        self._check = check

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._check()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class SessionBase(SessionEdits, Inspection):
    """One conversation and its provider."""

    _awaits: ClassVar[bool] = False  # whether there is an event loop for a client that needs one

    def __init__(
        self,
        provider: str | Provider = "offline",
        *,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        max_tokens: int | None = None,
        client: Any = None,
        cwd: str | Path = ".",
        home: str | Path | None = None,
        in_memory: bool = False,
        settings: Settings | None = None,
        policy: Policy | str | None = None,
        window: int | None = None,
        resume: str | Path | None = None,
        session_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        cache_ttl: str | None = "5m",
        agent_of: AgentOf | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._aborted = threading.Event()
        loaded = settings if settings is not None else Settings.load(cwd, home=home)
        self._looked = time.monotonic()
        self.provider = provider_for(provider, client)
        # Everything that was handed in is read first: a session that cannot be opened leaves no file and holds no lock.
        given = read_given(system=system, tools=tools, options=options, max_tokens=max_tokens, cache_ttl=cache_ttl)
        notices: list[str] = []
        chosen = named_policy(policy) if isinstance(policy, str) else policy or loaded.policy
        self._policy = None if policy is None else chosen
        self._window = window
        limits = limits_for(self.provider, chosen, loaded, window=window, options=given.options or {}, notices=notices)
        place = SessionPlace(None if in_memory else _home(home), Path(cwd).resolve(), agent_of)
        opened = open_again(place, resume, _now) if resume is not None else open_new(place, session_id)
        self.id = opened.session_id
        self.home = place.home
        self.cwd = place.cwd
        notices[:0] = opened.notices
        if place.home is None and not in_memory:
            notices.append("There is no home directory (LAMINA_HOME, HOME), so this session is kept in memory only.")
        path = opened.store.path
        self._c = Conversation(
            store=opened.store,
            live=opened.live,
            prompt=self._prompt(opened, given, loaded, chosen, limits),
            policy=chosen,
            limits=limits,
            settings=loaded,
            capabilities=self.provider.capabilities,
            directory=path.with_suffix("") if path is not None else None,
            home=place.home,
            cwd=place.cwd,
            notices=notices,
            ask_side=self._ask_side,
            clock=_now,
        )
        self._answers_side: Provider | None = None
        self._list_sync = MessageListSync(self._c, resumed=resume is not None)
        self._cost = Cost()
        self._chat_rows: ChatRows | None = None

    def _prompt(self, opened: OpenedTranscript, given: Given, settings: Settings, policy: Policy, limits: Thresholds) -> Prompt:
        """What is not given is what the resumed session had sent."""
        before = opened.live.log.view.snapshot
        options = given.options if given.options is not None else before.options if before else None
        if options is None or before is None:
            asked = micro.options(
                settings,
                self.provider.capabilities,
                policy,
                limits=limits,
                tools=given.tools or (before.tools if before else []) or [],
                given=options,
            )
            options = {**asked, **(options or {})}
        return Prompt(
            self.provider.model,
            given.max_tokens or (before.max_tokens if before else 0) or DEFAULT_MAX_TOKENS,
            given.system if given.system is not None else before.system if before else [],
            given.tools if given.tools is not None else before.tools if before else [],
            options,
            given.cache_ttl if self.provider.capabilities.wire == "messages" else None,
        )

    # Settings

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._c.settings

    def _refresh_settings(self) -> None:
        """Before a decision: a switch that was turned off, or a number that changed, counts from now on."""
        now = time.monotonic()
        if now - self._looked < LOOK_AGAIN_SECONDS:
            return
        self._looked = now
        old, new = self._c.settings, self._c.settings.refreshed()
        if new is old:
            return
        known = {found.text for found in old.findings}
        self._c.notify(*(found.text for found in new.findings if found.text not in known))
        policy, notices = self._policy or new.policy, list[str]()
        options = self._c.prompt.options
        limits = limits_for(self.provider, policy, new, window=self._window, options=options, notices=notices)
        self._c.notify_once(*notices)
        self._c.use_settings(new, policy, limits)

    # Who answers, and with what before it

    def switch_model(self, provider: Provider, *, window: int | None = None) -> None:
        """Go on with another model. The next request is a break, announced as one (K3); what the old model reported no longer
        measures what the new one reads (T10). A window the session was opened with stays, as far as the new model is known to take
        it, unless another is given here."""
        with self._open():
            asked = window if window is not None else no_wider(self._window, provider.model)
            options = self._c.prompt.options
            limits = limits_for(provider, self._c.policy, self.settings, window=asked, options=options, notices=self.notices)
            self._window = window if window is not None else self._window
            # What is under way was asked in the old model's name.
            for name in self._c.background.names:
                self._c.background.abort(name)
            self.provider, self._answers_side = provider, None
            self._c.switch_model(provider.model, provider.capabilities, limits)

    def _give_prompt(self, system: list[Wire], tools: list[Wire]) -> None:
        """For a resumed transcript of another program, which does not say what stood before its messages; else nothing changes."""
        with self._open():
            if self._c.log.view.snapshot is None:
                self._c.replace_prompt(system, tools)

    def lend(self, host: Host) -> None:
        """Hand over what your loop has for the layers: how to run tools, which files were read, hooks, an observer of events."""
        with self._open():
            self._c.lend(host)

    @property
    def _side(self) -> Provider:
        """Who answers calls beside the conversation (summaries, notes): the session's own provider where it can call, one with the
        key that is found, else local functions, which is said once."""
        if self._answers_side is None:
            if self.provider.name == "offline":
                self._answers_side = offline(getattr(self.provider, "table", DEFAULT_TABLE))
            else:
                self._answers_side = self.provider if getattr(self.provider, "can_call", True) else self._found()
            if not self._awaits and getattr(self._answers_side, "only_async", False):
                self._c.notify(
                    "Summaries and notes are made by local functions, without a model: the client can only be awaited "
                    "(use AsyncSession, or hand over a client that is not async)."
                )
                self._answers_side = offline()
        return self._answers_side

    def _found(self) -> Provider:
        try:
            return open_provider(f"{self.provider.name}:{self.provider.model}")
        except SettingError:
            self._c.notify(
                "Summaries and notes are made by local functions, without a model: there is no key for them (hand over a client)."
            )
            return offline()

    def _ask_side(self, ask: Ask, abort: threading.Event) -> Reply:
        """From any thread; an abort leaves the call at once."""
        from ..fork.model_call import ask_until

        return ask_until(abort, self._side, ask)

    def _typed(self, error: BaseException) -> ProviderError:
        """An SDK's error as one of ours."""
        if isinstance(error, ProviderError):
            return error
        from ..providers.faults import read_fault, typed_error

        return typed_error(read_fault(error), who=self.provider.name, now=0.0)

    @property
    def notices(self) -> list[str]:
        """Sentences for the user, oldest first; read them, the session adds to them."""
        return self._c.notices

    def _notify(self, *sentences: str) -> None:
        self._c.notify(*sentences)

    def _notify_once(self, *sentences: str) -> None:
        self._c.notify_once(*sentences)

    def _withdraw(self, sentences: Iterable[str]) -> None:
        """Take sentences back that no longer hold."""
        self._c.withdraw(sentences)

    # What is said

    def add_user(self, content: str | Sequence[Mapping[str, Any]]) -> str:
        """Add what the person says; the id of its record is returned."""
        with self._open():
            blocks = read_content(content, where="add_user")
            if not any(not isinstance(block, Text) or block.text.strip() for block in blocks):
                raise InputError("add_user", "the message is empty", "say something or send a file")
            if any(isinstance(block, ToolResult | ToolUse) for block in blocks):
                raise InputError("add_user", "a tool call or result is nothing a person says", "use add_tool_result()")
            if any(isinstance(block, Thinking | RedactedThinking) for block in blocks):
                raise InputError("add_user", "thinking is nothing a person says", "leave it out")
            return self._list_sync.note(turn.add_user(self._c, blocks)).uuid

    def add_tool_result(self, tool_use_id: str, output: object, *, is_error: bool = False) -> str:
        """Add the result of a call: text, a list of content blocks, any JSON value, bytes, or an open file, pipe or response, which is
        read in pieces and stays open."""
        with self._open():
            fate = self._c.log.view.flat.fate_of_call(tool_use_id)
            if fate is None or fate == "answered":
                problem = "has its result already" if fate else "is no call of this conversation"
                raise InputError(
                    "add_tool_result", f"{tool_use_id!r} {problem}", f"open calls: {', '.join(self.open_calls) or 'none'}"
                )
            handed = results.hand_in(self._c, tool_use_id, output, is_error=is_error)
            return self._list_sync.note(turn.add_results(self._c, (handed,))).uuid

    def _add_results(self, results: Sequence[ToolResult | HandedIn]) -> None:
        """Several results at once, as a tool loop has them."""
        with self._open():
            self._list_sync.note(turn.add_results(self._c, results))

    def sync(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Follow a list the caller owns, in the form its SDK takes: what is new is appended; where it departs from what was said,
        the conversation branches.

        Messages are compared by identity first, so a list that only grew costs what is new in it. Replace a message to change
        it: a block changed in place is not noticed.
        """
        with self._open():
            if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
                raise InputError("messages", f"must be a list of messages, not {type(messages).__name__}")
            rows: Sequence[Mapping[str, Any]] = list(messages)
            if self.provider.capabilities.wire == "chat":
                if self._chat_rows is None:
                    from ..providers.chat_rows import ChatRows

                    self._chat_rows = ChatRows()
                rows = self._chat_rows.canonical(rows)
            self._list_sync.sync(rows)

    # Life and end

    def abort(self) -> None:
        """Stop at once, from any thread; what was said so far is in the transcript. A call to a model under way is left."""
        self._aborted.set()
        self._c.background.abort()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._c.store.close()

    def _finish(self, timeout: float) -> None:
        """Background work is waited for; what it brings is still written. Nobody else waits meanwhile: the session is closed to them."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            # Nobody reads what a model would still choose for a turn that is over.
            self._c.background.abort(SELECT)
            for name in self._c.background.close(timeout):
                self._c.notify(f"Background work ({name}) was not done after {timeout:.0f} seconds and was ended.")
            with self._lock:
                take_job_results(self._c)
        finally:  # Ctrl-C while waiting too
            with self._lock:
                self._c.store.sync(force=True)
                self._c.store.close()

    def _open(self) -> SessionLock:
        return SessionLock(self._lock, self._enter)

    def _enter(self) -> None:
        self._check_open()
        self._refresh_settings()

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(self.id)

    def _record(self, response: object) -> Reply:
        reply = response if isinstance(response, Reply) else self.provider.read(response)
        records = turn.after_call(self._c, reply)
        for record in records:
            self._list_sync.note(record)
        if records and reply.usage is not None:
            self._cost += cost(reply.model or self.provider.model, reply.usage)
        return reply

    def _keep_partial(self, error: StreamBroken) -> None:
        """Half an answer is kept as what it is: no stop reason, so nothing of it is ever executed."""
        from ..fork.loop import partial

        reply = partial(error.partial, self.provider.model)
        if reply.blocks:
            self._record(reply)


def _home(home: str | Path | None) -> Path | None:
    found = Path(home) if home is not None else lamina_home(os.environ)
    return found.expanduser().absolute() if found is not None else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def working(session: SessionBase) -> Iterator[Conversation]:
    """Hold a session and its conversation, for the loop on top of it; other threads wait meanwhile."""
    with session._open():
        yield session._c


def conversation_of(session: SessionBase) -> Conversation:
    """The conversation of a session that nobody else works with."""
    return session._c

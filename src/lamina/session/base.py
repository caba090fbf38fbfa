"""What both kinds of session are made of: the arguments, the state, the provider of side calls, the flows of a turn, and closing.

The flows that may call a model are generators of effects, written once; session.py drives them with and without an event loop. One thread
uses a session at a time: whatever reads or changes the conversation holds the lock (`_open`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar

from .. import turn
from ..conversation.cache_life import KEEP_ALIVE
from ..conversation.isolate import take_job_results
from ..conversation.state import Conversation
from ..core.blocks import ToolResult, Wire
from ..core.effects import Ask, Flow
from ..core.errors import BadRequest, InputError, PromptTooLong, ProviderError, SessionClosed, SettingError, StreamBroken
from ..core.inputs import check_type, read_given
from ..core.policy import Policy
from ..core.reach import OWN_NAMES, tool_names
from ..core.reply import Reply
from ..core.settings import Settings
from ..disk.settings_files import checked_home, lamina_home
from ..fork.host import Host
from ..language.text import Text
from ..language.wording import counted
from ..layers.l1_results.step import HandedIn
from ..layers.recall.state import SELECT
from ..providers import OnEvent, Provider, open_provider
from ..providers.models import Cost, cost
from ..providers.offline import DEFAULT_TABLE
from .context import SessionContext
from .open import AgentOf, OpenedTranscript, SessionPlace, open_again, open_new
from .provider import limits_for, offline, prompt_for, provider_for
from .sync import MessageListSync

if TYPE_CHECKING:
    from ..conversation.compaction.commit import Compacted
    from ..conversation.request import Prompt
    from ..conversation.window.thresholds import Thresholds
    from ..layers.l4_compact.plan import Pivot
    from ..providers.sdk import SdkProvider

NO_USAGE = (
    "The server reports no token usage: the size of the conversation is estimated, and these calls are not part of the cost. "
    "For a stream of Chat Completions, request it with stream_options={'include_usage': True}."
)
LEFT_OUT = "The tool {name} runs on Anthropic's servers and is not sent to this model."
NO_KEY = "Summaries and notes are written by local rules instead of a model, because no API key was found. Pass a client or set the key."
ASYNC_CLIENT = (
    "Summaries and notes are written by local rules instead of a model, because the client is async. "
    "Use AsyncSession, or pass a sync client."
)


class MainCall(Ask, frozen=True):
    """The conversation's own call. The session's provider answers it, also where another provider answers side calls."""


class SessionBase:
    """One conversation and its provider: everything that `Session` and `AsyncSession` have in common."""

    _awaits: ClassVar[bool] = False  # whether an async-only client can be used

    def __init__(
        self,
        provider: str | Provider,
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
        cache_ttl: str | None = "auto",
        instructions: bool | None = None,
        memory: bool | None = None,
        recall: bool | None = None,
        extraction: bool | None = None,
        dreaming: bool | None = None,
        interactive: bool = True,
        offer_tools: bool = False,
        read_tool: str | None = None,
        selection: str | None = None,
        host: Host | None = None,
        agent_of: AgentOf | None = None,
    ) -> None:
        """Open a new session, or resume one.

        Args:
            provider: Wire format and model, such as `"anthropic:claude-sonnet-5-5"` or `"openai:gpt-5"`; or a provider object.
                `"offline"` needs no key and no network: local functions stand in for the model.
            system: The system prompt: a string or a list of text blocks.
            tools: Tool definitions, in the form the provider's API takes.
            max_tokens: Maximum length of an answer in tokens (default 8,000).
            client: Your own SDK client. By default, one is created if a key is found in the environment. Without either you can
                still prepare and record requests; `ask` needs one.
            cwd: The working directory. It determines the project the session belongs to.
            home: Directory for transcripts and memory. Defaults to `LAMINA_HOME` or `~/.lamina`.
            in_memory: Keep the session in memory only: no transcript is written.
            settings: The settings to use. Defaults to `Settings.load(cwd)`, which reads the settings files and the environment.
            policy: The thresholds and budgets of all layers: a `Policy` or its name, such as `"balanced"`. It replaces the numbers of
                the settings; only remote flags still change it.
            window: Size of the context window in tokens. Defaults to the model's own.
            resume: The session to continue: its id, the start of its id, or its transcript file. A session that is open in another
                process, or was last written by another program, is forked instead; `notices` says so.
            session_id: Id for a new session. Defaults to a random one.
            options: Further request fields, such as `temperature` or `thinking`.
            cache_ttl: Lifetime of the prompt cache: `"5m"`, `"1h"`, or `"auto"` for what the policy says (`lamina.cache.ttl`).
                `None` sends no cache marks.
            instructions: Whether to send instruction files, git status and the date before the first message. None, here and in the
                next four arguments, means what the settings say; they say yes by default.
            memory: Whether to use memory at all: its section in the system prompt, its index, and the next three.
            recall: Whether to add memories that match a message.
            extraction: Whether to save what the user stated, in the background after a turn.
            dreaming: Whether to consolidate memories in the background, about once a day.
            interactive: Whether a user is present. Without one, memories are not written in the background, unless the settings say
                so.
            offer_tools: Add Lamina's own tools to `tools`: Expand, MemorySearch, MemorySave and PastSearch, and Compact if the
                setting `lamina.compactTool` is on. Pass their calls to `answer_tool`.
            read_tool: Name of your own tool that reads local files, such as `"read_file"`. The files it read last are shown again
                after a compaction. Do not name a tool that reads files of another machine or container.
            selection: Text that the user has selected in their editor, sent once before the first message.
            host: What your loop offers to the layers: an observer of events, a tool runner, hooks. The session fills in what it can
                offer by itself.
            agent_of: Marks this session as the subagent of another one.

        A resumed session keeps the system prompt, tools, options and `max_tokens` it had, unless you pass new ones.

        Raises:
            InputError: An argument has the wrong form, or `session_id` is taken.
            SettingError: The provider is unknown.
            NoSuchSession: The session to resume does not exist.
            NewerVersion: The session to resume was written by a newer version of Lamina.
        """
        _check_types(cwd=cwd, home=home, resume=resume, window=window, policy=policy, session_id=session_id, read_tool=read_tool)
        _check_types(selection=selection, in_memory=in_memory, interactive=interactive, offer_tools=offer_tools)
        if not os.path.isdir(str(cwd)):
            raise InputError("cwd", f"the directory {cwd} does not exist", "create it or pass another one")
        check_type("host", host, Host, NoneType, words="a lamina.Host")
        check_type("agent_of", agent_of, AgentOf, NoneType, words="an AgentOf")
        self._lock = threading.RLock()
        self._closed = False
        self._aborted = threading.Event()
        switches = {"instructions": instructions, "memory": memory, "recall": recall, "extraction": extraction, "dream": dreaming}
        loaded = Settings.given_or_loaded(settings, cwd, home=home).with_arguments(**switches)
        self.provider = provider_for(provider, client)
        self._opened_providers = [self.provider] if isinstance(provider, str) else []
        # Validate all arguments first, so that a session that cannot be opened leaves no file and no lock behind.
        arguments = read_given(
            system=system,
            tools=tools,
            options=options,
            max_tokens=max_tokens,
            cache_ttl=cache_ttl,
            provider=self.provider.name,
        )
        if offer_tools and (taken := sorted(OWN_NAMES & set(tool_names(arguments.tools or ())))):
            raise InputError("tools", f"{', '.join(taken)}: Lamina's own tools have this name", "rename your tool")
        # A caller that passes settings has their findings.
        notices = [finding.text for finding in loaded.findings] if settings is None else []
        chosen = loaded.policy if policy is None else loaded.with_flags(policy)
        self._policy = policy
        self._window = window
        limits = limits_for(self.provider, chosen, loaded, window=window, options=arguments.options or {}, notices=notices)
        where = None if in_memory else checked_home(home) if home is not None else lamina_home(os.environ)
        self.home = where.expanduser().absolute() if where is not None else None
        self.cwd = Path(cwd).resolve()
        place = SessionPlace(self.home, self.cwd, agent_of)
        opened = open_again(place, resume, _now) if resume is not None else open_new(place, session_id)
        self.id = opened.session_id
        notices[:0] = opened.notices
        if self.home is None and not in_memory:
            notices.append(
                "No home directory found, so this session is kept in memory only. Set LAMINA_HOME or HOME to save sessions."
            )
        prompt = prompt_for(self.provider, opened.live.log.view.snapshot, arguments, loaded, chosen, limits)
        self._c = self._conversation(opened, prompt, loaded, chosen, limits, notices, free_ttl=arguments.free_ttl)
        self._tell_left_out_tools()
        self._answers_side: Provider | None = None
        self._list_sync = MessageListSync(self._c, resumed=resume is not None)
        self._cost = Cost()
        self._context = SessionContext(
            self,
            arguments,
            resumed=resume is not None,
            interactive=interactive,
            offer_tools=offer_tools,
            read_tool=read_tool,
            selection=selection,
        )
        if host is not None:
            self._context.lend(host)

    def _conversation(
        self,
        opened: OpenedTranscript,
        prompt: Prompt,
        settings: Settings,
        policy: Policy,
        limits: Thresholds,
        notices: list[str],
        *,
        free_ttl: bool,
    ) -> Conversation:
        path = opened.store.path
        return Conversation(
            store=opened.store,
            live=opened.live,
            prompt=prompt,
            policy=policy,
            limits=limits,
            settings=settings,
            capabilities=self.provider.capabilities,
            directory=path.with_suffix("") if path is not None else None,
            home=self.home,
            cwd=self.cwd,
            notices=notices,
            ask_side=self._ask_side,
            clock=_now,
            free_ttl=free_ttl,
        )

    def _refresh_settings(self) -> None:
        """Reload changed settings before a decision, so that a disabled feature or a changed number applies from now on."""
        old, new = self._c.settings, self._c.settings.refreshed()
        if new is old:
            return
        texts = {finding.text for finding in old.findings}
        self._c.notify(*(finding.text for finding in new.findings if finding.text not in texts))
        policy, notices = new.policy if self._policy is None else new.with_flags(self._policy), list[str]()
        options = self._c.prompt.options
        limits = limits_for(self.provider, policy, new, window=self._window, options=options, notices=notices)
        self._c.notify_once(*notices)
        self._c.use_settings(new, policy, limits)

    @contextmanager
    def _open(self) -> Iterator[Conversation]:
        """Lock the session and return its conversation. A session that was closed during the wait raises."""
        with self._lock:
            self._check_open()
            self._refresh_settings()
            yield self._c

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(self.id, in_memory=self.home is None)

    # Providers

    @property
    def _side(self) -> Provider:
        """The provider for side calls (summaries, notes).

        This is the session's own provider if it has a client, else one opened with a key from the environment, else the offline
        provider; the last case adds a notice, once.
        """
        if self._answers_side is None:
            if self.provider.name == "offline":
                self._answers_side = offline(getattr(self.provider, "table", DEFAULT_TABLE))
            elif getattr(self.provider, "can_call", True):
                self._answers_side = self.provider
            else:
                try:
                    self._answers_side = open_provider(f"{self.provider.name}:{self.provider.model}")
                except SettingError:
                    self._c.notify(NO_KEY)
                    self._answers_side = offline()
            if not self._awaits and getattr(self._answers_side, "only_async", False):
                self._c.notify(ASYNC_CLIENT)
                self._answers_side = offline()
        return self._answers_side

    def _provider_of(self, ask: Ask) -> Provider:
        return self.provider if isinstance(ask, MainCall) else self._side

    def _ask_side(self, ask: Ask, abort: threading.Event) -> Reply:
        """Make a side call, from any thread. An abort returns at once and abandons the call."""
        from ..fork.model_call import ask_until

        return ask_until(abort, self._side, ask)

    def _tell_left_out_tools(self) -> None:
        """Notify the user of tools that were given for another provider and cannot be sent to this one."""
        tools = self._c.prompt.tools if self.provider.capabilities.wire == "chat" else ()
        names = [str(tool.get("name") or tool.get("type")) for tool in tools if not {"input_schema", "function"} & tool.keys()]
        self._c.notify_once(*(LEFT_OUT.format(name=name) for name in names))

    # The flows of a turn

    def _preparing(self) -> Flow[Wire]:
        self._context.bring()
        return (yield from turn.before_call(self._c))

    def _exchanging(self, on_event: OnEvent | None) -> Flow[Reply]:
        request = yield from self._preparing()
        try:
            reply: Reply = yield MainCall(request, "chat", on_event)
        except StreamBroken as error:
            # It has no stop reason, so none of its tool calls is ever executed.
            from ..fork.loop import partial

            if (reply := partial(error.partial, self.provider.model)).blocks:
                self._record(reply)
            raise
        return self._record(reply)

    def _asking(self, on_event: OnEvent | None) -> Flow[Reply]:
        if on_event is not None and not callable(on_event):
            raise InputError("on_event", f"must be a function, not {type(on_event).__name__}")
        try:
            return (yield from self._exchanging(on_event))
        except (BadRequest, PromptTooLong) as error:
            if not (yield from turn.recover(self._c, error)):
                raise
            return (yield from self._exchanging(on_event))

    def _recovering(self, error: BaseException) -> Flow[bool]:
        check_type("error", error, BaseException)
        if not isinstance(error, ProviderError):  # an exception of the SDK
            from ..providers.faults import read_fault, typed_error

            error = typed_error(read_fault(error), who=self.provider.name, now=0.0)
        return (yield from turn.recover(self._c, error))

    def _compacting(self, instructions: str, pivot: Pivot | None) -> Flow[Compacted]:
        check_type("instructions", instructions, str)
        if pivot is not None:
            from ..layers.l4_compact.plan import Pivot

            check_type("pivot", pivot, Pivot)
        return (yield from turn.compact_now(self._c, instructions, pivot))

    def _record(self, response: object) -> Reply:
        reply = response if isinstance(response, Reply) else self.provider.read(response)
        self._c.use_capabilities(self.provider.capabilities)
        records = turn.after_call(self._c, reply)
        for record in records:
            self._list_sync.note(record)
        if records and reply.usage is not None:
            self._cost += cost(reply.model or self.provider.model, reply.usage)
        elif records and reply.complete:
            self._c.notify_once(NO_USAGE)
        return reply

    # Closing

    def abort(self) -> None:
        """Close the session immediately. May be called from any thread.

        Everything recorded so far is in the transcript. Background work and a running model call are abandoned.
        """
        self._aborted.set()
        self._c.background.abort()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._c.store.close()

    def _finish(self, timeout: float) -> None:
        """Wait for background work, write its results and close the transcript.

        The session is marked closed before the wait, so other threads get `SessionClosed` instead of waiting too.
        """
        check_type("timeout", timeout, int, float, words="a number")
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            # No turn is left that could use a memory selection or a living cache.
            for name in (SELECT, KEEP_ALIVE):
                self._c.background.abort(name)
            for name in self._c.background.close(timeout):
                limit = counted(round(timeout), "second")
                self._c.notify(
                    Text("Background job '{name}' did not finish within {limit} and was cancelled.", name=name, limit=limit)
                )
            with self._lock:
                take_job_results(self._c)
        finally:  # Ctrl-C while waiting too
            with self._lock:
                self._c.store.sync(force=True)
                self._c.store.close()
            for provider in self._own_providers():
                provider.close()

    def _own_providers(self) -> list[SdkProvider]:
        """Return the providers that this session opened; one that was passed in is the caller's to close."""
        side = self._answers_side
        opened = [*self._opened_providers, *([side] if side is not None and side is not self.provider else [])]
        if all(provider.name == "offline" for provider in opened):
            return []  # most sessions of a few calls: nothing that speaks to a server is loaded
        from ..providers.sdk import SdkProvider

        return [provider for provider in opened if isinstance(provider, SdkProvider)]


_TEXT, _PATH = (str, NoneType), (str, PathLike, NoneType)
_TYPES: dict[str, tuple[type, ...]] = {
    "cwd": (str, PathLike),
    "home": _PATH,
    "resume": _PATH,
    "window": (int, NoneType),
    "policy": (str, Policy, NoneType),
    "session_id": _TEXT,
    "read_tool": _TEXT,
    "selection": _TEXT,
    "in_memory": (bool,),
    "interactive": (bool,),
    "offer_tools": (bool,),
}


def _check_types(**arguments: object) -> None:
    for name, value in arguments.items():
        check_type(name, value, *_TYPES[name])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def working(session: SessionBase) -> AbstractContextManager[Conversation]:
    """Lock a session and return its conversation, for an agent loop. Other threads wait until the block ends."""
    return session._open()


def add_results(session: SessionBase, results: Sequence[ToolResult | HandedIn]) -> None:
    """Add several tool results as one message."""
    with session._open() as c:
        session._list_sync.note(turn.add_results(c, results))


def side_provider(session: SessionBase) -> Provider:
    """Return the provider of a session's side calls. Call it in the conversation's own thread first: it may add a notice."""
    return session._side


def context_of(session: SessionBase) -> SessionContext:
    """Return what a session adds by itself, for an agent loop that brings a part of it."""
    return session._context


def conversation_of(session: SessionBase) -> Conversation:
    """Return a session's conversation without locking it. Use this only where no other thread uses the session."""
    return session._c

"""Agent: the reference tool loop on top of Session.

    with lamina.Agent.open("anthropic:claude-sonnet-5-5", cwd=".") as agent:
        print(agent.run("fix the failing test").text)

It provides the prompt (our system text, the tools, the instruction files as a first reminder), runs the model's calls under the
permission function, and continues until the model calls no more tools. `abort` may be called from anywhere at any time: everything so
far is in the transcript, and the next turn continues from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, get_args
from uuid import uuid4

import msgspec

from .. import turn
from ..core.blocks import ToolUse, tool_use
from ..core.effects import drive
from ..core.errors import Aborted, InputError, SessionClosed, UsageError
from ..core.inputs import check_type
from ..core.reply import Reply
from ..core.settings import Permissions, Settings
from ..disk.settings_files import lamina_home, user_home
from ..fork import loop
from ..fork.host import Bridge, Host, Source
from ..fork.tool_runner import AskPermission, CompletedCall, DenialWithWords, PermissionAnswer, ToolRunner, tool_runner_for
from ..language.text import Text
from ..layers.l7_agents.tools import agent_tool, send_tool
from ..layers.l7_agents.types import Catalog, load_agent_types
from ..prompt.instruction_files import Approved
from ..prompt.system import system_prompt
from ..providers import OnEvent, Provider
from ..session.base import context_of, conversation_of, working
from ..session.context import services
from ..session.edits import find_result
from ..session.memory_binding import MemoryBinding
from ..session.reminders import Reminders
from ..session.session import Session
from ..tools.conversation_tools import compact_tool, past_search_tool, render_todos
from ..tools.hooks.protocol import Event as HookEvent
from ..tools.hooks.protocol import HookOutcome
from ..tools.hooks.run import HookRunner
from ..tools.permissions.request import AskUser as Question
from ..tools.permissions.request import Deny, Mode, read_mode
from ..tools.permissions.rules import PermissionRule, PermissionRules, read_rules
from ..tools.registry import builtin_tools
from ..tools.tool import Tool, ToolOutput, definition
from .agent_hooks import hook_runner_for
from .agent_run import AgentRun
from .agent_tool import AgentPool
from .driver import Driver, result_event
from .messaging import Messaging

if TYPE_CHECKING:
    from ..conversation.compaction.commit import Compacted

# A hook that says "not done yet" sends the model back to work. After this many times, the hook itself is stuck.
MOST_STOPS = 3

# Hooks that concern a subagent's own conversation. The others concern the user's.
IN_SUBAGENTS = ("PreCompact", "PostCompact", "SubagentStop")
# Session arguments that are passed on to subagents.
HANDED_ON = ("window", "policy", "max_tokens", "cache_ttl")

# Context that is worth a turn: messages, and reports of agents.
NEWS = ("attachment:mail", "attachment:agents")
# Sent to the model to continue an interrupted answer, since the API accepts no conversation that ends with one.
GO_ON = "The answer above was cut off. Continue where it ends."


def default_tools(settings: Settings) -> tuple[Tool, ...]:
    """Return the built-in tools, and PastSearch and Compact if the settings offer them."""
    tools = builtin_tools()
    if settings.past_search:
        tools = (*tools, past_search_tool())
    return (*tools, compact_tool()) if settings.compact_tool else tools


class TurnResult(msgspec.Struct, frozen=True):
    """The result of a turn."""

    text: str
    ended: loop.Ended
    rounds: int
    reply: Reply | None = None
    notices: tuple[str, ...] = ()


class Agent:
    """A session with tools, permissions, instruction files and hooks that runs whole turns by itself.

    Open it with `Agent.open`, as a context manager, and call `run` for each user message.
    """

    _given: Mapping[str, Any] = {}
    _in_turn = False
    prompt_id: str | None = None  # of the current turn, for hooks

    def __init__(
        self,
        session: Session,
        *,
        tools: Sequence[Tool] | None = None,
        mode: Mode | None = None,
        ask: AskPermission | None = None,
        environ: Mapping[str, str] | None = None,
        rounds: int = loop.ROUNDS,
        on_event: OnEvent | None = None,
        catalog: Catalog | None = None,
        under: AgentRun | None = None,
        memory: MemoryBinding | None = None,
        interactive: bool = False,
        bridge: Bridge | None = None,
    ) -> None:
        """`catalog`: the agent types it may start; None: no Agent tool. `under` and `memory` are for subagents. `interactive`: a user is
        present, so memories are written at the end of a turn. `bridge`: sends messages to `bridge:ID`."""
        if not isinstance(session, Session):
            raise UsageError(f"Agent needs a Session, not {type(session).__name__}. Under an event loop, write your own loop.")
        self.session = session
        self._under = under
        self._depth: int = under.parent._depth + 1 if under is not None else 0
        self.agents: AgentPool | None = None
        self.mail = under.mail if under is not None else Messaging.main(session) if catalog is not None else None
        self.tools = tuple(tools) if tools is not None else default_tools(session.settings)
        if self.mail is not None:
            self.tools = self.mail.with_send_tool(self.tools, added=under is None)
            if catalog is not None:
                self.agents = AgentPool(self, catalog, self.mail)
                self.tools = (*self.tools, self.agents.tool)
        if mode is not None and mode not in get_args(Mode):
            raise InputError("mode", f"unknown mode {mode!r}", Text("use one of {options}", options=", ".join(get_args(Mode))))
        self.mode: Mode = mode or read_mode(session.settings.permissions.mode) or "ask"
        self._allowed: tuple[PermissionRule, ...] = ()  # by the user or by this loop, for this conversation
        self._rules: tuple[Permissions, PermissionRules] | None = None
        self.on_event = on_event
        self.rounds = rounds
        # Hooks and commands see the user's own environment and the variables of the settings, never ours.
        self.environ = {**(os.environ if environ is None else environ), **session.settings.env}
        own = context_of(session)
        self.memory = memory or own.memory
        self.hooks: HookRunner = hook_runner_for(self, under)
        self.tool_runner: ToolRunner = self._make_tool_runner(ask)
        self.context = self.tool_runner.context
        self.reminders = Reminders(session, self.memory, self.environ, own.selection)
        own.use(self.memory, self.reminders)
        self._run_calls = self.agents.run if self.agents is not None else self.tool_runner.run
        self._driver = Driver(self)
        for rule in self.memory.rules:
            self.allow(rule)
        own.lend(self._make_host(interactive, bridge))

    def _make_tool_runner(self, ask: AskPermission | None) -> ToolRunner:
        session, under, c = self.session, self._under, conversation_of(self.session)
        # Output too large to show is kept next to the transcript; a session in memory keeps none.
        scratch = session.path.with_suffix("") / "tool-results" if session.path is not None else None
        tool_runner = tool_runner_for(
            self.tools,
            cwd=session.cwd,
            environ=self.environ,
            home=session.home,
            memory_dir=self.memory.directory,
            mode=under.parent.tool_runner.mode if under is not None else lambda: self.mode,
            rules=under.parent.tool_runner.rules if under is not None else lambda: self.rules,
            roots=_extra_roots(session, self.environ),
            readable=self.memory.readable,
            scratch=scratch,
        )
        abort = under.abort if under is not None else Event()
        return msgspec.structs.replace(
            tool_runner,
            context=msgspec.structs.replace(
                tool_runner.context,
                keeper=self.memory.keep,
                abort=abort,
                **services(c),
            ),
            ask=self._asking(ask) if ask is not None else None,
            find_result=partial(find_result, c) if scratch is not None else None,
            on_start=lambda call: self.tell({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input}),
            on_end=lambda ran: self.tell(result_event(ran)),
            on_output=lambda call, text: self.tell({"type": "tool_output", "id": call.id, "text": text}),
            hooks=self.hooks,
        )

    def _make_host(self, interactive: bool, bridge: Bridge | None) -> Host:
        """Return what the layers may use of this loop."""
        return Host(
            subagent=self._under is not None,
            tool_runner=self.tool_runner,
            reads=self.context.reads,
            todos=lambda: render_todos(self.context.todos) if self.context.todos else None,
            restorable=self.agents.restorables if self.agents is not None else None,
            pre_compact=lambda trigger, instructions: self._hook(
                "PreCompact", matching=trigger, trigger=trigger, custom_instructions=instructions or None
            ),
            post_compact=lambda trigger, summary: self._hook(
                "PostCompact", matching=trigger, trigger=trigger, compact_summary=summary
            ),
            session_start=lambda source: self._hook("SessionStart", matching=source, source=source),
            reminder=self.reminders.first_reminder,
            memory=self.memory.access(interactive=interactive),
            observer=lambda name, data: self.tell({"type": "layer", "name": name, "data": data}),
            bridge=bridge,
        )

    @classmethod
    def open(
        cls,
        provider: str | Provider,
        *,
        cwd: str | Path = ".",
        settings: Settings | None = None,
        system: str | None = None,
        tools: Sequence[Tool] | None = None,
        resume: str | Path | None = None,
        approved: Approved | None = None,
        environ: Mapping[str, str] | None = None,
        mode: Mode | None = None,
        ask: AskPermission | None = None,
        on_event: OnEvent | None = None,
        interactive: bool = False,
        bridge: Bridge | None = None,
        **session: Any,
    ) -> Self:
        """Open a session with the prompt an agent needs. `session` is passed to Session: home, in_memory, max_tokens, window, …"""
        check_type("cwd", cwd, str, os.PathLike)
        check_type("tools", tools, Sequence, NoneType, words="a list of tools")
        catalog, where = None, Path(cwd).resolve()
        settings = Settings.given_or_loaded(settings, where, home=session.get("home"))
        chosen = tuple(tools) if tools is not None else default_tools(settings)
        if tools is None:
            own = Path(home).expanduser() if (home := session.get("home")) else lamina_home(os.environ)
            catalog = load_agent_types(where, own, trusted=settings.trusted)
            chosen = (*chosen, send_tool(), agent_tool(catalog))
        prompt = system_prompt(base=system, cwd=where, tools=[tool.name for tool in chosen], platform=sys.platform)
        opened = Session(
            provider,
            cwd=where,
            settings=settings,
            resume=resume,
            system=prompt if resume is None else None,
            tools=[definition(tool) for tool in chosen] if resume is None else None,
            **session,
        )
        try:
            agent = cls(
                opened,
                tools=tools,
                mode=mode,
                ask=ask,
                environ=environ,
                on_event=on_event,
                catalog=catalog,
                interactive=interactive,
                bridge=bridge,
            )
            agent._given = {name: session[name] for name in HANDED_ON if name in session}
            with working(opened) as c:
                c.notify(*(catalog.notices if catalog is not None else ()))
                if c.log.view.snapshot is None:  # a transcript that another program wrote has no prompt
                    c.replace_prompt(prompt, [definition(tool) for tool in chosen])
            context_of(opened).begin(hook=agent._hook, approved=approved)
            if agent.mail is not None:
                agent.mail.open()
        except BaseException:
            opened.close()
            raise
        return agent

    # A turn

    def run(self, prompt: str | Sequence[Mapping[str, Any]]) -> TurnResult:
        """Send a user message and continue until the model is done."""
        with self._stoppable():
            self.prompt_id = str(uuid4())
            said = self._hook("UserPromptSubmit", prompt=_words(prompt))
            notices = (*said.messages, *said.faults)
            if said.block is not None:
                return TurnResult(said.block, "refused", 0, notices=notices)
            self.memory.note_message(self.session.add_user(prompt), _words(prompt))
            self._take_news()
            for text in said.context:
                self.reminders.add("hook", text)
            answer = self._carry_on()
            return msgspec.structs.replace(answer, notices=(*notices, *answer.notices))

    def go_on(self) -> TurnResult:
        """Continue without a new message: after an abort, or when the rounds were used up."""
        with self._stoppable():
            if self._cut_off():
                self.reminders.add("note", GO_ON)
            return self._carry_on()

    def answer_news(self) -> TurnResult | None:
        """Run a turn for messages and agents' reports that have arrived, without a user message. None if there are none."""
        with self._stoppable():
            with working(self.session) as conversation:
                known = len(conversation.log.view.items)
                self._take_news()
                kinds = [item.kind for item in conversation.log.view.items[known:]]
            return self._carry_on() if any(kind in NEWS for kind in kinds) else None

    def run_command(self, command: str) -> ToolOutput:
        """Run a shell command of the user as the Bash tool does. The model sees it and its output with the next message.

        Typing it answers the permission question; deny rules, the mode `read-only` and hooks still apply."""
        with self._stoppable():
            runner = msgspec.structs.replace(self.tool_runner, ask=lambda _call, _question: "yes", on_end=None)
            [ran] = runner.run([tool_use(f"shell_{uuid4().hex}", "Bash", {"command": command})])
            if not isinstance(ran.verdict, Deny):
                self.reminders.add("shell", f"$ {command}\n{ran.result.text}")
                self._after_results([ran])
            return ran.output

    def compact(self, instructions: str = "") -> Compacted:
        """Summarise the conversation now, or raise NotCompacted. `abort` leaves everything unchanged."""
        with self._stoppable(), working(self.session) as conversation:
            return drive(turn.compact_now(conversation, instructions), self._driver.perform)

    def abort(self) -> None:
        """Stop the current turn (the model call, its tools, or a hook) and every agent. A signal handler may call this, so it takes no
        lock during a turn."""
        self.context.abort.set()
        if self.agents is not None and not self._in_turn:
            self.agents.stop()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Turn Ctrl-C into an abort during a turn, wherever it arrives. An abort also stops background agents."""
        if self._under is None:
            self.context.abort.clear()
        self._in_turn = True
        try:
            yield
        except KeyboardInterrupt:
            self.context.abort.set()
            raise Aborted from None
        finally:
            self._in_turn = False
            if self.agents is not None and self.context.abort.is_set():
                self.agents.stop()

    def _cut_off(self) -> bool:
        """Whether the conversation ends with an incomplete answer."""
        with working(self.session) as conversation:
            view = conversation.log.view
            messages = view.messages()
            whole = view.items[-1].stop_reason not in (None, *loop.FULL) if view.items else True
            return bool(messages) and messages[-1]["role"] == "assistant" and not whole

    def _carry_on(self) -> TurnResult:
        notices: list[str] = []
        outcome = self._driver.carry_on(self.rounds)
        rounds = outcome.rounds
        for sent_back in range(MOST_STOPS):
            if outcome.ended == "stopped":  # by a hook, so the Stop hooks are not asked
                break
            stopped = self._stop_hook(outcome, sent_back)
            notices += [*stopped.messages, *stopped.faults]
            if stopped.block is None or outcome.ended != "answered":
                break
            self.reminders.add("hook", stopped.block)
            outcome = self._driver.carry_on(self.rounds)
            rounds += outcome.rounds
        self.session.end_turn()
        text = outcome.why if outcome.ended == "stopped" else outcome.reply.text
        return TurnResult(text, outcome.ended, rounds, outcome.reply, (*notices, *self.memory.take_notices()))

    def _stop_hook(self, outcome: loop.Outcome, sent_back: int) -> HookOutcome:
        told: dict[str, Any] = {"stop_hook_active": sent_back > 0, "last_assistant_message": outcome.reply.text}
        if self._under is None:
            return self._hook("Stop", **told)
        path = str(self.session.path or "")
        return self._hook("SubagentStop", matching=self._under.wanted.name, agent_transcript_path=path, **told)

    def _after_results(self, ran: Sequence[CompletedCall]) -> None:
        for one in ran:
            for text in one.context:
                self.reminders.add("hook", text)
        read = [one.output.facts.get("path") for one in ran if one.call.name == "Read" and not one.output.is_error]
        self.reminders.add_nested([str(path) for path in read if path is not None])  # None: a Read tool that is not ours
        self._take_news()

    def _take_news(self) -> None:
        """Add what arrived in the meantime to the conversation: a new date, messages, reports of agents."""
        self.reminders.new_day()
        if self.mail is not None:
            self.mail.land(self.session)
        if self.agents is not None:
            self.agents.land()

    def _hook(self, event: HookEvent, *, matching: str | None = None, **payload: Any) -> HookOutcome:
        if self._under is not None and event not in IN_SUBAGENTS:
            return HookOutcome()
        said = self.hooks.run(event, payload, matching=matching, abort=self.context.abort)
        if self.context.abort.is_set():
            raise Aborted
        return said

    # For other code

    def notify(self, *sentences: str) -> None:
        """Add sentences for the user to the session's notices."""
        conversation_of(self.session).notify(*sentences)

    def restore_after_compaction(self, kind: str, key: str, text: Source | None) -> None:
        """Register a text that is restored after every compaction, as on Session."""
        self.session.restore_after_compaction(kind, key, text)

    def tell(self, event: dict[str, Any]) -> None:
        """Pass an event to `on_event`, if there is one."""
        if self.on_event is not None:
            self.on_event(event)

    def _asking(self, ask: AskPermission) -> AskPermission:
        def asked(call: ToolUse, question: Question) -> PermissionAnswer | DenialWithWords:
            consent = ask(call, question)
            if consent == "always" and question.suggestion is not None:
                self.allow(question.suggestion)
            return consent

        return asked

    def allow(self, rule: str) -> None:
        """Allow calls that match the rule, from the next call on and in this conversation only. To keep it, add it to the settings."""
        self._allowed += read_rules(Permissions(allow=(rule,))).allow
        self._rules = None

    @property
    def rules(self) -> PermissionRules:
        """The permission rules in force: those of the settings as they are now, and what was allowed in this conversation."""
        permissions = self.session.settings.permissions
        if self._rules is None or self._rules[0] is not permissions:
            read = read_rules(permissions)
            self._rules = permissions, msgspec.structs.replace(read, allow=(*read.allow, *self._allowed))
        return self._rules[1]

    # Closing

    def close(self, timeout: float = 60.0) -> None:
        """Wait up to `timeout` seconds for background work and agents, then stop them. Closing twice is fine."""
        mail = self.mail if self._under is None else None
        try:
            left = self.agents.close(timeout) if self.agents is not None else timeout
            if mail is not None:
                mail.hang_up()
                with suppress(SessionClosed):  # last messages from agents are read when the session is resumed
                    mail.land(self.session, beyond=False)
            self.session.close(left)
        finally:
            if mail is not None:
                mail.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _words(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a prompt, for hooks. An invalid prompt has none; `add_user` refuses it."""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list | tuple):
        return ""
    return "\n".join(block["text"] for block in prompt if isinstance(block.get("text"), str))


def _extra_roots(session: Session, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the directories named in the settings. `~/` is the user's home, and relative paths start at the working directory; paths
    that start with `~other/` are ignored."""
    person = user_home(environ)
    named = session.settings.permissions.directories
    own = [person / text[2:] for text in named if text.startswith("~/") and person is not None]
    return (*own, *(session.cwd / text for text in named if not text.startswith("~")))

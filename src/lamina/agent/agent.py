"""Agent: the reference tool loop on top of Session.

    with lamina.Agent.open("anthropic:claude-sonnet-5-5", cwd=".") as agent:
        print(agent.run("fix the failing test").text)

It brings the prompt (our system text, the tools, the instruction files as one first reminder), runs the calls the model makes under the
permission function, and carries on until the model has nothing more to ask of the tools. `abort` may be called from anywhere at any time:
what was said so far is in the transcript, and the next turn goes on from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

import msgspec

from .. import turn
from ..core.blocks import ToolUse
from ..core.effects import drive
from ..core.errors import Aborted, SessionClosed, UsageError
from ..core.reply import Reply
from ..core.settings.collection_kinds import Permissions
from ..core.settings.resolution import Settings
from ..disk.settings_files import lamina_home
from ..fork import loop
from ..fork.host import Host, Source
from ..fork.tool_runner import AskPerson, Consent, No, Ran, run_calls
from ..hooks.events import Event as HookEvent
from ..hooks.events import HookOutcome
from ..hooks.run import run_hooks
from ..layers.l6_dream.trigger import recover_dreams
from ..layers.l7_agents.tools import agent_tool, send_tool
from ..layers.l7_agents.types import AGENT, Catalog, load_agent_types, pick_tools
from ..memory.memory import agent_memory_mode
from ..permissions.rules import PermissionRules, read_rules
from ..permissions.verdicts import AskUser, Mode, read_mode
from ..prompt.instruction_files import Approved
from ..prompt.system import system_prompt, with_section
from ..providers import OnEvent, Provider
from ..session.session import Session
from ..tools.registry import builtin_tools
from ..tools.todo import render_todos
from ..tools.tool import Tool, definition
from .agent_tool import DEEPEST, Delegating
from .driver import CallEvents, Driver
from .memory_binding import Remembering
from .messaging import Mailing
from .reminders import Briefing
from .subagent import Hire, Under, extra_roots, subagent_session, with_section_behind
from .subagent_memory import OwnMemory
from .tool_access import desk_for

if TYPE_CHECKING:
    from ..conversation.compaction.commit import Compacted

# A hook that says "not done yet" sends the model back to work; more often than this it is the hook that is stuck.
MOST_STOPS = 3

# The hooks that concern a subagent's own conversation; the others are about the person's.
IN_SUBAGENTS = ("PreCompact", "PostCompact")
# What a session was opened with that its subagents' are opened with too.
HANDED_ON = ("window", "policy", "max_tokens", "cache_ttl")

# What the model reads when it is to go on with an answer that was stopped: the API takes no conversation that ends with it.
GO_ON = "The answer above was cut off. Go on from where it ends."


class Answer(msgspec.Struct, frozen=True):
    """What a turn came to."""

    text: str
    ended: loop.Ended
    rounds: int
    reply: Reply | None = None
    notices: tuple[str, ...] = ()


class Agent:
    _given: Mapping[str, Any] = {}
    _in_turn = False

    def __init__(
        self,
        session: Session,
        *,
        tools: Sequence[Tool] | None = None,
        mode: Mode | None = None,
        ask: AskPerson | None = None,
        environ: Mapping[str, str] | None = None,
        rounds: int = loop.ROUNDS,
        on_event: OnEvent | None = None,
        catalog: Catalog | None = None,
        under: Under | None = None,
        interactive: bool = False,
        bridge: Callable[[str, str, str], str | None] | None = None,
    ) -> None:
        """`catalog`: the agent types it may start; None: it has no Agent tool. `under`: it is a subagent. `interactive`: a person is
        there, so that memories are written at the end of a turn (X2). `bridge`: takes messages to `bridge:ID`."""
        if not isinstance(session, Session):
            raise UsageError(
                f"An Agent carries on a Session, not {type(session).__name__}; under an event loop write your own loop."
            )
        self.session = session
        self._under = under
        self.agents: Delegating | None = None
        self.mail = under.mail if under is not None else Mailing.main(session) if catalog is not None else None
        given = tuple(tools if tools is not None else builtin_tools())
        if self.mail is not None:
            given = self.mail.among(given, added=under is None)
            if catalog is not None:
                depth = under.depth if under is not None else 0
                self.agents = Delegating(session, catalog, hire=self._hire, tell=self.tell, mail=self.mail, depth=depth)
        self.tools = (*given, self.agents.tool) if self.agents is not None else given
        self.mode: Mode = mode or read_mode(session.settings.permissions.mode) or "ask"
        self.rules: PermissionRules = read_rules(session.settings.permissions)
        self.on_event = on_event
        self._bridge = bridge
        self.rounds = rounds
        # What hooks and commands see: the person's own environment and the variables of the settings, never ours.
        self.environ = {**(os.environ if environ is None else environ), **session.settings.env}
        # ToolOutput too large to show is kept beside the transcript; a session in memory keeps none.
        scratch = session.path.with_suffix("") / "tool-results" if session.path is not None else None
        self.memory = Remembering(session) if under is None else OwnMemory(session, under.kind)
        desk = desk_for(
            self.tools,
            cwd=session.cwd,
            environ=self.environ,
            home=session.home,
            memory_dir=self.memory.directory,
            mode=under.mode if under is not None else lambda: self.mode,
            rules=under.rules if under is not None else lambda: self.rules,
            roots=extra_roots(session, self.environ),
            readable=self.memory.readable,
            scratch=scratch,
        )
        self.context = msgspec.structs.replace(
            desk.context,
            keeper=self.memory.keeper(),
            expand=session._opened,
            abort=under.abort if under is not None else Event(),
        )
        shown = CallEvents(self.tell)
        self.desk = msgspec.structs.replace(
            desk,
            context=self.context,
            ask=self._asking(ask) if ask is not None else None,
            on_start=shown.started,
            on_end=shown.ended,
            on_output=shown.printed,
        )
        self.briefing = Briefing(session, self.memory, self.environ)
        self._driver = Driver(
            session,
            abort=self.context.abort,
            tell=self.tell,
            run_calls=self._run_tools,
            after_results=self._after_results,
            saw=under.saw if under is not None else None,
        )
        for rule in self.memory.rules:
            self.allow(rule)
        session.lend(self._host(interactive=interactive))
        with session._working() as conversation:
            recover_dreams(conversation)

    def _host(self, *, interactive: bool) -> Host:
        """What the layers may use of this loop."""
        return Host(
            subagent=self._under is not None,
            desk=self.desk,
            reads=self.context.reads,
            todos=lambda: render_todos(self.context.todos) if self.context.todos else None,
            restorable=self.agents.restorables if self.agents is not None else None,
            pre_compact=lambda trigger, instructions: self._hook(
                "PreCompact", matching=trigger, trigger=trigger, custom_instructions=instructions
            ),
            post_compact=lambda trigger, summary: self._hook("PostCompact", matching=trigger, trigger=trigger, summary=summary),
            session_start=lambda source: self._hook("SessionStart", matching=source, source=source),
            reminder=self.briefing.first_reminder,
            memory=self.memory.lent(interactive=interactive) if self._under is None else None,
            observer=lambda name, data: self.tell({"type": "layer", "name": name, "data": data}),
            bridge=self._bridge,
        )

    @classmethod
    def open(
        cls,
        provider: str | Provider = "offline",
        *,
        cwd: str | Path = ".",
        settings: Settings | None = None,
        system: str | None = None,
        tools: Sequence[Tool] | None = None,
        resume: str | Path | None = None,
        approved: Approved | None = None,
        environ: Mapping[str, str] | None = None,
        mode: Mode | None = None,
        ask: AskPerson | None = None,
        on_event: OnEvent | None = None,
        interactive: bool = False,
        bridge: Callable[[str, str, str], str | None] | None = None,
        **session: Any,
    ) -> Self:
        """Open a session with the prompt an agent needs. `session` goes to Session: home, in_memory, max_tokens, window, …"""
        chosen, catalog = tuple(tools if tools is not None else builtin_tools()), None
        where = Path(cwd).resolve()
        if tools is None:
            own = session.get("home") or lamina_home(os.environ)
            catalog = load_agent_types(where, own, trusted=settings is not None and settings.trusted)
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
            opened._notify(*(catalog.notices if catalog is not None else ()))
            remembering = agent.memory.section([tool.name for tool in chosen])
            opened._give_prompt(with_section(prompt, remembering), [definition(tool) for tool in chosen])
            agent.briefing.begin(agent._hook, resumed=resume is not None, approved=approved)
            if agent.mail is not None:
                agent.mail.open()
        except BaseException:
            opened.close()
            raise
        return agent

    # A turn

    def run(self, prompt: str | Sequence[Mapping[str, Any]]) -> Answer:
        """Say something and carry on until the model is done."""
        with self._stoppable():
            said = self._hook("UserPromptSubmit", prompt=_words(prompt))
            notices = (*said.messages, *said.faults)
            if said.block is not None:
                return Answer(said.block, "refused", 0, notices=notices)
            self.memory.heard(self.session.add_user(prompt), _words(prompt))
            self.briefing.new_day()
            self._land()
            for text in said.context:
                self.briefing.add("hook", text)
            answer = self._carry_on()
            return msgspec.structs.replace(answer, notices=(*notices, *answer.notices))

    def go_on(self) -> Answer:
        """Carry on without a new message: after an abort, or when the rounds were used up."""
        with self._stoppable():
            if self._cut_off():
                self.briefing.add("note", GO_ON)
            return self._carry_on()

    def compact(self, instructions: str = "") -> Compacted:
        """Summarise what was said, now; `abort` leaves everything as it was."""
        with self._stoppable(), self.session._working() as conversation:
            return drive(turn.compact_now(conversation, instructions), self._driver.perform)

    def abort(self) -> None:
        """Stop the turn under way (the call to the model, the tools it called, or a hook) and every agent. It may be called from a
        signal's handler, so while a turn is under way it takes no lock."""
        self.context.abort.set()
        if self.agents is not None and not self._in_turn:
            self.agents.stop()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """While a turn is under way, Ctrl-C is an abort wherever it arrives. An abort ends what works in the background too."""
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
        """Whether the conversation ends with an answer that does not."""
        with self.session._working() as conversation:
            view = conversation.log.view
            messages = view.messages()
            whole = view.items[-1].stop_reason not in (None, *loop.FULL) if view.items else True
            return bool(messages) and messages[-1]["role"] == "assistant" and not whole

    def _carry_on(self) -> Answer:
        notices: list[str] = []
        outcome = self._driver.carry_on(self.rounds)
        rounds = outcome.rounds
        for sent_back in range(MOST_STOPS):
            stopped = self._hook("Stop", stop_hook_active=sent_back > 0)
            notices += [*stopped.messages, *stopped.faults]
            if stopped.block is None or outcome.ended != "answered":
                break
            self.briefing.add("hook", stopped.block)
            outcome = self._driver.carry_on(self.rounds)
            rounds += outcome.rounds
        self.session.end_turn()
        return Answer(outcome.reply.text, outcome.ended, rounds, outcome.reply, (*notices, *self.memory.told()))

    def _run_tools(self, calls: tuple[ToolUse, ...]) -> tuple[Ran, ...]:
        return self.agents.run(calls, self.desk) if self.agents is not None else run_calls(calls, self.desk)

    def _after_results(self, ran: Sequence[Ran]) -> None:
        self.briefing.beside([one for one in ran if one.call.name == "Read" and not one.output.is_error])
        self.briefing.new_day()
        self._land()

    def _land(self) -> None:
        if self.mail is not None:
            self.mail.land(self.session)
        if self.agents is not None:
            self.agents.land()

    def _hire(self, hire: Hire) -> Agent:
        """A subagent (A4): a conversation, tools, prompt, model and memory of its own; mode, rules and the person are this agent's."""
        assert self.agents is not None
        kind, depth = hire.wanted.kind, self.agents.depth + 1
        tools = pick_tools(kind, self.tools, remembers=agent_memory_mode(kind.memory, self.session.settings) != "off")
        catalog = self.agents.catalog if depth < DEEPEST and any(tool.name == AGENT for tool in tools) else None
        given = tuple(tool for tool in tools if tool.name != AGENT)
        session = subagent_session(self.session, hire, given, catalog, self._given)
        under = Under(hire.abort, self.desk.mode, self.desk.rules, depth, kind, hire.mail, hire.saw)
        try:
            child = Agent(
                session, tools=given, ask=hire.ask, environ=self.environ, on_event=hire.heard, catalog=catalog, under=under
            )
            with_section_behind(session, child.memory.section([tool.name for tool in given]))
            child._given = self._given
            child.briefing.begin(child._hook, resumed=False, approved=self.briefing.approved)
        except BaseException:
            session.close(0.0)
            raise
        return child

    def _hook(self, event: HookEvent, *, matching: str = "", **payload: Any) -> HookOutcome:
        hooks = self.session.settings.hooks
        if not hooks or (self._under is not None and event not in IN_SUBAGENTS):
            return HookOutcome()
        given = {"session_id": self.session.id, "transcript_path": str(self.session.path or ""), **payload}
        said = run_hooks(
            event, given, hooks, cwd=self.session.cwd, environ=self.environ, matching=matching, abort=self.context.abort
        )
        if self.context.abort.is_set():
            raise Aborted
        return said

    # What others may see

    def notify(self, *sentences: str) -> None:
        """Add sentences for the user to the session's notices."""
        self.session._notify(*sentences)

    def restore_after_compaction(self, kind: str, key: str, text: Source | None) -> None:
        """As on Session: a text that is back in view behind every compaction (C4)."""
        self.session.restore_after_compaction(kind, key, text)

    def tell(self, event: dict[str, Any]) -> None:
        if self.on_event is not None:
            self.on_event(event)

    def _asking(self, ask: AskPerson) -> AskPerson:
        def asked(call: ToolUse, question: AskUser) -> Consent | No:
            consent = ask(call, question)
            if consent == "always" and question.suggestion is not None:
                self.allow(question.suggestion)
            return consent

        return asked

    def allow(self, rule: str) -> None:
        """The rule holds from the next call on, in this conversation; whoever wants it kept writes it to the settings."""
        added = read_rules(Permissions(allow=(rule,))).allow
        self.rules = msgspec.structs.replace(self.rules, allow=(*self.rules.allow, *added))

    # The end

    def close(self, timeout: float = 60.0) -> None:
        """Background work and agents are waited for up to `timeout` seconds, then ended. Closing twice is fine."""
        mail = self.mail if self._under is None else None
        try:
            left = self.agents.close(timeout) if self.agents is not None else timeout
            if mail is not None:
                mail.hang_up()
                with suppress(SessionClosed):  # what agents wrote last is read when the session is resumed
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
    """What a person said, for a hook to look at."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(block["text"] for block in prompt if isinstance(block.get("text"), str))

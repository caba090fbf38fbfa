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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import msgspec

from . import turn
from .core.blocks import Block, Text, ToolResult, ToolUse, Wire, read_block
from .core.effects import Ask, Effect, Flow, RunTools, Sleep, drive
from .core.errors import DiskError, LaminaError, ProviderError, UsageError
from .core.reply import Reply
from .core.settings import Permissions, Settings
from .core.view import Item
from .disk.settings_files import user_home
from .fork import loop
from .fork.asking import ask_until
from .fork.desk import AskPerson, Consent, Desk, No, Ran, run_calls
from .fork.permissions import Ask as Question
from .fork.permissions import Mode, PermissionContext, may_read, read_mode
from .fork.rules import Rules, read_rules
from .hooks import HookOutcome, run_hooks
from .hooks.events import Event
from .memory.memory import Memory
from .prompt.gather import Approved, Instructions
from .prompt.git_status import git_status
from .prompt.instructions import load_instructions, nested_for
from .prompt.reminder import IndexText, first_reminder, in_view, later_context, nested_context
from .prompt.system import system_prompt
from .providers import OnEvent, Provider
from .providers.stream import StreamState
from .session import Session
from .tools import Context, Tool, builtin_tools, definition

# A hook that says "not done yet" sends the model back to work; more often than this it is the hook that is stuck.
MOST_STOPS = 3

# What the model reads when it is to go on with an answer that was stopped: the API takes no conversation that ends with it.
GO_ON = "The answer above was cut off. Go on from where it ends."


class Aborted(LaminaError):
    """The person stopped the turn; what was said so far is kept."""

    def __init__(self) -> None:
        super().__init__("Stopped; what was said so far is kept, and the next message goes on from there.")


class Answer(msgspec.Struct, frozen=True):
    """What a turn came to."""

    text: str
    ended: loop.Ended
    rounds: int
    reply: Reply | None = None
    notices: tuple[str, ...] = ()


class Agent:
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
    ) -> None:
        self.session = session
        self.tools = tuple(tools if tools is not None else builtin_tools())
        self.mode: Mode = mode or read_mode(session.settings.permissions.mode) or "ask"
        self.rules: Rules = read_rules(session.settings.permissions)
        self.on_event = on_event
        self.rounds = rounds
        # What hooks and commands see: the person's own environment and the variables of the settings, never ours.
        self.environ = {**(os.environ if environ is None else environ), **session.settings.env}
        # Output too large to show is kept beside the transcript; a session in memory keeps none.
        scratch = session.path.with_suffix("") / "tool-results" if session.path is not None else None
        roots = (session.cwd, *self._extra_roots())
        self.context = Context(cwd=session.cwd, roots=roots, environ=self.environ, scratch=scratch, may_read=self._may_read)
        names = {tool.name for tool in self.tools if tool.read_only}
        self.desk = Desk(
            tools=self.tools,
            context=self.context,
            permission=PermissionContext(
                cwd=session.cwd,
                roots=(*self._extra_roots(), *((scratch,) if scratch is not None else ())),
                tool_is_read_only=lambda name: name in names,
                lamina_home=session.home,
                home=Path(self.environ["HOME"]) if self.environ.get("HOME") else None,
            ),
            mode=lambda: self.mode,
            rules=lambda: self.rules,
            ask=self._asking(ask) if ask is not None else None,
            on_start=self._started,
            on_end=self._ended,
        )
        self._read_now: list[Ran] = []
        self._approved: Approved | None = None
        self.instructions = Instructions()
        self._talk = _Main(self)

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
        **session: Any,
    ) -> Self:
        """Open a session with the prompt an agent needs. `session` goes to Session: home, in_memory, max_tokens, window, …"""
        chosen = tuple(tools if tools is not None else builtin_tools())
        where = Path(cwd).resolve()
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
            opened.give_prompt(prompt, [definition(tool) for tool in chosen])
            agent = cls(opened, tools=chosen, mode=mode, ask=ask, environ=environ, on_event=on_event)
            agent._begin(resumed=resume is not None, approved=approved)
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
            self.session.add_user(prompt)
            for text in said.context:
                self._add("hook", later_context("hook", text))
            answer = self._carry_on()
            return msgspec.structs.replace(answer, notices=(*notices, *answer.notices))

    def go_on(self) -> Answer:
        """Carry on without a new message: after an abort, or when the rounds were used up."""
        with self._stoppable():
            if self._cut_off():
                self._add("note", later_context("note", GO_ON))
            return self._carry_on()

    def abort(self) -> None:
        """Stop the turn under way: the call to the model, the tools it called, or a hook."""
        self.context.abort.set()

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """While a turn is under way, Ctrl-C is an abort wherever it arrives."""
        self.context.abort.clear()
        try:
            yield
        except KeyboardInterrupt:
            self.context.abort.set()
            raise Aborted from None

    def _cut_off(self) -> bool:
        """Whether the conversation ends with an answer that does not."""
        with self.session.working() as conversation:
            view = conversation.log.view
            messages = view.messages()
            whole = view.items[-1].stop_reason not in (None, *loop.FULL) if view.items else True
            return bool(messages) and messages[-1]["role"] == "assistant" and not whole

    def _carry_on(self) -> Answer:
        notices: list[str] = []
        outcome = self._drive()
        rounds = outcome.rounds
        for sent_back in range(MOST_STOPS):
            stopped = self._hook("Stop", stop_hook_active=sent_back > 0)
            notices += [*stopped.messages, *stopped.faults]
            if stopped.block is None or outcome.ended != "answered":
                break
            self._add("hook", later_context("hook", stopped.block))
            outcome = self._drive()
            rounds += outcome.rounds
        self.session.end_turn()
        return Answer(outcome.reply.text, outcome.ended, rounds, outcome.reply, tuple(notices))

    def _drive(self) -> loop.Outcome:
        with self.session.working():
            return drive(loop.run(self._talk, rounds=self.rounds), self._perform)

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                return self._ask(effect)
            case RunTools():
                return self._run_tools(effect.calls)
            case Sleep():
                self.context.abort.wait(effect.seconds)
                return None
            case _:
                raise UsageError(f"An agent cannot carry out {type(effect).__name__}.")

    def _ask(self, effect: Ask) -> Reply:
        heard = _Heard()

        def hear(event: dict[str, Any]) -> None:
            heard.feed(event)
            self.tell(event)

        try:
            reply = ask_until(self.context.abort, self.session.provider, effect, hear)
            if reply is None:
                raise Aborted
            return reply
        except BaseException as error:
            # What a broken stream carries is kept by the loop; after an abort, or a listener that failed, it is what was heard.
            if not isinstance(error, ProviderError):
                self._keep(heard)
            raise

    def _keep(self, heard: _Heard) -> None:
        reply = loop.partial(heard.state.partial(), self.session.provider.model)
        if reply.blocks:
            self._talk.answered(reply)

    def _run_tools(self, calls: tuple[ToolUse, ...]) -> tuple[ToolResult, ...]:
        ran = run_calls(calls, self.desk)
        results = tuple(one.result for one in ran)
        self._read_now = [one for one in ran if one.call.name == "Read" and not one.output.is_error]
        if self.context.abort.is_set():
            self._talk.results(results)
            raise Aborted
        return results

    # What goes in besides messages

    def _begin(self, *, resumed: bool, approved: Approved | None) -> None:
        """The first reminder stands once, before everything else, and stays as it was (I4)."""
        started = self._hook(
            "SessionStart", source="resume" if resumed else "startup", matching="resume" if resumed else "startup"
        )
        refusal = [f"A SessionStart hook said no: {started.block}"] if started.block is not None else []
        self.session.notices += [*started.messages, *started.faults, *refusal]
        self._approved = approved
        self.instructions = load_instructions(
            cwd=self.session.cwd, home=self.session.home, **self._where_instructions_come_from()
        )
        self.session.notices += self.instructions.findings
        if not any(item.kind == "attachment:instructions" for item, _ in self._view()):
            text = first_reminder(
                instructions=self.instructions,
                memory_index=self._memory_index(),
                git_status=git_status(self.session.cwd, environ=self.environ),
                date=date.today().isoformat(),
            )
            if text is not None:
                self._add("instructions", text)
        for said in started.context:
            self._add("hook", later_context("hook", said))

    def _memory_index(self) -> list[IndexText]:
        """What is remembered, as the last part of the instructions (I1). A memory that cannot be read is said and left out."""
        if self.session.home is None or not self.session.settings.index_in_prompt:
            return []
        try:
            with Memory.open(self.session.cwd, home=self.session.home, settings=self.session.settings) as memory:
                self.session.notices += memory.notices
                return [IndexText(str(index.path), index.text) for index in memory.indexes()]
        except DiskError as error:
            self.session.notices.append(f"{error} This session goes on without memory.")
            return []

    def _where_instructions_come_from(self) -> dict[str, Any]:
        return {
            "person": user_home(self.environ),
            "excludes": self.session.settings.instruction_excludes,
            "approved": self._approved or (),
        }

    def after_results(self) -> None:
        """Instruction files beside a file that was read come behind its result, each once."""
        reads, self._read_now = self._read_now, []
        for one in reads:
            if (path := one.output.facts.get("path")) is None:
                continue  # a Read that is not ours
            seen = in_view(
                block.text for item, block in self._view() if item.kind.startswith("attachment:") and isinstance(block, Text)
            )
            nested = nested_for(
                Path(str(path)),
                cwd=self.session.cwd,
                rules=self.instructions.scoped,
                already=seen,
                **self._where_instructions_come_from(),
            )
            self.session.notices += [found for found in nested.findings if found not in self.session.notices]
            if (text := nested_context(nested)) is not None:
                self._add("nested_memory", text)

    def _view(self) -> list[tuple[Item, Block]]:
        with self.session.working() as conversation:
            return list(conversation.log.view.blocks())

    def _add(self, kind: str, text: str) -> None:
        with self.session.working() as conversation:
            turn.add_context(conversation, kind, text)

    def _hook(self, event: Event, *, matching: str = "", **payload: Any) -> HookOutcome:
        hooks = self.session.settings.hooks
        if not hooks:
            return HookOutcome()
        given = {"session_id": self.session.id, "transcript_path": str(self.session.path or ""), **payload}
        said = run_hooks(
            event, given, hooks, cwd=self.session.cwd, environ=self.environ, matching=matching, abort=self.context.abort
        )
        if self.context.abort.is_set():
            raise Aborted
        return said

    # What others may see

    def tell(self, event: dict[str, Any]) -> None:
        if self.on_event is not None:
            self.on_event(event)

    def _started(self, call: ToolUse) -> None:
        self.tell({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input})

    def _ended(self, ran: Ran) -> None:
        self.tell(
            {
                "type": "tool_result",
                "id": ran.call.id,
                "is_error": ran.output.is_error,
                "content": ran.output.content,
                "facts": ran.output.facts,
            }
        )

    def _asking(self, ask: AskPerson) -> AskPerson:
        def asked(call: ToolUse, question: Question) -> Consent | No:
            consent = ask(call, question)
            if consent == "always" and question.suggestion is not None:
                self.allow(question.suggestion)
            return consent

        return asked

    def allow(self, rule: str) -> None:
        """The rule holds from the next call on, in this conversation; whoever wants it kept writes it to the settings."""
        added = read_rules(Permissions(allow=(rule,))).allow
        self.rules = msgspec.structs.replace(self.rules, allow=(*self.rules.allow, *added))

    def _may_read(self, path: Path) -> bool:
        """A search shows nothing that a Read of the file would not."""
        return may_read(path, rules=self.rules, context=self.desk.permission)

    def _extra_roots(self) -> tuple[Path, ...]:
        """`~/` is the person's home, and what is relative begins at the working directory; `~other/` means nobody."""
        person = user_home(self.environ)
        named = self.session.settings.permissions.directories
        own = [person / text[2:] for text in named if text.startswith("~/") and person is not None]
        return (*own, *(self.session.cwd / text for text in named if not text.startswith("~")))

    # The end

    def close(self, timeout: float = 60.0) -> None:
        self.session.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Heard:
    """What has arrived of the answer under way. A second beginning means that the call was tried again: the first part is void."""

    def __init__(self) -> None:
        self.state = StreamState()

    def feed(self, event: dict[str, Any]) -> None:
        if event.get("type") == "message_start":
            self.state = StreamState()
        self.state.feed(event)


class _Main:
    """The main conversation as a Talk: every word of it is in the log."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._session = agent.session

    def request(self) -> Flow[Wire]:
        with self._session.working() as conversation:
            return (yield from turn.before_call(conversation))

    def answered(self, reply: Reply) -> Reply:
        kept = self._session.after_call(self._with_ids_of_their_own(reply))
        self._agent.tell({"type": "answer", "reply": kept})
        return kept

    def _with_ids_of_their_own(self, reply: Reply) -> Reply:
        """Some servers number the calls of each answer anew, or not at all. A call is known by its id, so it gets another one."""
        with self._session.working() as conversation:
            flat = conversation.log.view.flat
            taken: set[str] = {""}
            blocks: list[Block] = []
            for block in reply.blocks:
                if isinstance(block, ToolUse):
                    if block.id in taken or flat.fate_of_call(block.id) is not None:
                        block = read_block({**block.wire, "id": f"call_{uuid4().hex}"})
                    taken.add(str(block.wire["id"]))
                blocks.append(block)
        return msgspec.structs.replace(reply, blocks=tuple(blocks))

    def results(self, results: Sequence[ToolResult]) -> None:
        self._session.add_results(results)
        self._agent.after_results()


def _words(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """What a person said, for a hook to look at."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(block["text"] for block in prompt if isinstance(block.get("text"), str))

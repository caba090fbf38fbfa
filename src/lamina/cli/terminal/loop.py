"""The chat loop: read a line, run it and show the result, until the user leaves.

Display, questions and commands are in the other modules of this package. Invariant: however the chat ends (a command, a signal
or a closed terminal), the session is closed and its transcript complete.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...agent.agent import Agent, TurnResult
from ...conversation.isolate import take_job_results
from ...core.errors import Aborted, LaminaError
from ...core.view import Item
from ...language.text import Text, message
from ...language.wording import counted
from ...session.base import conversation_of, working
from ...session.provider import open_chosen_provider
from ..options import find_home
from ..output import REFUSED, StdoutSink, TurnTally
from ..signals import StoppableProvider, StopRequest
from ..start import (
    ChatOptions,
    MemorySource,
    find_newest,
    load_chat_settings,
    open_agent,
    open_provider_again,
)
from . import banner, commands
from . import session_picker as sessions
from .input_line import SHELL, ChatCompleter, ChatHistory, PlainLine, PromptLine, drop_typed, parse, suppress_echo
from .language import detect_language
from .questions import PermissionQuestions, Questions, settle_includes, settle_settings
from .screen import Screen, Style
from .turn_display import NO_WORK, PAUSED, TurnDisplay, describe_status, describe_work, fit_parts

# Typed alone, these leave the chat, as in a shell.
LEAVING = frozenset(("exit", "quit", ":q", "退出"))
LEAVE = Text("Press Ctrl-C again, or Ctrl-D, to leave.")
CUT_OFF = Text("The answer was cut off at the output limit. Ask the model to continue.")
SDKS = ("anthropic", "openai")


def chat(options: ChatOptions) -> int:
    stop = StopRequest()
    with stop.listening():
        return Chat(options, stop, Screen(StdoutSink(stop))).run()


class Chat:
    def __init__(self, options: ChatOptions, stop: StopRequest, screen: Screen) -> None:
        self.options = options
        self.stop = stop
        self.screen = screen
        self.home = find_home()
        self.is_first = self.home is not None and not self.home.exists()
        self.questions = Questions(screen, stop)
        settle_settings(screen, self.questions, self.home, options.cwd)
        self.settings = load_chat_settings(options)
        settle_includes(screen, self.questions, self.home, options.cwd, self.settings)
        self.display = TurnDisplay(screen, options.cwd, self.home)
        self.tally = TurnTally()
        first = self._first()
        self.provider = StoppableProvider(open_provider_again(options, self.settings, self.home, first), stop)
        self._kept: tuple[str, ...] = ()  # rules added by answering "always" in this chat
        self._told = 0  # how many of the session's notices were shown
        self._loading = False
        self.agent: Agent = self._open(first)
        self.line = self._line()

    def _line(self) -> PromptLine | PlainLine:
        if not self.screen.moves:
            return PlainLine(self._preload)
        about = {name: command.about for name, command in commands.COMMANDS.items()}
        return PromptLine(
            history=ChatHistory(self.home),
            completer=ChatCompleter(self.options.cwd, about, sessions.collect_arguments(self)),
            toolbar=self._toolbar,
            next_mode=self._next_mode,
            colours=self.screen.colours,
            before=self._preload,
            has_news=lambda: conversation_of(self.agent.session).background.has_results,
            tell_news=self.tell_news,
        )

    # Sessions

    def _first(self) -> str | Path | None:
        if self.options.go_on:
            return find_newest(self.options, self.home)
        if self.options.resume == "":
            return sessions.choose(self.screen, self.questions, sessions.list_here(self.options.cwd))
        return self.options.resume

    def _open(self, resume: str | Path | None) -> Agent:
        ask = PermissionQuestions(self.questions, self.screen, self.stop, cwd=self.options.cwd, keep=self.keep_rule)
        agent = open_agent(
            self.options,
            self.settings,
            self.provider,
            home=self.home,
            resume=resume,
            ask=ask,
            on_event=self._heard,
            interactive=sys.stdin.isatty(),  # a chat fed by a program is not interactive
        )
        for rule in self._kept:
            agent.allow(rule)
        return agent

    def reopen(self, resume: str | Path | None) -> None:
        """Switch to another session, new or old; the current one is closed once the other is open."""
        old = self.agent
        self.options = self.options._replace(mode=old.mode)
        self.settings = load_chat_settings(self.options)
        if resume is not None:
            self.provider = StoppableProvider(open_provider_again(self.options, self.settings, self.home, resume), self.stop)
        self.agent = self._open(resume)
        self._leave(old)
        if self.agent.mail is not None:
            self.agent.mail.open()  # the previous session owned the mailbox until now
        self.tally = TurnTally()
        self._told = 0

    @property
    def memory_source(self) -> MemorySource:
        return MemorySource(self.options.cwd, self.home, self.settings)

    @property
    def has_spoken(self) -> bool:
        return any(item.kind == "said" for item in self.items())

    def items(self) -> list[Item]:
        with working(self.agent.session) as conversation:
            return list(conversation.log.view.items)

    def use_model(self, name: str) -> None:
        provider = StoppableProvider(open_chosen_provider(name, self.settings), self.stop)
        self.agent.session.switch_model(provider)
        self.provider = provider
        self.options = self.options._replace(model=name)
        self._loading = False
        self._preload()
        self.tell_notices()

    # The conversation

    def run(self) -> int:
        try:
            banner.greet(self)
            # A second Ctrl-C while the hint of the first is being printed also leaves.
            with suppress(KeyboardInterrupt):
                self._talk()
            banner.say_farewell(self)
        finally:
            if self.stop.leaving:
                drop_typed()  # it was meant for the chat, not for the shell
            self._leave(self.agent)
        return self.stop.code if self.stop.leaving else 0

    def _leave(self, agent: Agent) -> None:
        """Close the agent, showing that background work is finishing and printing its last notices."""
        with suppress(LaminaError), working(agent.session) as conversation:
            if names := conversation.background.names:
                work = ", ".join(self.screen.words(name) for name in names)
                self.screen.wait(self.screen.words("finishing {work}", work=work))
        try:
            agent.close()
        finally:
            self.display.end()
            if agent.session.status.write_error:
                self.fail(agent.session.status.write_error)

    def _talk(self) -> None:
        warned = False
        while not self.stop.leaving and not self.screen.gone:
            try:
                self._take(self.questions.take_command() or self.line.read())
                warned = False
            except EOFError:
                return
            except KeyboardInterrupt:
                if warned or self.stop.leaving:
                    return
                warned = True
                self.screen.say(LEAVE)

    def _take(self, text: str) -> None:
        if not text.strip():
            return
        if text.strip().casefold() in LEAVING:
            raise EOFError
        called = parse(text)
        if text.startswith(SHELL):
            self.run_shell(text.removeprefix(SHELL).strip())
        elif called is not None:
            commands.run(self, *called)
        else:
            self.speak(text)
            self.turn(lambda: self.agent.run(text))

    def speak(self, words: str) -> None:
        """Use the language of the user's words from now on, where the terminal can show it."""
        if self.screen.encoding.lower().startswith("utf"):
            self.screen.language = detect_language(words, self.screen.language)

    def run_shell(self, command: str) -> None:
        """Run a shell command of the user and show its output."""
        if not command:
            self.screen.say("Usage: {usage}", "red", usage="!COMMAND")
            return
        try:
            with suppress_echo(), self.stop.turn(self.agent.abort):
                output = self.agent.run_command(command)
        except LaminaError as error:
            self.fail(error)
            return
        finally:
            self.display.end()
        self.screen.line(str(output.content), "red" if output.is_error else "plain")
        self.tell_notices()

    def turn(self, say: Callable[[], TurnResult]) -> None:
        """Run one turn until it ends or the user stops it."""
        self.screen.status = self._toolbar()
        self.display.begin()
        answer: TurnResult | None = None
        try:
            with suppress_echo(), self.stop.turn(self.agent.abort):
                answer = say()
        except Aborted as stopped:
            self.display.end()
            self.screen.report(str(stopped), "yellow")
        except LaminaError as error:
            self.display.end()
            self.fail(error)
        finally:
            self.display.end()
        self._after(answer)

    def _after(self, answer: TurnResult | None) -> None:
        notices = answer.notices if answer is not None else ()
        self.screen.reports(notices, "dim")
        self.tell_notices()
        if self.agent.session.status.write_error:
            self.fail(self.agent.session.status.write_error)
        match answer.ended if answer is not None else None:
            case "cut off":
                self.screen.say(CUT_OFF, "yellow")
            case "refused" if answer is not None:
                self.screen.note(self.screen.words(REFUSED) if answer.rounds else answer.text, "yellow")
            case "stopped" if answer is not None:
                self.screen.say("A hook ended the turn: {why}", "yellow", why=answer.text)
            case "rounds" if answer is not None:
                calls = counted(answer.rounds, "model call")
                if self.questions.yes_or_no(
                    self.screen.words("Not finished after {calls}. Continue?", calls=calls, n=answer.rounds)
                ):
                    self.turn(self.agent.go_on)
            case _:
                pass
        self.screen.line()
        if not self.screen.moves:
            self.screen.line(self._toolbar(), "dim")

    def _heard(self, event: dict[str, Any]) -> None:
        self.tally.heard(event)
        if event["type"] in ("answer", "layer"):
            self.screen.status = self._toolbar()
        self.display.event(event)

    def tell_news(self) -> None:
        """Take over what background work has finished; its events are shown as they are recorded."""
        with working(self.agent.session) as conversation:
            take_job_results(conversation)
        self.tell_notices()

    def tell_notices(self) -> None:
        """Show the session's new notices."""
        notices = self.agent.session.notices
        self.warn(notices[self._told :])
        self._told = len(notices)

    def warn(self, texts: Iterable[str], style: Style = "yellow") -> None:
        self.screen.notes((f"lamina: {self.screen.words(text)}" for text in texts), style)

    def fail(self, error: str | Exception) -> None:
        self.warn([message(error) if isinstance(error, Exception) else error], "red")

    # Permissions

    def keep_rule(self, rule: str) -> str:
        """Store an "always allow" rule and return a sentence about where; the agent applies it to this chat."""
        from ...disk.settings_files import LOCAL_PATH
        from ...disk.settings_write import add_local_rule

        self._kept = (*self._kept, rule)
        if self.home is None:
            return Text("The rule applies to this chat only: {error}", error=Text("no home directory found."))
        if add_local_rule(self.home, self.options.cwd, rule):
            return Text("Saved in {path}.", path=LOCAL_PATH)
        return Text("Saved in {path}. It applies to this chat now, and to others once you trust this directory.", path=LOCAL_PATH)

    def _next_mode(self) -> None:
        """Switch to the next of the three careful modes; `all` must be chosen by name."""
        careful = [mode for mode in commands.MODES if mode != "all"]
        at = careful.index(self.agent.mode) if self.agent.mode in careful else -1
        self.agent.mode = careful[(at + 1) % len(careful)]

    # Around the prompt

    def _toolbar(self) -> str:
        tally, agent = self.tally, self.agent
        session = agent.session
        dollars, beside = tally.dollars, session.status.side_cost.usd
        spent = dollars + beside if dollars is not None and beside is not None else dollars
        words, out = self.screen.words, session.status.budget_exhausted
        resting = words(PAUSED[out] if out else NO_WORK)
        states = agent.agents.states if agent.agents is not None else ()
        jobs = describe_work(session.status.background_jobs, states)
        work = ", ".join(self.screen.words(job) for job in jobs) or resting
        status = describe_status(
            session.window_state, tally.last, spent, tally.usage, agent.mode, work, words, self.settings.billing
        )
        return fit_parts(status, self.screen.width, self.screen.marks.dash)

    def _preload(self) -> None:
        """Import the provider's SDK, which takes a second or two, in the background while the user types."""
        if not self._loading and self.provider.name in SDKS:
            from ...providers.sdk import preload

            self._loading = True
            preload(self.provider.name)

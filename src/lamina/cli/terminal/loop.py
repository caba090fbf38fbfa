"""The chat: read a line, do what it says, show what comes, until the person leaves.

Owns the order of things; looks, questions and commands are in the files beside this one. Invariant: whatever ends the chat, a word, a
signal or the end of the terminal, the session is closed and its transcript whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...agent.agent import Agent, TurnResult
from ...core.errors import Aborted, LaminaError
from ..output import REFUSED, Tally
from ..signals import Stop
from ..start import Wish, home_of, newest, open_agent, provider_for, settings_for
from ..stdout import Sink
from . import banner as greeting
from . import commands
from . import session_picker as sessions
from .completion import Completing
from .history import History
from .input_line import Line, PlainLine, quiet
from .questions import Permission, Questions
from .screen import Screen
from .status_line import NO_WORK, Status, fitted, parts, work_of
from .trust_questions import settle_includes, settle_settings
from .turn_display import Telling

LEAVE = "Press Ctrl-C again, or Ctrl-D, to leave."
CUT_OFF = "The answer was cut off at its limit; say so and it goes on."
SDKS = ("anthropic", "openai")


def chat(wish: Wish) -> int:
    stop = Stop()
    with stop.listening():
        return Chat(wish, stop, Screen(Sink(stop))).run()


class Chat:
    def __init__(self, wish: Wish, stop: Stop, screen: Screen) -> None:
        self.wish = wish
        self.stop = stop
        self.screen = screen
        self.home = home_of()
        self.questions = Questions(screen, stop)
        settle_settings(screen, self.questions, self.home, wish.cwd)
        self.settings = settings_for(wish, self.home)
        settle_includes(screen, self.questions, self.home, wish.cwd, self.settings)
        self.telling = Telling(screen, wish.cwd, self.home)
        self.tally = Tally()
        self.provider = provider_for(wish.model, self.settings, stop)
        self._kept: tuple[str, ...] = ()  # rules of this chat's "always"
        self._told = 0  # of the session's notices
        self._loading = False
        self.agent = self._open(self._first())
        self.line = self._line()

    def _line(self) -> Line | PlainLine:
        if not self.screen.moves:
            return PlainLine(self._preload)
        about = {name: command.about for name, command in commands.COMMANDS.items()}
        return Line(
            history=History(self.home),
            completer=Completing(self.wish.cwd, about, sessions.arguments(self)),
            toolbar=self._toolbar,
            next_mode=self._next_mode,
            colours=self.screen.colours,
            before=self._preload,
        )

    # Sessions

    def _first(self) -> str | Path | None:
        if self.wish.go_on:
            return newest(self.wish, self.home)
        if self.wish.resume == "":
            return sessions.choose(self.screen, self.questions, sessions.here(self.wish.cwd))
        return self.wish.resume

    def _open(self, resume: str | Path | None) -> Agent:
        ask = Permission(self.screen, self.stop, cwd=self.wish.cwd, keep=self.keep_rule)
        agent = open_agent(
            self.wish,
            self.settings,
            self.provider,
            home=self.home,
            resume=resume,
            ask=ask,
            on_event=self._heard,
            interactive=sys.stdin.isatty(),  # a chat that is fed by a program is none
        )
        for rule in self._kept:
            agent.allow(rule)
        return agent

    def reopen(self, resume: str | Path | None) -> None:
        """Another session, new or old; the one before is closed once the new one is open."""
        old = self.agent
        self.wish = self.wish._replace(mode=old.mode)
        self.settings = settings_for(self.wish, self.home)
        self.agent = self._open(resume)
        self._leave(old)
        if self.agent.mail is not None:
            self.agent.mail.open()  # the mailbox was the old one's until now
        self.tally = Tally()
        self._told = 0

    @property
    def has_spoken(self) -> bool:
        return any(item.kind == "said" for item in self.items())

    def items(self) -> list[greeting.Item]:
        with self.agent.session._working() as conversation:
            return list(conversation.log.view.items)

    def use_model(self, name: str) -> None:
        provider = provider_for(name, self.settings, self.stop)
        self.agent.session.switch_model(provider)
        self.provider = provider
        self.wish = self.wish._replace(model=name)
        self._loading = False
        self._preload()
        self.tell_notices()

    # The conversation

    def run(self) -> int:
        try:
            greeting.greet(self)
            # One Ctrl-C more while the first is being told of: they mean it.
            with suppress(KeyboardInterrupt):
                self._talk()
            greeting.farewell(self)
        finally:
            self._leave(self.agent)
        return self.stop.code if self.stop.leaving else 0

    def _leave(self, agent: Agent) -> None:
        """What background work brings last is still told; that it is waited for is shown."""
        with suppress(LaminaError), agent.session._working() as conversation:
            if names := conversation.background.names:
                self.screen.wait(f"finishing {', '.join(names)}")
        try:
            agent.close()
        finally:
            self.telling.end()
            if agent.session.status.write_error:
                self.screen.note(f"lamina: {agent.session.status.write_error}", "red")

    def _talk(self) -> None:
        warned = False
        while not self.stop.leaving and not self.screen.gone:
            try:
                self._take(self.line.read())
                warned = False
            except EOFError:
                return
            except KeyboardInterrupt:
                if warned or self.stop.leaving:
                    return
                warned = True
                self.screen.note(LEAVE, "dim")

    def _take(self, text: str) -> None:
        if not text.strip():
            return
        called = commands.parse(text)
        if called is not None:
            commands.run(self, called)
        else:
            self.turn(lambda: self.agent.run(text))

    def turn(self, say: Callable[[], TurnResult]) -> None:
        """One turn, to its end or until the person stops it."""
        self.telling.begin()
        answer: TurnResult | None = None
        try:
            with quiet(), self.stop.turn(self.agent.abort):
                answer = say()
        except Aborted as stopped:
            self.telling.end()
            self.screen.note(str(stopped), "yellow")
        except LaminaError as error:
            self.telling.end()
            self.screen.note(f"lamina: {error}", "red")
        finally:
            self.telling.end()
        self._after(answer)

    def _after(self, answer: TurnResult | None) -> None:
        for text in answer.notices if answer is not None else ():
            self.screen.note(text, "dim")
        self.tell_notices()
        if self.agent.session.status.write_error:
            self.screen.note(f"lamina: {self.agent.session.status.write_error}", "red")
        match answer.ended if answer is not None else None:
            case "cut off":
                self.screen.note(CUT_OFF, "yellow")
            case "refused" if answer is not None:
                self.screen.note(REFUSED if answer.rounds else answer.text, "yellow")
            case "rounds" if answer is not None:
                if self.questions.yes_or_no(f"{answer.rounds} calls of the model and not done yet. Go on?"):
                    self.turn(self.agent.go_on)
            case _:
                pass
        self.screen.line()
        if not self.screen.moves:
            self.screen.line(self._toolbar(), "dim")

    def _heard(self, event: dict[str, Any]) -> None:
        self.tally.heard(event)
        self.telling.event(event)

    def tell_notices(self) -> None:
        """What the session has found since it was last asked."""
        notices = self.agent.session.notices
        for text in notices[self._told :]:
            self.screen.note(f"lamina: {text}", "yellow")
        self._told = len(notices)

    # Permissions

    def keep_rule(self, rule: str) -> str:
        """The sentence says where the rule is kept; that it holds from here on is the agent's doing."""
        from ...disk.settings_files import LOCAL_PATH
        from ...disk.settings_write import add_local_rule

        self._kept = (*self._kept, rule)
        if self.home is None:
            return "It holds in this chat only: no home directory is known."
        if add_local_rule(self.home, self.wish.cwd, rule):
            return f"Kept in {LOCAL_PATH}."
        return f"Kept in {LOCAL_PATH}, where it waits until you trust this directory; in this chat it holds now."

    def _next_mode(self) -> None:
        """Round the three careful modes; `all` is only taken by name."""
        careful = [mode for mode in commands.MODES if mode != "all"]
        at = careful.index(self.agent.mode) if self.agent.mode in careful else -1
        self.agent.mode = careful[(at + 1) % len(careful)]

    # Around the prompt

    def _toolbar(self) -> str:
        tally, agent = self.tally, self.agent
        session = agent.session
        dollars, beside = tally.dollars, session.status.side_cost.usd
        spent = dollars + beside if dollars is not None and beside is not None else dollars
        resting = f"rests until tomorrow ({session.status.budget_exhausted})" if session.status.budget_exhausted else NO_WORK
        work = work_of(session.status.background_jobs, agent.agents.states if agent.agents is not None else ()) or resting
        status = Status(session.window_state, tally.last, spent, tally.usage, agent.mode, work)
        return fitted(parts(status), self.screen.width, self.screen.marks.dash)

    def _preload(self) -> None:
        """An SDK takes a second or two to import: the person is typing meanwhile."""
        if not self._loading and self.provider.name in SDKS:
            from ...providers.clients import preload

            self._loading = True
            preload(self.provider.name)

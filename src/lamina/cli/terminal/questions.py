"""Questions to the user: may this tool call run, are these files trusted, may that file be included.

Invariants: only the word itself counts as a yes; Ctrl-C, a closed terminal and a command are a no, and the command runs next;
what the call would do is on the screen before the question; a rule is saved only if the user answered "always".

Before a session starts, the user is asked about what the project wants to enable: hooks and permissions in its settings, and
included files outside the project (F2, I2). A yes is remembered for the content shown, and so is a no to an included file.
After a no to the settings, the question returns at the next start. Nothing applies without a yes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from ...core.blocks import ToolUse
from ...core.errors import DiskError, LaminaError
from ...core.settings import WAITS_FOR_TRUST, Settings
from ...disk.home.approvals import record_approval
from ...disk.home.trust import trust, trusted, what_it_would_enable
from ...disk.settings_files import user_home
from ...fork.tool_runner import DenialWithWords, PermissionAnswer
from ...language.text import Text
from ...prompt.instructions import load_instructions
from ...tools.permissions.request import AskUser
from ..signals import StopRequest
from ..start import find_project, read_approvals
from .calls import describe_call, preview_call
from .input_line import ask, is_command
from .screen import Screen

YES = frozenset({"y", "yes"})
ALWAYS = frozenset({"a", "always"})
NO = frozenset({"n", "no"})
UNCLEAR = Text("Answer y or a alone, or n followed by instructions for the model.")
NO_RULE = Text("No rule can be saved for this call: answer y or n.")


class Questions:
    def __init__(self, screen: Screen, stop: StopRequest) -> None:
        self._screen = screen
        self._stop = stop
        self._command: str | None = None

    def read(self, question: str) -> str | None:
        """Return what was typed; None after Ctrl-C, at the end of input, and for a command, which waits for `take_command`."""
        self._screen.calm()
        self._screen.left()
        try:
            with self._stop.asking():
                answer = ask(question, colours=self._screen.colours, moves=self._screen.moves)
        except (KeyboardInterrupt, EOFError):
            return None
        if not is_command(answer):
            return answer
        self._command = answer
        return None

    def take_command(self) -> str | None:
        """Return the command that was typed instead of an answer, once."""
        command, self._command = self._command, None
        return command

    def yes_or_no(self, question: str) -> bool:
        while True:
            answer = self.read(f"{question} (y/n) ")
            if answer is None or answer.lower() in NO:
                return False
            if answer.lower() in YES:
                return True
            self._screen.say("Please answer y or n.")


class PermissionQuestions:
    """Asks the user whether a tool call may run. Ctrl-C and a command also end the turn."""

    def __init__(self, questions: Questions, screen: Screen, stop: StopRequest, *, cwd: Path, keep: Callable[[str], str]) -> None:
        """`keep` saves the rule of an "always" answer and returns a sentence about where it is saved."""
        self._questions = questions
        self._screen = screen
        self._stop = stop
        self._cwd = cwd
        self._keep = keep

    def __call__(self, call: ToolUse, verdict: AskUser) -> PermissionAnswer | DenialWithWords:
        self._show(call, verdict)
        while (answer := self._questions.read("  > ")) is not None:
            word, _, rest = answer.partition(" ")
            match word.lower():
                case "":
                    continue
                case typed if typed in YES and not rest:
                    return "yes"
                case typed if typed in ALWAYS and not rest and verdict.suggestion is not None:
                    return self._always(verdict.suggestion)
                case typed if typed in NO:
                    return DenialWithWords(rest.strip()) if rest.strip() else "no"
                case typed if typed in YES | ALWAYS:
                    self._screen.line(f"  {self._screen.words(UNCLEAR if rest else NO_RULE)}", "dim")
                case _:
                    return DenialWithWords(answer)
        self._stop.request(self._stop.signal or signal.SIGINT)
        return "no"

    def _show(self, call: ToolUse, verdict: AskUser) -> None:
        screen = self._screen
        screen.calm()
        # A shell command is shown in full below, so the title does not repeat it.
        what = call.name if call.name == "Bash" else describe_call(call.name, call.input, self._cwd)
        screen.painted((f"{screen.marks.asks} ", "yellow"), (what, "bold"))
        for shown in preview_call(call.name, call.input):
            # Yellow lines are about the call; the others are its text.
            text = screen.words(shown.text) if shown.style == "yellow" else shown.text
            screen.fold(text, shown.style, "    ", "    ")
        screen.report(verdict.why, "dim", indent="  ")
        if verdict.suggestion is not None:
            screen.fold(screen.words("a always allow: {rule}", rule=verdict.suggestion), "dim", "  ", "    ")
        answers = map(screen.words, ("y yes", Text("n no, or type what to do instead")))
        screen.note(f" {screen.marks.dash} ".join(answers), "dim", indent="  ")

    def _always(self, rule: str) -> PermissionAnswer:
        try:
            self._screen.report(self._keep(rule), "dim", indent="  ")
        except LaminaError as error:
            self._screen.report(Text("The rule applies to this chat only: {error}", error=error), "yellow", indent="  ")
        return "always"


def settle_settings(screen: Screen, questions: Questions, home: Path | None, cwd: Path) -> None:
    lines = what_it_would_enable(cwd)
    if home is None or not lines or trusted(home, cwd):
        return
    screen.line(screen.words("Files in {cwd} want to set:", cwd=cwd), "yellow")
    screen.line("\n".join(f"    {line}" for line in lines))
    if not questions.yes_or_no(screen.words("Do you trust them? Hooks are commands that run on your machine.")):
        return
    if what_it_would_enable(cwd) != lines:
        screen.say("The files changed while you were asked, so they are ignored. Start again to review them.", "red")
        return
    try:
        trust(home, cwd)
    except DiskError as error:
        screen.say("Your answer could not be saved, so the files are ignored: {error}", "red", error=error)


def settle_includes(screen: Screen, questions: Questions, home: Path | None, cwd: Path, settings: Settings) -> None:
    """Ask about files outside the project that its instruction files include."""
    if home is None:
        return
    approvals, problem = read_approvals(cwd, home)
    found = load_instructions(
        cwd=cwd,
        home=home,
        person=user_home(os.environ),
        excludes=settings.instruction_excludes,
        approved=approvals.answer,
    )
    for waiting in found.pending if problem is None else ():
        if waiting.included_from is None:
            screen.say("{file} is outside the project.", "yellow", file=waiting.real_path)
        else:
            screen.say(
                "{file} is outside the project, included by {by}.", "yellow", file=waiting.real_path, by=waiting.included_from
            )
        allowed = questions.yes_or_no(screen.words("Send it to the model as part of the instructions?"))
        try:
            record_approval(home, find_project(cwd), waiting.real_path, allowed=allowed)
        except DiskError as error:
            screen.say("Your answer could not be saved: {error}", "red", error=error)


def describe_findings(settings: Settings) -> list[str]:
    """Return the settings findings, with everything that needs trust combined into one line."""
    waiting = dict.fromkeys(found.key for found in settings.findings if found.problem == WAITS_FOR_TRUST)
    others = [found.text for found in settings.findings if found.problem != WAITS_FOR_TRUST]
    return (
        [*others, Text("Ignored, because this directory is not trusted: {waiting}.", waiting=", ".join(waiting))]
        if waiting
        else others
    )

"""Questions to the person: may this call run, are these files trusted, may that file be included.

Invariants: nothing counts as a yes but the word; Ctrl-C and the end of the terminal are a no; what the call would do stands on the
screen before the question; a rule is written only where the person said "always".

What lies in a project and needs a yes (hooks and permissions of its settings, files outside that it includes: F2, I2) is asked before a
session starts, once for each answer: a yes is remembered for what was shown, a no to an included file too; a no to the settings is asked
again at the next start. Without a yes nothing of it counts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from ...core.blocks import ToolUse
from ...core.errors import DiskError, LaminaError
from ...core.settings import Settings
from ...disk.home.approvals import record_approval
from ...disk.home.trust import trust, trusted, what_it_would_enable
from ...disk.settings_files import user_home
from ...fork.tool_runner import DenialWithWords, PermissionAnswer
from ...permissions.request import AskUser
from ...prompt.instructions import load_instructions
from ..signals import StopRequest
from ..start import find_project, read_approvals
from .calls import describe_call, preview_call
from .input_line import ask
from .screen import Screen

YES = frozenset({"y", "yes"})
ALWAYS = frozenset({"a", "always"})
NO = frozenset({"n", "no"})
UNCLEAR = "A yes stands alone; words for the model go behind n."
NO_RULE = "There is no rule to offer for this: say y or n."
# As the settings' own room words it.
_WAITS = "waits until you trust this directory"


class Questions:
    def __init__(self, screen: Screen, stop: StopRequest) -> None:
        self._screen = screen
        self._stop = stop

    def read(self, question: str) -> str | None:
        """What was typed; None where the person wants out."""
        self._screen.calm()
        self._screen.left()
        try:
            with self._stop.asking():
                return ask(question, colours=self._screen.colours, moves=self._screen.moves)
        except (KeyboardInterrupt, EOFError):
            return None

    def yes_or_no(self, question: str) -> bool:
        while True:
            answer = self.read(f"{question} (y/n) ")
            if answer is None or answer.lower() in NO:
                return False
            if answer.lower() in YES:
                return True
            self._screen.line("Say y or n.", "dim")


class PermissionQuestions(Questions):
    """May this call run?"""

    def __init__(self, screen: Screen, stop: StopRequest, *, cwd: Path, keep: Callable[[str], str]) -> None:
        """`keep` makes a rule of the person's "always" and says in a sentence where it is kept."""
        super().__init__(screen, stop)
        self._cwd = cwd
        self._keep = keep

    def __call__(self, call: ToolUse, verdict: AskUser) -> PermissionAnswer | DenialWithWords:
        self._show(call, verdict)
        while (answer := self.read("  > ")) is not None:
            word, _, rest = answer.partition(" ")
            match word.lower():
                case "":
                    continue
                case said if said in YES and not rest:
                    return "yes"
                case said if said in ALWAYS and not rest and verdict.suggestion is not None:
                    return self._always(verdict.suggestion)
                case said if said in NO:
                    return DenialWithWords(rest.strip()) if rest.strip() else "no"
                case said if said in YES | ALWAYS:
                    self._screen.line(f"  {UNCLEAR if rest else NO_RULE}", "dim")
                case _:
                    return DenialWithWords(answer)
        self._stop.request(self._stop.signal or signal.SIGINT)
        return "no"

    def _show(self, call: ToolUse, verdict: AskUser) -> None:
        screen = self._screen
        screen.calm()
        # A command stands below, whole; in the title it would stand twice.
        what = call.name if call.name == "Bash" else describe_call(call.name, call.input, self._cwd)
        screen.painted((f"{screen.marks.asks} ", "yellow"), (what, "bold"))
        for shown in preview_call(call.name, call.input):
            screen.fold(shown.text, shown.style, "    ", "    ")
        screen.note(verdict.why, "dim", indent="  ")
        if verdict.suggestion is not None:
            screen.fold(f"a always: {verdict.suggestion}", "dim", "  ", "    ")
        screen.note(f"y yes {screen.marks.dash} n no, or say what to do instead", "dim", indent="  ")

    def _always(self, rule: str) -> PermissionAnswer:
        try:
            self._screen.note(self._keep(rule), "dim", indent="  ")
        except LaminaError as error:
            self._screen.note(f"The rule holds in this chat only: {error}", "yellow", indent="  ")
        return "always"


def settle_settings(screen: Screen, questions: Questions, home: Path | None, cwd: Path) -> None:
    lines = what_it_would_enable(cwd)
    if home is None or not lines or trusted(home, cwd):
        return
    screen.line(f"Files in {cwd} want to set:", "yellow")
    screen.line("\n".join(f"    {line}" for line in lines))
    if not questions.yes_or_no("Do you trust them? Hooks are commands that run on your machine."):
        return
    if what_it_would_enable(cwd) != lines:
        screen.note("They have changed since they were shown, so nothing of them counts; start again to see them.", "red")
        return
    try:
        trust(home, cwd)
    except DiskError as error:
        screen.note(f"That could not be noted, so they do not count: {error}", "red")


def settle_includes(screen: Screen, questions: Questions, home: Path | None, cwd: Path, settings: Settings) -> None:
    """Files outside the project that its instruction files include."""
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
        named = f", included by {waiting.included_from}" if waiting.included_from is not None else ""
        screen.note(f"{waiting.real_path} lies outside the project{named}.", "yellow")
        allowed = questions.yes_or_no("May it be sent to the model as part of the instructions?")
        try:
            record_approval(home, find_project(cwd), waiting.real_path, allowed=allowed)
        except DiskError as error:
            screen.note(f"That could not be noted: {error}", "red")


def describe_findings(settings: Settings) -> list[str]:
    """What the settings' room found; everything that waits for trust in one line."""
    waiting = dict.fromkeys(found.key for found in settings.findings if _WAITS in found.text)
    others = [found.text for found in settings.findings if _WAITS not in found.text]
    return [*others, f"Not trusted, so ignored here: {', '.join(waiting)}."] if waiting else others

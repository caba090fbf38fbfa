"""Questions to the person: may this call run, are these files trusted, may that file be included.

Invariants: nothing counts as a yes but the word; Ctrl-C and the end of the terminal are a no; what the call would do stands on the
screen before the question; a rule is written only where the person said "always".
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from ...core.blocks import ToolUse
from ...core.errors import LaminaError
from ...fork.tool_runner import DenialWithWords, PermissionAnswer
from ...permissions.request import AskUser
from ..signals import StopRequest
from .calls import describe_call, preview_call
from .input_line import ask
from .screen import Screen

YES = frozenset({"y", "yes"})
ALWAYS = frozenset({"a", "always"})
NO = frozenset({"n", "no"})
UNCLEAR = "A yes stands alone; words for the model go behind n."
NO_RULE = "There is no rule to offer for this: say y or n."


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

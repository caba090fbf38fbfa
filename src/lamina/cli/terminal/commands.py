"""The commands of the chat: a line that begins with a slash and a name.

Owns the table: what /help lists, completion offers and a misspelt name is compared with. A line such as "/etc/hosts is wrong" is no
command and goes to the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

from ...core.errors import LaminaError
from ...permissions.verdicts import Mode, read_mode
from ..context import report_on, spilled_in
from ..context_lines import lines
from . import compact_command as compacting
from . import dream_command as dreaming
from . import memory_command as memories
from . import session_picker as sessions
from .screen import clean, folded
from .undo import undo_turn

if TYPE_CHECKING:
    from .loop import Chat

Run: TypeAlias = "Callable[[Chat, str], None]"

_COMMAND = re.compile(r"/(?P<name>[A-Za-z][A-Za-z_-]*)(?:\s+(?P<rest>.*))?", re.DOTALL)
# A shorter beginning is too easily a slip.
SHORTEST = 3
KEYS = (
    "Enter sends; Esc Enter, or \\ at the end of a line, goes on in the next one. @ completes file names.",
    "Ctrl-C stops the answer and, twice, leaves; Ctrl-D leaves; Shift-Tab changes the mode.",
)
MODES: tuple[Mode, ...] = get_args(Mode)
MODE_WORDS: dict[Mode, str] = {
    "ask": "reading in the project is free, everything else is asked",
    "accept-edits": "files in the project may be changed, everything else is asked",
    "read-only": "nothing may be changed",
    "all": "everything may be done that no rule denies",
}


class Command(NamedTuple):
    about: str
    run: Run
    takes: str = ""


class Called(NamedTuple):
    name: str
    rest: str


def parse(text: str) -> Called | None:
    found = _COMMAND.fullmatch(text.strip())
    return Called(found["name"].lower(), (found["rest"] or "").strip()) if found else None


def find(name: str) -> Command | None:
    """By its name, or by a beginning that no other has."""
    begun = [command for each, command in COMMANDS.items() if each.startswith(name) and len(name) >= SHORTEST]
    return COMMANDS.get(name) or (begun[0] if len(begun) == 1 else None)


def run(chat: Chat, called: Called) -> None:
    command = find(called.name)
    if command is None:
        near = get_close_matches(called.name, COMMANDS, 1, 0.5)
        meant = f"did you mean /{near[0]}?" if near else "/help lists them."
        chat.screen.note(f"There is no command /{called.name}; {meant}", "red")
        return
    try:
        command.run(chat, called.rest)
    except LaminaError as error:
        chat.screen.note(f"lamina: {error}", "red")


def _help(chat: Chat, rest: str) -> None:
    names = {name: f"/{name} {command.takes}".rstrip() for name, command in COMMANDS.items()}
    column = max(map(len, names.values())) + 4
    for name, command in COMMANDS.items():
        chat.screen.listed(names[name], "cyan", command.about, column)
    for text in KEYS:
        chat.screen.note(text, "dim", indent="  ")


def _context(chat: Chat, rest: str) -> None:
    with chat.agent.session._working() as c:
        report = report_on(c.log.view, c.count, c.limits, model=c.prompt.model, autocompact=c.autocompact, memo=c.memo)
        report = report._replace(spilled=spilled_in(c.log))
    for text, style in lines(report, chat.screen.width):
        chat.screen.line(text, style or "plain")


def _clear(chat: Chat, rest: str) -> None:
    old, spoken = chat.agent.session.id, chat.has_spoken
    chat.reopen(None)
    kept = f" The old one is kept: /resume {old[:8]}" if spoken else ""
    chat.screen.note(f"New session {chat.agent.session.id}.{kept}", "dim")


def _model(chat: Chat, rest: str) -> None:
    if not rest:
        chat.screen.note(f"{chat.provider.model} answers. /model NAME changes that: anthropic:MODEL, openai:MODEL or offline.")
        return
    chat.use_model(rest)
    chat.screen.note(f"{chat.provider.model} answers from here on; its first request is read without the cache.", "dim")


def _resume(chat: Chat, rest: str) -> None:
    chosen = rest or sessions.choose(chat.screen, chat.questions, sessions.others(chat))
    if chosen is not None:
        sessions.resume(chat, chosen)


def _pin(chat: Chat, rest: str) -> None:
    with chat.agent.session._working() as c:
        if not rest:
            pins = [pin.text or f"message {pin.target}" for pin in c.log.view.pins.values()]
            for text in pins or ["Nothing is pinned; /pin TEXT keeps a text through every compaction."]:
                for line in text.splitlines():
                    chat.screen.note(line, indent="  ")
            return
    chat.agent.session.pin(rest)
    chat.screen.note("Pinned: it will stand word for word after every compaction.", "dim")


def _undo(chat: Chat, rest: str) -> None:
    with chat.agent.session._working() as c:
        decision = rest or compacting.newest_decision(c)
        if decision:
            compacting.undo_decision(chat, decision)
            return
        removed = undo_turn(c)
    chat.screen.note(removed.sentence() if removed else "There is nothing to take back.", "dim")


def _retry(chat: Chat, rest: str) -> None:
    chat.turn(chat.agent.go_on)


def _permissions(chat: Chat, rest: str) -> None:
    if rest:
        mode = read_mode(rest)
        if mode is None:
            chat.screen.note(f"There is no mode {rest!r}; there are {', '.join(MODES)}.", "red")
            return
        chat.agent.mode = mode
    chat.screen.note(f"Mode {chat.agent.mode}: {MODE_WORDS[chat.agent.mode]}.")
    rules = chat.agent.rules
    for name, found in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
        for rule in found:
            for line in folded(clean(f"{name:<6} {rule.text}"), chat.screen.width - 1, "  ", " " * 7):
                chat.screen.line(line)
    if not (rules.deny or rules.ask or rules.allow):
        chat.screen.note("There are no rules; an answer of `a` to a question makes one.", "dim", indent="  ")


def _exit(chat: Chat, rest: str) -> None:
    raise EOFError


COMMANDS: dict[str, Command] = {
    "help": Command("this list", _help),
    "context": Command("what fills the window", _context),
    "clear": Command("start a new session; this one is kept", _clear),
    "compact": Command("summarise what was said, or show what that would do", compacting.compact, "[--preview] [INSTRUCTIONS]"),
    "snip": Command("take turns out of what the model sees, or list them", compacting.snip, "[N|N-M]"),
    "expand": Command("what a summary, a folded turn or a marker stands for", compacting.expand, "ID [PAGE]"),
    "model": Command("who answers, or another model from here on", _model, "[NAME]"),
    "resume": Command("go on with an earlier session", _resume, "[ID]"),
    "memory": Command("what is remembered and what of it came here, or one memory", memories.memory, "[NAME]"),
    "dream": Command("put memory in order now, or see, end and take back dreams", dreaming.dream, dreaming.TAKES),
    "pin": Command("keep a text through every compaction, or list such texts", _pin, "[TEXT]"),
    "undo": Command("take back the last turn, or a compaction", _undo, "[ID]"),
    "retry": Command("carry on after a turn that failed or was stopped", _retry),
    "permissions": Command("the mode and the rules, or another mode", _permissions, "[MODE]"),
    "exit": Command("leave", _exit),
}

"""The commands of the chat: a line that begins with a slash and a name.

Owns the table: what /help lists, completion offers and a misspelt name is compared with. A line such as "/etc/hosts is wrong" is no
command and goes to the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

from ...conversation.revision import rewind
from ...conversation.state import Conversation
from ...core.blocks import Text, ToolResult, ToolUse
from ...core.errors import LaminaError
from ...core.records import Event, Record
from ...core.view import Item
from ...core.wording import counted
from ...permissions.request import Mode, read_mode
from ...session.base import working
from ..console import shorten
from ..context_report import find_spills, format_context, report_on
from . import compact_command as compacting
from . import session_picker as sessions

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

DREAM_TAKES = "[status|kill|undo [ID]]"
DREAM_WORDS = {"status": "how it stands", "kill": "end the one that runs", "undo": "take back the last one"}
# Tools that leave something behind.
CHANGING = frozenset({"Write", "Edit", "Bash"})
SHOWN_WORDS = 70


class ChatCommand(NamedTuple):
    about: str
    run: Run
    takes: str = ""


def parse(text: str) -> tuple[str, str] | None:
    """The name of a command and what stands behind it."""
    found = _COMMAND.fullmatch(text.strip())
    return (found["name"].lower(), (found["rest"] or "").strip()) if found else None


def find(name: str) -> ChatCommand | None:
    """By its name, or by a beginning that no other has."""
    begun = [command for each, command in COMMANDS.items() if each.startswith(name) and len(name) >= SHORTEST]
    return COMMANDS.get(name) or (begun[0] if len(begun) == 1 else None)


def run(chat: Chat, name: str, rest: str) -> None:
    command = find(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, 1, 0.5)
        meant = f"did you mean /{near[0]}?" if near else "/help lists them."
        chat.screen.note(f"There is no command /{name}; {meant}", "red")
        return
    try:
        command.run(chat, rest)
    except LaminaError as error:
        chat.fail(error)


def _help(chat: Chat, rest: str) -> None:
    names = {name: f"/{name} {command.takes}".rstrip() for name, command in COMMANDS.items()}
    column = max(map(len, names.values())) + 4
    for name, command in COMMANDS.items():
        chat.screen.listed(names[name], "cyan", command.about, column)
    chat.screen.notes(KEYS, "dim", indent="  ")


def _context(chat: Chat, rest: str) -> None:
    with working(chat.agent.session) as c:
        report = report_on(c.log.view, c.count, c.limits, model=c.prompt.model, autocompact=c.autocompact, memo=c.memo)
        report = report._replace(spilled=find_spills(c.log))
    for text, style in format_context(report, chat.screen.width):
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


def _pin(chat: Chat, rest: str) -> None:
    with working(chat.agent.session) as c:
        if not rest:
            pins = [pin.text or f"message {pin.target}" for pin in c.log.view.pins.values()]
            for text in pins or ["Nothing is pinned; /pin TEXT keeps a text through every compaction."]:
                chat.screen.notes(text.splitlines(), indent="  ")
            return
    chat.agent.session.pin(rest)
    chat.screen.note("Pinned: it will stand word for word after every compaction.", "dim")


def _undo(chat: Chat, rest: str) -> None:
    session = chat.agent.session
    with working(session) as c:
        decision = rest or compacting.newest_decision(c)
        if decision:
            undone = session.undo(decision)
            said = f"Undone: {undone.kind} {undone.id[:8]}. The model sees about {session.tokens:,} tokens."
        else:
            removed = undo_turn(c)
            said = removed.sentence() if removed else "There is nothing to take back."
    chat.screen.note(said, "dim")


def _dream(chat: Chat, rest: str) -> None:
    from .dream_command import run_dream_command

    run_dream_command(chat, rest)


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
            chat.screen.fold(f"{name:<6} {rule.text}", "plain", "  ", " " * 7)
    if not (rules.deny or rules.ask or rules.allow):
        chat.screen.note("There are no rules; an answer of `a` to a question makes one.", "dim", indent="  ")


def _exit(chat: Chat, rest: str) -> None:
    raise EOFError


class RemovedTurn(NamedTuple):
    said: str
    answers: int
    calls: tuple[str, ...]

    def sentence(self) -> str:
        words = shorten(" ".join(self.said.split()), SHOWN_WORDS)
        calls = f", {counted(len(self.calls), 'tool call')}" if self.calls else ""
        answers = counted(self.answers, "answer") if self.answers else "no answer"
        stay = " Files that were changed stay changed." if CHANGING.intersection(self.calls) else ""
        return f'Taken back: "{words}", {answers}{calls}.{stay}'


def undo_turn(c: Conversation) -> RemovedTurn | None:
    """Takes back the last turn: the conversation goes on from before the person's last message; None where there is none.

    The log keeps everything; the view is what it would be without the turn, and the next request is an announced break. Files that tools
    changed stay as they are.
    """
    items = c.log.view.items
    last = next((at for at in range(len(items) - 1, -1, -1) if _is_said(items[at])), None)
    if last is None:
        return None
    gone = items[last:]
    said = " ".join(block.text for block in gone[0].blocks if isinstance(block, Text))
    answers = {item.key or item.uuid for item in gone if item.role == "assistant"}
    calls = [block.name for item in gone for block in item.blocks if isinstance(block, ToolUse)]
    rewind(c, c.log.tree.nodes[items[last].uuid].parent)
    return RemovedTurn(said, len(answers), tuple(calls))


def _is_said(item: Item) -> bool:
    """By the person, and not what a tool brought."""
    if item.role != "user" or item.kind != "said" or item.synthetic:
        return False
    return any(not isinstance(block, ToolResult) for block in item.blocks)


class RecalledMemory(NamedTuple):
    """A memory that was brought to a message of this conversation."""

    file: str
    why: str
    in_view: bool


def find_recalled(records: Iterable[Record], branch: Collection[str], view: Collection[str]) -> list[RecalledMemory]:
    """What was brought, in its order. What stands on another branch, taken back since, is left out."""
    found: list[RecalledMemory] = []
    for record in records:
        if not isinstance(record, Event) or record.name != "recall":
            continue
        attachment, files, why = (record.data.get(key) for key in ("attachment", "files", "why"))
        if attachment in branch and isinstance(files, list) and isinstance(why, list):
            found += [
                RecalledMemory(str(file), str(reason), attachment in view) for file, reason in zip(files, why, strict=False)
            ]
    return found


def show_memory(chat: Chat, rest: str) -> None:
    with chat.memory_source.open() as memory:
        if rest:
            topic = memory.get(rest)
            chat.screen.line(topic.body if topic is not None else f"Nothing of the name {rest!r} is remembered.")
            return
        found = memory.headers()
        for header in found:
            kind = f"[{header.type}] " if header.type else ""
            chat.screen.note(f"{header.name}: {kind}{header.description}", indent="  ")
        _brought(chat)
        words = "" if found else "Nothing is remembered here yet. "
        chat.screen.note(f"{words}`lamina memory` changes what is in {memory.path}.", "dim")


def _brought(chat: Chat) -> None:
    from ...disk.transcripts.store import read_transcript

    path = chat.agent.session.path
    if path is None or not path.exists():
        return
    with working(chat.agent.session) as c:
        branch, view = set(c.log.tree.members), {item.uuid for item in c.log.view.items}
    brought = find_recalled(read_transcript(path), branch, view)
    if brought:
        chat.screen.note("Came to this conversation:", "dim")
    for one in brought:
        gone = "" if one.in_view else "; no longer in view"
        chat.screen.note(f"{one.file.removesuffix('.md')} ({one.why}{gone})", indent="  ")


COMMANDS: dict[str, ChatCommand] = {
    "help": ChatCommand("this list", _help),
    "context": ChatCommand("what fills the window", _context),
    "clear": ChatCommand("start a new session; this one is kept", _clear),
    "compact": ChatCommand(
        "summarise what was said, or show what that would do", compacting.compact, "[--preview] [INSTRUCTIONS]"
    ),
    "snip": ChatCommand("take turns out of what the model sees, or list them", compacting.snip, "[N|N-M]"),
    "expand": ChatCommand("what a summary, a folded turn or a marker stands for", compacting.expand, "ID [PAGE]"),
    "model": ChatCommand("who answers, or another model from here on", _model, "[NAME]"),
    "resume": ChatCommand("go on with an earlier session", sessions.resume, "[ID]"),
    "memory": ChatCommand("what is remembered and what of it came here, or one memory", show_memory, "[NAME]"),
    "dream": ChatCommand("put memory in order now, or see, end and take back dreams", _dream, DREAM_TAKES),
    "pin": ChatCommand("keep a text through every compaction, or list such texts", _pin, "[TEXT]"),
    "undo": ChatCommand("take back the last turn, or a compaction", _undo, "[ID]"),
    "retry": ChatCommand("carry on after a turn that failed or was stopped", lambda chat, _: chat.turn(chat.agent.go_on)),
    "permissions": ChatCommand("the mode and the rules, or another mode", _permissions, "[MODE]"),
    "exit": ChatCommand("leave", _exit),
}

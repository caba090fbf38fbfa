"""The slash commands of the chat.

Owns the command table that /help lists, completion offers and misspelt names are compared with. A line such as "/etc/hosts is
wrong" is not a command and goes to the model.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

from ...core.errors import LaminaError, UsageError
from ...history.window_report import find_spills, report_on
from ...language.text import SENTENCES, Text, joined
from ...language.wording import counted, shorten
from ...session.base import working
from ...session.edits import UndoneTurn
from ...tools.permissions.request import Mode, read_mode
from ..amounts import tokens_apart
from ..context_report import format_context
from . import compact_command as compacting
from . import memory_commands as memories
from . import session_picker as sessions
from .banner import is_unfinished

if TYPE_CHECKING:
    from .loop import Chat

Run: TypeAlias = "Callable[[Chat, str], None]"

KEYS = (
    Text("Enter sends the message. Esc Enter, or \\ at the end of a line, starts a new line. @ completes file names."),
    Text("! at the start of a line runs a shell command; the model sees it and its output with your next message."),
    Text("Ctrl-C stops the answer; press it twice to leave. Ctrl-D leaves. Shift-Tab changes the permission mode."),
)
MODES: tuple[Mode, ...] = get_args(Mode)
MODE_WORDS: dict[Mode, str] = {
    "ask": Text("read project files freely, ask before everything else"),
    "accept-edits": Text("edit project files freely, ask before everything else"),
    "read-only": Text("change nothing"),
    "all": Text("allow everything that no rule denies"),
}

DREAM_TAKES = "[status|kill|undo [ID]|redo [ID]]"
DREAM_WORDS = {"status": "show the status", "kill": "stop the running dream", "undo": "undo the last dream"}
SHOWN_WORDS = 70
# Room for the longest name of a cost, "conversation".
COST_COLUMN = 18


class ChatCommand(NamedTuple):
    about: str
    run: Run
    takes: str = ""
    deletes: bool = False


def find(name: str) -> ChatCommand | None:
    """Find a command by its name or an unambiguous prefix. A command that deletes needs its whole name."""
    begun = begun_with(name)
    only = COMMANDS[begun[0]] if len(begun) == 1 else None
    return COMMANDS.get(name) or (None if only is not None and only.deletes else only)


def begun_with(name: str) -> list[str]:
    """Return the commands that begin with `name`."""
    return [each for each in COMMANDS if each.startswith(name)]


def run(chat: Chat, name: str, rest: str) -> None:
    command = find(name)
    if command is None:
        near = begun_with(name) or get_close_matches(name, COMMANDS, 1, 0.5)
        words = chat.screen.words
        names = " or ".join(f"/{each}" for each in near)
        hint = words("Did you mean {names}?", names=names) if near else words("Use /help to list the commands.")
        chat.screen.say("Unknown command /{name}. {hint}", "red", name=name, hint=hint)
        return
    try:
        command.run(chat, rest)
    except LaminaError as error:
        chat.fail(error)


def _help(chat: Chat, rest: str) -> None:
    names = {name: f"/{name} {command.takes}".rstrip() for name, command in COMMANDS.items()}
    column = max(map(len, names.values())) + 4
    for name, command in COMMANDS.items():
        chat.screen.listed(names[name], "cyan", chat.screen.words(command.about), column)
    chat.screen.notes(map(chat.screen.words, KEYS), "dim", indent="  ")


def _context(chat: Chat, rest: str) -> None:
    with working(chat.agent.session) as c:
        report = report_on(c.log.view, c.count, c.limits, model=c.prompt.model, autocompact=c.autocompact, memo=c.memo)
        report = report._replace(spilled=find_spills(c.log))
    for text, style in format_context(report, chat.screen.width, words=chat.screen.words):
        chat.screen.line(text, style or "plain")


def _cost(chat: Chat, rest: str) -> None:
    """Show the calls, tokens and price of the conversation and of each kind of background work since the chat was opened."""
    costs = chat.tally.breakdown()
    for name, cost in costs.items():
        price = Text("unknown price") if cost.usd is None else f"${cost.usd:,.4f}"
        used: str = joined((counted(cost.usage.total, "token"), price))
        if chat.settings.billing == "subscription":
            used = tokens_apart(cost.usage)
        words = chat.screen.words
        chat.screen.listed(words(name), "cyan", words(joined((counted(cost.calls, "call"), used))), COST_COLUMN)


def _clear(chat: Chat, rest: str) -> None:
    old, spoken = chat.agent.session.id, chat.has_spoken
    chat.reopen(None)
    words = chat.screen.words
    kept = words(" Use /resume {id} to go back to the previous one.", id=old[:8]) if spoken else ""
    chat.screen.note(words("Started session {id}.", id=chat.agent.session.id) + kept, "dim")


def _model(chat: Chat, rest: str) -> None:
    if not rest:
        text = Text("Model: {model}. Use /model NAME to change it: anthropic:MODEL, openai:MODEL or offline.")
        chat.screen.say(text, "plain", model=chat.provider.model)
        return
    chat.use_model(rest)
    chat.screen.say("Switched to {model}. Its first request cannot use the cache.", model=chat.provider.model)


def _pin(chat: Chat, rest: str) -> None:
    with working(chat.agent.session) as c:
        if not rest:
            pins = [pin.text or f"message {pin.target}" for pin in c.log.view.pins.values()]
            for text in pins or [chat.screen.words("No pins. Use /pin TEXT to keep a text through every compaction.")]:
                chat.screen.notes(text.splitlines(), indent="  ")
            return
    chat.agent.session.pin(rest)
    chat.screen.say("Pinned. The text is kept word for word through every compaction.")


def _undo(chat: Chat, rest: str) -> None:
    session = chat.agent.session
    with working(session) as c:
        decision = rest or compacting.newest_decision(c)
    if decision:
        undone = session.undo(decision)
        text = Text("Undid {kind} {id}. The model now sees about {tokens} tokens.")
        chat.screen.say(text, kind=undone.kind, id=undone.id[:8], tokens=f"{session.window_state.tokens:,}")
        return
    try:
        turn = session.undo_turn()
    except UsageError:
        chat.screen.say("Nothing to undo.")
        return
    chat.screen.report(describe_turn(turn), "dim")
    if turn.memories:
        _undo_memories(chat, turn)


def _dream(chat: Chat, rest: str) -> None:
    from .dream_command import run_dream_command

    run_dream_command(chat, rest)


def _permissions(chat: Chat, rest: str) -> None:
    if rest:
        mode = read_mode(rest)
        if mode is None:
            chat.screen.say("Unknown mode {mode!r}. Choose one of {modes}.", "red", mode=rest, modes=", ".join(MODES))
            return
        chat.agent.mode = mode
    mode = chat.agent.mode
    chat.screen.say("Mode {mode}: {words}.", "plain", mode=mode, words=chat.screen.words(MODE_WORDS[mode]))
    rules = chat.agent.rules
    for name, found in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
        for rule in found:
            chat.screen.fold(f"{name:<6} {rule.text}", "plain", "  ", " " * 7)
    if not (rules.deny or rules.ask or rules.allow):
        chat.screen.note(chat.screen.words("No rules yet. Answer a permission question with `a` to add one."), "dim", indent="  ")


def _retry(chat: Chat, rest: str) -> None:
    if is_unfinished(chat.items()):
        chat.turn(chat.agent.go_on)
    else:
        chat.screen.say("Nothing to continue: the last turn is finished.")


def _exit(chat: Chat, rest: str) -> None:
    raise EOFError


def describe_turn(turn: UndoneTurn) -> Text:
    words = shorten(" ".join(turn.words.split()), SHOWN_WORDS)
    undone = [counted(turn.answers, "answer") if turn.answers else Text("no answer")]
    undone += [counted(len(turn.calls), "tool call")] if turn.calls else []
    sentences = [Text('Undid "{words}", {answers}.', words=words, answers=joined(undone))]
    sentences += [Text("Changed files stay changed.")] if turn.files else []
    sentences += [Text("What its commands changed stays changed.")] if turn.commands else []
    return joined(sentences, SENTENCES)


def _undo_memories(chat: Chat, turn: UndoneTurn) -> None:
    """Ask whether to take back what the turn changed in memory, and report the result."""
    told = ", ".join(f"{change.name} ({chat.screen.words(change.did)})" for change in turn.memories)
    if not chat.questions.yes_or_no(chat.screen.words("The turn also changed memory: {changes}. Undo that too?", changes=told)):
        chat.screen.say("Memory stays as it is. `lamina memory log` lists the changes.")
        return
    done = chat.agent.session.undo_memories(turn)
    if done.back:
        chat.screen.say("Undid in memory: {names}.", names=", ".join(change.name for change in done.back))
    chat.screen.reports(done.sentences, "yellow")


COMMANDS: dict[str, ChatCommand] = {
    "help": ChatCommand(Text("show this list"), _help),
    "context": ChatCommand(Text("show what fills the context window"), _context),
    "cost": ChatCommand(Text("show what this chat cost"), _cost),
    "clear": ChatCommand(Text("start a new session; this one is kept"), _clear),
    "compact": ChatCommand(Text("summarise the conversation, or preview that"), compacting.compact, "[--preview] [INSTRUCTIONS]"),
    "snip": ChatCommand(Text("take turns out of the context, or list the turns"), compacting.snip, "[N|N-M]"),
    "expand": ChatCommand(Text("show the original behind a summary, folded turn or marker"), compacting.expand, "ID [PAGE]"),
    "model": ChatCommand(Text("show or change the model"), _model, "[NAME]"),
    "resume": ChatCommand(Text("continue an earlier session"), sessions.resume, "[ID]"),
    "memory": ChatCommand(Text("list the memories and which were recalled here, or show one"), memories.show_memory, "[NAME]"),
    "remember": ChatCommand(Text("save a text as a memory"), memories.remember, "TEXT"),
    "remove": ChatCommand(Text("move a memory to the trash"), memories.remove, "NAME", deletes=True),
    "forget": ChatCommand(
        Text("delete a subject for good, from memories and sessions"), memories.forget, "SUBJECT", deletes=True
    ),
    "search": ChatCommand(Text("search memories and sessions"), memories.search, "QUERY"),
    "dream": ChatCommand(Text("tidy up memory now, or show, stop and undo dreams"), _dream, DREAM_TAKES),
    "pin": ChatCommand(Text("keep a text through every compaction, or list the pins"), _pin, "[TEXT]"),
    "undo": ChatCommand(Text("undo the last turn, or a compaction"), _undo, "[ID]"),
    "retry": ChatCommand(Text("continue a turn that failed or was stopped"), _retry),
    "permissions": ChatCommand(Text("show the permission mode and rules, or change the mode"), _permissions, "[MODE]"),
    "exit": ChatCommand(Text("leave the chat"), _exit),
}

"""The first and last lines of a chat: model, directory, session, and a recap of a resumed session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from ... import __version__
from ...core.blocks import Text, ToolUse
from ...core.view import Item
from ...language.text import Text as Sentence
from ..completion import SHORT_ID
from ..console import fit
from ..start import OFFLINE, is_model_unset
from .questions import describe_findings

if TYPE_CHECKING:
    from .loop import Chat

# Begins a text that programs inserted into a message.
REMINDER = "<system-reminder>"

# Lines of the last answer shown in the recap.
MOST_LINES = 8
# Shown once, in a new home: with the line about who answers, five lines of 80 columns.
WELCOME = (
    Sentence("Welcome. Lamina is a chat that remembers what you tell it, for the next chat."),
    Sentence("Say `Remember: our tests use a real database`, and later ask about it."),
    Sentence("/memory lists what is kept: plain files in {home}. /forget deletes for good."),
)
NO_KEY = Sentence("An offline stand-in answers until you set ANTHROPIC_API_KEY or OPENAI_API_KEY.")
SENT = Sentence("Your messages, and memories that fit them, are sent to the model's provider.")
OTHERS = Sentence("`lamina --help` lists the other commands.")
HINTS = (Sentence("/help for commands"), Sentence("Ctrl-C to stop"), Sentence("Ctrl-D to leave"))
UNFINISHED = Sentence("The last turn was not finished. Use /retry to continue it.")


def greet(chat: Chat) -> None:
    screen, session = chat.screen, chat.agent.session
    dash = f" {screen.marks.dash} "
    name, where = (
        f"Lamina {__version__}",
        f"{shorten_home(session.cwd)}{dash}{screen.words('session {id}', id=session.id[:SHORT_ID])}",
    )
    if cell_len(f"{name}{dash}{chat.provider.model}{dash}{where}") < screen.width:
        screen.painted((name, "bold"), (f"{dash}{chat.provider.model}{dash}{where}", "plain"))
    else:
        screen.painted((name, "bold"), (f"{dash}{chat.provider.model}", "plain"))
        screen.note(where)
    screen.note(dash.join(map(screen.words, HINTS)), "dim")
    offline, unset = chat.provider.name == "offline", is_model_unset(chat.options, chat.settings)
    if chat.is_first and chat.home is not None:
        answers = [NO_KEY] if offline and unset else [] if offline else [SENT]
        for line in (*WELCOME, *answers, OTHERS):
            screen.say(line, "plain", home=shorten_home(chat.home))
    chat.warn(describe_findings(chat.settings))
    if offline and unset and not chat.is_first:
        screen.say(OFFLINE, "yellow")
    chat.tell_notices()
    recap(chat)


def recap(chat: Chat) -> None:
    """Show the last message and answer of a resumed session."""
    items, screen = chat.items(), chat.screen
    said = [said_words(item) for item in items if item.role == "user" and item.kind == "said" and said_words(item)]
    answers = [said_words(item) for item in items if item.role == "assistant" and said_words(item)]
    if said:
        chat.speak(said[-1])
        screen.say("Last messages of this session:")
        screen.line(fit(f"> {' '.join(said[-1].split())}", screen.width - 1), "dim")
    if answers:
        lines = answers[-1].strip().split("\n")
        if len(lines) > MOST_LINES:
            screen.line(screen.marks.cut, "dim")
        screen.line("\n".join(lines[-MOST_LINES:]), "dim")
    if is_unfinished(items):
        screen.say(UNFINISHED, "yellow")


def is_unfinished(items: Sequence[Item]) -> bool:
    """Return whether the last turn is open: a message or result without an answer, or a tool call without a result."""
    last = next((item for item in reversed(items) if item.kind == "said"), None)
    return last is not None and (last.role == "user" or any(isinstance(block, ToolUse) for block in last.blocks))


def say_farewell(chat: Chat) -> None:
    """Print how to resume the session, unless it is empty."""
    session = chat.agent.session
    if session.path is None or not chat.has_spoken:
        return
    member, _, team = (chat.options.mailbox or "").partition("@")
    if team:  # its own process continues the session meanwhile
        chat.screen.say("Run `lamina team join {team} {member}` to continue this session.", team=team, member=member)
    else:
        chat.screen.say("Run `lamina --resume {id}` to continue this session.", id=session.id[:SHORT_ID])


def shorten_home(path: Path) -> str:
    home = os.environ.get("HOME", "")
    inside = home not in ("", "/") and (str(path) == home or str(path).startswith(f"{home}/"))
    return f"~{str(path)[len(home) :]}" if inside else str(path)


def said_words(item: Item) -> str:
    """Return the text of a message, without what programs inserted."""
    return "".join(block.text for block in item.blocks if isinstance(block, Text) and not block.text.startswith(REMINDER)).strip()

"""Messages as they enter a conversation: one reminder, each message between tags it can't end (G3). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_text
from ...core.settings.kinds import printable
from .letters import Letter, PlanApproval, ShutdownRequest, ShutdownResponse, read_structured
from .queues import Arrived
from .send import MAIN

KIND = "mail"
# Of a sender's words before its message, each.
MOST_HEAD = 300
# What another process calls itself or its request stands outside the tags only where it can be no sentence.
_NAME = re.compile(r"[A-Za-z0-9_.@/-]{1,80}")


def rendered(arrived: Sequence[Arrived], about: Sequence[str] = ()) -> str:
    """`about` is what each sender does, where that is known."""
    said = [*about, *[""] * (len(arrived) - len(about))]
    parts = [part for one, doing in zip(arrived, said, strict=True) for part in _letter(one, doing)]
    return reminder([Fenced("# Messages"), Fenced(prompt_text(__file__, "mail")), *parts])


def _letter(one: Arrived, about: str) -> list[Fenced]:
    """Before the tags stands only what we know; what a model or another process wrote is between them, all of it."""
    letter = one.letter
    told = (("task", about), ("in short", letter.summary), ("an answer goes to", letter.answer_to))
    sender = () if _NAME.fullmatch(letter.sender) else (("sender", letter.sender),)
    lines = [f"[{what}: {printable(words, MOST_HEAD)}]" for what, words in (*sender, *told) if words]
    return [
        escape(f"Message {letter.id} from {_from(one)}{_kind(letter)}:"),
        fence("agent-message", "\n".join([*lines, letter.text])),
    ]


def _from(one: Arrived) -> str:
    sender = one.letter.sender if _NAME.fullmatch(one.letter.sender) else ""
    match one.way:
        case "agent" if sender == MAIN:
            return "main, the conversation that started you"
        case "agent":
            return f"the agent {sender}"
        case "mailbox":
            return f"{sender or 'somebody'}, another session, in the mailbox"
        case "socket":
            return f"{sender or 'somebody'}, another session, by socket"
        case "bridge":
            return f"{sender or 'somebody'}, by a bridge of the host"
        case _:
            assert_never(one.way)


def _kind(letter: Letter) -> str:
    """What a message that is no plain text comes to. A plan is approved by somebody, a call never."""
    match read_structured(letter.text):
        case ShutdownRequest():
            return ", which asks for an end"
        case ShutdownResponse(approve, request):
            return f", which answers the request to end{_to(request)}: {'it ends' if approve else 'it goes on'}"
        case PlanApproval(approve, request):
            return f", which answers a plan{_to(request)}: {'approved' if approve else 'rejected'}"
        case _:
            return ""


def _to(request: str) -> str:
    return f" {request}" if _NAME.fullmatch(request) else ""

"""A message from one agent to another: its parts and limits, its form on a line, and how it enters a conversation.

The text of a message is data (G3): it stands in one reminder, between tags it cannot close. Three structured kinds are understood
besides: a request to end, the answer to one, and the answer to a plan. Only the first has an effect by itself, and only when the
conversation that started an agent sends it.

`MessageQueues` holds one bounded queue for each agent of the process, read at the reader's next round of tools. Invariants: a message is
put to an open queue or refused with the reason; it is taken once, in the order it came; no queue holds more than MOST_WAITING messages
or MOST_CHARACTERS, answers to a request to end aside. A process that ends takes what nobody read along, with the agents it was for.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias, assert_never
from uuid import uuid4

import msgspec

from ...core.errors import LaminaError
from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_text
from ...core.settings.kinds import printable
from .types import MAIN

# How it came. Names of this process are sure; what comes by a mailbox or a socket is from another process of the same person.
Way: TypeAlias = Literal["agent", "mailbox", "socket", "bridge"]

# About 5,000 tokens: more than that lies in a file, and the message names it.
MOST_TEXT = 20_000
MOST_SUMMARY = 200
# Of a name, or of a name with the place it can be answered at.
MOST_NAME = 200
# Twice as long as needed to be alone in a home.
ID = re.compile(r"[0-9a-f]{16}")
KIND = "mail"
# Of a sender's words before its message, each.
MOST_HEAD = 300
# What another process calls itself or its request stands outside the tags only where it can be no sentence.
_NAME = re.compile(r"[A-Za-z0-9_.@/-]{1,80}")


class AgentMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    sender: str
    text: str
    summary: str = ""
    answer_to: str = ""  # where an answer goes, if not to the sender's name

    @classmethod
    def new(cls, sender: str, text: str, *, summary: str = "", answer_to: str = "") -> AgentMessage:
        sender, text, summary, answer_to = map(_sendable, (sender, text, summary, answer_to))
        return cls(id=uuid4().hex[:16], sender=sender, text=text, summary=summary, answer_to=answer_to)


class ArrivedMessage(NamedTuple):
    message: AgentMessage
    way: Way = "agent"


class ShutdownRequest(msgspec.Struct, frozen=True, tag="shutdown_request"):
    reason: str = ""


class ShutdownResponse(msgspec.Struct, frozen=True, tag="shutdown_response"):
    approve: bool
    request_id: str = ""
    reason: str = ""


class PlanApproval(msgspec.Struct, frozen=True, tag="plan_approval_response"):
    approve: bool
    request_id: str = ""
    reason: str = ""


Structured: TypeAlias = ShutdownRequest | ShutdownResponse | PlanApproval
KINDS = ("shutdown_request", "shutdown_response", "plan_approval_response")


class UnreadableMessage(msgspec.Struct, frozen=True):
    sentence: str


def read_structured(text: str) -> Structured | UnreadableMessage | None:
    """None: it is plain text. A JSON object whose type is none of ours is plain text too."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # the last: nested deeper than anybody reads
        return None
    if not isinstance(raw, dict) or raw.get("type") not in KINDS:
        return None
    try:
        read: Structured = msgspec.convert(raw, Structured)
    except msgspec.ValidationError as error:
        return UnreadableMessage(f"the {raw['type']} can't be read ({error}); send it again with approve as true or false.")
    return read


def _sendable(text: str) -> str:
    """Half of a character, as a shell's argument or a model's JSON may hold it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def encode_structured(message: Structured) -> str:
    return msgspec.json.encode(message).decode()


def encode_message(message: AgentMessage) -> bytes:
    """As it stands in a mailbox and on a socket: one line."""
    return msgspec.json.encode(message)


def read_message(data: bytes) -> AgentMessage | None:
    """Whoever wrote it, it is within the limits or it is no message."""
    try:
        message = msgspec.json.decode(data, type=AgentMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not ID.fullmatch(message.id) or not message.sender.strip() or not message.text.strip() or len(message.text) > MOST_TEXT:
        return None
    return msgspec.structs.replace(
        message,
        sender=printable(message.sender, MOST_NAME),
        summary=printable(message.summary, MOST_SUMMARY),
        answer_to=printable(message.answer_to, MOST_NAME),
    )


def render_messages(arrived: Sequence[ArrivedMessage], about: Sequence[str] = ()) -> str:
    """`about` is what each sender does, where that is known."""
    parts = [part for one, doing in zip(arrived, about or [""] * len(arrived), strict=True) for part in _shown(one, doing)]
    return reminder([Fenced("# Messages"), Fenced(prompt_text(__file__, "mail")), *parts])


def _shown(one: ArrivedMessage, about: str) -> list[Fenced]:
    """Before the tags stands only what we know; what a model or another process wrote is between them, all of it."""
    message = one.message
    told = (("task", about), ("in short", message.summary), ("an answer goes to", message.answer_to))
    sender = () if _NAME.fullmatch(message.sender) else (("sender", message.sender),)
    lines = [f"[{what}: {printable(words, MOST_HEAD)}]" for what, words in (*sender, *told) if words]
    return [
        escape(f"Message {message.id} from {_from(one)}{_kind(message)}:"),
        fence("agent-message", "\n".join([*lines, message.text])),
    ]


def _from(one: ArrivedMessage) -> str:
    sender = one.message.sender if _NAME.fullmatch(one.message.sender) else ""
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


def _kind(message: AgentMessage) -> str:
    """What a message that is no plain text comes to. A plan is approved by somebody, a call never."""
    match read_structured(message.text):
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


# A reader takes them all at its next round of tools, so together they must fit into its window: some 25,000 tokens.
MOST_WAITING = 50
MOST_CHARACTERS = 100_000

Put: TypeAlias = Literal["sent", "unknown", "full"]


class AskedToEnd(LaminaError):
    """The conversation that started this agent wants it to end; raised at the agent's own round of tools."""

    def __init__(self) -> None:
        super().__init__("The agent was asked to end.")


class MessageQueues:
    """Any thread may put and take."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[ArrivedMessage]] = {}
        self._about: dict[str, str] = {}

    def open(self, name: str, about: str = "") -> None:
        with self._lock:
            self._queues.setdefault(name, deque())
            self._about[name] = about

    def close(self, name: str) -> list[ArrivedMessage]:
        """Nothing more is taken for it; what it never read is handed back."""
        with self._lock:
            self._about.pop(name, None)
            return list(self._queues.pop(name, ()))

    def put(self, name: str, message: AgentMessage, way: Way = "agent", *, always: bool = False) -> Put:
        """`always`: however full the queue is."""
        with self._lock:
            queue = self._queues.get(name)
            if queue is None:
                return "unknown"
            waiting = sum(len(one.message.text) for one in queue)
            if not always and (len(queue) >= MOST_WAITING or waiting + len(message.text) > MOST_CHARACTERS):
                return "full"
            queue.append(ArrivedMessage(message, way))
            return "sent"

    def take(self, name: str) -> list[ArrivedMessage]:
        with self._lock:
            queue = self._queues.get(name)
            found = list(queue or ())
            if queue:
                queue.clear()
            return found

    def give_back(self, name: str, left: Sequence[ArrivedMessage]) -> None:
        """What was taken and is not read after all, before what came since."""
        with self._lock:
            if (queue := self._queues.get(name)) is not None:
                queue.extendleft(reversed(left))

    def names(self, *, but: str = "") -> list[str]:
        with self._lock:
            return [name for name in self._queues if name != but]

    def about(self, name: str) -> str:
        with self._lock:
            return self._about.get(name, "")

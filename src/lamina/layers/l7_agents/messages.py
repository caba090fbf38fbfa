"""Messages between agents: their parts and limits, their format on a line, and how they enter a conversation.

The text of a message is data: it is put into one reminder, between tags it cannot close. Three structured kinds are understood as well:
a shutdown request, the response to one, and the response to a plan. Only the first has an effect by itself, and only if the
conversation that started the agent sends it.

`MessageQueues` holds one bounded queue for each agent of the process, read at the reader's next round of tools. Invariants: a message is
put into an open queue or refused with a reason. It is taken once, in order. No queue holds more than MOST_WAITING messages or
MOST_CHARACTERS, except for responses to a shutdown request. When a process ends, its unread messages and the agents they were for are
lost.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias, assert_never
from uuid import uuid4

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import LaminaError
from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_text
from ...core.settings.kinds import printable
from .types import MAIN

# How a message arrived. Names within this process are certain; a mailbox or a socket connects other processes of the same user.
Way: TypeAlias = Literal["agent", "mailbox", "socket", "bridge"]

# About 5,000 tokens. Put longer content into a file and name the file in the message.
MOST_TEXT = 20_000
MOST_SUMMARY = 200
# Limit for a name, or for a name with a reply address.
MOST_NAME = 200
# Twice as long as needed to be unique in a home directory.
ID = re.compile(r"[0-9a-f]{16}")
KIND = "mail"
# Limit for each header line before a message.
MOST_HEAD = 300
# Outside the tags, the name of another process or request is shown only if it cannot be a sentence.
_NAME = re.compile(r"[A-Za-z0-9_.@/-]{1,80}")


class AgentMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    sender: str
    text: str
    summary: str = ""
    answer_to: str = ""  # the reply address, if it is not the sender's name

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
    """Parse a structured message. None: it is plain text, which includes JSON objects of other types."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        raw = msgspec.json.decode(text)
    except UNDECODABLE:  # the last: too deeply nested
        return None
    if not isinstance(raw, dict) or raw.get("type") not in KINDS:
        return None
    try:
        read: Structured = msgspec.convert(raw, Structured)
    except msgspec.ValidationError as error:
        return UnreadableMessage(f"the {raw['type']} is invalid ({error}). Send it again with approve as true or false.")
    return read


def _sendable(text: str) -> str:
    """Replace lone surrogates, which a shell argument or a model's JSON may contain, with question marks."""
    return text.encode("utf-8", "replace").decode()


def encode_structured(message: Structured) -> str:
    return msgspec.json.encode(message).decode()


def encode_message(message: AgentMessage) -> bytes:
    """Return the message as one line, for a mailbox or a socket."""
    return msgspec.json.encode(message)


def read_message(data: bytes) -> AgentMessage | None:
    """Parse a message from any process. None if it is invalid or exceeds the limits."""
    try:
        message = msgspec.json.decode(data, type=AgentMessage)
    except UNDECODABLE:
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
    """Render messages as one reminder. `about` holds each sender's task, if known."""
    parts = [part for one, doing in zip(arrived, about or [""] * len(arrived), strict=True) for part in _render(one, doing)]
    return reminder([Fenced("# Messages"), Fenced(prompt_text(__file__, "mail")), *parts])


def _render(one: ArrivedMessage, about: str) -> list[Fenced]:
    """Return the header, which contains only verified facts, and the fenced text, with everything a model or another process wrote."""
    message = one.message
    told = (("task", about), ("summary", message.summary), ("reply to", message.answer_to))
    sender = () if _NAME.fullmatch(message.sender) else (("sender", message.sender),)
    lines = [f"[{what}: {printable(words, MOST_HEAD)}]" for what, words in (*sender, *told) if words]
    return [
        escape(f"Message {message.id} from {_describe_sender(one)}{_describe_kind(message)}:"),
        fence("agent-message", "\n".join([*lines, message.text])),
    ]


def _describe_sender(one: ArrivedMessage) -> str:
    sender = one.message.sender if _NAME.fullmatch(one.message.sender) else ""
    match one.way:
        case "agent" if sender == MAIN:
            return "main, the conversation that started you"
        case "agent":
            return f"the agent {sender}"
        case "mailbox":
            return f"{sender or 'an unknown sender'}, another session, in the mailbox"
        case "socket":
            return f"{sender or 'an unknown sender'}, another session, by socket"
        case "bridge":
            return f"{sender or 'an unknown sender'}, by a bridge of the host"
        case _:
            assert_never(one.way)


def _describe_kind(message: AgentMessage) -> str:
    """Describe a structured message. A message can approve a plan, but never a tool call."""
    match read_structured(message.text):
        case ShutdownRequest():
            return ", a shutdown request"
        case ShutdownResponse(approve, request):
            return f", a response to the shutdown request{_request_suffix(request)}: {'it ends' if approve else 'it continues'}"
        case PlanApproval(approve, request):
            return f", a response to a plan{_request_suffix(request)}: {'approved' if approve else 'rejected'}"
        case _:
            return ""


def _request_suffix(request: str) -> str:
    return f" {request}" if _NAME.fullmatch(request) else ""


# A reader takes all of them at its next round of tools, so together they must fit into its window: about 25,000 tokens.
MOST_WAITING = 50
MOST_CHARACTERS = 100_000

Put: TypeAlias = Literal["sent", "unknown", "full"]


class AskedToEnd(LaminaError):
    """The conversation that started this agent wants it to end. Raised at the agent's next round of tools."""

    def __init__(self) -> None:
        super().__init__("The agent was asked to end.")


class MessageQueues:
    """The message queues of a process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[ArrivedMessage]] = {}
        self._about: dict[str, str] = {}
        self._types: dict[str, str] = {}

    def open(self, name: str, about: str = "", kind: str = "") -> None:
        with self._lock:
            self._queues.setdefault(name, deque())
            self._about[name] = about
            self._types[name] = kind

    def close(self, name: str) -> list[ArrivedMessage]:
        """Close the queue and return the messages that were never read."""
        with self._lock:
            self._about.pop(name, None)
            self._types.pop(name, None)
            return list(self._queues.pop(name, ()))

    def put(self, name: str, message: AgentMessage, way: Way = "agent", *, always: bool = False) -> Put:
        """Put a message into a queue. With `always`, even into a full one."""
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
        """Return messages that were taken but not read to the front of the queue."""
        with self._lock:
            if (queue := self._queues.get(name)) is not None:
                queue.extendleft(reversed(left))

    def names(self, *, but: str = "") -> list[str]:
        with self._lock:
            return [name for name in self._queues if name != but]

    def find(self, name: str) -> list[str]:
        """Return the queue with this name, or else those of all running agents of this type."""
        with self._lock:
            return [name] if name in self._queues else [each for each, kind in self._types.items() if kind == name]

    def about(self, name: str) -> str:
        with self._lock:
            return self._about.get(name, "")

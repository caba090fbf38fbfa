"""A message from one agent to another: its parts, its limits, and what a message that is no plain text asks or answers. Pure.

Whatever a message says is data (G3). Three kinds are understood besides: a request to end, the answer to one, and the answer to a
plan. Of these only the first does anything by itself, and only where the conversation that started an agent sends it.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from uuid import uuid4

import msgspec

from ...core.settings.kinds import printable

# How it came. Names of this process are sure; what comes by a mailbox or a socket is from another process of the same person.
Way: TypeAlias = Literal["agent", "mailbox", "socket", "bridge"]

# About 5,000 tokens: more than that lies in a file, and the message names it.
MOST_TEXT = 20_000
MOST_SUMMARY = 200
# Of a name, or of a name with the place it can be answered at.
MOST_NAME = 200
# Twice as long as needed to be alone in a home.
ID = re.compile(r"[0-9a-f]{16}")


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    sender: str
    text: str
    summary: str = ""
    answer_to: str = ""  # where an answer goes, if not to the sender's name

    @classmethod
    def new(cls, sender: str, text: str, *, summary: str = "", answer_to: str = "") -> Letter:
        sender, text, summary, answer_to = map(_sendable, (sender, text, summary, answer_to))
        return cls(id=uuid4().hex[:16], sender=sender, text=text, summary=summary, answer_to=answer_to)


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


class Unreadable(msgspec.Struct, frozen=True):
    sentence: str


def read_structured(text: str) -> Structured | Unreadable | None:
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
        return Unreadable(f"the {raw['type']} can't be read ({error}); send it again with approve as true or false.")
    return read


def _sendable(text: str) -> str:
    """Half of a character, as a shell's argument or a model's JSON may hold it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def encode(message: Structured) -> str:
    return msgspec.json.encode(message).decode()


def line_of(letter: Letter) -> bytes:
    """As it stands in a mailbox and on a socket: one line."""
    return msgspec.json.encode(letter)


def read_line(data: bytes) -> Letter | None:
    """Whoever wrote it, it is within the limits or it is no letter."""
    try:
        letter = msgspec.json.decode(data, type=Letter)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not ID.fullmatch(letter.id) or not letter.sender.strip() or not letter.text.strip() or len(letter.text) > MOST_TEXT:
        return None
    return msgspec.structs.replace(
        letter,
        sender=printable(letter.sender, MOST_NAME),
        summary=printable(letter.summary, MOST_SUMMARY),
        answer_to=printable(letter.answer_to, MOST_NAME),
    )

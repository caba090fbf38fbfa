"""Adds messages of other agents to a conversation, each once, as context after everything that was already sent.

Messages from a mailbox are written to the transcript before they are removed from the mailbox (disk/home/mailbox.py). Their ids are in
the text, so that after a crash a leftover claim can be resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...core.blocks import text
from ...core.records import Attachment, Event, new_id
from ...disk.home.mailbox import Mailbox
from ...language.wording import counted, plural
from .messages import KIND, ArrivedMessage, read_message, render_messages

EVENT = "mail"


def enter(c: Conversation, arrived: Sequence[ArrivedMessage], about: Sequence[str] = ()) -> None:
    uuid, parent, time = c.head()
    told = [{"id": one.message.id, "from": one.message.sender, "way": one.way} for one in arrived]
    words = text(render_messages(arrived, about))
    c.append([Attachment(uuid, parent, time, KIND, (words,)), Event(new_id(), uuid, time, EVENT, {"messages": told})])


def from_mailbox(c: Conversation, mailbox: Mailbox, transcript: Path) -> None:
    """Take pending messages, up to the limit. They stay in the mailbox while it cannot be read, which is reported, or while the
    transcript cannot be written: held in memory only, they could be lost."""
    if not mailbox.waits() or c.store.trouble is not None:
        return
    isolate(c, "mailbox", lambda _: _take_mail(c, mailbox, transcript))


def _take_mail(c: Conversation, mailbox: Mailbox, transcript: Path) -> None:
    taken = mailbox.take(transcript)
    messages = [message for _, line in taken.lines if (message := read_message(line)) is not None]
    if invalid := taken.invalid + len(taken.lines) - len(messages):
        lines = counted(invalid, "line that is", "lines that are")
        c.notify_once(f"The mailbox {mailbox.path} had {lines} not a message; {plural(invalid, 'it was', 'they were')} removed.")
    if messages:
        enter(c, [ArrivedMessage(message, "mailbox") for message in messages])
        c.store.sync(force=True)
    if taken.lines and c.store.trouble is None:
        mailbox.done(taken)

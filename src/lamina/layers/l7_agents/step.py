"""Messages of other agents as they enter a conversation: context behind what has not left yet, once each (A6).

Those of a mailbox stand in the transcript before they leave the mailbox (disk/home/mailbox.py): their ids are in the text, so that whoever
finds a claim behind a crash can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...core.blocks import text
from ...core.records import Attachment, Event, new_id
from ...disk.home.mailbox import Mailbox
from .messages import KIND, ArrivedMessage, read_message, render_messages

EVENT = "mail"


def enter(c: Conversation, arrived: Sequence[ArrivedMessage], about: Sequence[str] = ()) -> None:
    uuid, parent, time = c.head()
    told = [{"id": one.message.id, "from": one.message.sender, "way": one.way} for one in arrived]
    words = text(render_messages(arrived, about))
    c.append([Attachment(uuid, parent, time, KIND, (words,)), Event(new_id(), uuid, time, EVENT, {"messages": told})])


def from_mailbox(c: Conversation, mailbox: Mailbox, transcript: Path) -> None:
    """What waits there, as much of it as is taken at once. Messages stay where they are while the mailbox can't be read, which is
    told, or the transcript can't be written: what stands in memory alone would be lost with it."""
    if not mailbox.waits() or c.store.trouble is not None:
        return
    with isolate(c, "mailbox"):
        taken = mailbox.take(transcript)
        messages = [message for _, line in taken.lines if (message := read_message(line)) is not None]
        if messages:
            enter(c, [ArrivedMessage(message, "mailbox") for message in messages])
            c.store.sync(force=True)
        if taken.lines and c.store.trouble is None:
            mailbox.done(taken)

"""Messages to and from an agent: other agents of this process, the team's mailboxes, sockets, and the host's bridge.

Each agent has one Messaging. The main conversation's is `main` and owns the connections beyond the process, which its agents share. A
name is looked up in this process first, then among the mailboxes. Invariants: messages enter the conversation after a round of tools or
after a user message, as data. No message can allow a call. Only the main conversation can end an agent, and an agent that was asked to
end always answers.

`Transports` holds a session's connections beyond its process. The main conversation owns it, and its agents share it. Nothing is opened
that the settings do not name. A failure to open is a notice, and the session continues without it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from ..core.blocks import Wire
from ..core.errors import DiskError, InputError
from ..layers.l7_agents.messages import (
    MOST_TEXT,
    AgentMessage,
    ArrivedMessage,
    AskedToEnd,
    MessageQueues,
    Put,
    ShutdownRequest,
    ShutdownResponse,
    encode_message,
    encode_structured,
    read_structured,
    render_messages,
)
from ..layers.l7_agents.tools import CallRefusal, Sending, describe_unknown, read_sending, send_tool
from ..layers.l7_agents.types import MAIN, SEND
from ..session.base import conversation_of, working
from ..session.session import Session
from ..tools.tool import Context, Tool, ToolOutput, failure

if TYPE_CHECKING:  # loaded when a message leaves the process
    from ..disk.home.mailbox import Mailbox, MailboxAddress
    from ..disk.temp_files import Durability
    from ..layers.l7_agents.sockets import Listener


# An agent cannot decide about the agents of others.
NOT_YOURS = "Only the conversation that started an agent can ask it to end. Explain in your report why it should."
NO_BRIDGE = "Nothing was sent: the host program has not registered a bridge."
FULL = "{name} has too many unread messages, so this one was not sent. Wait until it has read some."
SEVERAL = "{count} agents of type {type} are running. Send to one of them: {names}."
QUEUED = "Sent to {name} as message {id}. {name} reads it at its next round of tools, or never if it ends before that."
ENDING = "Asked {name} to end (message {id}). It ends after its current round of tools and answers; its report arrives as usual."


class Messaging:
    def __init__(self, name: str, post: MessageQueues, transports: Transports, about: str = "", kind: str = "") -> None:
        self.name = name
        self.tool = send_tool(self._act)
        self._post = post
        self._transports = transports
        post.open(name, about, kind)

    @classmethod
    def main(cls, session: Session) -> Messaging:
        return cls(MAIN, MessageQueues(), Transports(session))

    def open(self) -> None:
        """Accept messages from beyond the process until `close`, if the settings say so."""
        self._transports.open(self._post)

    def of_agent(self, name: str, about: str, kind: str) -> Messaging:
        return Messaging(name, self._post, self._transports, about, kind)

    @property
    def has_mailbox(self) -> bool:
        return self._transports.mailbox is not None

    def waits(self) -> bool:
        """Return whether there may be messages in the session's mailbox."""
        return self._transports.mailbox is not None and self._transports.mailbox.waits()

    def knows(self, name: str) -> bool:
        """Return whether an agent of this process has the name."""
        return name in self._post.names()

    def with_send_tool(self, tools: Sequence[Tool], *, added: bool = False) -> tuple[Tool, ...]:
        """Return the tools with this agent's own SendMessage in place of another's. With `added`, append it if it is missing."""
        there = any(tool.name == SEND for tool in tools)
        return (*(self.tool if tool.name == SEND else tool for tool in tools), *((self.tool,) if added and not there else ()))

    # Receiving

    def take(self) -> list[ArrivedMessage]:
        """Return the pending messages. Raises AskedToEnd if the main conversation wants this agent to end; the rest stays unread."""
        found = self._post.take(self.name)
        asking = [one for one in found if self._is_shutdown(one)]
        if not asking:
            return found
        self._post.give_back(self.name, [one for one in found if one not in asking])
        for one in asking:
            self._answer(one.message, "ended as requested")
        raise AskedToEnd

    def take_texts(self) -> list[str]:
        """Return the pending messages as texts, for a fork, which has no log."""
        found = self.take()
        return [render_messages(found, self._sender_tasks(found))] if found else []

    def land(self, session: Session, *, beyond: bool = True) -> None:
        """Add pending messages to the conversation, in its own thread. `beyond`: from the mailbox too; at a session's end it keeps them."""
        with working(session) as c:
            if c.log.view.flat.open_calls:
                return
            found = self.take()
            mailbox = self._transports.mailbox if beyond and self.name == MAIN else None
            if not found and mailbox is None:
                return
            from ..layers.l7_agents import step as mail

            if found:
                mail.enter(c, found, self._sender_tasks(found))
            if mailbox is not None and session.path is not None:
                mail.from_mailbox(c, mailbox, session.path)

    def _sender_tasks(self, found: Sequence[ArrivedMessage]) -> list[str]:
        return [self._post.about(one.message.sender) if one.way == "agent" else "" for one in found]

    def _is_shutdown(self, one: ArrivedMessage) -> bool:
        asks = isinstance(read_structured(one.message.text), ShutdownRequest)
        return asks and self.name != MAIN and one.way == "agent" and one.message.sender == MAIN

    def _answer(self, request: AgentMessage, why: str) -> None:
        said = encode_structured(ShutdownResponse(True, request.id, why))
        self._post.put(MAIN, AgentMessage.new(self.name, said, summary=why), always=True)

    def receive(self, sender: str, text: str, *, summary: str = "") -> Put:
        """Accept a message that came over the host's bridge. Returns "unknown" if the session is closed."""
        if not text.strip() or len(text) > MOST_TEXT:
            raise InputError("message", f"is empty or longer than {MOST_TEXT:,} characters", "put long content into a file")
        return self._post.put(self.name, AgentMessage.new(sender, text, summary=summary), "bridge")

    def finish(self) -> int:
        """Close the queue of an agent that has ended, and return its number of unread messages. A request to end is still answered."""
        left = self._post.close(self.name)
        for one in left:
            if self._is_shutdown(one):
                self._answer(one.message, "had already ended")
        return sum(not self._is_shutdown(one) for one in left)

    def hang_up(self) -> None:
        """Stop listening. Messages accepted before are read with the last `land`. Only for the main conversation."""
        self._transports.hang_up()

    def close(self) -> None:
        self._transports.close()
        self._post.close(self.name)

    # Sending, in the thread of a call

    def _act(self, given: Wire, context: Context) -> ToolOutput:
        wanted = read_sending(given)
        if isinstance(wanted, CallRefusal):
            return failure(wanted.sentence)
        match wanted.where:
            case "name":
                return self._to_name(wanted)
            case "everybody":
                return self._to_everybody(wanted)
            case "uds":
                from ..layers.l7_agents.sockets import call_session

                letter = self._letter_beyond(wanted)
                problem = call_session(wanted.to, letter, abort=context.abort)
                sent = f"Delivered to the session at {wanted.to} as message {letter.id}."
                return failure(problem) if problem else _sent_output(sent, letter)
            case "bridge":
                return self._over_bridge(wanted)
            case _:
                assert_never(wanted.where)

    def _to_name(self, wanted: Sending) -> ToolOutput:
        found = [each for each in self._post.find(wanted.to) if each != self.name]
        if len(found) > 1:
            return failure(SEVERAL.format(count=len(found), type=wanted.to, names=", ".join(found)))
        name = found[0] if found else wanted.to
        if name == self.name or (not found and self.name == MAIN and self._transports.is_own(name)):
            return failure("You cannot send a message to yourself.")
        ends = isinstance(wanted.structured, ShutdownRequest)
        if found:
            if ends and (self.name != MAIN or name == MAIN):
                return failure(NOT_YOURS)
            letter = self._letter(wanted)
            match self._post.put(name, letter):
                case "sent":
                    return _sent_output((ENDING if ends else QUEUED).format(name=name, id=letter.id), letter)
                case "full":
                    return failure(FULL.format(name=name))
                case "unknown":  # it has just ended
                    pass
        elif self._transports.has_mailbox(name):
            letter = self._letter_beyond(wanted)
            self._transports.deliver(name, letter)
            return _sent_output(f"Message {letter.id} is in the mailbox of {name}, who reads it when next at work.", letter)
        beyond = [*self._transports.members(name.partition("@")[2]), *self._transports.sockets()]
        return failure(describe_unknown(name, self._post.names(but=self.name), beyond))

    def _letter(self, wanted: Sending) -> AgentMessage:
        return AgentMessage.new(self.name, wanted.text, summary=wanted.summary)

    def _to_everybody(self, wanted: Sending) -> ToolOutput:
        sent: list[str] = []
        problems: list[str] = []
        for name in self._post.names(but=self.name):
            put = self._post.put(name, self._letter(wanted))
            if put == "sent":
                sent.append(name)
            elif put == "full":
                problems.append(FULL.format(name=name))
        for name in self._transports.members():
            try:
                self._transports.deliver(name, self._letter_beyond(wanted))
                sent.append(name)
            except DiskError as error:
                problems.append(f"Not sent to {name}: {error}")
        if not sent and not problems:
            return failure("Nothing was sent: no other agent is running at the moment.")
        told = [f"Sent to {', '.join(sent)}."] if sent else []
        return ToolOutput(" ".join([*told, *problems]), is_error=not sent, facts={"sent": sent})

    def _over_bridge(self, wanted: Sending) -> ToolOutput:
        bridge = conversation_of(self._transports.session).host.bridge
        if bridge is None:
            return failure(NO_BRIDGE)
        try:
            problem = bridge(wanted.to, wanted.text, wanted.summary)
        except Exception as error:  # noqa: BLE001  # the host's own code: report any failure to the model
            problem = f"The bridge failed: {type(error).__name__}: {error}"
        done = ToolOutput(f"The bridge accepted the message for {wanted.to}.", facts={"sent": [wanted.to]})
        return failure(problem) if problem else done

    def _letter_beyond(self, wanted: Sending) -> AgentMessage:
        own = self._transports.sender_for(wanted.to)
        sender = own if self.name == MAIN else f"{own}/{self.name}"
        return AgentMessage.new(sender, wanted.text, summary=wanted.summary, answer_to=self._transports.answer_to)


def _sent_output(sentence: str, letter: AgentMessage) -> ToolOutput:
    return ToolOutput(sentence, facts={"message": letter.id})


class Transports:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.mailbox: Mailbox | None = None
        self.listener: Listener | None = None
        self.team = ""
        self._problems: list[str] = []  # notices about connections that could not be opened

    def open(self, post: MessageQueues) -> None:
        """Open what the settings name. Open connections stay; failed ones are tried again."""
        session = self.session
        conversation_of(session).withdraw(self._problems)
        self._problems = []
        self._open_mailbox(session)
        if self.listener is None and session.settings.message_socket and session.home is not None:
            self._listen(session, session.home, post)
        conversation_of(session).notify(*self._problems)

    def _open_mailbox(self, session: Session) -> None:
        named = session.settings.mailbox
        if self.mailbox is not None or named is None or session.home is None:
            return
        from ..disk.home.mailbox import Mailbox, read_address

        try:
            address = read_address(named)
            self.team = address.team
            if session.path is None:
                self._problems.append(f"The mailbox {named} was not opened: this session is kept in memory only.")
                return
            self.mailbox = Mailbox.open(session.home, address)
            if self.mailbox is None:
                self._problems.append(f"The mailbox {named} is used by another open session, so this session has none.")
        except (InputError, DiskError) as error:
            self._problems.append(f"{error} This session has no mailbox.")

    def _listen(self, session: Session, home: Path, post: MessageQueues) -> None:
        from ..layers.l7_agents.sockets import Listener

        def take(letter: AgentMessage) -> str | None:
            return None if post.put(MAIN, letter, "socket") == "sent" else "The session has too many unread messages."

        try:
            self.listener = Listener(home, session.id, take)
        except (DiskError, OSError) as error:
            self._problems.append(f"{error} This session does not listen on a socket.")

    @property
    def name(self) -> str:
        return self.mailbox.address.name if self.mailbox is not None else f"session-{self.session.id[:8]}"

    @property
    def answer_to(self) -> str:
        return self.listener.address if self.listener is not None else ""

    def members(self, team: str = "") -> list[str]:
        """Return the mailboxes of the own team but the own one, whether their sessions run or not, and those of `team` as NAME@TEAM."""
        if self.session.home is None:
            return []
        from ..disk.home.mailbox import DEFAULT_TEAM, is_name, members

        own = self.mailbox.address.name if self.mailbox is not None else ""
        near = [name for name in members(self.session.home, self.team or DEFAULT_TEAM) if name != own]
        far = team if is_name(team) and team != (self.team or DEFAULT_TEAM) else ""
        return [*near, *(f"{name}@{far}" for name in (members(self.session.home, far) if far else ()))]

    def _address_of(self, name: str) -> MailboxAddress | None:
        from ..disk.home.mailbox import DEFAULT_TEAM, read_address

        try:
            return read_address(name if "@" in name else f"{name}@{self.team or DEFAULT_TEAM}")
        except InputError:
            return None

    def is_own(self, name: str) -> bool:
        return self.mailbox is not None and self._address_of(name) == self.mailbox.address

    def sender_for(self, to: str) -> str:
        """Return the own name as the recipient can write to it: with the team if that is another one."""
        far = self._address_of(to) if self.mailbox is not None and "@" in to else None
        return "@".join(self.mailbox.address) if self.mailbox is not None and far and far.team != self.team else self.name

    def has_mailbox(self, name: str) -> bool:
        """Return whether NAME, a member of the own team, or NAME@TEAM has a mailbox."""
        from ..disk.home.mailbox import members

        to = self._address_of(name)
        return to is not None and self.session.home is not None and to.name in members(self.session.home, to.team)

    def sockets(self) -> list[str]:
        """Return the addresses of other sessions that listen on a socket."""
        if self.session.home is None:
            return []
        from ..disk.home.sockets import list_sockets

        found = [f"uds:{os.path.realpath(path)}" for path in list_sockets(self.session.home)]
        return [each for each in found if each != self.answer_to]

    def deliver(self, name: str, letter: AgentMessage) -> None:
        """Put a message into a mailbox. Raises DiskError if that fails."""
        from ..disk.home.mailbox import deliver

        to = self._address_of(name)
        assert self.session.home is not None, "mailboxes exist only with a home directory"
        assert to is not None, "only called for mailboxes that exist"
        durability: Durability = "process" if self.session.settings.durability == "process" else "full"
        deliver(self.session.home, to, encode_message(letter), durability=durability)

    def hang_up(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def close(self) -> None:
        self.hang_up()
        if self.mailbox is not None:
            self.mailbox.close()

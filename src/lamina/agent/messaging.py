"""Who an agent can write to and what comes for it (A6): agents of this process, mailboxes of the team, sockets, the host's bridge.

One Messaging for each agent: the main conversation's is `main` and owns what reaches beyond the process, those of its agents share that.
A name is looked for in this process first, then among the mailboxes. Invariants: what comes enters the conversation behind a round of
tools or behind what the person says, as data; nothing that comes can allow a call; only the main conversation ends an agent, and an
agent that was asked to end always answers.

`Transports` is what of a session reaches beyond its process: owned by the main conversation, shared by its agents. Nothing is opened
that the settings do not name; what can't be opened is a notice, and the session goes on without it.
"""

from __future__ import annotations

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
from ..session.base import working
from ..session.session import Session
from ..tools.tool import Context, Tool, ToolOutput, failure

if TYPE_CHECKING:  # loaded where somebody is written to beyond the process
    from ..disk.home.mailbox import Mailbox
    from ..disk.temp_files import Durability
    from ..layers.l7_agents.sockets import Listener


# Who else may be asked to end is not this agent's to decide.
NOT_YOURS = "Only the conversation that started an agent can ask it to end; say in your report why it should."
NO_BRIDGE = "There is no bridge here: the program around this conversation has registered none, so nothing was sent."
FULL = "{name} has too many unread messages, so this one was not sent; wait until it has read some."
QUEUED = "Sent to {name} as message {id}. It is read at {name}'s next round of tools, and never if {name} ends before."
ENDING = "Asked {name} to end (message {id}). It ends after its round of tools and answers; its report comes as always."


class Messaging:
    def __init__(self, name: str, post: MessageQueues, transports: Transports, about: str = "") -> None:
        self.name = name
        self.tool = send_tool(self._act)
        self._post = post
        self._transports = transports
        post.open(name, about)

    @classmethod
    def main(cls, session: Session) -> Messaging:
        return cls(MAIN, MessageQueues(), Transports(session))

    def open(self) -> None:
        """From here on messages come from beyond the process, where the settings say so; until `close`."""
        self._transports.open(self._post)

    def of_agent(self, name: str, about: str) -> Messaging:
        return Messaging(name, self._post, self._transports, about)

    def with_send_tool(self, tools: Sequence[Tool], *, added: bool = False) -> tuple[Tool, ...]:
        """The tools with this agent's own SendMessage in the place of whoever's stood there; `added`: behind them if none did."""
        there = any(tool.name == SEND for tool in tools)
        return (*(self.tool if tool.name == SEND else tool for tool in tools), *((self.tool,) if added and not there else ()))

    # What comes

    def take(self) -> list[ArrivedMessage]:
        """What waits. AskedToEnd where the main conversation wants this agent to end; the rest then stays unread."""
        found = self._post.take(self.name)
        asking = [one for one in found if self._is_end(one)]
        if not asking:
            return found
        self._post.give_back(self.name, [one for one in found if one not in asking])
        for one in asking:
            self._answer(one.message, "it ends as asked")
        raise AskedToEnd

    def take_texts(self) -> list[str]:
        """The same for a run that has no log: a fork's."""
        found = self.take()
        return [render_messages(found, self._doing(found))] if found else []

    def land(self, session: Session, *, beyond: bool = True) -> None:
        """In the conversation's own thread. `beyond`: the mailbox too; at a session's end it keeps what it has."""
        with working(session) as c:
            if c.log.view.flat.open_calls:
                return
            found = self.take()
            mailbox = self._transports.mailbox if beyond and self.name == MAIN else None
            if not found and mailbox is None:
                return
            from ..layers.l7_agents import step as mail

            if found:
                mail.enter(c, found, self._doing(found))
            if mailbox is not None and session.path is not None:
                mail.from_mailbox(c, mailbox, session.path)

    def _doing(self, found: Sequence[ArrivedMessage]) -> list[str]:
        return [self._post.about(one.message.sender) if one.way == "agent" else "" for one in found]

    def _is_end(self, one: ArrivedMessage) -> bool:
        asks = isinstance(read_structured(one.message.text), ShutdownRequest)
        return asks and self.name != MAIN and one.way == "agent" and one.message.sender == MAIN

    def _answer(self, request: AgentMessage, why: str) -> None:
        said = encode_structured(ShutdownResponse(True, request.id, why))
        self._post.put(MAIN, AgentMessage.new(self.name, said, summary=why), always=True)

    def receive(self, sender: str, text: str, *, summary: str = "") -> Put:
        """For the host: a message that came by its bridge. "unknown": the session is closed."""
        if not text.strip() or len(text) > MOST_TEXT:
            raise InputError("message", f"has no words, or more than {MOST_TEXT:,} characters", "put what is long into a file")
        return self._post.put(self.name, AgentMessage.new(sender, text, summary=summary), "bridge")

    def finish(self) -> int:
        """The agent has ended: how many messages it never read. A request to end is answered all the same."""
        left = self._post.close(self.name)
        for one in left:
            if self._is_end(one):
                self._answer(one.message, "it had ended by itself")
        return sum(not self._is_end(one) for one in left)

    def hang_up(self) -> None:
        """Nobody calls from here on; who was told that a message came is read with the last `land`. The main conversation's."""
        self._transports.hang_up()

    def close(self) -> None:
        self._transports.close()
        self._post.close(self.name)

    # What is sent; in the thread of a call

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
                sent = f"The session at {wanted.to} has it as message {letter.id}."
                return failure(problem) if problem else _sent(sent, letter)
            case "bridge":
                return self._over_bridge(wanted)
            case _:
                assert_never(wanted.where)

    def _to_name(self, wanted: Sending) -> ToolOutput:
        name = wanted.to
        if name == self.name:
            return failure("That is you: there is nothing to send.")
        ends = isinstance(wanted.structured, ShutdownRequest)
        if name in self._post.names():
            if ends and (self.name != MAIN or name == MAIN):
                return failure(NOT_YOURS)
            letter = self._letter(wanted)
            match self._post.put(name, letter):
                case "sent":
                    return _sent((ENDING if ends else QUEUED).format(name=name, id=letter.id), letter)
                case "full":
                    return failure(FULL.format(name=name))
                case "unknown":  # it ended just now
                    pass
        elif name in self._transports.members():
            letter = self._letter_beyond(wanted)
            self._transports.deliver(name, letter)
            return _sent(f"Message {letter.id} is in the mailbox of {name}, which is read when {name} is next at work.", letter)
        return failure(describe_unknown(name, self._post.names(but=self.name), self._transports.members()))

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
            return failure("Nobody can be written to now, so nothing was sent.")
        told = [f"Sent to {', '.join(sent)}."] if sent else []
        return ToolOutput(" ".join([*told, *problems]), is_error=not sent, facts={"sent": sent})

    def _over_bridge(self, wanted: Sending) -> ToolOutput:
        bridge = self._transports.session._c.host.bridge
        if bridge is None:
            return failure(NO_BRIDGE)
        try:
            problem = bridge(wanted.to, wanted.text, wanted.summary)
        except Exception as error:  # noqa: BLE001  # the host's own code: whatever goes wrong there, the model is told
            problem = f"The bridge failed: {type(error).__name__}: {error}"
        done = ToolOutput(f"The bridge took the message for {wanted.to}.", facts={"sent": [wanted.to]})
        return failure(problem) if problem else done

    def _letter_beyond(self, wanted: Sending) -> AgentMessage:
        own = self._transports.name
        sender = own if self.name == MAIN else f"{own}/{self.name}"
        return AgentMessage.new(sender, wanted.text, summary=wanted.summary, answer_to=self._transports.answer_to)


def _sent(sentence: str, letter: AgentMessage) -> ToolOutput:
    return ToolOutput(sentence, facts={"message": letter.id})


class Transports:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.mailbox: Mailbox | None = None
        self.listener: Listener | None = None
        self.team = ""
        self._problems: list[str] = []  # why something could not be opened; notices

    def open(self, post: MessageQueues) -> None:
        """What is open stays; what could not be opened is tried again."""
        session = self.session
        session._withdraw(self._problems)
        self._problems = []
        self._open_mailbox(session)
        if self.listener is None and session.settings.message_socket and session.home is not None:
            self._listen(session, session.home, post)
        session._notify(*self._problems)

    def _open_mailbox(self, session: Session) -> None:
        named = session.settings.mailbox
        if self.mailbox is not None or named is None or session.home is None:
            return
        from ..disk.home.mailbox import Mailbox, read_address

        try:
            address = read_address(named)
            self.team = address.team
            if session.path is None:
                self._problems.append(f"The mailbox {named} is not opened: this session is kept in memory only.")
                return
            self.mailbox = Mailbox.open(session.home, address)
            if self.mailbox is None:
                self._problems.append(f"The mailbox {named} belongs to another session that is open, so this one has none.")
        except (InputError, DiskError) as error:
            self._problems.append(f"{error} This session has no mailbox.")

    def _listen(self, session: Session, home: Path, post: MessageQueues) -> None:
        from ..layers.l7_agents.sockets import Listener

        def take(letter: AgentMessage) -> str | None:
            return None if post.put(MAIN, letter, "socket") == "sent" else "The session has too many unread messages."

        try:
            self.listener = Listener(home, session.id, take)
        except (DiskError, OSError) as error:
            self._problems.append(f"{error} This session listens on no socket.")

    @property
    def name(self) -> str:
        return self.mailbox.address.name if self.mailbox is not None else f"session-{self.session.id[:8]}"

    @property
    def answer_to(self) -> str:
        return self.listener.address if self.listener is not None else ""

    def members(self) -> list[str]:
        """The others of the team, whether they are at work or not."""
        if self.session.home is None:
            return []
        from ..disk.home.mailbox import DEFAULT_TEAM, members

        own = self.mailbox.address.name if self.mailbox is not None else ""
        return [name for name in members(self.session.home, self.team or DEFAULT_TEAM) if name != own]

    def deliver(self, name: str, letter: AgentMessage) -> None:
        """DiskError where it could not be."""
        from ..disk.home.mailbox import DEFAULT_TEAM, MailboxAddress, deliver

        assert self.session.home is not None, "there are members only where there is a home"
        durability: Durability = "process" if self.session.settings.durability == "process" else "full"
        deliver(self.session.home, MailboxAddress(name, self.team or DEFAULT_TEAM), encode_message(letter), durability=durability)

    def hang_up(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def close(self) -> None:
        self.hang_up()
        if self.mailbox is not None:
            self.mailbox.close()

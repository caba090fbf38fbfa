"""What of a session reaches beyond its process: its mailbox and the team's, its socket and those of others, the host's bridge (A6).

Owned by the main conversation, shared by its agents. Invariants: nothing is opened that the settings do not name; what can't be opened is
a notice, and the session goes on without it; what is open is let go of with the session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import DiskError, InputError
from ..layers.l7_agents.messages import AgentMessage
from ..layers.l7_agents.queues import MessageQueues
from ..layers.l7_agents.types import MAIN
from ..session.session import Session

if TYPE_CHECKING:  # loaded where somebody is written to beyond the process
    from ..disk.home.mailbox import Mailbox
    from ..disk.temp_files import Durability
    from ..layers.l7_agents.sockets import Listener


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
        from ..layers.l7_agents.messages import encode_message

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

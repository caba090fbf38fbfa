"""Messages between the agents of one process: a bounded queue for each, read at the reader's next round of tools.

Owns the queues. Invariants: a message is put to an open queue or refused with the reason; it is taken once, in the order it came; no
queue holds more than MOST_WAITING messages or MOST_CHARACTERS, answers to a request to end aside. A process that ends takes what
nobody read along, with the agents it was for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Literal, TypeAlias

from ...core.errors import LaminaError
from .messages import AgentMessage, ArrivedMessage, Way

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

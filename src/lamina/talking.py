"""The main conversation as a loop carries it on (`fork.loop.Talk`): every word of it is in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from . import turn
from .core.blocks import Block, ToolResult, ToolUse, Wire, read_block
from .core.effects import Flow
from .core.errors import ProviderError
from .core.reply import Reply
from .providers.stream import StreamState
from .session import Session


class Heard:
    """What has arrived of the answer under way. A second beginning means that the call was tried again: the first part is void."""

    def __init__(self) -> None:
        self.state = StreamState()

    def feed(self, event: dict[str, Any]) -> None:
        if event.get("type") == "message_start":
            self.state = StreamState()
        self.state.feed(event)


class MainTalk:
    def __init__(self, session: Session, *, tell: Callable[[dict[str, Any]], None], after_results: Callable[[], None]) -> None:
        self._session = session
        self._tell = tell
        self._after_results = after_results

    def request(self) -> Flow[Wire]:
        with self._session.working() as conversation:
            return (yield from turn.before_call(conversation))

    def answered(self, reply: Reply) -> Reply:
        kept = self._session.after_call(self._with_ids_of_their_own(reply))
        self._tell({"type": "answer", "reply": kept})
        return kept

    def _with_ids_of_their_own(self, reply: Reply) -> Reply:
        """Some servers number the calls of each answer anew, or not at all. A call is known by its id, so it gets another one."""
        with self._session.working() as conversation:
            flat = conversation.log.view.flat
            taken: set[str] = {""}
            blocks: list[Block] = []
            for block in reply.blocks:
                if isinstance(block, ToolUse):
                    if block.id in taken or flat.fate_of_call(block.id) is not None:
                        block = read_block({**block.wire, "id": f"call_{uuid4().hex}"})
                    taken.add(str(block.wire["id"]))
                blocks.append(block)
        return msgspec.structs.replace(reply, blocks=tuple(blocks))

    def mend(self, error: ProviderError) -> Flow[bool]:
        with self._session.working() as conversation:
            return (yield from turn.mend(conversation, error))

    def results(self, results: Sequence[ToolResult]) -> None:
        self._session.add_results(results)
        self._after_results()

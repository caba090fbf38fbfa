"""The main conversation as a loop carries it on (`fork.loop.Talk`): every word of it is in the log.

Here too: how its model is asked, and what whoever watches is shown of its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, TypeAlias
from uuid import uuid4

import msgspec

from .. import turn
from ..core.blocks import Block, ToolResult, ToolUse, Wire, read_block
from ..core.effects import Ask, Flow
from ..core.errors import Aborted, ProviderError
from ..core.reply import Reply
from ..fork.loop import partial
from ..fork.model_call import ask_until
from ..fork.tool_runner import Ran
from ..providers.stream import StreamState
from ..session.session import Session

Tell: TypeAlias = Callable[[dict[str, Any]], None]


class Heard:
    """What has arrived of the answer under way. A second beginning means that the call was tried again: the first part is void."""

    def __init__(self) -> None:
        self.state = StreamState()

    def feed(self, event: dict[str, Any]) -> None:
        if event.get("type") == "message_start":
            self.state = StreamState()
        self.state.feed(event)


class MainTalk:
    def __init__(self, session: Session, *, tell: Tell, after_results: Callable[[], None]) -> None:
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


class Asking:
    """Calls to the model that an abort leaves at once; what was heard of the main conversation's answer is kept."""

    def __init__(self, session: Session, abort: Event, talk: MainTalk, tell: Tell) -> None:
        self._session = session
        self._abort = abort
        self._talk = talk
        self._tell = tell

    def side(self, effect: Ask) -> Reply:
        """A call beside the conversation that the turn waits for: a summary."""
        reply = ask_until(self._abort, self._session.side, effect, effect.on_event or (lambda event: None))
        if reply is None:
            raise Aborted
        return reply

    def main(self, effect: Ask) -> Reply:
        heard = Heard()

        def hear(event: dict[str, Any]) -> None:
            heard.feed(event)
            self._tell(event)

        try:
            reply = ask_until(self._abort, self._session.provider, effect, hear)
            if reply is None:
                raise Aborted
            return reply
        except BaseException as error:
            # What a broken stream carries is kept by the loop; after an abort, or a listener that failed, it is what was heard.
            if not isinstance(error, ProviderError):
                self._keep(heard)
            raise

    def _keep(self, heard: Heard) -> None:
        reply = partial(heard.state.partial(), self._session.provider.model)
        if reply.blocks:
            self._talk.answered(reply)


class Showing:
    """What whoever watches is told of calls; any thread may be the one that runs them."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def started(self, call: ToolUse) -> None:
        self._tell({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input})

    def printed(self, call: ToolUse, text: str) -> None:
        self._tell({"type": "tool_output", "id": call.id, "text": text})

    def ended(self, ran: Ran) -> None:
        output = ran.output
        told = {"id": ran.call.id, "is_error": output.is_error, "content": output.content, "facts": output.facts}
        self._tell({"type": "tool_result", **told})

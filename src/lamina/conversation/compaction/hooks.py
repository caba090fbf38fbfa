"""What the person's PreCompact hooks say to a compaction, by notes or by a summary: nothing, more instructions, or no (C2).

They run once for each compaction, and only when it is known that there is something to take out. Notes are what they are, so where
a hook adds instructions a summary is made instead, as where a person gives some (N6).
"""

from __future__ import annotations

from functools import partial

from ...hooks.answers import HookOutcome
from ..isolate import call_host
from ..state import Conversation


class CompactHooks:
    """One compaction that is wanted: why, with which instructions, and what the hooks had to say once they were asked."""

    def __init__(self, c: Conversation, trigger: str, instructions: str = "") -> None:
        self.trigger = trigger
        self.instructions = instructions.strip()
        self.refused = ""  # in a sentence, where a hook said no
        self._c = c
        self._asked = False

    def ask(self) -> bool:
        """Whether the compaction may go on. What hooks told the person goes to the notices."""
        if not self._asked:
            self._asked = True
            self._run()
        return not self.refused

    def _run(self) -> None:
        c = self._c
        if c.host.pre_compact is None:
            return
        said = call_host(c, "pre_compact", partial(c.host.pre_compact, self.trigger, self.instructions), HookOutcome())
        c.notify(*said.messages, *said.faults)
        self.instructions = "\n\n".join(part for part in (self.instructions, *said.context) if part)
        if said.block is not None:
            self.refused = f"a PreCompact hook said no: {said.block}"
            c.record_event("compaction_refused", {"trigger": self.trigger, "why": said.block})

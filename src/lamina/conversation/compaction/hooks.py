"""Runs the user's PreCompact hooks. A hook can add instructions to a compaction or veto it.

A veto holds while there is room. In a full window it is overruled, since a hook that always vetoes would end the conversation.
Nothing is lost by that: the transcript keeps every message, and the compaction can be undone.

The hooks run once for each compaction, and only if there is something to compact. Notes cannot follow instructions, so hook
output forces a new summary instead of notes, just as instructions from the user do.
"""

from __future__ import annotations

from functools import partial

from ...language.text import Text
from ...tools.hooks.protocol import HookOutcome
from ..isolate import call_host
from ..state import Conversation


class CompactHooks:
    """A requested compaction with its trigger and instructions, and the hooks' verdict once they ran."""

    def __init__(
        self, c: Conversation, trigger: str, instructions: str = "", *, can_veto: bool = True, because: str = ""
    ) -> None:
        self.trigger = trigger
        self.because = because  # why the compaction begins before the window is full
        self.instructions = instructions.strip()
        self.refused = ""  # the reason, if a hook vetoed the compaction
        self._c = c
        self._can_veto = can_veto
        self._asked = False

    def ask(self) -> bool:
        """Return whether the compaction may proceed. Messages of the hooks are added to the notices."""
        c = self._c
        if self._asked or c.host.pre_compact is None:
            return not self.refused
        self._asked = True
        outcome = call_host(c, "pre_compact", partial(c.host.pre_compact, self.trigger, self.instructions), HookOutcome())
        c.notify(*outcome.messages, *outcome.faults)
        self.instructions = "\n\n".join(part for part in (self.instructions, *outcome.context) if part)
        if outcome.block is None:
            return True
        data = {"trigger": self.trigger, "why": outcome.block}
        c.record_event("compaction_refused", data if self._can_veto else {**data, "overruled": True})
        if self._can_veto:
            self.refused = f"a PreCompact hook blocked it: {outcome.block}"
        else:
            c.notify(
                Text(
                    "A PreCompact hook blocked compaction ({block}), but the window is full, so the conversation is "
                    "compacted anyway. Use /undo to take it back.",
                    block=outcome.block.rstrip("."),
                )
            )
        return not self.refused

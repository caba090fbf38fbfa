"""`--ask`: compare a real model's answers under a policy with the recorded ones.

At a few fixed calls of a session, the request that the policy would have sent goes to a provider, and its answer is compared
with the recorded one. The answer is not used for the rest of the replay. Three things are counted: the same next action (the
same tool on the same target, or text instead of a call), a repeated read of something unchanged, and a question to the user
where the recording went to work.

Content that was not recorded cannot be sent: an unknown system prompt is replaced by a short one of ours, tools have no descriptions, and
thinking is left out, since it may not be sent to another model.
"""

from __future__ import annotations

from ..core.blocks import ToolUse, Wire, canonical
from ..core.errors import ProviderError
from ..core.prompt_files import prompt_text
from ..core.usage import Usage
from ..providers import Provider
from ..providers.models import cost
from .figures import Comparison
from .repeated_reads import ReadTracker, path_of
from .script import RecordedAnswer, ReplayScript

# The beginning of an answer is enough to see its next action.
MAX_TOKENS = 2_000
# Stop asking after this many failures in a row: the server is down.
BREAKER = 3
THINKING = frozenset({"thinking", "redacted_thinking"})
OPTIONS = frozenset({"messages", "tools", "tool_choice"})


class ComparisonModel:
    """The provider to compare with, for the whole report; `trouble` is the error message of the last failed call."""

    def __init__(self, provider: Provider, times: int) -> None:
        self._provider = provider
        self._times = times
        self._failed = 0  # in a row
        self.trouble: str | None = None

    def points(self, script: ReplayScript) -> frozenset[int]:
        """Return steps spread over the session, without the first answer: every policy sends the same request for it."""
        return frozenset(script.spread(self._times, skip=1))

    def ask(self, request: Wire, system: list[Wire] | None, step: RecordedAnswer, reads: ReadTracker) -> Comparison:
        if self._failed >= BREAKER:
            return Comparison()
        try:
            reply = self._provider.ask(self._request(request, system), purpose="chat")
        except ProviderError as error:
            self._failed += 1
            self.trouble = str(error)
            return Comparison(failed=1)
        self._failed = 0
        usage = reply.usage or Usage()
        calls = tuple(block for block in reply.blocks if isinstance(block, ToolUse))
        return Comparison(
            calls=1,
            same=_act(calls) == _act(step.calls),
            again=reads.again(calls),
            questions=not calls and bool(step.calls) and reply.text.rstrip().endswith(("?", "？")),
            usage=usage,
            usd=cost(reply.model or self._provider.model, usage).usd or 0.0,
        )

    def _request(self, request: Wire, system: list[Wire] | None) -> Wire:
        shown = [[block for block in message["content"] if block["type"] not in THINKING] for message in request["messages"]]
        messages = [
            {**message, "content": content} for message, content in zip(request["messages"], shown, strict=True) if content
        ]
        kept = {name: value for name, value in request.items() if name in OPTIONS}
        ours = {"type": "text", "text": prompt_text(__file__, "asked")}
        head = {"model": self._provider.model, "max_tokens": MAX_TOKENS, "system": system or [ours]}
        return {**kept, **head, "messages": messages}


def _act(calls: tuple[ToolUse, ...]) -> bytes:
    """Identify the next action: the first call by its tool and file, or else its whole input; empty without calls."""
    return canonical([calls[0].name, path_of(calls[0]) or calls[0].input]) if calls else b""

"""`--ask`: what a real model does where a policy's request differs from what was recorded.

At a few fixed calls of a session the request a policy would have sent goes to a provider, and what comes back is held against what was
recorded there. Nothing of it is played on. Three counts: the same next act (the same tool on the same thing, or words where there were
words), something read again that had been read and not changed since, and a question to the person where the recording went to work.

What was not recorded cannot be sent: where the system prompt is not known a short one of ours stands there, tools have no descriptions, and
thinking is left out, since another model may not be given it.
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

# As the conversation's own calls have it; the beginning of an answer is enough to see what it does.
MAX_TOKENS = 2_000
# So many calls that failed one after another are a server that does not answer.
BREAKER = 3
THINKING = frozenset({"thinking", "redacted_thinking"})
OPTIONS = frozenset({"messages", "tools", "tool_choice"})


class ComparisonModel:
    """One provider for the whole report; `trouble` is the sentence of the last call that failed."""

    def __init__(self, provider: Provider, times: int) -> None:
        self._provider = provider
        self._times = times
        self._failed = 0  # in a row
        self.trouble: str | None = None

    def points(self, script: ReplayScript) -> frozenset[int]:
        """Steps, spread over the session; never the first answer, which every policy asks for with the same request."""
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
    """The first call, by its tool and its file, else by all of its input; nothing where there is none."""
    return canonical([calls[0].name, path_of(calls[0]) or calls[0].input]) if calls else b""

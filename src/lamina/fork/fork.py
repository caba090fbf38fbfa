"""A fork: one directive appended to the parent's own request, so that nearly all of it is read from the prompt cache.

Theory. A provider's cache matches a request by its bytes from the start. So a fork changes nothing before its directive: it has the same
system prompt, tools, model, options and messages. "No tools" is stated in the directive and enforced at run time. The directive is one
more text block of the last user message, or a user message after an answer. After an answer with open calls comes one user message
with the same placeholder for every call and the directive last, so forks of one answer are byte-identical up to it.

Marks. The parent's last request wrote a cache entry at its end, and a mark there hits it, however much was added since. The second mark
is at the end of the parent's part for a run of one round: its directive is not worth an entry, and the parent's next request finds this
one. For more rounds it is at the end of the request, where the next round hits it. A result that the parent shows once ends its part.

A fork keeps its own account: its messages are not in the parent's log, and its usage does not count towards the window.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from ..core.blocks import ToolResult, ToolUse, Wire, text, tool_result
from ..core.cache import BREAK_HEADER, FORK_HEADER
from ..core.effects import Flow, RunTools
from ..core.errors import LaminaError, ProviderError
from ..core.message_list import Flat
from ..core.prompt_files import prompt_text
from ..core.reply import Reply
from ..core.usage import Usage
from ..prompt.cache_marks import BlockPosition, end_before_last_answer, mark_at, mark_messages, stable_end
from ..providers.models import known
from . import loop
from .handover import Handover, check
from .loop import DENIED, with_unique_ids

# The frame of a directive, by which `is_fork` recognises it.
_OPENING = re.compile(r'<fork purpose="[a-z_-]+">\n')
_CLOSING = "\n</fork>"

# The purpose of a fork that does its parent's work, and the tool that starts it.
AGENT = "agent"
AGENT_TOOL = "Agent"
NO_AGENTS = f"{DENIED}a fork cannot start agents. Do the work yourself with the other tools."
NO_TOOLS = f"{DENIED}this run cannot call tools. Answer with text, from what is in the conversation."


class ForkOfFork(LaminaError):
    """The handover is a fork's own conversation."""

    def __init__(self) -> None:
        super().__init__("No fork was started: this conversation is itself a fork, and forks cannot be nested.")


class ForkOutcome(msgspec.Struct, frozen=True):
    reply: Reply  # the last answer
    usage: Usage  # of all calls
    rounds: int
    denied: int  # number of denied calls
    texts: tuple[str, ...]  # the text of each answer
    first: Usage = Usage()  # of the first call; shows how much of the parent's prefix was cached
    readable: int = 0  # how much should have been cached
    handed_at: str = ""  # when the parent's prefix was handed over; empty if it was not
    done: bool = True  # False: the rounds were used up, or the last answer was cut off or refused


class Fork:
    """A conversation for the loop that begins where its parent is."""

    def __init__(
        self,
        handover: Handover,
        directive: str,
        *,
        purpose: str,
        rounds: int,
        max_tokens: int | None,
        tools: bool | None,
        mail: Callable[[], Sequence[str]] | None,
    ) -> None:
        # A user may quote a directive. Such a conversation still gets summaries and notes.
        if purpose == AGENT and is_fork(handover.messages):
            raise ForkOfFork
        self._handover = handover
        self._purpose = purpose
        self._several = rounds > 1
        self._tools = self._several if tools is None else tools
        self._mail = mail
        self._own = Flat()  # the messages from the directive on
        self._own.add("user", [text(tagged(directive, purpose))])
        self._head = _with_max_tokens(handover, max_tokens)
        self._options = _with_headers(handover, purpose)
        self._calls: set[str] | None = None
        self.usage = Usage()
        self.first: Usage | None = None
        self.denied = 0
        self.rounds = 0
        self.texts: list[str] = []

    def request(self) -> Flow[Wire]:
        """Return the next request. Raises PrefixChanged if it differs from the parent's before the directive: a bug of ours, never sent."""
        yield from ()
        messages = [*self._handover.messages]
        # The end of what the parent will repeat: before the placeholders, if there are any.
        parent_end = len(messages) - (2 if self._handover.open_calls else 1)
        shared = stable_end(messages[: parent_end + 1], self._handover.unseen) if parent_end >= 0 else None
        own = self._own.messages()
        if messages and messages[-1]["role"] == own[0]["role"]:
            messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], *own[0]["content"]]}
            own = own[1:]
        messages += own
        self._mark(messages, shared)
        request = {**self._head, "messages": messages, **self._options}
        check(self._handover, request, self._purpose)
        return request

    def _mark(self, messages: list[Wire], shared: BlockPosition | None) -> None:
        if (ttl := self._handover.ttl) is None:
            return
        if self._several or self.rounds:
            mark_messages(messages, ttl, once=self._handover.once)
            return
        before = end_before_last_answer(self._handover.messages, self._handover.once)
        for end in dict.fromkeys(end for end in (before, shared) if end is not None):
            mark_at(messages, end, ttl)

    def answered(self, reply: Reply) -> Reply:
        if self._calls is None:
            blocks = (block for message in self._handover.messages for block in message["content"])
            self._calls = {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}
        answer = with_unique_ids(reply, self._calls.__contains__)
        self._calls.update(block.id for block in answer.blocks if isinstance(block, ToolUse))
        self.rounds += 1
        if reply.usage is not None:
            self.usage += reply.usage
            self.first = self.first or reply.usage
        if answer.text.strip():
            self.texts.append(answer.text)
        self._own.add("assistant", answer.blocks, key=f"{answer.id}#{self.rounds}")
        return answer

    def run(self, calls: tuple[ToolUse, ...]) -> Flow[str | None]:
        """Run the calls, or refuse them. The Agent tool stays in the list, since another list would change the prefix, but its calls are
        refused."""
        if not self._tools:
            self.results([tool_result(call.id, NO_TOOLS, is_error=True) for call in calls])
            return None
        others = tuple(call for call in calls if call.name != AGENT_TOOL)
        ran = iter((yield RunTools(others)) if others else ())
        refused = {call.id: tool_result(call.id, NO_AGENTS, is_error=True) for call in calls if call.name == AGENT_TOOL}
        self.results([refused[call.id] if call.id in refused else next(ran) for call in calls])
        return None

    def results(self, results: Sequence[ToolResult]) -> None:
        self.denied += sum(result.is_error and result.text.startswith(DENIED) for result in results)
        self._own.add("user", results)
        if self._mail is not None and (mail := self._mail()):
            self._own.add("user", [text(words) for words in mail])

    def recover(self, error: ProviderError) -> Flow[bool]:
        """Never retry. The parent has already left out rejected blocks; for other errors the layer that wanted the fork gives up."""
        yield from ()
        return False


def run_fork(
    handover: Handover,
    directive: str,
    *,
    purpose: str,
    rounds: int = 1,
    max_tokens: int | None = None,
    tools: bool | None = None,
    enough: Callable[[], bool] | None = None,
    mail: Callable[[], Sequence[str]] | None = None,
) -> Flow[ForkOutcome]:
    """Run a fork until an answer calls no tool, at most `rounds` times, and stop early if `enough` returns True.

    `tools` (default: more than one round) runs calls through an effect that only a fork's own driver may perform
    (`conversation.forks.side`). Otherwise calls are refused here, which needs no driver. `mail` returns texts that arrived for the fork;
    it is called after each round of tools, and the texts follow the results."""
    fork = Fork(handover, directive, purpose=purpose, rounds=rounds, max_tokens=max_tokens, tools=tools, mail=mail)
    outcome = yield from loop.run(fork, purpose=purpose, rounds=rounds, enough=enough)
    return ForkOutcome(
        outcome.reply,
        fork.usage,
        fork.rounds,
        fork.denied,
        tuple(fork.texts),
        first=fork.first or Usage(),
        readable=handover.readable,
        handed_at=handover.handed_at,
        done=outcome.ended == "answered",
    )


def tagged(directive: str, tag: str) -> str:
    return f'<fork purpose="{tag}">\n{prompt_text(__file__, "fork")}\n\n{directive.strip()}{_CLOSING}'


def directive_in(request: Mapping[str, Any]) -> str | None:
    """Return the directive in a fork's request without its frame, the last one if there are several. None: not a fork."""
    directives = [body for body in _texts(request.get("messages") or ()) if _OPENING.match(body)]
    if not directives:
        return None
    return _OPENING.sub("", directives[-1], count=1).removesuffix(_CLOSING).removeprefix(prompt_text(__file__, "fork")).strip()


def is_fork(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these are a fork's messages. A fork cannot fork again."""
    return any(
        (opening := _OPENING.match(body)) and body.startswith(prompt_text(__file__, "fork"), opening.end())
        for body in _texts(messages)
    )


def _texts(messages: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for message in messages:
        if message.get("role") == "user" and isinstance(message.get("content"), list):
            yield from (str(block["text"]) for block in message["content"] if block.get("type") == "text")


def _with_max_tokens(handover: Handover, wanted: int | None) -> Wire:
    """Set the maximum length of an answer, which is not part of the cache key. Thinking is part of it and must fit, so its budget is
    added, up to the model's maximum."""
    if wanted is None:
        return handover.head
    thinking = handover.options.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    model = known(str(handover.head["model"]))
    most = (model.max_output if model is not None else None) or sys.maxsize
    return {**handover.head, "max_tokens": min(most, wanted + (budget if isinstance(budget, int) else 0))}


def _with_headers(handover: Handover, tag: str) -> Wire:
    """Add headers that a provider ignores; a server that checks prefixes recognises the fork by them."""
    headers = {**(handover.options.get("extra_headers") or {}), FORK_HEADER: f"{tag}-{uuid4().hex[:8]}"}
    if handover.broken is not None:
        headers[BREAK_HEADER] = handover.broken
    return {**handover.options, "extra_headers": headers}

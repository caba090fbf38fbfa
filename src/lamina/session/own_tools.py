"""The tools that a session can offer to a host's model: Expand, MemorySearch, MemorySave and PastSearch.

They run in the session, under its lock. Invariants: a memory is saved through the store like any other, with its mode, its redaction and
its journal. A memory that the model has not seen in full is not replaced. Bad input is an error result with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ..conversation.state import Conversation
from ..core.blocks import Wire
from ..core.errors import LaminaError
from ..core.fence import escape, fence
from ..core.reach import MEMORY_SAVE, MEMORY_SEARCH
from ..core.view import Item
from ..language.memory_requests import asks_for_memory
from ..language.text import Text
from ..memory.guard.judgement import AcceptedMemory, WantedMemory, judge
from ..memory.recall.plan import user_words
from ..memory.recall.render import age_text, cut_text, readable_text
from ..memory.store.contract import ChangeReason, Proposed
from ..memory.store.topic import Topic, file_name, write_topic
from ..memory.tool_writes import with_source
from ..tools.conversation_tools import SAVE_SCHEMA, SEARCH_SCHEMA, compact_tool, description_of, expand_tool, past_search_tool
from ..tools.tool import Builtin, Context, Tool, ToolOutput, definition, failure
from .context import services
from .memory_binding import ASKED, JUDGED, MemoryBinding

# Memories shown by default, and how much of each: a memory is a paragraph or two.
SHOWN = 5
MOST_LINES = 200
MOST_BYTES = 8_000
NOT_SEEN = "A memory named {name} exists and was not shown in full. Find it with MemorySearch, then save the complete new text."


@runtime_checkable
class Called(Protocol):
    """A tool call: one of ours, or the block of an SDK."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def input(self) -> object: ...


def own_tools(memory: MemoryBinding) -> tuple[Tool, ...]:
    """Return the tools of a session. Without memory, or if it may not be written, those that need it are left out."""
    settings = memory.c.settings
    tools: list[Tool] = [expand_tool()]
    if memory.place is not None and memory.mode != "off":
        of_memory = _MemoryTools(memory)
        tools += [of_memory.search_tool, *([of_memory.save_tool] if memory.mode != "read-only" else [])]
        tools += [past_search_tool()] if settings.past_search else []
    tools += [compact_tool()] if settings.compact_tool else []
    return tuple(tools)


def find_own(c: Conversation, offered: Sequence[Tool], name: str) -> Tool | None:
    """Return the tool that answers a call: one that the session offers, or Compact if its definition is in the prompt."""
    compact = compact_tool()
    if name == compact.name and definition(compact) in c.prompt.tools:
        return compact
    return next((tool for tool in offered if tool.name == name), None)


def run_own(c: Conversation, tool: Tool, call: Called) -> ToolOutput:
    if not isinstance(call.input, dict):
        return failure(f"{tool.name}: the input must be a JSON object. Send the call again.")
    return tool.run(call.input, Context(cwd=c.cwd, **services(c)))


class _MemoryTools:
    def __init__(self, memory: MemoryBinding) -> None:
        self._memory = memory
        self._c = memory.c
        self._seen: dict[str, str] = {}  # by file: the body of memories shown in full

    @property
    def search_tool(self) -> Tool:
        return _tool(MEMORY_SEARCH, SEARCH_SCHEMA, self._search, read_only=True)

    @property
    def save_tool(self) -> Tool:
        return _tool(MEMORY_SAVE, SAVE_SCHEMA, self._save, read_only=False)

    def _search(self, arguments: Wire) -> ToolOutput:
        try:
            with self._memory.open() as memory:
                recalled = memory.recall(str(arguments["query"]), k=int(arguments.get("count", SHOWN)))
        except LaminaError as error:
            return failure(str(error))
        if not recalled:
            return ToolOutput("No memory matches. Try other words.")
        return ToolOutput("\n\n".join(self._shown(match.topic, match.age) for match in recalled), fenced=True)

    def _shown(self, topic: Topic, age: float) -> str:
        part = cut_text(readable_text(topic.body), lines=MOST_LINES, size=MOST_BYTES)
        if part.whole:
            self._seen[topic.file] = topic.body
        head = f"{topic.name} ({topic.type or 'no type'}, saved {age_text(age)}): {topic.description}"
        return f"{escape(head)}\n{fence('recalled-memory', part.text)}"

    def _save(self, arguments: Wire) -> ToolOutput:
        name = str(arguments["name"])
        try:
            with self._memory.open() as memory:
                existing = memory.get(name)
                if existing is not None and self._seen.get(existing.file) != existing.body:
                    return failure(NOT_SEEN.format(name=existing.name))
                judged = self._judge(arguments, existing)
                topic = judged.topic
                saved = memory.save(
                    name,
                    type=topic.type,
                    description=topic.description,
                    body=topic.body,
                    evidence=[str(entry) for entry in arguments.get("evidence", ())],
                    why=with_source(self._why(), judged.origin),
                )
        except LaminaError as error:
            return failure(str(error))
        if isinstance(saved, Proposed):
            self._c.notify(Text("A memory change needs your approval. Run `lamina inbox accept {id}`.", id=saved.id))
            return ToolOutput(f"The change waits for the user's approval. Tell them: lamina inbox accept {saved.id}")
        self._seen[saved.topic.file] = saved.topic.body
        self._c.notify(Text("Saved memory: {name}", name=saved.topic.name))
        secret = f" A secret was left out ({', '.join(saved.redacted)})." if saved.redacted else ""
        return ToolOutput(f"Saved as {saved.topic.name}.{secret}")

    def _judge(self, arguments: Wire, existing: Topic | None) -> AcceptedMemory:
        """Judge a save like a Write of the memory's file."""
        file = existing.file if existing is not None else file_name(str(arguments["name"]))
        wanted = Topic(file, str(arguments["name"]), str(arguments["description"]), arguments["type"], str(arguments["body"]))
        before = write_topic(existing) if existing is not None else None
        return judge(WantedMemory(file, write_topic(wanted), before), self._memory.sources())

    def _why(self) -> ChangeReason:
        """Return the journal's reason: the user's last message, and whether it asked for a memory."""
        items = self._c.log.view.items
        last: Item | None = next((item for item in reversed(items) if user_words(item)), None)
        words = user_words(last) if last is not None else ""
        reason = ASKED if asks_for_memory(words) else JUDGED
        return ChangeReason("agent", reason, self._memory.session_id, last.uuid if last is not None else None)


def _tool(name: str, schema: Wire, run: Callable[[Wire], ToolOutput], *, read_only: bool) -> Tool:
    return Builtin(
        name=name, description=description_of(name), schema=schema, read_only=read_only, act=lambda arguments, _: run(arguments)
    )

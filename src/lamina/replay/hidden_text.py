"""Find what an answer takes from earlier in the conversation, and whether the model could still see it. Pure.

A line of at least SHORTEST_LINE characters counts as quoted if an earlier tool result has the same line and the recorded agent
still saw that result. It is hidden if the request of that moment does not contain it: cleared, cut to a preview, or replaced by a
summary. Indentation and the line numbers of Read are ignored.

An Edit needs the lines it replaces, a Read needs to know its path. If these were shown before and are hidden now, the model
would have to fetch them again. `Fetch` names the call that brings them back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.blocks import Text, ToolResult, ToolUse, Wire
from ..core.cache import common_start
from .repeated_reads import READERS, WRITERS, path_of

# Shorter lines repeat by chance ("return None", "</div>").
SHORTEST_LINE = 20
# Examples of one answer, and the characters of a line or argument in them: enough to recognise it.
MOST_EXAMPLES = 3
LONGEST = 80
# The line numbers that Read puts before each line.
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t)")
# The text that an Edit or a MultiEdit replaces, in common agents.
_REPLACED = ("old_string", "old_str", "oldText")


class Fetch(NamedTuple):
    """A call that brings back text which left the context."""

    tool: str
    input: Any
    text: str

    def title(self) -> str:
        """Name the call for a reader: its tool and its first argument."""
        first = next((text for _, text in _named_strings(self.input)), "")
        return f"{self.tool} {' '.join(first.split())[:LONGEST]}".rstrip()


class Hidden(NamedTuple):
    quotes: int  # results that the answer quotes
    hidden: int  # and of those the ones with a quoted line that the request did not contain
    examples: tuple[str, ...]  # a few of those lines, each with the call it came from
    fetches: tuple[Fetch, ...]  # calls that bring back what the answer's Edits and Reads need


class ShownText:
    """Follows the tool results and tool inputs of one session. `gone` is the step from which the recorded agent saw a result no more."""

    def __init__(self, gone: Mapping[str, int]) -> None:
        self._gone = gone
        self._calls: dict[str, ToolUse] = {}
        self._until: list[float] = []  # source → the step from which the recorded agent did not see it
        self._sources: list[Fetch] = []
        self._results: dict[str, int] = {}  # line → the newest result with it
        self._inputs: dict[str, int] = {}  # line → the newest Edit or Write with it

    def came(self, results: Iterable[ToolResult]) -> None:
        for block in results:
            call = self._calls.pop(block.tool_use_id, None)
            if call is not None and block.text:
                self._add(Fetch(call.name, call.input, block.text), self._results, block.tool_use_id)

    def answered(self, calls: Sequence[ToolUse]) -> None:
        self._calls.update({call.id: call for call in calls})
        for call in calls:
            path = path_of(call) if call.name in WRITERS else None
            written = "\n".join(
                text for name, text in _named_strings(call.input) if name not in (*_REPLACED, "file_path", "path")
            )
            if path is not None and written:
                self._add(Fetch("Read", {"file_path": path}, written), self._inputs, call.id)

    def _add(self, source: Fetch, index: dict[str, int], call: str) -> None:
        self._sources.append(source)
        self._until.append(self._gone.get(call, math.inf))
        for line in long_lines(source.text):
            index[line] = len(self._sources) - 1

    def look(self, answer: Sequence[Text | ToolUse], shown: Container[str] | None, at: int = 0) -> Hidden:
        """Compare the answer of step `at` with the request it answers, whose whole text is `shown`; None contains all."""
        quoted: dict[int, str] = {}  # result → a quoted line that is hidden, or nothing
        for line in _lines_of(answer):
            source = self._results.get(line)
            if source is not None and at < self._until[source]:
                quoted[source] = quoted.get(source) or (line if shown is not None and line not in shown else "")
        if shown is None:
            return Hidden(len(quoted), 0, (), ())
        hidden = [(found, line) for found, line in quoted.items() if line]
        examples = tuple(f"{self._sources[found].title()}: {line[:LONGEST]}" for found, line in hidden[:MOST_EXAMPLES])
        needed = dict.fromkeys(found for block in answer if isinstance(block, ToolUse) for found in self._needed(block, shown))
        fetches = tuple(self._sources[found] for found in needed if at < self._until[found])
        return Hidden(len(quoted), len(hidden), examples, fetches)

    def _needed(self, call: ToolUse, shown: Container[str]) -> Iterator[int]:
        if call.name in WRITERS:
            replaced = (text for name, text in _named_strings(call.input) if name in _REPLACED)
            for line in (line for text in replaced for line in long_lines(text)):
                found = max(self._results.get(line, -1), self._inputs.get(line, -1))
                if found >= 0 and line not in shown:
                    yield found
        elif call.name in READERS and (path := path_of(call)) is not None and path not in shown:
            found = next((at for at in reversed(range(len(self._sources))) if path in self._sources[at].text), -1)
            if found >= 0:
                yield found


def long_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        plain = _NUMBERED.sub("", line).strip()
        if len(plain) >= SHORTEST_LINE:
            yield plain


def _lines_of(answer: Sequence[Text | ToolUse]) -> Iterator[str]:
    for block in answer:
        if isinstance(block, Text):
            yield from long_lines(block.text)
        else:
            for _, text in _named_strings(block.input):
                yield from long_lines(text)


def _named_strings(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts within a tool's input, each with the name of its field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_strings(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named_strings(inner, name)


class RequestText:
    """The text of a request's messages, to be searched. The next request is read from the first message that differs."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []
        self._texts: list[str] = []

    def read(self, request: Wire) -> Container[str]:
        messages = request["messages"]
        same = common_start(self._messages, messages)
        del self._messages[same:], self._texts[same:]
        self._messages += messages[same:]
        self._texts += ("\n".join(text for block in message["content"] for text in _texts(block)) for message in messages[same:])
        return self

    def __contains__(self, words: object) -> bool:
        """Search the newest message first: most of what an answer repeats is there."""
        return isinstance(words, str) and any(words in text for text in reversed(self._texts))


def _texts(block: Mapping[str, Any]) -> Iterator[str]:
    match block.get("type"):
        case "text":
            yield str(block.get("text", ""))
        case "tool_result":
            content = block.get("content")
            if isinstance(content, str):
                yield content
            else:
                yield from (str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))
        case "tool_use":
            yield from (text for _, text in _named_strings(block.get("input")))
        case _:
            pass

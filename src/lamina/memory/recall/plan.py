"""The plan of recall: the question in a message, and the memories that may be shown for it.

These decisions come before any ranking. Surfaced memories, files the main agent has read, and the bytes already inserted are
read from the view each time, so resume, undo and compaction need no extra state. Content that layer 2 cleared counts until a
compaction. Pure: items and headers in, values out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple
from unicodedata import category

from ...core.blocks import Text, ToolResult, ToolUse
from ...core.policy import SurfacingPolicy
from ...core.view import Item, View
from ..store.scopes import path_text
from ..store.topic_files import TopicHeader
from .render import find_shown_paths

KIND = "relevant_memories"
ATTACHED = f"attachment:{KIND}"
REMINDER = "<system-reminder>"
# Text that programs insert into user messages: Claude Code's frames around commands, their output, task notifications, editor
# state.
_PROGRAM = re.compile(
    r"^[ \t]*(?:<(?:system-reminder|bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr|caveat)"
    r"|command-(?:name|message|args|contents)|task-notification|ide_opened_file|ide_selection"
    r"|user-prompt-submit-hook|new-diagnostics)\b|\[Request interrupted by user"
    r"|Caveat: The messages below were generated)",
    re.MULTILINE,
)
ONE_WORD = "the message has only one word"
FULL = "this conversation has reached its recall limit"

# Tools whose call leaves a file's text in view.
_READS = frozenset({"Read", "Write"})
# Words by which a memory about a tool warns, in the languages memories are written in. Such a memory is kept even while the
# tool is in use. The pattern is compiled only when needed, because that takes as long as a small search.
_WARNING = (
    r"\b(?:warn\w*|gotcha\w*|caveat\w*|caution\w*|careful\w*|beware|danger\w*|pitfall\w*|trap|never|avoid\w*|do(?:es)? not|don['’]?t"
    r"|must not|crash\w*|break\w*|broken|fail\w*|bug\w*|problem\w*|known issue\w*|workaround\w*|achtung|vorsicht|nie|cuidado|nunca"
    r"|attention|jamais)\b|注意|警告|小心|当心|避免|切勿|不要|不能|禁止|陷阱|踩坑|坑|罠|危険|しない|いけない|주의|경고|함정|금지|осторожно|нельзя|никогда"
)
_MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)")


class RecallQuestion(NamedTuple):
    """The user's last message, and the tools called since the message before it."""

    message: str
    words: str
    tools: frozenset[str] = frozenset()


class SeenMemories(NamedTuple):
    """The memories a conversation already has: files by their paths as spelled in texts, and the number of bytes inserted."""

    surfaced: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    size: int = 0


def find_question(items: Sequence[Item]) -> RecallQuestion | None:
    """Return the question for recall: the user's last message if no answer has seen it, else None."""
    message: Item | None = None
    tools: set[str] = set()
    for item in reversed(items):
        words = user_words(item)
        is_result = not words and any(isinstance(block, ToolResult) for block in item.blocks)
        if message is None and (item.role == "assistant" or is_result or item.kind in ("summary", "partial")):
            return None
        if words:
            if message is not None:
                break
            message = item
        tools |= {block.name for block in item.blocks if isinstance(block, ToolUse)}
    return RecallQuestion(message.uuid, user_words(message), frozenset(tools)) if message is not None else None


def user_words(item: Item) -> str:
    """Return the user's words in a record, without text that programs inserted; empty if it is not a user message."""
    if item.kind != "said" or item.role != "user":
        return ""
    said = (split_user_words(block.text)[0] for block in item.blocks if isinstance(block, Text))
    return "\n".join(words for words in said if words).strip()


def split_user_words(text: str) -> tuple[str, str]:
    """Split a text of a user message into the user's words and inserted text. Everything from the first program mark on is
    inserted."""
    found = _PROGRAM.search(text)
    return (text, "") if found is None else (text[: found.start()].strip(), text[found.start() :])


def has_surfaced(items: Sequence[Item], message: str) -> bool:
    """Tell whether the message already has its memories."""
    return any(item.kind == ATTACHED for item in takewhile(lambda item: item.uuid != message, reversed(items)))


class SeenMemoriesTracker:
    """Tracks the `SeenMemories` of a growing view. It reads only new items, and starts again if the view changed otherwise."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._generation = -1

    def follow(self, view: View, *, cwd: str, within: Sequence[str]) -> SeenMemories:
        """Update from the view. Files count as read inside the directories `within`. Attachments that layer 2 cleared count
        as surfaced."""
        if view is not self._view or view.generation != self._generation:
            self._view, self._generation = view, view.generation
            self._at, self._size = 0, 0
            self._surfaced, self._read = set[str](), dict[str, str]()
            for item in view.cleared:
                self._take(item, cwd, within)
        for item in view.items[self._at :]:
            self._take(item, cwd, within)
        self._at = len(view.items)
        return SeenMemories(frozenset(self._surfaced), frozenset(self._read.values()), self._size)

    def _take(self, item: Item, cwd: str, within: Sequence[str]) -> None:
        if texts := _put_in(item):
            self._surfaced |= find_shown_paths(texts) | {path_text(file) for file in item.files}
            self._size += sum(len(text.encode("utf-8", "replace")) for text in texts)
        for block in item.blocks:
            if isinstance(block, ToolUse) and block.name in _READS and isinstance(block.input, dict):
                path = block.input.get("file_path")
                full = os.path.normpath(os.path.join(cwd, path)) if isinstance(path, str) and path else ""
                if any(full.startswith(directory) for directory in within):
                    self._read[block.id] = path_text(full)
            elif isinstance(block, ToolResult) and block.is_error:
                self._read.pop(block.tool_use_id, None)


def _put_in(item: Item) -> list[str]:
    """Return the memories in an item: from our attachment or another program's, or from one that the caller's message list
    took over."""
    texts = [block.text for block in item.blocks if isinstance(block, Text)]
    if item.kind == ATTACHED:
        return texts
    kept = item.kind == "said" and item.role == "user"
    return [text for text in texts if kept and text.startswith(REMINDER) and find_shown_paths([text])]


def reason_to_skip(asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy) -> str | None:
    """Return why recall is skipped, or None."""
    if seen.size > policy.total_bytes:
        return FULL
    return None if has_several_words(asked.words) else ONE_WORD


def filter_open(
    headers: Iterable[TopicHeader], named: Callable[[str], str], seen: SeenMemories, tools: Iterable[str]
) -> list[TopicHeader]:
    """Keep the memories that may be surfaced. `named` returns the path of a topic's file as spelled in texts."""
    known, names = seen.surfaced | seen.read, _names(tools)
    return [header for header in headers if named(header.file) not in known and not (names and _only_tells_how(header, names))]


def _names(tools: Iterable[str]) -> re.Pattern[str] | None:
    """Build a pattern of tool names as people write them: a server's tool by the name of the server and of the tool."""
    names: set[str] = set()
    for tool in tools:
        found = _MCP.fullmatch(tool)
        names |= {found["server"], found["tool"]} if found else {tool}
    whole = "|".join(re.escape(name) for name in sorted(names) if name)
    # Case matters: "Read" is a tool and "read" a word.
    return re.compile(rf"(?<!\w)(?:{whole})(?!\w)") if whole else None


def _only_tells_how(header: TopicHeader, names: re.Pattern[str]) -> bool:
    about = f"{header.name} {header.description}"
    return header.type == "reference" and names.search(about) is not None and not re.search(_WARNING, about, re.IGNORECASE)


# Words

# Letters that are words by themselves: scripts whose words need a dictionary, hiragana, ideographs.
_ALONE = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x3096)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3134F)),
)
# A run of letters and digits, and the signs that join two runs into one word: can't, 3.14, 10:30.
_RUN = re.compile("\\w+(?:['\u2019.:\u00b7,;]\\w+)*")
# A text without a second word up to here is not a sentence.
LOOKED_AT = 2_000


def has_several_words(text: str) -> bool:
    """Tell whether the text has more than one word, as Unicode's text segmentation counts them (UAX 29).

    An ideograph, a hiragana and a letter of a script without spaces (Thai, Lao, Khmer, Burmese) are separate words. In
    katakana, hangul and every alphabet, a run of letters is a word. Marks belong to the letter before them.
    """
    runs = [run[0] for run in islice(_RUN.finditer(_without_marks(text[:LOOKED_AT])), 2)]
    return len(runs) > 1 or any(len(run) > 1 and not run.isascii() and any(map(_is_alone, run)) for run in runs)


def _without_marks(text: str) -> str:
    """Remove accents, vowel signs and invisible joiners, which would end a run of letters."""
    return text if text.isascii() else "".join(char for char in text if category(char) not in ("Mn", "Mc", "Me", "Cf"))


def _is_alone(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _ALONE)

"""What a message asks of memory, and which memories are open to it (Q1–Q3, Q5): the plan of recall.

Owns the decisions before anything is ranked. What was surfaced, what the main agent has read and how many bytes were put in are read from
the view each time, so resume, undo and compaction need nothing of their own; what layer 2 cleared counts until a compaction (M6). Pure:
items and heads in, values out.
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
# What programs write into a person's messages: Claude Code's frames around commands, their output, news of tasks, the editor's state.
_PROGRAM = re.compile(
    r"^[ \t]*(?:<(?:system-reminder|bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr|caveat)"
    r"|command-(?:name|message|args|contents)|task-notification|ide_opened_file|ide_selection"
    r"|user-prompt-submit-hook|new-diagnostics)\b|\[Request interrupted by user"
    r"|Caveat: The messages below were generated)",
    re.MULTILINE,
)
ONE_WORD = "a message of one word"
FULL = "enough was brought to this conversation"

# Tools whose call leaves a file's text in view.
_READS = frozenset({"Read", "Write"})
# Words by which a memory about a tool warns, in the languages memories are written in. Kept even while the tool is in use.
# Compiled when a memory about a tool is met: that takes as long as all else of a small search.
_WARNING = (
    r"\b(?:warn\w*|gotcha\w*|caveat\w*|caution\w*|careful\w*|beware|danger\w*|pitfall\w*|trap|never|avoid\w*|do(?:es)? not|don['’]?t"
    r"|must not|crash\w*|break\w*|broken|fail\w*|bug\w*|problem\w*|known issue\w*|workaround\w*|achtung|vorsicht|nie|cuidado|nunca"
    r"|attention|jamais)\b|注意|警告|小心|当心|避免|切勿|不要|不能|禁止|陷阱|踩坑|坑|罠|危険|しない|いけない|주의|경고|함정|금지|осторожно|нельзя|никогда"
)
_MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)")


class RecallQuestion(NamedTuple):
    """The person's own last message, and the tools called since the one before it."""

    message: str
    words: str
    tools: frozenset[str] = frozenset()


class SeenMemories(NamedTuple):
    """What a conversation has of memory already: files by their paths as texts name them, and bytes put in."""

    surfaced: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    size: int = 0


def find_question(items: Sequence[Item]) -> RecallQuestion | None:
    """The message recall is for: what the person said last, if no answer has seen it; None else."""
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
    """What the person said in a record; empty where it is no message of theirs. What a program put beside it is left out."""
    if item.kind != "said" or item.role != "user":
        return ""
    said = (split_user_words(block.text)[0] for block in item.blocks if isinstance(block, Text))
    return "\n".join(words for words in said if words).strip()


def split_user_words(text: str) -> tuple[str, str]:
    """A text of a person's message: their words, and what a program put there. From the first mark of a program on it is all its own."""
    found = _PROGRAM.search(text)
    return (text, "") if found is None else (text[: found.start()].strip(), text[found.start() :])


def has_surfaced(items: Sequence[Item], message: str) -> bool:
    """Whether the message has its memories already."""
    return any(item.kind == ATTACHED for item in takewhile(lambda item: item.uuid != message, reversed(items)))


class SeenMemoriesTracker:
    """`SeenMemories` of a growing view, by what is new in it; read again from the top when the view changed in any other way."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._generation = -1

    def follow(self, view: View, *, cwd: str, within: Sequence[str]) -> SeenMemories:
        """`within`: the directories whose files count as read. Attachments that layer 2 cleared count as surfaced."""
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
    """The memories in an item: an attachment of ours or of another program's, or one that the caller's own list has taken over."""
    texts = [block.text for block in item.blocks if isinstance(block, Text)]
    if item.kind == ATTACHED:
        return texts
    kept = item.kind == "said" and item.role == "user"
    return [text for text in texts if kept and text.startswith(REMINDER) and find_shown_paths([text])]


def reason_to_skip(asked: RecallQuestion, seen: SeenMemories, policy: SurfacingPolicy) -> str | None:
    """Say why nothing is looked for; None where something is."""
    if seen.size > policy.total_bytes:
        return FULL
    return None if has_several_words(asked.words) else ONE_WORD


def filter_open(
    headers: Iterable[TopicHeader], named: Callable[[str], str], seen: SeenMemories, tools: Iterable[str]
) -> list[TopicHeader]:
    """Keep what may be surfaced. `named` gives the path of a topic's file as texts name it."""
    known, names = seen.surfaced | seen.read, _names(tools)
    return [header for header in headers if named(header.file) not in known and not (names and _only_tells_how(header, names))]


def _names(tools: Iterable[str]) -> re.Pattern[str] | None:
    """Tools by what people call them: a server's tool by the server and by its own name."""
    names: set[str] = set()
    for tool in tools:
        found = _MCP.fullmatch(tool)
        names |= {found["server"], found["tool"]} if found else {tool}
    whole = "|".join(re.escape(name) for name in sorted(names) if name)
    # As it is spelled: "Read" is a tool and "read" a word.
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
# Letters and digits in a row, and what joins two rows of them into one word: can't, 3.14, 10:30.
_RUN = re.compile("\\w+(?:['\u2019.:\u00b7,;]\\w+)*")
# Who has not come to a second word by here has written no sentence.
LOOKED_AT = 2_000


def has_several_words(text: str) -> bool:
    """Whether the text holds more than one word, as Unicode's text segmentation counts them (UAX 29).

    An ideograph, a hiragana and a letter of a script without spaces (Thai, Lao, Khmer, Burmese) are words of their own; katakana, hangul
    and every alphabet make words of letters in a row. Marks belong to the letter before them.
    """
    runs = [run[0] for run in islice(_RUN.finditer(_without_marks(text[:LOOKED_AT])), 2)]
    return len(runs) > 1 or any(len(run) > 1 and not run.isascii() and any(map(_is_alone, run)) for run in runs)


def _without_marks(text: str) -> str:
    """Accents and vowel signs would end a row of letters, and so would joiners nobody sees."""
    return text if text.isascii() else "".join(char for char in text if category(char) not in ("Mn", "Mc", "Me", "Cf"))


def _is_alone(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _ALONE)

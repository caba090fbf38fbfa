"""The context of an offline turn about memory, read from the request, and the tool calls of the offline chat.

The location of memory is in the system prompt. Its content is known from the index in the first reminder and from the calls in this
conversation; the offline chat has no other source.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple
from urllib.parse import unquote

from ...core.blocks import Wire, content_text
from ...core.claude_home import without_type
from ...language.terms import sought, terms
from .reply_texts import Replies

# Maximum number of lines of a search in memory.
MOST_LINES = 40

_ACCEPTS = re.compile(r"lamina inbox (?:--agent \S+ )?accept \w+")
_DIRECTORY = re.compile(r"^- Memory directory: (?P<path>.+)$", re.MULTILINE)
# The memory section, and its line for a model that cannot write, whose user's words are saved behind the turn.
_SECTION = re.compile(r"^# Memory$", re.MULTILINE)
_REVIEWED = "is saved after the turn"
_LOG = re.compile(r"^- Daily log: (?P<path>.+)/YYYY/MM/YYYY-MM-DD\.md$", re.MULTILINE)
_INDEX = re.compile(r"^Contents of (?P<path>[^\n]+):\n<memory-index>\n(?P<text>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^\s*[-*+] \[(?P<title>[^\n]*?)\]\((?P<file><[^<>\n]*>|[^()\s]*)\)(?:\s*(?:—|–|-|:)\s*(?P<hook>.*))?$")
# The text of a memory cannot contain the opening tag, so a heading before it was written by Lamina.
_RECALLED = re.compile(
    r"^Contents of (?P<path>[^\n]+) \(a memory[^()\n]*\):\n<recalled-memory>\n(?P<text>.*?)\n</recalled-memory>$",
    re.MULTILINE | re.DOTALL,
)
FRONT = re.compile(r"---\n(?P<head>.*?)\n---\n+(?P<body>.*)", re.DOTALL)
# A memory that got another name, and its file with it.
_MOVED = re.compile(r"Its file was renamed with it and is now (?P<path>\S[^\n]*?\.md)\.(?= |$)")
_NUMBER = re.compile(r"^\s*\d+\t", re.MULTILINE)
_TODAY = re.compile(r"^(?:Today is|The date has changed .{0,80}, today is) (\d{4}-\d\d-\d\d)\b", re.MULTILINE)


class KnownMemory(NamedTuple):
    """A memory as the index shows it: its title, the path of its file, and the hook of its line."""

    title: str
    path: str
    hook: str

    @property
    def words(self) -> str:
        return f"{self.title} {self.hook}"


class Recalled(NamedTuple):
    """A memory that recall added to the conversation, with its text."""

    title: str
    text: str


class Done(NamedTuple):
    """A tool call after the prompt, and its result."""

    name: str
    given: Wire
    said: str
    failed: bool


class TurnContext(NamedTuple):
    """Everything that the offline chat knows in a turn."""

    prompt: str
    at: int  # the index of the prompt among the messages
    directory: str | None  # the memory directory, or None without memory
    known: tuple[KnownMemory, ...]
    recalled: tuple[Recalled, ...]
    cut: bool  # the index was too long to be sent completely
    done: tuple[Done, ...]
    tools: frozenset[str]
    today: str
    log: str = ""  # today's log, if notes go there (assistant mode)
    has_memory: bool = False  # also without a directory, in a host without file tools
    reviewed: bool = False  # what the user states is saved after the turn


def read_turn(request: Wire, prompt: str, at: int) -> TurnContext:
    messages = request["messages"]
    system = request.get("system") or ""
    system_text = system if isinstance(system, str) else "\n".join(str(block.get("text", "")) for block in system)
    found = _DIRECTORY.search(system_text)
    directory = found["path"].strip() if found else None
    reminders = [text for message in messages for text in texts(message) if text.startswith("<system-reminder>")]
    indexes = [index for text in reminders for index in _INDEX.finditer(text)]
    log = _LOG.search(system_text)
    day = next((day for text in reversed(reminders) for day in reversed(_TODAY.findall(text)) if _is_day(day)), "")
    return TurnContext(
        prompt,
        at,
        directory,
        tuple(_known(indexes, messages[: at + 1], directory)),
        tuple(_recalled(messages)),
        any("\n> Warning: MEMORY.md" in index["text"] for index in indexes),
        tuple(_done(messages[at + 1 :])),
        frozenset(str(tool.get("name")) for tool in request.get("tools") or ()),
        day,
        f"{log['path']}/{day[:4]}/{day[5:7]}/{day}.md" if log and day else "",
        directory is not None or _SECTION.search(system_text) is not None,
        _REVIEWED in system_text,
    )


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def texts(message: Wire) -> list[str]:
    return [block["text"] for block in message["content"] if block.get("type") == "text"]


def _known(indexes: Sequence[re.Match[str]], messages: Sequence[Wire], directory: str | None) -> list[KnownMemory]:
    """Return the memories in the index as it was sent, updated by what this conversation wrote and removed since."""
    found: dict[str, KnownMemory] = {}
    for index in indexes:
        base = posixpath.dirname(index["path"])
        for line in index["text"].split("\n"):
            if entry := _LINE.match(line):
                path = posixpath.join(base, unquote(entry["file"].strip("<>")))
                found[path] = KnownMemory(entry["title"], path, entry["hook"] or "")
    for done in _done(messages):
        path = str(done.given.get("file_path", ""))
        if done.name != "Write" or done.failed or directory is None or not path.startswith(f"{directory}/"):
            continue
        found.pop(path, None)
        if (text := FRONT.match(str(done.given.get("content", "")))) is not None:
            path = moved["path"] if (moved := _MOVED.search(done.said)) else path
            found[path] = KnownMemory(field(text["head"], "name"), path, field(text["head"], "description"))
    return list(found.values())


def _recalled(messages: Sequence[Wire]) -> Iterator[Recalled]:
    """Yield recalled memories that this conversation has not overwritten since.

    Only reminders count, never tool results, because those may contain anything.
    """
    written = {str(done.given.get("file_path", "")) for done in _done(messages) if done.name == "Write" and not done.failed}
    by_user = (text for message in messages if message["role"] == "user" for text in texts(message))
    for found in (found for text in by_user if text.startswith("<system-reminder>") for found in _RECALLED.finditer(text)):
        if found["path"] not in written:
            yield Recalled(title(found["path"]), found["text"])


def field(head: str, name: str) -> str:
    found = re.search(rf"^{name}: *(.*)$", head, re.MULTILINE)
    return found[1].strip().strip('"') if found else ""


def _done(messages: Sequence[Wire]) -> Iterator[Done]:
    calls: dict[str, Wire] = {}
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "tool_use":
                calls[block["id"]] = block
            elif block.get("type") == "tool_result" and (call := calls.get(str(block.get("tool_use_id")))) is not None:
                given = call["input"] if isinstance(call.get("input"), dict) else {}
                yield Done(str(call["name"]), given, result_text(block), bool(block.get("is_error")))


def to_user(said: str, replies: Replies) -> str:
    """Return what a tool told the model as the user should read it: a change that waits, with the command that accepts it."""
    pending = _ACCEPTS.search(said)
    return replies.pending.format(command=pending[0]) if pending else said


def result_text(result: Wire) -> str:
    return content_text(result.get("content")).strip()


def share(of: str, text: str) -> float:
    """Return the share of the terms of one text that occur in another, from 0 to 1."""
    wanted = set(terms(of))
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 0.0


def title(path: str) -> str:
    """Return the subject that a file name states."""
    return without_type(posixpath.basename(path)).removesuffix(".md")


def grep(asked: TurnContext, what: str, *, files: bool = False) -> list[Wire]:
    """Return a Grep call that searches memory for any word of a text."""
    pattern = "|".join(re.escape(term) for term in sought(what)[:8])
    given: Wire = {"pattern": pattern, "path": asked.directory, "glob": "*.md", "-i": True}
    mode: Wire = (
        {"output_mode": "files_with_matches"} if files else {"output_mode": "content", "-n": True, "head_limit": MOST_LINES}
    )
    return call(asked, "Grep", given | mode)


def content(read: str) -> str:
    """Return the output of Read without line numbers."""
    return _NUMBER.sub("", read)


def body(read: str) -> str:
    text = content(read).strip()
    found = FRONT.match(f"{text}\n")
    return (found["body"] if found else text).strip()


def call(asked: TurnContext, name: str, given: Wire) -> list[Wire]:
    # The index makes the id unique, because the same message may be sent again later.
    return [{"type": "tool_use", "id": f"toolu_offline_{asked.at}_{len(asked.done)}", "name": name, "input": given}]


def say(text: str) -> list[Wire]:
    return [{"type": "text", "text": text}]

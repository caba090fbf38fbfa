"""Describes in three to five words what a background agent is doing: when to ask, what the model sees, and which answers are valid.

Includes the answer without a model, made from the agent's newest call. Pure; the clock is an argument. Invariant: a text that is shown
refers to something the agent has seen. It begins with an activity and names a file or function from its calls and results. Any other
answer is rejected, and the previous text stays.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...core.blocks import Wire
from ...core.fence import fence
from ...core.policy import AgentPolicy
from ...core.prompt_files import prompt_sections

PURPOSE = "agent_summary"
# Five words, and whatever a model may put around them.
MOST_TOKENS = 64
FEWEST_WORDS, MOST_WORDS = 3, 5
# Maximum length of an answer: five long names.
LONGEST = 80
# A token of code has three bytes or more. If it has fewer, the tail gets somewhat longer, but stays bounded.
BYTES_PER_TOKEN = 3
# Limit for one call or result. Its beginning shows the subject.
MOST_OF_ONE = 2_000
# Shorter names occur in any text by chance.
SHORTEST_NAME = 3
# `.json` and the like: a file extension does not name a file.
LONGEST_ENDING = 4
# Trailing parts of a path. Nobody spells out more.
MOST_PARTS = 4
# Limit for the text that is searched for names.
MOST_SEARCHED = 200_000

_FIRST = re.compile(r"[A-Za-z][a-z-]+ing")
# These end in -ing but do not describe an activity.
_EMPTY = """working doing continuing proceeding going being having trying helping handling processing performing executing
    progressing nothing something anything everything thing string during king ring spring morning evening"""
_VAGUE = frozenset(_EMPTY.split())
# What a file or a function looks like: an inner dot, underscore, slash or capital, or a bracket right after it. The pattern does not
# backtrack, so a long line of dashes takes linear time.
_WORD = re.compile(r"(?P<word>[\w./-]++)(?P<called>\(?)")
_INSIDE = re.compile(r"\w[._/]\w|[a-z][A-Z]")
_PLAIN = re.compile(r"[\w-]{3,}")
_CALL = re.compile(r"^\[calls (?P<tool>[\w-]{1,64})\] (?P<given>\{.*\})$", re.MULTILINE)


class LastExchange(NamedTuple):
    """An agent's newest request, the answer to it, and the time."""

    request: Wire
    answer: tuple[Wire, ...]
    at: float


def seconds_until_due(*, now: float, last: float, seen: float | None, policy: AgentPolicy) -> float | None:
    """Return the seconds until the next summary: 0.0 if it is due, None if the agent has done nothing since the last one. `last` is the
    time of the last summary, or the agent's start. `seen` is the time of its last activity, None if there was none."""
    return max(0.0, last + policy.summary_seconds - now) if seen is not None and seen > last else None


def summary_directive() -> str:
    return prompt_sections(__file__, "agent_summary")["directive"]


def summary_query(seen: LastExchange, model: str, policy: AgentPolicy) -> Wire:
    """Build the query for a model other than the agent's: the end of its work, as data."""
    return {
        "model": model,
        "max_tokens": MOST_TOKENS,
        "system": [{"type": "text", "text": prompt_sections(__file__, "agent_summary")["system"]}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": fence("agent-message", render_tail(seen, policy))}]}],
    }


def render_tail(seen: LastExchange, policy: AgentPolicy) -> str:
    """Render the newest messages as text. The oldest one is truncated if they are too long."""
    messages = [*seen.request.get("messages", ()), {"role": "assistant", "content": list(seen.answer)}]
    left = policy.summary_tokens * BYTES_PER_TOKEN
    parts: list[str] = []
    for message in reversed(messages[-policy.summary_messages :]):
        said = "\n".join(_render_blocks(message))
        data = said.encode("utf-8", "replace")
        if len(data) > left:
            parts.append(data[len(data) - left :].decode("utf-8", "ignore"))
            break
        left -= len(data)
        parts.append(said)
    return "\n".join(part for part in reversed(parts) if part)


def _render_blocks(message: Wire) -> Iterator[str]:
    for block in message["content"]:
        match block.get("type"):
            case "text":
                yield f"[{message['role']}] {str(block['text'])[:MOST_OF_ONE]}"
            case "tool_use":
                yield f"[calls {block['name']}] {json.dumps(block['input'], ensure_ascii=False)[:MOST_OF_ONE]}"
            case "tool_result":
                said = "\n".join(_texts_in(block.get("content")))
                yield f"[result] {said[:MOST_OF_ONE]}"
            case _:
                pass  # thinking and images


def _texts_in(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text")


def accept_summary(text: str, seen: LastExchange, policy: AgentPolicy) -> str | None:
    """Return the text to show, or None if it is empty, too long, or not about something the agent has seen."""
    words = " ".join(text[: 2 * LONGEST].split()).strip("\"'`*_ ").rstrip(".…!").split()
    said = " ".join(words)
    if not FEWEST_WORDS <= len(words) <= MOST_WORDS or len(said) > LONGEST or not said.isprintable():
        return None
    if not _FIRST.fullmatch(words[0]) or words[0].lower() in _VAGUE:
        return None
    known = find_names(seen, policy)
    return said if any(_strip_word(word) in known for word in words[1:]) else None


def _strip_word(word: str) -> str:
    return word.strip("\"'`,:;").removesuffix("()").casefold()


def find_names(seen: LastExchange, policy: AgentPolicy) -> frozenset[str]:
    """Return the files and functions the agent has seen, each also by its last part and without extension."""
    text = render_tail(seen, policy)[:MOST_SEARCHED]
    words = (each["word"] for each in _WORD.finditer(text) if each["called"] or _INSIDE.search(each["word"]))
    found = {name for word in dict.fromkeys(words) for name in _spellings(word)}
    for _, given in _calls(text):  # `Makefile`, `Dockerfile`: an argument of a call counts as a name, whatever it looks like
        found |= {name for value in _values(given) for name in _PLAIN.findall(Path(value).name.casefold())}
    return frozenset(name for name in found if len(name) >= SHORTEST_NAME)


def _spellings(word: str) -> Iterator[str]:
    """`src/auth.py` is also `auth.py` and `auth`; `auth.check` is also `check`."""
    parts = word.strip("./-").casefold().split("/")
    yield from ("/".join(parts[at:]) for at in range(max(0, len(parts) - MOST_PARTS), len(parts)))
    name, dot, end = parts[-1].rpartition(".")
    if dot:
        yield name
        yield end if len(end) > LONGEST_ENDING else name


def _calls(text: str) -> Iterator[tuple[str, Wire]]:
    """Yield the calls in a tail."""
    for call in _CALL.finditer(text):
        with suppress(ValueError, RecursionError):
            yield call["tool"], json.loads(call["given"])


def _values(given: Wire) -> list[str]:
    """Return the words of a command, and all other arguments that are a single word: paths, patterns, names."""
    texts = {key: value for key, value in given.items() if isinstance(value, str) and len(value) <= MOST_OF_ONE}
    return [word for key, value in texts.items() if key == "command" or " " not in value for word in value.split()]


def find_calls(messages: Sequence[Wire]) -> Iterator[tuple[str, Wire]]:
    """Yield the calls of a request, newest first, including those in the text of a query."""
    for message in reversed(messages):
        content = message.get("content")
        for block in reversed(content) if isinstance(content, list) else ():
            if block.get("type") == "tool_use" and isinstance(block.get("input"), dict):
                yield str(block.get("name")), block["input"]
            elif block.get("type") == "text" and message.get("role") == "user":
                yield from reversed([*_calls(str(block["text"]))])


# How each tool's activity is described, and the argument that names its subject.
_DOING = {
    "Read": ("Reading the file", "file_path"),
    "Write": ("Writing the file", "file_path"),
    "Edit": ("Changing the file", "file_path"),
    "Grep": ("Searching files for", "pattern"),
    "Glob": ("Looking for files", "pattern"),
    "Bash": ("Running the command", "command"),
}
LONGEST_NAMED = 40
NOTHING = "Nothing yet"


def answer(request: Wire) -> list[Wire]:
    """Describe the newest call that names something. Without one the answer is `NOTHING`, which is never shown."""
    described = (describe_activity(tool, given) for tool, given in find_calls(request.get("messages", ())))
    return [{"type": "text", "text": next(filter(None, described), NOTHING)}]


def describe_activity(tool: str, given: Wire) -> str:
    """Describe a call in a few words; empty if it names nothing."""
    doing, argument = _DOING.get(tool, ("", ""))
    about = _subject(given.get(argument)) if doing else ""
    return f"{doing} {about}" if about else ""


def _subject(value: object) -> str:
    """Return the last part of a path. For a command, return the first word that is a file name, else the program."""
    if not isinstance(value, str) or not value.strip():
        return ""
    words = value.split()
    word = next((each for each in words[1:] if re.search(r"\w\.\w", each)), words[0])
    return posixpath.basename(word.rstrip("/").strip("\"'"))[:LONGEST_NAMED]

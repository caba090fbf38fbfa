"""A summary made without a model: from the log, by rules (C7, O1). Pure.

It says what can be known by looking: what was asked last, errors and what was done next, the to-do list as it was last written, what
the last answers said. The person's messages and the files are put in where every summary has them (compose.py). Every part is
bounded, so it fits whatever it is made of. `answer` is the summariser offline: it reads nothing but the request, as a model would, and
answers in the form it is asked for.

Lines that state a value in words, found by rule (O1): what a summary made without a model keeps of answers, results and arguments.

A line counts if it reads like a sentence and holds a number. A log repeats its forms: a line whose form, digits aside, stands more than
once says less than one that stands alone, and is left out. Each text gives its best line before any gives a second, so that one
long file does not crowd out the rest; the newest texts come first when there are more than fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...conversation.compaction.compose import COMMAND_KEYS, USERS_HEADING
from ...conversation.compaction.cuts import is_said
from ...conversation.compaction.user_messages import LEAST_CHARACTERS, escaped, shortened, words_of
from ...core.blocks import Block, Text, ToolResult, ToolUse, Wire, read_content
from ...core.errors import InputError
from ...core.fence import escape
from ...core.view import Item

# Shorter lines are labels, longer ones are data.
SHORTEST, LONGEST = 20, 240
LEAST_WORDS = 4
# Of prose nearly everything is letters and blanks; of code and tables much is not.
LEAST_LETTERS = 0.75
EACH = 2
# A text beyond this is a file of data, and its beginning is like its end.
LONGEST_TEXT = 200_000

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|$)", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
# What stands before a line is no part of it: its number, a bullet, a mark of quotation.
_BEFORE = re.compile(r"\A(?:\d+(?:\s*[→│|]|:\s))?[\s>*•#-]*")
_WORD = re.compile(r"[^\W\d_]{2,}")


def stated(texts: Sequence[str], most: int) -> list[str]:
    """At most so many lines, in the order they were said."""
    found = [[line for line in _lines(text) if _is_value(line)] for text in texts]
    # A file read twice gives its lines once.
    newest = {line: at for at, lines in enumerate(found) for line in lines}
    forms = Counter(map(_form, newest))
    alone = [
        [line for line in dict.fromkeys(lines) if newest[line] == at and forms[_form(line)] == 1]
        for at, lines in enumerate(found)
    ]
    kept: list[tuple[int, int, str]] = []
    for rank in range(EACH):
        for at in range(len(alone) - 1, -1, -1):
            if rank < len(alone[at]) and len(kept) < most:
                kept.append((at, rank, alone[at][rank]))
    return [line for _, _, line in sorted(kept)]


def _lines(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text[:LONGEST_TEXT]):
        line = found[0].strip()
        if SHORTEST <= len(line) <= LONGEST:
            yield _BEFORE.sub("", line)


def _is_value(line: str) -> bool:
    if not _DIGITS.search(line) or len(_WORD.findall(line)) < LEAST_WORDS:
        return False
    return sum(char.isalpha() or char == " " for char in line) >= LEAST_LETTERS * len(line)


def _form(line: str) -> str:
    return _DIGITS.sub("0", line)


# Enough of each to know what it was; the log has the rest.
LINE = 240
MOST_ERRORS = 12
MOST_ANSWERS = 4
ANSWER = 800
MOST_TODOS = 40
MOST_COMMANDS = 12
# At a line's usual length about 3,000 tokens, which is what a model's summary takes.
MOST_VALUES = 100
# What an earlier summary may take: it is the only trace of what it stands for.
EARLIER = 12_000

NONE = "(nothing that a rule could find)"
_OPEN = ("pending", "in_progress")
_SECTION = re.compile(r"^## [1-9]\. .*$", re.MULTILINE)


class Spoken(NamedTuple):
    """What an item said, whoever it came from."""

    role: str
    blocks: Sequence[object]
    person: bool
    summary: bool


def mechanical(items: Sequence[Item]) -> str:
    """The sections of a summary of these items, without the sixth."""
    return digest([Spoken(item.role, item.blocks, is_said(item), item.kind in ("summary", "partial")) for item in items])


def digest(spoken: Sequence[Spoken]) -> str:
    """The same for whatever has roles and blocks."""
    said = [words_of(_blocks(one)) for one in spoken if one.person]
    calls = [block for one in spoken for block in one.blocks if isinstance(block, ToolUse)]
    request = [f"First: {_line(said[0])}", f"Last: {_line(said[-1])}"] if said else []
    earlier = [_earlier(words_of(_blocks(one))) for one in spoken if one.summary]
    parts = [
        ("1. Primary request and intent", request[: len(set(said))] + earlier),
        ("2. Key technical concepts", []),
        ("3. Files and code", _commands(calls)),
        ("4. Errors and fixes", _errors(spoken)),
        ("5. Problem solving", [f"- {safe(line)}" for line in stated(_texts(spoken), MOST_VALUES)]),
        ("7. Pending tasks", _todos(calls)),
        ("8. Current work", _answers(spoken)),
    ]
    return "\n\n".join(f"## {heading}\n" + ("\n".join(lines) or NONE) for heading, lines in parts)


def _blocks(one: Spoken) -> list[Text]:
    return [block for block in one.blocks if isinstance(block, Text)]


def _texts(spoken: Sequence[Spoken]) -> list[str]:
    """What the model and its tools said. The person's own words stand in a section of theirs, an earlier summary's in the first."""
    found: list[str] = []
    for block in (block for one in spoken if not one.person and not one.summary for block in one.blocks):
        match block:
            case Text() | ToolResult():
                found.append(block.text)
            case ToolUse():
                found += [value for key, value in block.input.items() if isinstance(value, str) and key not in COMMAND_KEYS]
            case _:
                pass
    return found


def _line(text: str, most: int = LINE) -> str:
    plain = safe(" ".join(text.split()))
    return plain if len(plain) <= most else f"{plain[:most]} […]"


def safe(text: str) -> str:
    return escaped(escape(text))


def _earlier(text: str) -> str:
    """An earlier summary's sections, their headings a step lower so that each number stands once."""
    start = text.find("## 1.")
    body = text[max(0, start) :][:EARLIER]
    return "From an earlier summary:\n" + _SECTION.sub(
        lambda found: f"#{found[0]}", re.sub(r"(?s)## 6\..*?(?=## 7\.|\Z)", "", body)
    )


def _commands(calls: Sequence[ToolUse]) -> list[str]:
    changed = [f"- {call.name} {_line(str(call.input.get('file_path')))}" for call in calls if call.name in ("Edit", "Write")]
    ran = [f"- ran: {_line(call.input['command'])}" for call in calls if isinstance(call.input.get("command"), str)]
    return [*list(dict.fromkeys(changed))[-MOST_COMMANDS:], *list(dict.fromkeys(ran))[-MOST_COMMANDS:]]


def _errors(spoken: Sequence[Spoken]) -> list[str]:
    """Each failed call, its error, and the call that came next."""
    calls = {block.id: block for one in spoken for block in one.blocks if isinstance(block, ToolUse)}
    order = list(calls.values())
    place = {call.id: at for at, call in enumerate(order)}
    lines = []
    for block in (block for one in spoken for block in one.blocks):
        if not isinstance(block, ToolResult) or not block.is_error or (call := calls.get(block.tool_use_id)) is None:
            continue
        after = order[place[call.id] + 1 : place[call.id] + 2]
        then = f" Then: {_call(after[0])}" if after else ""
        lines.append(f"- {_call(call)} failed: {_line(block.text)}{then}")
    return lines[-MOST_ERRORS:]


def _call(call: ToolUse) -> str:
    given = next((str(value) for value in call.input.values() if isinstance(value, str)), "")
    return f"{call.name} {_line(given, LINE // 2)}".strip()


def _todos(calls: Sequence[ToolUse]) -> list[str]:
    """The open entries of the last list; none where it was emptied since."""
    last = next((call for call in reversed(calls) if call.name == "TodoWrite"), None)
    rows = last.input.get("todos") if last is not None else None
    entries: Iterable[object] = rows if isinstance(rows, list) else ()
    return [
        f"- [{row['status']}] {_line(str(row.get('content', '')))}"
        for row in entries
        if isinstance(row, dict) and row.get("status") in _OPEN
    ][:MOST_TODOS]


def _answers(spoken: Sequence[Spoken]) -> list[str]:
    texts = [words for one in spoken if one.role == "assistant" and (words := words_of(_blocks(one)))]
    return [f"- {_line(words, ANSWER)}" for words in texts[-MOST_ANSWERS:]]


# Bytes a token at the least, so that an answer by rules is as long as one by a model may be, whatever its letters.
BYTES_PER_TOKEN = 3
ANALYSIS = "Put together by rules, without a model."
INJECTED = "<system-reminder>"


def answer(request: Wire) -> list[Wire]:
    messages = [message for message in request.get("messages") or () if isinstance(message, Mapping)]
    spoken = [one for message in messages for one in _spoken(message, last=message is messages[-1])]
    words = digest(spoken)
    if isinstance(most := request.get("max_tokens"), int):
        words = shortened(words, most, lambda text: len(text.encode()) // BYTES_PER_TOKEN, least=LEAST_CHARACTERS)
    return [{"type": "text", "text": f"<analysis>{ANALYSIS}</analysis>\n<summary>\n{words}\n</summary>"}]


def _spoken(message: Mapping[str, Any], *, last: bool) -> Iterator[Spoken]:
    """A message by its blocks: a summary, a reminder and the person's words may stand in one. The directive is the last block of the
    last message and no part of what is summarised."""
    try:
        blocks: tuple[Block, ...] = read_content(message.get("content"))
    except InputError:
        blocks = ()
    role = str(message.get("role"))
    for block in blocks[:-1] if last and role == "user" else blocks:
        words = block.text if isinstance(block, Text) and role == "user" else ""
        summary = USERS_HEADING in words
        yield Spoken(role, (block,), bool(words.strip()) and not summary and not words.startswith(INJECTED), summary)

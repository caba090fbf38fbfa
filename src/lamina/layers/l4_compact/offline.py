"""A summary made by rules, without a model (C7, O1). Pure.

It collects what can be read directly from the messages: the first and last request, errors and the call after each, the last
to-do list, and the last answers. As in every summary, the user's messages and the list of files are added by compose.py. `answer` is
the offline summariser: like a model it sees only the request, and it answers in the requested form.

The summary has a budget like any other. Every part is bounded; if all of them together are too large, each keeps its newest lines,
so that no section is lost. Reading is bounded too: only the newest texts are searched for values, so a conversation of any size takes
about as long.

The summary also keeps lines that state a value (`stated`), from answers, results and arguments. A line counts if it reads like a
sentence and contains a number. Logs repeat the same pattern, so lines that are equal except for their digits are left out. Every
text contributes one line before any contributes a second, so that one long file does not crowd out the rest. If there are too
many, the newest texts come first.

`fold_head` replaces the part of a transcript that is too large to load (C7, Z4), when a session is resumed. Only the end is loaded
(disk/transcripts/resume.py). The summary is made by rules from what was read of the part before it: the first user message, and the
records right before the cut. It is written as a boundary that keeps everything loaded, with a checkpoint at the cut, so the next
resume starts there. It cannot be undone, because what it stands for does not fit into memory.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...conversation.compaction.compose import (
    COMMAND_KEYS,
    USERS_HEADING,
    SummaryBudget,
    SummaryOrigin,
    WayBack,
    compose,
    used_in,
)
from ...conversation.compaction.cuts import is_said
from ...conversation.compaction.user_messages import LEAST_CHARACTERS, Tokens, escaped, said_in, shortened, words_of
from ...core.blocks import Block, Text, ToolResult, ToolUse, Wire, read_content, text
from ...core.errors import InputError
from ...core.fence import escape
from ...core.log import BY_RESUME, Log, checkpoint_state, seeded
from ...core.policy import CompactPolicy
from ...core.receipts import Told, write_receipt
from ...core.records import Boundary, Checkpoint, Message, Preserved, Record, new_id
from ...core.view import Item
from ...disk.transcripts.resume import TranscriptHead
from ...language.wording import shorten

# Shorter lines are labels, longer ones are data.
SHORTEST, LONGEST = 20, 240
LEAST_WORDS = 4
# Prose consists almost entirely of letters and spaces; code and tables do not.
LEAST_LETTERS = 0.75
EACH = 2
# A longer text is a data file, whose beginning represents the rest.
LONGEST_TEXT = 200_000
# Characters searched for values, in the newest texts: far more than fill the summary, and about a second of work.
MOST_READ = 4_000_000

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|$)", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
# Prefixes that are not part of a line: a line number, a bullet, a quotation mark.
_BEFORE = re.compile(r"\A(?:\d+(?:\s*[→│|]|:\s))?[\s>*•#-]*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_LETTER = re.compile(r"[^\w ]|[\d_]")


def stated(texts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` lines that state a value, in their original order."""
    values = [[line for line in _lines(text) if _is_value(line)] for text in _newest(texts)]
    # The lines of a file that was read twice count once.
    newest = {line: index for index, lines in enumerate(values) for line in lines}
    forms = Counter(map(_form, newest))
    alone = [
        [line for line in dict.fromkeys(lines) if newest[line] == index and forms[_form(line)] == 1]
        for index, lines in enumerate(values)
    ]
    chosen: list[tuple[int, int, str]] = []
    for rank in range(EACH):
        for index in range(len(alone) - 1, -1, -1):
            if rank < len(alone[index]) and len(chosen) < most:
                chosen.append((index, rank, alone[index][rank]))
    return [line for _, _, line in sorted(chosen)]


def _newest(texts: Sequence[str]) -> Sequence[str]:
    room = MOST_READ
    for index in range(len(texts) - 1, -1, -1):
        room -= min(len(texts[index]), LONGEST_TEXT)
        if room < 0:
            return texts[index + 1 :]
    return texts


def _lines(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.finditer(text[:LONGEST_TEXT]):
        line = sentence[0].strip()
        if SHORTEST <= len(line) <= LONGEST:
            yield _BEFORE.sub("", line)


def _is_value(line: str) -> bool:
    if not _DIGITS.search(line) or len(_WORD.findall(line)) < LEAST_WORDS:
        return False
    return len(_NO_LETTER.findall(line)) <= (1 - LEAST_LETTERS) * len(line)


def _form(line: str) -> str:
    return _DIGITS.sub("0", line)


# Limits that are enough to recognise each entry; the log has the rest.
LINE = 240
MOST_ERRORS = 12
MOST_ANSWERS = 4
ANSWER = 800
MOST_TODOS = 40
MOST_COMMANDS = 12
# About 3,000 tokens at the usual length of a line, like a summary by a model.
MOST_VALUES = 100
# Maximum characters kept of an earlier summary. Generous, since nothing else is left of the messages it replaced.
EARLIER = 12_000

NONE = "(nothing found)"
REQUEST = "1. Primary request and intent"
EARLIER_HEADING = "From an earlier summary:\n"
# Shares of each section that are tried until the summary is within its budget.
SHARES = (1.0, 0.5, 0.25, 0.1)
LEAST_LINES = 4
_OPEN = ("pending", "in_progress")
_SECTION = re.compile(r"^## [1-9]\. .*$", re.MULTILINE)


class Spoken(NamedTuple):
    """A message or a part of one."""

    role: str
    blocks: Sequence[object]
    by_user: bool  # written by the user
    summary: bool


def mechanical(items: Sequence[Item], budget: int, tokens: Tokens) -> str:
    """Return the sections of a summary of these items, except the sixth (the user's messages), within a budget of tokens."""
    spoken = [Spoken(item.role, item.blocks, is_said(item), item.kind in ("summary", "partial")) for item in items]
    return digest(spoken, budget, tokens)


def digest(spoken: Sequence[Spoken], budget: int, tokens: Tokens) -> str:
    """Return the sections of a summary of these messages. Only if they are too large even with few lines is the text cut."""
    sections, words = [(heading, lines) for heading, lines in _sections(spoken) if lines] or [(REQUEST, [NONE])], ""
    for share in SHARES:
        words = "\n\n".join(f"## {heading}\n" + "\n".join(_part(lines, share)) for heading, lines in sections)
        if tokens(words) <= budget:
            return words
    return shortened(words, budget, tokens, least=LEAST_CHARACTERS)


def _part(lines: Sequence[str], share: float) -> Sequence[str]:
    """Return the newest of these lines, each cut in the same proportion, so that a long one does not crowd out the rest."""
    if share == 1.0:
        return lines
    most = max(LINE, int(max(map(len, lines), default=0) * share))
    return [shorten(line, most) for line in lines[-max(LEAST_LINES, int(len(lines) * share)) :]]


def _sections(spoken: Sequence[Spoken]) -> list[tuple[str, list[str]]]:
    requests = [words_of(_blocks(part)) for part in spoken if part.by_user]
    calls = [block for part in spoken for block in part.blocks if isinstance(block, ToolUse)]
    request = [f"First: {_line(requests[0])}", f"Last: {_line(requests[-1])}"] if requests else []
    earlier = [_earlier(words_of(_blocks(part))) for part in spoken if part.summary]
    return [
        (REQUEST, earlier + request[: len(set(requests))]),
        ("3. Files and code", _commands(calls)),
        ("4. Errors and fixes", _errors(spoken)),
        ("5. Problem solving", [f"- {safe(line)}" for line in stated(_texts(spoken), MOST_VALUES)]),
        ("7. Pending tasks", _todos(calls)),
        ("8. Current work", _answers(spoken)),
    ]


def _blocks(part: Spoken) -> list[Text]:
    return [block for block in part.blocks if isinstance(block, Text)]


def _texts(spoken: Sequence[Spoken]) -> list[str]:
    """Return the texts of the model and its tools. User messages and earlier summaries have sections of their own."""
    texts: list[str] = []
    for block in (block for part in spoken if not part.by_user and not part.summary for block in part.blocks):
        match block:
            case Text() | ToolResult():
                texts.append(block.text)
            case ToolUse():
                texts += [value for key, value in block.input.items() if isinstance(value, str) and key not in COMMAND_KEYS]
            case _:
                pass
    return texts


def _line(text: str, most: int = LINE) -> str:
    return shorten(safe(" ".join(text.split())), most)


def safe(text: str) -> str:
    return escaped(escape(text))


def _earlier(text: str) -> str:
    """Return the sections of an earlier summary, with headings one level lower so that each number occurs once."""
    start = text.find("## 1.")
    body = text[max(0, start) :][:EARLIER]
    lowered = _SECTION.sub(lambda heading: f"#{heading[0]}", re.sub(r"(?s)## 6\..*?(?=## 7\.|\Z)", "", body))
    # A summary of a summary is one earlier summary.
    return EARLIER_HEADING + lowered.replace(f"### {REQUEST}\n{EARLIER_HEADING}", "")


def _commands(calls: Sequence[ToolUse]) -> list[str]:
    changed = [f"- {call.name} {_line(str(call.input.get('file_path')))}" for call in calls if call.name in ("Edit", "Write")]
    ran = [f"- ran: {_line(call.input['command'])}" for call in calls if isinstance(call.input.get("command"), str)]
    return [*list(dict.fromkeys(changed))[-MOST_COMMANDS:], *list(dict.fromkeys(ran))[-MOST_COMMANDS:]]


def _errors(spoken: Sequence[Spoken]) -> list[str]:
    """Return each failed call with its error and the call that came next."""
    calls = {block.id: block for part in spoken for block in part.blocks if isinstance(block, ToolUse)}
    order = list(calls.values())
    place = {call.id: index for index, call in enumerate(order)}
    lines = []
    for block in (block for part in spoken for block in part.blocks):
        if not isinstance(block, ToolResult) or not block.is_error or (call := calls.get(block.tool_use_id)) is None:
            continue
        after = order[place[call.id] + 1 : place[call.id] + 2]
        then = f" Then: {_call(after[0])}" if after else ""
        lines.append(f"- {_call(call)} failed: {_line(block.text)}{then}")
    return lines[-MOST_ERRORS:]


def _call(call: ToolUse) -> str:
    argument = next((str(value) for value in call.input.values() if isinstance(value, str)), "")
    return f"{call.name} {_line(argument, LINE // 2)}".strip()


def _todos(calls: Sequence[ToolUse]) -> list[str]:
    """Return the open entries of the last to-do list."""
    last = next((call for call in reversed(calls) if call.name == "TodoWrite"), None)
    rows = last.input.get("todos") if last is not None else None
    entries: Iterable[object] = rows if isinstance(rows, list) else ()
    return [
        f"- [{row['status']}] {_line(str(row.get('content', '')))}"
        for row in entries
        if isinstance(row, dict) and row.get("status") in _OPEN
    ][:MOST_TODOS]


def _answers(spoken: Sequence[Spoken]) -> list[str]:
    texts = [words for part in spoken if part.role == "assistant" and (words := words_of(_blocks(part)))]
    return [f"- {_line(words, ANSWER)}" for words in texts[-MOST_ANSWERS:]]


# A low number of bytes per token, so that an answer by rules stays within `max_tokens` in any script.
BYTES_PER_TOKEN = 3
ANALYSIS = "Written by rules, without a model."
INJECTED = "<system-reminder>"


def answer(request: Wire) -> list[Wire]:
    messages = [message for message in request.get("messages") or () if isinstance(message, Mapping)]
    spoken = [part for message in messages for part in _spoken(message, last=message is messages[-1])]
    most = request.get("max_tokens")
    budget = most if isinstance(most, int) else sys.maxsize
    words = digest(spoken, budget, lambda text: len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
    return [{"type": "text", "text": f"<analysis>{ANALYSIS}</analysis>\n<summary>\n{words}\n</summary>"}]


def _spoken(message: Mapping[str, Any], *, last: bool) -> Iterator[Spoken]:
    """Split a message into its blocks, since one message may contain a summary, a reminder and the user's words.

    The directive, which is the last block of the last message, is left out."""
    try:
        blocks: tuple[Block, ...] = read_content(message.get("content"))
    except InputError:
        blocks = ()
    role = str(message.get("role"))
    for block in blocks[:-1] if last and role == "user" else blocks:
        words = block.text if isinstance(block, Text) and role == "user" else ""
        summary = USERS_HEADING in words
        yield Spoken(role, (block,), bool(words.strip()) and not summary and not words.startswith(INJECTED), summary)


# A rough count is enough here: the next request counts the conversation again.
CHARACTERS_PER_TOKEN = 4
# A summary of the usual length; it must fit beside the loaded part in a small window too.
SUMMARY_TOKENS = 5_000
CUT = (
    "The transcript is too large to load: {size} MB of it, from the beginning of the conversation, are not loaded. What follows covers "
    "the first message and the last records before the loaded part."
)


def fold_head(log: Log, head: TranscriptHead, *, start: int, transcript: str, cwd: str, time: str) -> list[Record]:
    """Return the records that replace the head. `log` holds the loaded part, which begins at the offset `start`."""
    boundary, summary = new_id(), new_id()
    order = [item.uuid for item in log.view.items]
    receipt = write_receipt(boundary, order, {uuid: Told("kept") for uuid in order}).to_json()
    summary_words = _head_words(head, WayBack(boundary, transcript), cwd)
    preserved = Preserved(summary, tuple(uuid for uuid in order if uuid in log.tree.nodes))
    tokens, receipt = head.cut // CHARACTERS_PER_TOKEN, {**receipt, "by": BY_RESUME}
    return [
        Boundary(boundary, log.tree.leaf, time, "auto", tokens, tuple(order), receipt, preserved=preserved),
        Message(summary, boundary, time, "user", (text(summary_words),), summary=True, by=boundary),
        Checkpoint(new_id(), summary, time, boundary, start, {**head.state, **checkpoint_state(log)}),
    ]


def _head_words(head: TranscriptHead, way: WayBack, cwd: str) -> str:
    items = Log.load(lambda: head.near, lambda: seeded(head.state)).view.items
    messages = said_in(items)
    if head.first is not None and all(item.uuid != head.first.uuid for item in items):
        messages.insert(0, words_of(head.first.blocks))
    policy = CompactPolicy()

    def tokens(words: str) -> int:
        return len(words) // CHARACTERS_PER_TOKEN

    return compose(
        f"{CUT.format(size=megabytes(head.cut))}\n\n{mechanical(items, SUMMARY_TOKENS, tokens)}",
        said=messages,
        files=used_in(items, cwd),
        way=way,
        budget=SummaryBudget(users=policy.users_tokens, files=policy.list_tokens),
        tokens=tokens,
        made=SummaryOrigin(mechanical=True),
    )


def megabytes(size: int) -> str:
    return f"{max(1, round(size / 1e6)):,}"

"""The text of a summary call: its directive, the shortened conversation, and the validation of the answer. Pure.

The directive follows the unchanged conversation (C3, C6) and repeats nothing of it: the fork reads that from the cache. If only a
part is to be summarised, the directive quotes the beginning of the message where the part starts or ends.

Images and documents are replaced by text (C2): they would take room in a full window, and a server may refuse so many of them. Such
a call does not use the cache. Neither does a call that was too long (C7) and is sent without its oldest rounds.

Validation (C3, C8, B1). Invariant: only an answer that is clearly a summary replaces history. An answer is rejected if it is
empty, refused or cut off, calls a tool, contains no summary, or is as large as the part it would replace. The reason is written
so that both the user and the next try can use it.

`find_summary` finds the summary in `<analysis>…</analysis><summary>…</summary>`, whatever the two parts quote. Conversations about
web pages, prompts or this project contain the same tags, and models quote them. The rules are:

- The summary ends at the last `</summary>`: text after it is noise, text before it may be content.
- The analysis ends where `</analysis>` is followed by `<summary>`, or `<summary>` by section 1. Tags before that do not count.
- The summary begins at the first `<summary>` after that. A later one begins it only if section 1 follows directly, no numbered
  section comes before it, and the earlier tag was closed or only mentioned.
- Missing tags are forgiven if the text has enough of the numbered sections.

Invariant: if in doubt the longer text is taken, so a quotation never cuts a part of the summary off. Every step takes linear time,
since a hostile tool result can provoke any answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...conversation.compaction.user_messages import DOCUMENT, IMAGE, Tokens, escaped, words_of
from ...core.blocks import Block, Document, Image, ToolResult, ToolUse, Wire, text, tool_result
from ...core.fence import escape
from ...core.message_list import Flat
from ...core.prompt_files import prompt_sections
from ...core.reply import Reply
from ...core.view import Item
from ...fork.handover import Handover, altered
from ...language.text import Text
from ...language.wording import counted, shorten
from .plan import SummaryPlan

# A shorter summary is useless. In bytes, since forty characters of Chinese can say a lot.
LEAST_BYTES = 40

# Stop reasons of an answer that ran into a limit.
FULL = ("max_tokens", "model_context_window_exceeded")


class Summary(msgspec.Struct, frozen=True):
    text: str


class Rejected(msgspec.Struct, frozen=True):
    why: str  # a clause about the answer: "it …"


def read_summary(reply: Reply, *, most: int, tokens: Tokens) -> Summary | Rejected:
    """Return the summary in an answer, or why it is rejected. It must have fewer than `most` tokens, the size of what it
    replaces."""
    if reply.stop_reason == "refusal":
        return Rejected("the model refused to write it")
    if any(isinstance(block, ToolUse) for block in reply.blocks):
        return Rejected("it calls a tool")
    if not reply.complete or reply.stop_reason in FULL:
        return Rejected("it was cut off")
    words = find_summary(reply.text)
    if words is None:
        return Rejected("it holds no <summary>" if reply.text.strip() else "it is empty")
    if len(words.encode(errors="replace")) < LEAST_BYTES:
        return Rejected("it is too short" if words.strip() else "it is empty")
    if (size := tokens(words)) >= most:
        form = Text("it is no smaller than the messages it would replace ({size:,} of {most:,} tokens)")
        return Rejected(Text(form, size=size, most=most))
    # Tool results influence the text of a summary, so it must not pass as a user message or as one of our reminders.
    return Summary(escaped(escape(words)))


# Extra percentage dropped to cover a gap, since our estimate differs from the server's count.
SPARE_PERCENT = 10


def to_drop(sizes: Sequence[int], *, gap: int | None, percent: int) -> int:
    """Return how many of the oldest rounds to drop, at least one, given their sizes in tokens.

    They cover the gap, or are a percentage of all rounds if the gap is unknown. If all are to be dropped, nothing is left to
    send."""
    if gap is None:
        return min(len(sizes), max(1, -(-len(sizes) * percent // 100)))
    wanted = gap * (100 + SPARE_PERCENT) // 100 + 1
    freed = 0
    for number, size in enumerate(sizes, start=1):
        freed += size
        if freed >= wanted:
            return number
    return len(sizes)


def shown(items: Sequence[Item]) -> list[Wire]:
    """Return these items as a separate message list, without images and documents."""
    flat = Flat()
    for item in items:
        flat.add(item.role, [in_words(block) for block in item.blocks], key=item.key, synthetic=item.synthetic)
    return flat.messages()


def without_media(handover: Handover, items: Sequence[Item]) -> Handover:
    """Return the handover without images and documents. Without any, it is the same, and the cache is used."""
    if all(in_words(block) is block for item in items for block in item.blocks):
        return handover
    return altered(handover, shown(items), "compaction")


def in_words(block: Block) -> Block:
    match block:
        case Image():
            return text(IMAGE)
        case Document():
            return text(DOCUMENT)
        case ToolResult(content=list() as parts) if any(part.get("type") in ("image", "document") for part in parts):
            return tool_result(block.tool_use_id, [_part(part) for part in parts], is_error=block.is_error)
        case _:
            return block


def _part(part: Wire) -> Wire:
    words = {"image": IMAGE, "document": DOCUMENT}.get(str(part.get("type")))
    return {"type": "text", "text": words} if words is not None else part


# Characters of a message that are quoted to identify it to the model.
BEGINNING = 200


def directive(
    items: Sequence[Item],
    planned: SummaryPlan,
    *,
    instructions: str = "",
    dropped: int = 0,
    partial: bool = False,
    again: str = "",
) -> str:
    """Return the directive that asks for a summary.

    `partial` means that the user chose where to cut. `dropped` is the number of rounds missing from the request, and `again` the
    reason why the last try failed."""
    texts = prompt_sections(__file__, "summary")
    parts = [texts["summary"]]
    if planned.start > 0:
        parts.append(texts["from"].format(beginning=beginning(items[planned.start :])))
    elif planned.end < planned.count:
        parts.append(texts["up_to" if partial else "kept"].format(beginning=beginning(items[planned.end :])))
    if dropped:
        parts.append(texts["dropped"].format(rounds=counted(dropped, "round")))
    if instructions.strip():
        parts.append(texts["instructions"].format(instructions=instructions.strip()))
    if again:
        parts.append(texts["again"].format(why=again))
    return "\n\n".join(parts)


def beginning(items: Sequence[Item]) -> str:
    """Quote the beginning of the first item that has text, in one line."""
    for item in items:
        if words := " ".join(words_of(item.blocks).split()):
            return f"“{shorten(words, BEGINNING)}”"
    return "(a message without text)"


# An answer with missing tags is accepted only if it has at least this many of the numbered headings.
LEAST_HEADINGS = 4
# Most characters between the end of the analysis and the summary, such as "Here is the summary:".
SEAM = 300

# Models that write in Chinese or Japanese use wide digits and commas in headings.
_HEADING = re.compile(r"^[ \t]*+(?:#{1,4}[ \t]*+(?:\*\*)?|\*\*)[1-9１-９][ \t]?[.．、:：)]", re.MULTILINE)
_FIRST = re.compile(r"\s*+(?:```\w*+\s++)?+(?:#{1,4}[ \t]*+(?:\*\*)?|\*\*)[1１][ \t]?[.．、:：)]")
_TAG = re.compile(r"<\s*+(?P<end>/?+)\s*+(?P<name>summary|analysis)\s*+>", re.IGNORECASE)


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    closes: bool
    heads: bool  # section 1 follows


def find_summary(answer: str) -> str | None:
    """Return the text of the summary, or None if the answer has none. An empty summary is an empty string."""
    tags = [
        _Tag(
            *match.span(), match["name"].lower(), bool(match["end"]), not match["end"] and bool(_FIRST.match(answer, match.end()))
        )
        for match in _TAG.finditer(answer)
    ]
    headings = [match.start() for match in _HEADING.finditer(answer)]
    begin = _analysis_end(tags)
    summary_tags = [tag for tag in tags if tag.name == "summary" and tag.start >= begin]
    end = next((tag.start for tag in reversed(summary_tags) if tag.closes), None)
    start = _start([tag for tag in summary_tags if end is None or tag.start < end], headings)
    if start is not None:
        count = _between(headings, start, len(answer) if end is None else end)
        enough = count >= LEAST_HEADINGS or (end is not None and _between(headings, begin, len(answer)) < LEAST_HEADINGS)
        if enough:
            return _unwrapped(answer[start:end].strip())
    return answer[begin:].strip() if _between(headings, begin, len(answer)) >= LEAST_HEADINGS else None


def _between(headings: Sequence[int], start: int, end: int) -> int:
    return bisect_left(headings, end) - bisect_left(headings, start)


def _analysis_end(tags: Sequence[_Tag]) -> int:
    """Return where the analysis ends, or 0 if the answer does not begin with one."""
    if not tags or tags[0].name != "analysis" or tags[0].closes:
        return 0
    closed = [index for index, tag in enumerate(tags) if tag.name == "analysis" and tag.closes]
    opened = {index: tag.start for index, tag in enumerate(tags) if tag.name == "summary" and not tag.closes}
    seams = (tags[index].end for index in closed if index + 1 in opened and opened[index + 1] - tags[index].end <= SEAM)
    seam = next(seams, None)
    # Section 1 before the seam means that the analysis was never closed, and the seam is a quotation.
    first = next((tag.start for tag in tags if tag.heads), None)
    if seam is None and first is None:
        return tags[closed[0]].end if closed else 0
    return min(index for index in (seam, first) if index is not None)


def _start(tags: Sequence[_Tag], headings: Sequence[int]) -> int | None:
    """Return where the text of the summary begins. `tags` are the summary tags before its end."""
    # The last closing tag is not among them, so an excess of opening tags means that one of them is only a mention.
    mentioned = sum(-1 if tag.closes else 1 for tag in tags) > 1
    start: int | None = None
    depth = 0
    for tag in tags:
        if tag.closes:
            depth = max(0, depth - 1)
            continue
        if start is None or (tag.heads and (mentioned or not depth) and not _between(headings, start, tag.start)):
            start, depth = tag.end, 0
        depth += 1
    return start


def _unwrapped(text: str) -> str:
    """Remove a code block around the whole text."""
    lines = text.split("\n")
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1]).strip()
    return text

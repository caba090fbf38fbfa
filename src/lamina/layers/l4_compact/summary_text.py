"""What the summariser is asked (C3, C6): one directive behind the conversation as it stands. Pure.

Nothing of the conversation is repeated in it: the fork reads it from the cache. Where only a part is to be summarised, the part is
named by the beginning of the message it starts or ends at.

When the summary call itself is too long (C7): the oldest rounds go until it fits, then a summary without a model. Pure.

The prefix is not shared any more once something is dropped, so pictures and documents go too: they become words (C2).

The summariser's answer → a summary, or the reason why it is none (C3, C8, B1). Pure.

The invariant: what is not plainly a summary never replaces history. An answer that is empty, refused, cut off, calls a tool, has no
summary in it, or is larger than what it stands for is rejected with a reason that a person and the next try can use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ...conversation.compaction.user_messages import DOCUMENT, IMAGE, Tokens, escaped, words_of
from ...core.blocks import Block, Document, Image, ToolResult, ToolUse, Wire, text, tool_result
from ...core.fence import escape
from ...core.message_list import Flat
from ...core.prompt_files import prompt_sections
from ...core.reply import Reply
from ...core.view import Item
from .plan import SummaryPlan

_ANALYSIS, _ANALYSIS_END = "<analysis>", "</analysis>"
_SUMMARY, _SUMMARY_END = "<summary>", "</summary>"
_HEADING = re.compile(r"^#{1,4}\s*[1-9]\.", re.MULTILINE)
# Without tags an answer counts only if it has the form that was asked for: this many of its numbered headings.
LEAST_HEADINGS = 4
# Below this there is nothing a successor could work with.
LEAST_CHARACTERS = 40

# Stop reasons of an answer that ran into a limit.
FULL = ("max_tokens", "model_context_window_exceeded")


class Summary(msgspec.Struct, frozen=True):
    text: str


class Rejected(msgspec.Struct, frozen=True):
    why: str  # the end of a sentence: "it …"


def read_summary(reply: Reply, *, most: int, tokens: Tokens) -> Summary | Rejected:
    """`most`: tokens of what the summary stands for; one that is not smaller is none."""
    if reply.stop_reason == "refusal":
        return Rejected("the model refused to write it")
    if any(isinstance(block, ToolUse) for block in reply.blocks):
        return Rejected("it calls a tool")
    if not reply.complete or reply.stop_reason in FULL:
        return Rejected("it was cut off before its end")
    found = _body(reply.text)
    if found is None:
        return Rejected("it holds no <summary>" if reply.text.strip() else "it is empty")
    if len(found) < LEAST_CHARACTERS:
        return Rejected("it is empty")
    if (size := tokens(found)) >= most:
        return Rejected(f"it is as large as what it stands for ({size:,} of {most:,} tokens)")
    return Summary(_safe(found))


def _body(text: str) -> str | None:
    """The last summary in the answer; the whole answer where it has the form and only the tags are missing."""
    plain = _without_analysis(text)
    small = plain.lower()
    end = small.rfind(_SUMMARY_END)
    if end >= 0:
        before = small.rfind(_SUMMARY_END, 0, end)
        start = small.find(_SUMMARY, max(0, before), end)
        return plain[start + len(_SUMMARY) : end].strip() if start >= 0 else None
    return plain.strip() if len(_HEADING.findall(plain)) >= LEAST_HEADINGS and _SUMMARY not in small else None


def _without_analysis(text: str) -> str:
    """What the model thought is left out; a draft that is never closed ends where the summary begins. Walks the text once: what a
    hostile result made the model write costs no more than its length."""
    small = text.lower()
    if len(small) != len(text):  # a few letters grow when made small: then positions would not agree
        small = text
    parts: list[str] = []
    at = 0
    last = small.rfind(_ANALYSIS_END)  # behind it there is no use in looking for another
    while (start := small.find(_ANALYSIS, at)) >= 0:
        closed = small.find(_ANALYSIS_END, start) if start < last else -1
        end = closed + len(_ANALYSIS_END) if closed >= 0 else small.find(_SUMMARY, start)
        if end < 0:
            break
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])


def _safe(text: str) -> str:
    """A summary is made from what tools brought in: it can't pass for a message of the person or for a word of ours (G3)."""
    return escaped(escape(text))


# What a server counts and what we estimate differ; a gap is covered with this much to spare, in percent.
SPARE_PERCENT = 10


def to_drop(sizes: Sequence[int], *, gap: int | None, percent: int) -> int:
    """How many of the oldest rounds go, given their tokens: enough to cover the gap, or a share of them where no gap is known. At least
    one. As many as there are: nothing would be left to send."""
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
    """These items as a message list of their own, without pictures."""
    flat = Flat()
    for item in items:
        flat.add(item.role, [in_words(block) for block in item.blocks], key=item.key, synthetic=item.synthetic)
    return flat.messages()


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


# Enough of a message to find it by, for a model that has it in view.
BEGINNING = 200


def directive(
    items: Sequence[Item], made: SummaryPlan, *, instructions: str = "", dropped: int = 0, partial: bool = False, again: str = ""
) -> str:
    """`partial`: a person chose the place; `dropped`: rounds that are not in the request (C7); `again`: why the last try failed."""
    texts = prompt_sections(__file__, "summary")
    parts = [texts["summary"]]
    if made.start > 0:
        parts.append(texts["from"].format(beginning=beginning(items[made.start :])))
    elif made.end < made.count:
        parts.append(texts["up_to" if partial else "kept"].format(beginning=beginning(items[made.end :])))
    if dropped:
        parts.append(texts["dropped"].format(count=dropped))
    if instructions.strip():
        parts.append(texts["instructions"].format(instructions=instructions.strip()))
    if again:
        parts.append(texts["again"].format(why=again))
    return "\n\n".join(parts)


def beginning(items: Sequence[Item]) -> str:
    """How the first of these that has words begins, in one line."""
    for item in items:
        if words := " ".join(words_of(item.blocks).split()):
            return f"“{words[:BEGINNING]}”" + ("…" if len(words) > BEGINNING else "")
    return "(a message without words)"

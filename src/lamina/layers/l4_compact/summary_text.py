"""The text of a summary call: its directive, the shortened conversation, and the validation of the answer. Pure.

The directive follows the unchanged conversation (C3, C6) and repeats nothing of it: the fork reads that from the cache. If only a
part is to be summarised, the directive quotes the beginning of the message where the part starts or ends.

Images and documents are replaced by text (C2): they would take room in a full window, and a server may refuse so many of them. Such
a call does not use the cache. Neither does a call that was too long (C7) and is sent without its oldest rounds.

Validation (C3, C8, B1). Invariant: only an answer that is clearly a summary replaces history. An answer is rejected if it is
empty, refused or cut off, calls a tool, contains no summary, or is as large as the part it would replace. The reason is written
so that both the user and the next try can use it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from .summary_tags import find_summary

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
    found = find_summary(reply.text)
    if found is None:
        return Rejected("it holds no <summary>" if reply.text.strip() else "it is empty")
    if len(found.encode(errors="replace")) < LEAST_BYTES:
        return Rejected("it is too short" if found.strip() else "it is empty")
    if (size := tokens(found)) >= most:
        return Rejected(
            Text("it is no smaller than the messages it would replace ({size:,} of {most:,} tokens)", size=size, most=most)
        )
    return Summary(_safe(found))


def _safe(text: str) -> str:
    """Escape a summary. Tool results influence its text, so it must not pass as a user message or as one of our reminders."""
    return escaped(escape(text))


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
    items: Sequence[Item], made: SummaryPlan, *, instructions: str = "", dropped: int = 0, partial: bool = False, again: str = ""
) -> str:
    """Return the directive that asks for a summary.

    `partial` means that the user chose where to cut. `dropped` is the number of rounds missing from the request, and `again` the
    reason why the last try failed."""
    texts = prompt_sections(__file__, "summary")
    parts = [texts["summary"]]
    if made.start > 0:
        parts.append(texts["from"].format(beginning=beginning(items[made.start :])))
    elif made.end < made.count:
        parts.append(texts["up_to" if partial else "kept"].format(beginning=beginning(items[made.end :])))
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

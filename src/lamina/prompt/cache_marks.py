"""Cache marks: two fixed ones behind tools and system, two rolling ones behind the previous and the new end; and their lifetime. Pure.

A provider looks for an earlier entry at each mark and up to twenty blocks before it. The mark at the end of the previous
request hits exactly what that request wrote, however many blocks came since. The mark at the new end writes the entry that
the next request will hit. Marks go on copies: the shared blocks never change.

A result that is shown once changes in the next request. The mark of its request is therefore on the block before it, so that
nothing is written to the cache that no later request repeats.

The lifetime is five minutes until the session has had a pause of 5 to 60 minutes. From then on it is an hour where that pays. Such an entry
costs more to write, but only what is new in a request is written. Without it, the next such pause makes the cache cold:

    chance of such a pause × loss with a cold cache × context  >  (write for an hour − write) × new tokens

The chance is that of the session so far: its pauses of this length over its calls. So an hour is chosen where little is new in a large
context. A pause after which an entry written for an hour was gone counts against it twice: such a session goes back to five minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ..core.blocks import Wire
from ..core.usage import Usage
from ..providers.models import UNITS_WRITE, UNITS_WRITE_1H
from .break_causes import TTL_SECONDS

# These blocks accept no mark, so the block before them gets it.
UNMARKABLE = ("thinking", "redacted_thinking")


class BlockPosition(msgspec.Struct, frozen=True):
    """The position of a request's last block: message index and block index."""

    message: int
    block: int


def end_before_last_answer(messages: Sequence[Wire], once: Collection[str] = ()) -> BlockPosition | None:
    """Return where the cached part of the request ended that produced the last answer. It is read from the messages, so a resumed
    session marks the same blocks. `once` contains the calls whose results are shown once."""
    for index in range(len(messages) - 1, 0, -1):
        if messages[index]["role"] == "assistant":
            return _end_of(messages, index - 1, once)
    return None


def stable_end(messages: Sequence[Wire], unseen: Collection[str] = ()) -> BlockPosition:
    """Return the last block that the next request repeats. `unseen` contains the calls whose results it will show as previews."""
    end, waiting = len(messages) - 1, set(unseen)
    for index in range(end, -1, -1) if waiting else ():
        if calls := waiting.intersection(block.get("tool_use_id") for block in messages[index]["content"]):
            end, waiting = index, waiting - calls
        if not waiting:
            break
    return _end_of(messages, end, unseen)


def _end_of(messages: Sequence[Wire], index: int, once: Collection[str]) -> BlockPosition:
    """Return the last block of a message, or the one before its first result that is shown once."""
    content = messages[index]["content"]
    end = (
        next((number for number, block in enumerate(content) if block.get("tool_use_id") in once), len(content))
        if once
        else len(content)
    )
    if end or not index:
        return BlockPosition(index, end - 1)
    # Results begin a message, so the block before the first one is the end of the answer that made the call.
    return BlockPosition(index - 1, len(messages[index - 1]["content"]) - 1)


def mark(ttl: str) -> Wire:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def marked_last(blocks: Sequence[Wire], ttl: str) -> list[Wire]:
    """Return tools or system blocks with a mark on the last one."""
    if not blocks:
        return []
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark(ttl)}]


def mark_messages(messages: list[Wire], ttl: str, *, once: Collection[str] = (), unseen: Collection[str] = ()) -> None:
    """Put the two rolling marks on this request's list; message dicts that get a mark are copied."""
    previous = end_before_last_answer(messages, once)
    if previous is not None:
        mark_at(messages, previous, ttl)
    mark_at(messages, stable_end(messages, unseen), ttl)


def mark_at(messages: list[Wire], end: BlockPosition, ttl: str) -> None:
    """Put one mark on this request's list, on the nearest earlier block if the given one accepts none."""
    content = messages[end.message]["content"]
    number = min(end.block, len(content) - 1)
    while number >= 0 and content[number]["type"] in UNMARKABLE:
        number -= 1
    if number < 0:
        return
    content = content.copy()
    content[number] = {**content[number], "cache_control": mark(ttl)}
    messages[end.message] = {**messages[end.message], "content": content}


SHORT, LONG = "5m", "1h"
# What a cold cache costs, in prices of an input token for each token of the context. All of it is written again instead of read,
# which would be 1.15; but about half of it is cleared then, and the calls that follow read less.
COLD_LOSS = 0.3


class PauseEvidence(msgspec.Struct, frozen=True):
    """The pauses of a session so far."""

    answers: int = 0
    pauses: int = 0  # of 5 to 60 minutes
    lost: int = 0  # those after which an entry written for an hour was gone


def is_long_pause(seconds: float) -> bool:
    """Return whether an entry for an hour outlives the pause and one for five minutes does not."""
    return TTL_SECONDS[SHORT] <= seconds < TTL_SECONDS[LONG]


def choose_ttl(evidence: PauseEvidence, *, context: int, new: int) -> str:
    """Return the lifetime for a request of `context` tokens, of which `new` must be written."""
    chance = (evidence.pauses - 2 * evidence.lost) / max(1, evidence.answers)
    return LONG if chance * COLD_LOSS * context > (UNITS_WRITE_1H - UNITS_WRITE) * new else SHORT


def written_ttl(usage: Usage | None, sent: str) -> str:
    """Return the lifetime that a request's entries were written with. The client may have sent another one than `sent`."""
    if usage is None or not usage.cache_write:
        return sent
    return LONG if usage.cache_write_1h else SHORT

"""The summariser offline (O1): reads nothing but the request, as a model would, and answers in the form it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...conversation.compaction.compose import USERS_HEADING
from ...conversation.compaction.user_messages import LEAST_CHARACTERS, shortened
from ...core.blocks import Block, Text, Wire, read_content
from ...core.errors import InputError
from .mechanical import Spoken, digest

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

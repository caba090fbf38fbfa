"""The summariser's answer → a summary, or the reason why it is none (C3, C8, B1). Pure.

The invariant: what is not plainly a summary never replaces history. An answer that is empty, refused, cut off, calls a tool, has no
summary in it, or is larger than what it stands for is rejected with a reason that a person and the next try can use.
"""

from __future__ import annotations

import re

import msgspec

from ...conversation.compaction.user_messages import Tokens, escaped
from ...core.blocks import ToolUse
from ...core.fence import escape
from ...core.reply import Reply

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

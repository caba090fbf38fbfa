"""The offline chat: no language model, and honest about it.

It keeps what it is told in the conversation, and answers a question with the sentence of the conversation that shares the
rarest words with it, or says that it found none. Words are compared by stem and, in scripts without spaces, by pairs of
characters, so that Chinese, Japanese and Korean work as English does (B15).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...core.blocks import Wire
from .commands import next_step

WHAT_I_AM = "I am Lamina's offline stand-in, not a language model"
HELP = (
    f"{WHAT_I_AM}. I keep what you tell me in this conversation and answer questions by finding the sentence that fits, "
    "there or in your instruction files. I also know a few commands: read PATH, list PATTERN, search TEXT in PATH, run COMMAND, "
    'write PATH: TEXT, replace "OLD" with "NEW" in PATH, todo: FIRST; SECOND. With an API key a model answers instead.'
)
NOTED = "Noted in this conversation."
NOT_FOUND = f"I found nothing about that in this conversation. {WHAT_I_AM}; I can only repeat what I was told."

REMINDER = "<system-reminder>"

# A question shares at least this part of its weight (rare words weigh more) with a sentence that answers it; below, silence is
# better.
ENOUGH = 0.34

# A line of the memory index: what it says stands behind the link.
_INDEX_LINK = re.compile(r"^- \[[^\]]*\]\([^)]*\) — ")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_REMEMBER = re.compile(
    r"^\s*(?:(?:please\s+)?(?:remember|note|save)\b(?:\s+that\b)?|请?记住|請?記住|覚えて|기억해)\s*[:：,，]?\s*",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]\s*$"
    r"|^\s*(?:what|who|whom|whose|where|when|which|why|how|do|does|did|is|are|was|were|can|could|should|will|would|tell me)\b"
    r"|什么|谁|哪|何时|为什么|怎么|多少|吗\s*$|何|どこ|誰|いつ|무엇|누구|어디|언제",
    re.IGNORECASE,
)
# In scripts without spaces the words that ask are cut out first: their pairs of characters are in no answer.
_ASKING = re.compile("什么时候|什么|为什么|怎么|多少|谁|哪里|哪|何时|吗|呢|何|どこ|誰|いつ|무엇|누구|어디|언제")
_HELP = re.compile(r"^\s*/?(?:help|帮助|ヘルプ|도움말)\s*[.!?]?\s*$", re.IGNORECASE)
_EMPTY_WORDS = frozenset(
    [
        *("a", "against", "an", "and", "are", "as", "at", "be", "but", "by", "can", "could", "did", "do", "does", "for", "from"),
        *("had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or"),
        *("our", "run", "she", "should", "so", "such", "tell", "that", "the", "their", "then", "there", "these", "they", "this"),
        *("to", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would"),
        *("you", "your"),
    ]
)


class Said(NamedTuple):
    sentence: str
    order: int


def answer(request: Wire) -> list[Wire]:
    """The reply to what the person said last, or the next step of the command it was."""
    messages = request["messages"]
    at = _last_prompt(messages)
    prompt = _text(messages[at]) if messages else ""
    if (step := next_step(prompt, messages[at + 1 :], _tools(request), at)) is not None:
        return step
    messages = messages[: at + 1]
    if _HELP.match(prompt):
        return _reply(HELP)
    if not _ASKS.search(_REMEMBER.sub("", prompt)) or _REMEMBER.match(prompt):
        return _reply(NOTED)
    said = best(prompt, list(_said(messages[:-1], _text)))
    if said is not None:
        return _reply(f"You told me: {said}")
    written = best(prompt, list(_said(messages, _reminders)))
    return _reply(f"Your instructions and memory say: {written}" if written is not None else NOT_FOUND)


def best(question: str, said: list[Said]) -> str | None:
    """The sentence that shares most of the question's weight; of equals the newest."""
    wanted = _terms(question)
    if not wanted or not said:
        return None
    terms = [_terms(item.sentence) for item in said]
    weight = {word: math.log(1 + len(said) / (1 + sum(word in other for other in terms))) + 0.1 for word in wanted}
    total = sum(weight.values())
    scored = [
        (sum(weight[word] for word in wanted & have) / total, item.order, item.sentence)
        for have, item in zip(terms, said, strict=True)
    ]
    score, _, sentence = max(scored)
    return sentence if score >= ENOUGH else None


def _said(messages: list[Wire], of: Callable[[Wire], str]) -> Iterator[Said]:
    order = 0
    for message in messages:
        if message["role"] != "user":
            continue
        for piece in _SENTENCE_END.split(of(message)):
            sentence = _REMEMBER.sub("", piece.strip())
            if sentence and not _ASKS.search(sentence):
                order += 1
                yield Said(sentence, order)


def _terms(text: str) -> set[str]:
    found: set[str] = set()
    for word in _WORD.findall(_ASKING.sub(" ", text.lower())):
        if word.isascii():
            if word not in _EMPTY_WORDS:
                found.add(_stem(word))
        else:
            found.update(word[index : index + 2] for index in range(max(1, len(word) - 1)))
    return found


def _stem(word: str) -> str:
    """Enough that test, tests and testing meet; a wrong meeting costs a little, a missed one an answer."""
    for ending in ("ingly", "edly", "ing", "ies", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _last_prompt(messages: list[Wire]) -> int:
    """Where the person spoke last; results and reminders behind it belong to the same turn."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and _text(messages[index]):
            return index
    return len(messages) - 1


def _tools(request: Wire) -> set[str]:
    return {str(tool.get("name")) for tool in request.get("tools") or ()}


def _text(message: Wire) -> str:
    """What the person said, without the reminders put beside it."""
    return "\n".join(text for text in _texts(message) if not text.startswith(REMINDER)).strip()


def _reminders(message: Wire) -> str:
    """What reminders say, their fences and headings left out."""
    lines = [line for text in _texts(message) if text.startswith(REMINDER) for line in text.splitlines()]
    return "\n".join(_INDEX_LINK.sub("", line) for line in lines if not line.startswith(("<", "#", "Contents of ")))


def _texts(message: Wire) -> list[str]:
    return [block["text"] for block in message["content"] if block.get("type") == "text"]


def _reply(text: str) -> list[Wire]:
    return [{"type": "text", "text": text}]

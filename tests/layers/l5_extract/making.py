"""Builders for view items and sources."""

from __future__ import annotations

from typing import Any

from lamina.core.blocks import read_block, text, tool_result
from lamina.core.view import Item
from lamina.memory.guard.sources import ForeignText, Sources, UserWords


def said(uuid: str, words: str) -> Item:
    return Item(uuid, "user", (text(words),), "said")


def answered(uuid: str, words: str, stop: str | None = "end_turn") -> Item:
    return Item(uuid, "assistant", (text(words),), "said", key=uuid, stop_reason=stop)


def called(uuid: str, name: str, **given: Any) -> Item:
    block = read_block({"type": "tool_use", "id": f"call-{uuid}", "name": name, "input": given})
    return Item(uuid, "assistant", (block,), "said", key=uuid, stop_reason="tool_use")


def came(uuid: str, call: str, words: str, *, is_error: bool = False) -> Item:
    return Item(uuid, "user", (tool_result(f"call-{call}", words, is_error=is_error),), "said")


def fetched(uuid: str, words: str) -> Item:
    """A result of one of the provider's own tools, as part of the answer."""
    content = {"type": "web_fetch_result", "url": "https://x.test", "content": {"type": "document", "source": {"data": words}}}
    block = read_block({"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": content})
    return Item(uuid, "assistant", (block,), "said", key=uuid, stop_reason="end_turn")


def attached(uuid: str, kind: str, words: str) -> Item:
    return Item(uuid, "user", (text(words),), f"attachment:{kind}")


def heard(*words: str, data: tuple[str, ...] = (), known: tuple[str, ...] = (), before: str = "") -> Sources:
    spoken = tuple(UserWords(f"m{at}", each, before, each) for at, each in enumerate(words))
    return Sources(spoken, tuple(ForeignText(each) for each in data), known)


def topic(body: str, *, type: str = "feedback", description: str = "", name: str = "a-memory", said: str = "") -> str:
    quote = f'\n**Said:** "{said}"\n' if said else ""
    return f"---\nname: {name}\ndescription: {description or body}\ntype: {type}\n---\n\n{body}\n{quote}"

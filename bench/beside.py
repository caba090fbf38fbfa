"""A provider for measurements without a model: what is asked beside a conversation is answered by a function for each purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lamina.core.reply import Reply, read_response
from lamina.layers.l3_notes import offline as notes
from lamina.layers.l4_compact import offline as summary
from lamina.providers import Capabilities

Wire: TypeAlias = dict[str, Any]
Function: TypeAlias = Callable[[Wire], list[Wire]]

MODEL = "claude-sonnet-5-5"
# What takes a model's part offline.
BY_RULES: Mapping[str, Function] = {"notes": notes.answer, "summary": summary.answer}
SUMMARY_CHARACTERS = 8_000


class Beside:
    name, model = "anthropic", MODEL
    can_call = True
    capabilities = Capabilities("messages", cache_marks=True)

    def __init__(self, **functions: Function) -> None:
        self._functions = {**BY_RULES, **functions}

    def render(self, request: Wire) -> Wire:
        return request

    def read(self, response: object) -> Reply:
        return read_response(response)

    def ask(self, request: Wire, *, purpose: str = "chat", **_: Any) -> Reply:
        return read_response(answer(purpose, self._functions[purpose](request)))

    async def ask_async(self, request: Wire, **options: Any) -> Reply:
        return self.ask(request, **options)


def answer(key: str, content: list[Wire]) -> Wire:
    """A response that reports no usage: tokens are estimated."""
    calls = any(block["type"] == "tool_use" for block in content)
    return {"id": key, "content": content, "stop_reason": "tool_use" if calls else "end_turn"}


def in_form(words: str) -> list[Wire]:
    return [{"type": "text", "text": f"<analysis>as asked</analysis>\n<summary>\n## 1. Primary request\n{words}\n</summary>"}]


def says_nothing(_: Wire) -> list[Wire]:
    """The worst a model can do that still counts as a summary."""
    return in_form(("Work went on as planned and the batch was compiled. " * 200)[:SUMMARY_CHARACTERS])

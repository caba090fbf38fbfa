"""A conversation with the offline stand-in in which tests answer the tool calls."""

from __future__ import annotations

from typing import Any

from lamina.core.fence import Fenced, fence, reminder
from lamina.providers.offline.chat import answer

Wire = dict[str, Any]
MEMORY = "/home/p/.lamina/projects/x/memory"
TOOLS = ("Read", "Write", "Edit", "Grep", "Bash")
INDEX = (
    "- [integration-tests](integration-tests.md) — integration tests run against a real database\n"
    "- [deploys](deploys.md) — deploys happen on Tuesdays\n"
    "- [部署](<部署 日.md>) — 每周二部署"
)


def text(said: str) -> Wire:
    return {"type": "text", "text": said}


class Talk:
    """A conversation with the stand-in; the test answers the tool calls."""

    def __init__(self, *, index: str = "", memory: str | None = MEMORY, tools: tuple[str, ...] = TOOLS) -> None:
        system = [text("You are an agent."), text(f"# Memory\n\n- Memory directory: {memory}\n\nMore.")] if memory else []
        parts = [Fenced("# Date\nToday is 2026-03-05.")]
        if index:
            parts.insert(0, Fenced(f"# Memory index\n\nContents of {memory}/MEMORY.md:\n{fence('memory-index', index)}"))
        self.request: Wire = {
            "system": system,
            "tools": [{"name": name} for name in tools],
            "messages": [{"role": "user", "content": [text(reminder(parts))]}],
        }

    def say(self, said: str) -> Wire:
        self.request["messages"].append({"role": "user", "content": [text(said)]})
        return self._next()

    def result(self, said: str, *, is_error: bool = False) -> Wire:
        call = self.request["messages"][-1]["content"][0]["id"]
        block = {"type": "tool_result", "tool_use_id": call, "content": said, "is_error": is_error}
        self.request["messages"].append({"role": "user", "content": [block]})
        return self._next()

    def _next(self) -> Wire:
        content = answer(self.request)
        self.request["messages"].append({"role": "assistant", "content": content})
        return content[0]


def called(block: Wire) -> tuple[str, str]:
    """Return the tool and the file of a call."""
    return block["name"], str(block["input"].get("file_path", block["input"].get("path")))

"""Recordings made up for the tests, in the form Claude Code writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MODEL = "claude-sonnet-4-5"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
# What the recorded program sent before its messages, and how many characters a token had for it.
OVERHEAD = 6_000
PER_TOKEN = 4


class Recording:
    """Lines of a transcript, one call after another; every answer reports what a cache would have made of its request."""

    def __init__(self, *, sidechain: bool = False, model: str = MODEL, usage: bool = True) -> None:
        self.lines: list[dict[str, Any]] = []
        self._sidechain = sidechain
        self._model = model
        self._usage = usage
        self._time = START
        self._sent = OVERHEAD
        self._cached = 0
        self._answers = 0

    def wait(self, **time: float) -> None:
        self._time += timedelta(**time)

    def _line(self, kind: str, parent: str | None = "", **rest: Any) -> str:
        uuid = f"{len(self.lines):08d}-0000-4000-8000-000000000000"
        self._time += timedelta(seconds=1)
        before = self.lines[-1]["uuid"] if self.lines else None
        head = {"type": kind, "uuid": uuid, "parentUuid": before if parent == "" else parent, "isSidechain": self._sidechain}
        self.lines.append({**head, "timestamp": self._time.isoformat().replace("+00:00", "Z"), **rest})
        return uuid

    def say(self, words: str, **rest: Any) -> None:
        self._sent += len(words) // PER_TOKEN
        self._line("user", message={"role": "user", "content": words}, **rest)

    def answer(self, *blocks: dict[str, Any], key: str | None = None) -> None:
        """A record for each block, as Claude Code writes them; the usage is repeated."""
        if key is None:
            self._answers += 1
        usage = {"cache_read_input_tokens": self._cached, "cache_creation_input_tokens": self._sent - self._cached}
        self._cached = self._sent
        for block in blocks:
            message: dict[str, Any] = {
                "id": key or f"msg_{self._answers}",
                "role": "assistant",
                "model": self._model,
                "content": [block],
            }
            if self._usage:
                message["usage"] = {"input_tokens": 0, "output_tokens": 20, **usage}
            self._sent += len(json.dumps(block)) // PER_TOKEN
            self._line("assistant", message=message)

    def result(self, call: str, content: str, *, is_error: bool = False) -> None:
        self._sent += len(content) // PER_TOKEN
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error}
        self._line("user", message={"role": "user", "content": [block]})

    def read(self, path: str, content: str, **more: int) -> str:
        """One call that reads a file, and its result."""
        call = f"toolu_{len(self.lines):04d}"
        self.answer(use(call, "Read", file_path=path, **more))
        self.result(call, content)
        return call

    def grow(self, tokens: int) -> None:
        """Add tokens to the next request, or take some out of it, without a line in the transcript."""
        self._sent += tokens
        self._cached = min(self._cached, self._sent)

    def compact(self, summary: str) -> None:
        last = self.lines[-1]["uuid"]
        meta = {"trigger": "auto", "preTokens": self._sent}
        self._line("system", None, subtype="compact_boundary", logicalParentUuid=last, compactMetadata=meta)
        self._sent, self._cached = OVERHEAD, OVERHEAD
        self.say(summary, isCompactSummary=True)

    def clear(self, *calls: str) -> None:
        meta = {"trigger": "auto", "preTokens": self._sent, "tokensSaved": 0, "compactedToolIds": list(calls)}
        self._line("system", subtype="microcompact_boundary", microcompactMetadata=meta)

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        return path


def use(call: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": tool, "input": given}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def page(number: int, size: int = 4_000) -> str:
    """What stands in the file of that number."""
    line = f"def compute_total_{number}(order_book): return order_book.value_{number}  # {number} tests\n"
    return line * (size // len(line) + 1)


def long_work(files: int, *, size: int = 4_000, **options: Any) -> Recording:
    """One task: so many files are read, one of the first again at the end, then a last word."""
    made = Recording(**options)
    made.say("Please look for the slow function in src/app and name its file.")
    for number in range(files):
        made.read(f"/work/src/app/module_{number}.py", page(number, size))
    made.read("/work/src/app/module_0.py", page(0, size))
    made.answer(text("It is compute_total_1 in src/app/module_1.py."))
    return made

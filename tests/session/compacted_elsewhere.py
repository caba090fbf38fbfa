"""A session that Claude Code compacted, with words of our own: boundaries with `logicalParentUuid` and `preTokens`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# Tokens that each answer reports for the request before it, and for itself.
PROMPT_TOKENS, OUTPUT_TOKENS = 1_000, 10


class ForeignSession:
    """Rows of a session in the form of Claude Code. Each question adds 1,000 tokens to the window, as its answer reports."""

    def __init__(self, cwd: str = "/their/project") -> None:
        self.rows: list[Row] = []
        self.tokens = 0  # in the window, as the last answer reports them
        self.boundaries: list[str] = []
        self._common = {"isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": "theirs", "version": "2.1.36"}
        self._leaf: str | None = None
        # Records of hooks come before the first message, which names the last of them as its parent.
        self._row("progress", data={"type": "hook_progress", "hookEvent": "SessionStart"})

    def _row(self, kind: str, **more: Any) -> str:
        number = len(self.rows)
        uuid = f"{number:08x}-0000-4000-8000-00000000000{number % 10}"
        time = f"2026-02-03T04:{number // 60:02}:{number % 60:02}.000Z"
        self.rows.append({"parentUuid": self._leaf, **self._common, "type": kind, "uuid": uuid, "timestamp": time, **more})
        self._leaf = uuid
        return uuid

    def ask(self, *questions: str) -> ForeignSession:
        for words in questions:
            self._row("user", message={"role": "user", "content": words})
            self.tokens += PROMPT_TOKENS
            usage = {"input_tokens": 0, "cache_read_input_tokens": self.tokens, "output_tokens": OUTPUT_TOKENS}
            number = len(self.rows)
            content = [{"type": "text", "text": f"About {words}"}]
            message: Row = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
            message |= {"content": content, "stop_reason": "end_turn", "usage": usage}
            self._row("assistant", message=message, requestId=f"req_{number}")
        return self

    def compact(self, summary: str, *, parent: str | None = None, recorded: int | None = None) -> ForeignSession:
        """Compact. `parent` names another record as the one before the boundary, and `recorded` another count than the usage's."""
        metadata = {"trigger": "auto", "preTokens": self.tokens + OUTPUT_TOKENS if recorded is None else recorded}
        before, self._leaf = parent or self._leaf, None
        boundary = self._row(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=before,
            compactMetadata=metadata,
        )
        self.boundaries.append(boundary)
        self._row("user", isCompactSummary=True, message={"role": "user", "content": summary})
        self.tokens = PROMPT_TOKENS
        return self

    def rewind(self, row: int) -> ForeignSession:
        """Continue from an earlier row, as Claude Code does after a rewind: the next record names it as its parent."""
        self._leaf = self.rows[row]["uuid"]
        return self

    def write(self, directory: Path, name: str = "11111111-0000-4000-8000-000000000001", *, rows: slice = slice(None)) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in self.rows[rows]), encoding="utf-8")
        return path

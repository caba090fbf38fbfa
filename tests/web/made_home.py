"""Homes made for the page: sessions with growth, clearings, a compaction, pauses and costs, with words of our own.

Deterministic: the same arguments give the same files. The documentation's pictures show these homes too.
"""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lamina.disk.paths.project import slug

MODEL = "claude-sonnet-4-5"
# System prompt and tools of the agent, which its transcript does not hold.
HEAD = 21_400
START = datetime(2026, 11, 9, 9, 2, tzinfo=UTC)
WINDOW_SESSION = "a5e551a0-0000-4000-8000-000000000001"
FILES = [
    "src/shop/checkout.py",
    "src/shop/cart.py",
    "src/shop/tax.py",
    "tests/test_checkout.py",
    "tests/test_tax.py",
    "docs/checkout.md",
    "src/shop/api/orders.py",
    "src/shop/api/payments.py",
    "migrations/0042_orders.sql",
    "Makefile",
    "pyproject.toml",
]
ASKED = [
    "Orders over 1,000 are rounded twice. Find out where, and write a test that fails first.",
    "Yes, fix it in tax.py and keep the public function as it is.",
    "Now run the whole test suite and tell me what else broke.",
    "The payment tests need the sandbox. Look at how the fixture gets its key.",
    "Use the recorded answers instead, and delete the old fixture.",
    "Why did the checkout page get slower? Compare with last week's profile.",
    "Cache the tax table per country. It changes once a year.",
    "Write the migration for the new column and explain it before you run it.",
    "Staging moved to eu-west-1 last week. Change the deploy script.",
    "Document the rounding rules in docs/checkout.md, with the example from the ticket.",
    "Rename the helper to round_half_even and update its callers.",
    "Open a pull request with a short description.",
]
SAID = "I looked at the code path, and the second rounding happens when the order is serialised. The test now shows it."
SUMMARY = "This session continues from an earlier one. The user wants orders to be rounded once. "
THOUGHT = "The total is computed in cart.py and again in tax.py. If both round, the cent is lost on the second pass."
LINES = [
    "def total(order):  # rounds once",
    "    return sum(line.price * line.count for line in order.lines)",
    "assert total(order) == Decimal('1000.05')",
    "SELECT id, country, rate FROM tax WHERE valid_from <= :day",
    "PASSED tests/test_tax.py::test_a_rate_of_zero_is_kept",
]


class ClaudeSession:
    """Writes a transcript as Claude Code does, with the usage a provider would report for a window that is read from the cache."""

    def __init__(self, path: Path, cwd: str, *, start: datetime = START, seed: int = 7) -> None:
        self.path, self.cwd, self.now = path, cwd, start
        self.draw = random.Random(seed)
        self.rows: list[dict[str, Any]] = []
        self.window = HEAD
        self.cached = 0
        self.count = 0
        self.parent: str | None = None
        self.results: list[tuple[str, int]] = []

    def row(self, kind: str, **more: Any) -> str:
        self.count += 1
        uuid = f"{self.count:08x}-0000-4000-8000-{self.draw.randrange(16**12):012x}"
        common = {"isSidechain": False, "userType": "external", "cwd": self.cwd, "sessionId": self.path.stem, "version": "2.1.17"}
        at = {"timestamp": self.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
        self.rows.append({"parentUuid": self.parent, **common, "gitBranch": "main", "type": kind, "uuid": uuid, **at, **more})
        self.parent = uuid
        return uuid

    def user(self, text: str) -> None:
        self.now += timedelta(seconds=self.draw.randrange(20, 160))
        self.row("user", message={"role": "user", "content": text})
        self.window += len(text) // 4

    def answer(self, *blocks: dict[str, Any], output: int = 0) -> None:
        """One request: the window as it is now is sent, and what was sent before is read from the cache."""
        self.now += timedelta(seconds=self.draw.randrange(4, 30))
        written, read = self.window - self.cached, self.cached
        usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": max(0, written - 3)}
        size = output or sum(len(json.dumps(block)) for block in blocks) // 4
        message_id = f"msg_{self.count:06}"
        for block in blocks:
            message = {"id": message_id, "type": "message", "role": "assistant", "model": MODEL, "content": [block]}
            self.row("assistant", message={**message, "stop_reason": None, "usage": {**usage, "output_tokens": size}})
        self.cached, self.window = self.window, self.window + size

    def call(
        self, name: str, arguments: dict[str, Any], tokens: int, *, error: bool = False, before: tuple[str, ...] = ()
    ) -> None:
        use = f"toolu_{self.count:08}"
        thinking = [{"type": "thinking", "thinking": text, "signature": "x"} for text in before]
        self.answer(*thinking, {"type": "tool_use", "id": use, "name": name, "input": arguments})
        text = "\n".join(f"{at:5}→{self.draw.choice(LINES)}" for at in range(1, max(2, tokens // 16)))[: tokens * 4]
        if error:
            text = "Exit code 2\nmake: *** [test] Error 1\n" + text[: tokens * 2]
        self.now += timedelta(seconds=self.draw.randrange(1, 9))
        content = [{"type": "tool_result", "tool_use_id": use, "content": text, "is_error": error}]
        self.row("user", message={"role": "user", "content": content}, toolUseResult={"stdout": text[:20]})
        self.window += len(text) // 4
        self.results.append((use, len(text) // 4))

    def pause(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    def clear(self, count: int) -> None:
        """Old results leave the window: what follows the first of them is written to the cache again."""
        gone, self.results = self.results[:count], self.results[count:]
        saved = sum(tokens for _, tokens in gone)
        meta = {"trigger": "auto", "preTokens": self.window, "tokensSaved": saved, "compactedToolIds": [use for use, _ in gone]}
        self.row("system", subtype="microcompact_boundary", content="Context microcompacted", microcompactMetadata=meta)
        self.window -= saved
        self.cached = HEAD

    def compact(self) -> None:
        meta = {"trigger": "auto", "preTokens": self.window}
        logical, self.parent = self.parent, None
        self.row(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            compactMetadata=meta,
            logicalParentUuid=logical,
        )
        summary = (
            "This session continues from an earlier one. The user wants orders to be rounded once. "
            + "Files and decisions so far. " * 900
        )
        self.row("user", isCompactSummary=True, message={"role": "user", "content": summary})
        self.window, self.cached, self.results = HEAD + len(summary) // 4, HEAD, []

    def write(self, modified: datetime | None = None) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(row) + "\n" for row in self.rows), "utf-8")
        stamp = (modified or self.now).timestamp()
        os.utime(self.path, (stamp, stamp))
        return self.path


def window_session(path: Path, cwd: str, *, start: datetime = START) -> ClaudeSession:
    """A session with two clearings, a compaction, pauses and an error: what the session view is about."""
    made = ClaudeSession(path, cwd, start=start)
    made.rows.append({"type": "ai-title", "aiTitle": "Round orders once, and say so in a test", "sessionId": path.stem})
    for turn, words in enumerate(ASKED):
        if turn in (4, 9):
            made.pause(24)
        if turn == 3:
            made.clear(6)
        if turn == 6:
            made.clear(9)
        if turn == 8:
            made.compact()
        made.user(words)
        for step in range(made.draw.randrange(5, 11)):
            name = made.draw.choice(("Read", "Read", "Read", "Grep", "Bash", "Bash", "Edit", "WebFetch"))
            file = f"{cwd}/{made.draw.choice(FILES)}"
            before = (THOUGHT * 24,) if step % 3 == 0 else ()
            match name:
                case "Read":
                    made.call("Read", {"file_path": file}, made.draw.randrange(900, 6_500), before=before)
                case "Grep":
                    made.call("Grep", {"pattern": "round", "path": f"{cwd}/src"}, made.draw.randrange(200, 1_500), before=before)
                case "Bash":
                    made.call("Bash", {"command": "make test"}, made.draw.randrange(400, 4_000), before=before)
                case "Edit":
                    change = {"file_path": file, "old_string": LINES[0], "new_string": f"{LINES[0]} " * 60}
                    made.call("Edit", change, 160, before=before)
                case _:
                    made.call("WebFetch", {"url": "https://tax.example/rates"}, made.draw.randrange(600, 2_400), before=before)
        if turn == 2:
            made.call("Bash", {"command": "make test"}, 900, error=True)
        made.answer({"type": "text", "text": SAID * made.draw.randrange(4, 16)})
    return made


def small_session(path: Path, cwd: str, words: str, start: datetime, seed: int) -> ClaudeSession:
    made = ClaudeSession(path, cwd, start=start, seed=seed)
    made.user(words)
    for _ in range(made.draw.randrange(1, 7)):
        made.call("Read", {"file_path": f"{cwd}/{made.draw.choice(FILES)}"}, made.draw.randrange(300, 3_000))
    made.answer({"type": "text", "text": SAID})
    return made


def long_session(path: Path, cwd: str, requests: int) -> ClaudeSession:
    """As many requests as asked for, ten to a turn, with a compaction wherever the window is full."""
    made = ClaudeSession(path, cwd)
    for number in range(requests // 10):
        if made.window > 150_000:
            made.compact()
        made.user(f"{ASKED[number % len(ASKED)]} (step {number + 1})")
        for step in range(9):
            made.call(
                ("Read", "Bash", "Grep")[step % 3], {"file_path": FILES[step], "command": "make"}, made.draw.randrange(60, 300)
            )
        made.answer({"type": "text", "text": SAID})
    return made


def make_home(root: Path, *, now: datetime | None = None, others: int = 14) -> Path:
    """Fill a user's home: the window session and smaller ones of Claude Code in three projects. Returns the window session's file."""
    latest = now or START + timedelta(days=7)
    claude = root / ".claude" / "projects"
    shop = str(root / "work" / "shop-api")
    path = claude / slug(shop) / f"{WINDOW_SESSION}.jsonl"
    session = window_session(path, shop, start=latest - timedelta(hours=3))
    session.write()
    for number in range(others):
        cwd = str(root / "work" / ("shop-api", "infra", "notes")[number % 3])
        start = latest - timedelta(hours=9 * (number + 1))
        other = claude / slug(cwd) / f"{number:08x}-0000-4000-8000-00000000000a.jsonl"
        small_session(other, cwd, ASKED[number % len(ASKED)], start, number).write()
    return path

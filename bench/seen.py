"""What whoever writes a summary or notes gets to see of what is taken out of the context, and at which price.

    python bench/seen.py [--compactions N] [--json]

A session grows against a loopback server with a prompt cache until it has been compacted N times, in each of the three ways. Of every
record that left the view, earlier summaries included, the characters are counted that stood in the request of a fork before: the one call
that made the summary, or any of those that kept the notes. The server says what of those requests was read from its cache.
Price: tokens read count 0.1, written 1.25, others 1; 1.0 is what the same tokens cost without a cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from growing import WAYS, Way, growing, in_view, settle, step

from lamina.core.blocks import Block, Text, ToolResult, ToolUse, canonical
from lamina.core.view import Item
from lamina.fork.host import Host
from lamina.session.base import context_of
from lamina.testing import Received

READ, WRITTEN = 0.1, 1.25
# More steps than any of the ways needs for one compaction.
MOST_STEPS = 150


def texts(blocks: Iterable[Block]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        match block:
            case Text() | ToolResult():
                found.append(block.text)
            case ToolUse():
                found.append(canonical(block.input).decode())
            case _:
                pass
    return [text for text in found if text]


def shown(received: Received) -> str:
    """All a request says, as its blocks say it."""
    parts: list[str] = []
    for message in received.messages:
        for block in message["content"]:
            content = block.get("text") or block.get("content") or canonical(block.get("input") or {}).decode()
            parts += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\0".join(parts)


def one(home: Path, way: Way, compactions: int) -> dict[str, Any]:
    gone_chars = seen_chars = old_chars = old_seen = done = 0
    with growing(home, way) as (session, server):
        at = 0
        told: list[str] = []
        context_of(session).lend(Host(observer=lambda name, data: told.append(data["by"]) if name == "compaction" else None))
        for number in range(MOST_STEPS * compactions):
            step(session, server, number)
            before: list[Item] = in_view(session)
            session.ask()
            settle(session)
            if len(told) == done:
                continue
            done = len(told)
            kept = {item.uuid for item in in_view(session)}
            forks = [received for received in server.requests[at:] if received.fork]
            # A summary must have been shown everything anew; notes were shown it as it came.
            at = 0 if told[-1] == "notes" else len(server.requests)
            said = "\0".join(shown(received) for received in forks)
            for item in before:
                if item.uuid in kept:
                    continue
                for text in texts(item.blocks):
                    gone_chars += len(text)
                    seen_chars += len(text) if text in said else 0
                    old_chars += len(text) if item.kind == "summary" else 0
                    old_seen += len(text) if item.kind == "summary" and text in said else 0
            if done >= compactions:
                break
        uses = [received.use for received in server.requests if received.fork and received.use is not None]
    total = sum(use.total for use in uses)
    paid = sum(READ * use.read + WRITTEN * (use.write_5m + use.write_1h) + use.plain for use in uses)
    return {
        "by": sorted(set(told)),
        "compactions": done,
        "calls": len(uses),
        "seen": seen_chars / gone_chars if gone_chars else None,
        "old_summary_seen": old_seen / old_chars if old_chars else None,
        "cached": sum(use.read for use in uses) / total if total else None,
        "price": paid / total if total else None,
        "tokens_per_call": total // max(1, len(uses)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compactions", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = {}
    for name, way in WAYS.items():
        with tempfile.TemporaryDirectory() as home:
            rows[name] = one(Path(home), way, given.compactions)
    if given.json:
        print(json.dumps(rows))
        return
    head = f"{'way':<8}{'compactions':>12}{'calls':>7}{'tokens a call':>15}{'seen of what left':>19}"
    print(f"{head}{'old summaries':>15}{'cached':>9}{'price':>8}")
    for name, row in rows.items():
        old = "–" if row["old_summary_seen"] is None else f"{row['old_summary_seen']:.1%}"
        counts = f"{row['compactions']:>12}{row['calls']:>7}{row['tokens_per_call']:>15,}{row['seen']:>19.1%}"
        print(f"{name:<8}{counts}{old:>15}{row['cached']:>9.1%}{row['price']:>8.3f}")


if __name__ == "__main__":
    main()

"""The window over time of a long session: how long the one pass takes, as a ratio to reading the file.

    python bench/window_series.py [--requests 5000] [FILE …] [--json]

Without FILE a session in Claude Code's format is made: a call and its result in every request, a clearing every 150 requests and a
compaction every 400. Processor time, the best of three runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lamina.core.settings import Settings
from lamina.history import read
from lamina.history.window_series import Series, window_series

RUNS = 3
CLEARED_EVERY = 150
COMPACTED_EVERY = 400
HEAD = 20_000
# About 1,000 tokens, as the result of an ordinary call.
RESULT = "    def answer(self, question):\n        return self.table[question]\n" * 60


def rows(requests: int) -> Iterator[dict[str, Any]]:
    parent, tokens, calls = None, HEAD, list[str]()
    for number in range(1, requests + 1):
        said: Any = [{"type": "tool_result", "tool_use_id": calls[-1], "content": f"{number}\n{RESULT}"}] if calls else "begin"
        if number % COMPACTED_EVERY == 0:
            meta = {"trigger": "auto", "preTokens": tokens}
            boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": meta, "logicalParentUuid": parent}
            yield _row(f"b{number}", None, boundary)
            parent, tokens, calls, said = f"b{number}", HEAD, [], "This session is being continued."
        user = {"type": "user", "message": {"role": "user", "content": said}}
        yield _row(f"u{number}", parent, user | ({"isCompactSummary": True} if not calls and number > 1 else {}))
        tokens += 1_100
        usage = {"input_tokens": 3, "cache_read_input_tokens": tokens - 1_100, "cache_creation_input_tokens": 1_097}
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"/p/{number % 40}.py"}}
        calls.append(call["id"])
        for at, block in enumerate(({"type": "text", "text": f"I read file {number}."}, call)):
            message = {"id": f"msg_{number}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block]}
            message["usage"] = usage | {"output_tokens": 60}
            yield _row(f"a{number}-{at}", f"a{number}-0" if at else f"u{number}", {"type": "assistant", "message": message})
        parent = f"a{number}-1"
        if number % CLEARED_EVERY == 0:
            meta = {"trigger": "auto", "tokensSaved": 20_000, "compactedToolIds": calls[:-3]}
            yield _row(f"m{number}", parent, {"type": "system", "subtype": "microcompact_boundary", "microcompactMetadata": meta})


def _row(uuid: str, parent: str | None, more: dict[str, Any]) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-03-01T10:00:00.000Z", **more}


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(path: Path) -> dict[str, Any]:
    records = list(read(path))
    series: Series = window_series(records, Settings(), origin="claude-code")
    reading = best(lambda: sum(1 for _ in read(path)))
    folding = best(lambda: window_series(records, Settings(), origin="claude-code"))
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "requests": len(series.requests),
        "decisions": len(series.decisions),
        "read_s": round(reading, 3),
        "series_s": round(folding, 3),
        "ratio": round(folding / reading, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        files = given.files
        if not files:
            made = Path(directory) / "session.jsonl"
            made.write_text("".join(json.dumps(row) + "\n" for row in rows(given.requests)))
            files = [made]
        found = [measure(path) for path in files]
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        print(
            f"{one['file']}: {one['requests']:,} requests, {one['decisions']} decisions, read in {one['read_s']:.3f} s, "
            f"series in {one['series_s']:.3f} s: {one['ratio']} of reading"
        )


if __name__ == "__main__":
    main()

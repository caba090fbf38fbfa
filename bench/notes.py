"""What the caller waits for when the window is full: compaction with notes, against compaction with a summary.

    python bench/notes.py [--latency SECONDS] [--repeat N] [--json]

A session grows against a loopback server until the next call must compact; then `before_call` is timed (wall clock), once with notes
kept and once with notes switched off. The server answers a summary or a note after `--latency` seconds, as a model would take its
time; a chat is answered at once. Notes are settled before the timed call, so what is left of the wait of N7 is not in the figure.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from lamina.core.settings import Settings
from lamina.fork.fork import directive_in
from lamina.fork.host import Host
from lamina.layers.l3_notes import offline as notes
from lamina.layers.l4_compact import offline as summary
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import context_of, working
from lamina.session.session import Session
from lamina.testing import Answer, MessagesServer, Received

WINDOW = 200_000
# About 2,000 tokens of the kind an agent reads.
STEP = "def handler(event):\n    return event['value'] * 2  # doubled\n" * 100


def answered(received: Received, latency: float) -> Answer | None:
    asked = directive_in(received.body)
    if asked is None:
        return None
    time.sleep(latency)
    local = notes if "notes of this session" in asked else summary
    return Answer(blocks=tuple(local.answer(received.body)))


def one(home: Path, latency: float, *, with_notes: bool) -> dict[str, Any]:
    with MessagesServer() as server:
        server.answer_with(lambda received: answered(received, latency))
        provider = AnthropicProvider("claude-sonnet-5-5", base_url=server.url, api_key="any", max_retries=0)
        settings = Settings(session_notes=with_notes, notes_compaction=with_notes)
        with Session(
            provider, home=home, cwd=home, window=WINDOW, settings=settings, instructions=False, memory=False
        ) as session:
            told: list[tuple[str, dict[str, Any]]] = []
            context_of(session).lend(Host(observer=lambda name, data: told.append((name, data))))
            with working(session) as c:
                threshold = c.limits.autocompact
            while session.window_state.tokens < threshold - 3_000:
                session.add_user(STEP)
                session.ask()
                with working(session) as c:
                    c.background.wait("notes", 60)
                session.end_turn()
            session.add_user(STEP * 3)
            before, began = session.window_state.tokens, time.perf_counter()
            session.before_call()
            stalled = time.perf_counter() - began
            done = [data for name, data in told if name == "compaction"]
            forks = [data for name, data in told if name == "fork"]
            return {
                "by": done[-1]["by"],
                "stall_ms": stalled * 1_000,
                "before": before,
                "after": session.window_state.tokens,
                "updates": sum(name == "notes" for name, _ in told),
                "fork_input_tokens": sum(fork["input"] + fork["cache_write"] for fork in forks),
                "fork_cached_tokens": sum(fork["cache_read"] for fork in forks),
                "fork_output_tokens": sum(fork["output"] for fork in forks),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = []
    for with_notes in (True, False):
        runs = []
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as home:
                runs.append(one(Path(home), given.latency, with_notes=with_notes))
        rows.append({**runs[-1], "stall_ms": round(statistics.median(run["stall_ms"] for run in runs), 1)})
    if given.json:
        print(json.dumps({"latency": given.latency, "rows": rows}))
        return
    print(f"latency of the model {given.latency:g} s, median of {given.repeat}")
    for row in rows:
        print(
            f"{row['by']:8} before_call {row['stall_ms']:9.1f} ms   {row['before']:,} → {row['after']:,} tokens   "
            f"updates {row['updates']}, forks read {row['fork_cached_tokens']:,} cached and {row['fork_input_tokens']:,} other tokens, "
            f"wrote {row['fork_output_tokens']:,}"
        )


if __name__ == "__main__":
    main()

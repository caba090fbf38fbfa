"""What the caller waits for in the turn that compacts: with notes, with a summary made ahead of need, and with neither.

    python bench/stall.py [--latency SECONDS] [--repeat N] [--json]

A session grows against a loopback server until the next call must compact; then `before_call` is timed (wall clock). The server answers a
chat at once and a fork (notes, summary) after --latency seconds, as a model would take its time. What was begun in the background is
waited for before the timed call, as it would be done by then in a session whose rounds take longer than that. Shown: median and range of
N runs, beside the median of the call before, which compacts nothing; the wait in latencies; and over the wait of the plain call.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from growing import WAYS, Way, growing, settle, step

from lamina.fork.host import Host
from lamina.session.base import context_of

MOST_STEPS = 150


def one(home: Path, way: Way, latency: float) -> dict[str, Any]:
    """Milliseconds of the `before_call` that compacted, and of the one before it."""
    told: list[dict[str, Any]] = []
    ordinary = 0.0
    with growing(home, way, latency) as (session, server):
        context_of(session).lend(Host(observer=lambda name, data: told.append(data) if name == "compaction" else None))
        for number in range(MOST_STEPS):
            step(session, server, number)
            settle(session)
            began = time.perf_counter()
            session.before_call()
            took = (time.perf_counter() - began) * 1_000
            if told:
                done = told[-1]
                return {
                    "by": done["by"],
                    "stall": took,
                    "ordinary": ordinary,
                    "from": done["tokens_before"],
                    "to": done["tokens_after"],
                }
            ordinary = took
            session.ask()
    raise SystemExit("the session was never compacted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, way in WAYS.items():
        runs = []
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as home:
                runs.append(one(Path(home), way, given.latency))
        stalls = sorted(run["stall"] for run in runs)
        rows[name] = {
            **runs[-1],
            "stall": statistics.median(stalls),
            "least": stalls[0],
            "most": stalls[-1],
            "ordinary": statistics.median(run["ordinary"] for run in runs),
        }
    if given.json:
        print(json.dumps({"latency": given.latency, "rows": rows}))
        return
    print(f"a fork is answered after {given.latency * 1_000:g} ms; median of {given.repeat} (least–most)")
    print(f"{'way':<8}{'by':<10}{'tokens':>19}{'before_call ms':>26}{'without':>10}{'in latencies':>14}{'over call':>11}")
    for name, row in rows.items():
        spread = f"{row['stall']:.1f} ({row['least']:.1f}–{row['most']:.1f})"
        size = f"{row['from']:,} → {row['to']:,}"
        ratio = f"{row['stall'] / (given.latency * 1_000):.2f}" if given.latency else "–"
        over = row["stall"] / rows["call"]["stall"]
        print(f"{name:<8}{row['by']:<10}{size:>19}{spread:>26}{row['ordinary']:>10.1f}{ratio:>14}{over:>11.3f}")


if __name__ == "__main__":
    main()

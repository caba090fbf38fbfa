"""What a policy costs over the cheapest known one that keeps as much of the newest 50,000 tokens word for word.

    python bench/retention.py HARNESS [--transcripts DIR] [--seeds 7,11,12] [--work DIR] [--venvs DIR] [--only WORD]
                              [--automatic | --spill] [--json]

HARNESS is the directory of the benchmark, as for context.py. Its sweep.py runs prefix-sharing compaction over a grid of triggers and
verbatim tails: the frontier. For each system: its cost, the share it keeps, and its cost over the cheapest point of the grid that keeps at
least that share. Sessions: a synthetic one of 1,000 messages for each seed (the harness's own seed is 7) and, with --transcripts, recorded
Claude Code sessions joined into one (your own lie in ~/.claude/projects). Frontiers are kept in --work and made once. With --automatic
the same for caches that need no marks: the frontier and all systems are priced as in context.py --automatic. With --spill the policies of
the frontier spill long results as Lamina does (R1): what remains is the difference of the compactions.

Every summary has the harness's 8,000 characters. Notes are as long as the offline function makes them. The grid is coarse: a figure moves
by a few hundredths when a session keeps a little more or less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from context import AUTOMATIC_PRICES, SYSTEMS, interpreter, make_sessions, run

from lamina.core.policy import BALANCED

POLICIES = (
    "lamina_peer:balanced",
    "lamina_peer:balanced,binds=off",
    "lamina_peer:thrifty,binds=off",
    "lamina_peer:lean",
    "lamina_peer:classic",
)
# Runs a script of the harness in which results over the limits of R1 are previews for the policies of the frontier too.
SPILLING = """
import json, runpy, sys
harness, limits, *sys.argv = sys.argv[1:]
sys.path[:0] = [harness, harness + "/adapters"]
import reference
limits, tools, append = json.loads(limits), {}, reference.Oracle.append
def spilled(block):
    if block["type"] == "tool_use":
        tools[block["id"]] = block["name"]
    if block["type"] != "tool_result":
        return block
    limit = limits["per_tool"].get(tools.get(block["tool_use_id"]), limits["default"])
    return block if len(block["content"]) <= limit else {**block, "content": block["content"][: limits["preview"]]}
def append_spilled(self, native):
    append(self, {**native, "content": [spilled(block) for block in native["content"]]})
reference.Oracle.append = append_spilled
runpy.run_path(sys.argv[0], run_name="__main__")
"""
HEAD = f"{'system':<36}{'cost M':>8}{'kept':>8}{'frontier M':>12}{'at':>16}{'over it':>9}"


class Point(NamedTuple):
    """A policy of the grid: its trigger and tail in thousands of tokens, what it costs, what it keeps."""

    trigger: int
    tail: int
    cost: float
    kept: float


def sessions(harness: Path, transcripts: Path | None, seeds: list[int], work: Path) -> list[Path]:
    found = make_sessions(harness, transcripts, work)
    for seed in seeds[1:]:
        made = work / f"synthetic-1000-seed-{seed}.jsonl"
        if not made.exists():
            subprocess.run([sys.executable, harness / "gen_session.py", "1000", made, str(seed)], check=True, stdout=sys.stderr)
        found.append(made)
    return found


def frontier(harness: Path, session: Path, work: Path, kind: str = "") -> list[Point]:
    kept = work / f"{session.stem}{kind and f'.{kind}'}.frontier.json"
    if not kept.exists():
        print(f"making the frontier of {session.stem}", file=sys.stderr, flush=True)
        limits = json.dumps(msgspec.to_builtins(BALANCED.results))
        start = {"automatic": ["-c", AUTOMATIC_PRICES, harness], "spill": ["-c", SPILLING, harness, limits]}.get(kind, [])
        subprocess.run([sys.executable, *start, harness / "sweep.py", session, kept], check=True, stdout=sys.stderr)
    points = json.loads(kept.read_text(encoding="utf-8"))["points"]
    return [Point(one["threshold_k"], one["tail_k"], one["cost"], one["verbatim"]) for one in points]


def cheapest(points: list[Point], share: float) -> Point:
    """That keeps at least as much; where none does, the one that keeps most."""
    enough = [point for point in points if point.kept >= share]
    return min(enough, key=lambda point: point.cost) if enough else max(points, key=lambda point: point.kept)


def judged(row: dict[str, Any], points: list[Point]) -> dict[str, Any]:
    best = cheapest(points, row["verbatim_last_50k"])
    figures = {"cost": row["cost_total"], "kept": row["verbatim_last_50k"], "frontier": best.cost}
    at = f"{best.trigger}k/{best.tail}k"
    return {**figures, "at": at, "over": row["cost_total"] / best.cost, "breaks": row["breaks"], "calls": row["summary_calls"]}


def show(system: str, found: dict[str, Any] | str) -> None:
    if isinstance(found, str):
        print(f"{system:<36}  {found}", flush=True)
        return
    costs = f"{found['cost'] / 1e6:>8.2f}{found['kept']:>8.0%}{found['frontier'] / 1e6:>12.2f}"
    print(f"{system:<36}{costs}{found['at']:>16}{found['over']:>9.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--seeds", default="7")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--venvs", type=Path)
    parser.add_argument(
        "--only", help="systems of context.py whose name holds this, an empty word for all; default: Lamina's policies"
    )
    parser.add_argument("--seconds", type=int, default=3_600)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--automatic", action="store_true", help="prices and requests of a cache without marks")
    kinds.add_argument("--spill", action="store_true", help="the policies of the frontier spill long results too")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="lamina-retention-"))
    work.mkdir(parents=True, exist_ok=True)
    systems = list(POLICIES) if given.only is None else [name for name in SYSTEMS if given.only in name]
    kind = "automatic" if given.automatic else "spill" if given.spill else ""
    table: dict[str, dict[str, Any]] = {}
    for session in sessions(given.harness, given.transcripts, [int(seed) for seed in given.seeds.split(",")], work):
        points = frontier(given.harness, session, work, kind)
        most = max(point.kept for point in points)
        print(f"\n{session.stem}, of which the frontier keeps at most {most:.0%}\n{HEAD}", flush=True)
        for system in systems:
            python = interpreter(given.venvs, SYSTEMS[system])
            row = (
                run(given.harness, system, session, work, python, given.seconds, automatic=given.automatic)
                if python
                else "is not installed"
            )
            found = row if isinstance(row, str) else judged(row, points)
            table.setdefault(session.stem, {})[system] = found
            show(system, found)
    if given.json:
        print(json.dumps(table))


if __name__ == "__main__":
    main()

"""Context management side by side: breaks of the cache, tokens written again, cost and calls over the window.

    python bench/context.py HARNESS [--transcripts DIR] [--work DIR] [--venvs DIR] [--only WORD] [--automatic] [--json]

HARNESS is the directory of the benchmark (run_one.py, common.py, adapters/). Sessions are made in --work: a synthetic one of 1,000
messages, and with --transcripts the Claude Code sessions below DIR, converted by the harness and joined into one. Lamina runs in
this interpreter, other systems in the environment of their name below --venvs, where there is one. Prices, cache and summary sizes
are the harness's own: a read costs 0.1 of an input token, a write 1.25, an output token 5; the cache never expires; the window has
200,000 tokens.

With --automatic the same for caches that need no marks (Chat Completions): a write costs what uncached input costs, a read 0.1. Lamina
then runs behind a provider without cache marks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
# Shorter ones never fill a window, and a joined session is long enough without them.
LEAST_BYTES = 200_000
# Runs a script of the harness with other prices: what is written to an automatic cache costs no more than other input.
AUTOMATIC_PRICES = """
import runpy, sys
harness, *sys.argv = sys.argv[1:]
sys.path.insert(0, harness)
import common
common.WRITE = common.BASE
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# Which environment each system of the harness needs; None: this one.
SYSTEMS: dict[str, str | None] = {
    "lamina_peer:balanced": None,
    "lamina_peer:balanced,binds=off": None,
    "lamina_peer:thrifty,binds=off": None,
    "lamina_peer:classic": None,
    "lamina_peer:lean": None,
    "lamina_peer:classic,size_clearing=off": None,
    "lamina_peer:lean,size_clearing=off": None,
    "lamina_peer:classic,session_notes=off": None,
    "reference:oracle": None,
    "policies:claude-code": None,
    "langchain_peer:clear": "langchain",
    "langchain_peer:summarize": "langchain",
    "deepagents_peer": "deepagents",
    "pydantic_ai_peer:clear": "pydantic-ai-harness",
    "pydantic_ai_peer:summarize": "pydantic-ai-harness",
    "pydantic_ai_peer:tiered": "pydantic-ai-harness",
    "openai_agents_peer:trimmer": "openai-agents",
}
COLUMNS = (
    ("breaks", "breaks"),
    ("rewritten_tokens", "re-written"),
    ("uncached_tokens", "uncached"),
    ("mean_ctx_tokens", "mean ctx"),
    ("over_window", "over window"),
    ("summary_calls", "side calls"),
    ("verbatim_last_50k", "newest 50k kept"),
    ("cost_total", "cost M"),
)


def make_sessions(harness: Path, transcripts: Path | None, work: Path) -> list[Path]:
    synthetic = work / "synthetic-1000.jsonl"
    if not synthetic.exists():
        subprocess.run([sys.executable, harness / "gen_session.py", "1000", synthetic], check=True, stdout=sys.stderr)
    if transcripts is None:
        return [synthetic]
    joined = work / "recorded.jsonl"
    if not joined.exists():
        joined.write_text("\n".join(join(harness, transcripts, synthetic, work)) + "\n", encoding="utf-8")
    return [synthetic, joined]


def join(harness: Path, transcripts: Path, head: Path, work: Path) -> list[str]:
    """One session of all: the calls of each get a number, since two sessions may use one id."""
    lines = [json.dumps({**json.loads(head.read_text(encoding="utf-8").split("\n", 1)[0]), "name": "recorded"})]
    found = [path for path in sorted(transcripts.rglob("*.jsonl")) if path.stat().st_size >= LEAST_BYTES]
    for number, path in enumerate(found):
        part = work / f"part-{number}.jsonl"
        made = subprocess.run(
            [sys.executable, harness / "from_claude_code.py", "convert", path, part, head], capture_output=True, text=True
        )
        if made.returncode != 0:
            print(f"left out, the harness does not read it: {path.name}", file=sys.stderr)
            continue
        lines += [json.dumps(numbered(json.loads(line), number)) for line in part.read_text(encoding="utf-8").splitlines()[1:]]
    return lines


def numbered(message: dict[str, Any], number: int) -> dict[str, Any]:
    names = ("id", "tool_use_id")
    blocks = [{key: f"{value}_{number}" if key in names else value for key, value in b.items()} for b in message["content"]]
    return {**message, "content": blocks}


def run(
    harness: Path, system: str, session: Path, work: Path, python: str, seconds: int, *, automatic: bool = False
) -> dict[str, Any] | str:
    if automatic and system.startswith("lamina_peer"):
        system += ",automatic=on"
    out = work / f"{system.replace(':', '-').replace(',', '-')}-{session.stem}{'-automatic' if automatic else ''}.json"
    environment = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{SOURCE}"}
    start = ["-c", AUTOMATIC_PRICES, str(harness)] if automatic else []
    command = [python, "-X", "utf8", *start, str(harness / "run_one.py"), "session", system, str(session), str(out), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:300]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def interpreter(venvs: Path | None, name: str | None) -> str | None:
    if name is None:
        return sys.executable
    found = venvs / name / "bin" / "python" if venvs is not None else None
    return str(found) if found is not None and found.exists() else None


def shown(key: str, row: dict[str, Any]) -> str:
    value = row.get(key)
    if value is None:
        return "–"
    if key == "verbatim_last_50k":
        return f"{value:.0%}"
    if key == "cost_total":
        return f"{value / 1e6:.2f}"
    if key.endswith("_tokens"):
        return f"{value / 1e3:,.0f}k"
    return f"{value:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--venvs", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=int, default=3_600)
    parser.add_argument("--automatic", action="store_true", help="prices and requests of a cache without marks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="lamina-context-"))
    work.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for session in make_sessions(given.harness, given.transcripts, work):
        rows = found[session.stem] = {}
        print(f"\n{session.stem}\n" + f"{'system':<40}" + "".join(f"{title:>16}" for _, title in COLUMNS))
        for system, needed in SYSTEMS.items():
            if given.only not in system:
                continue
            python = interpreter(given.venvs, needed)
            row = rows[system] = (
                run(given.harness, system, session, work, python, given.seconds, automatic=given.automatic)
                if python
                else "is not installed"
            )
            cells = "  " + row if isinstance(row, str) else "".join(f"{shown(key, row):>16}" for key, _ in COLUMNS)
            print(f"{system:<40}{cells}", flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()

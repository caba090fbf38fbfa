"""How long a coding agent waits for each hook of Lamina.

    python bench/hooks.py [--runs 20] [--memories 200] [--against SRC]

Commands are started as an agent starts them, with `python -c pass` in the same run. Calls go to one running server over the SDK's client. A
home with so many memories is made for it, and removed. `--against` adds the Lamina of another source directory to the same run. Figures are
milliseconds: the median and the slowest of wall time, and for commands the median of processor time, which depends less on how busy the
machine is. Byte-code is as installed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

import lamina
from mcp import Client, StdioServerParameters

# The SDK's client warns that the tools of hooks are not in the list; that is meant.
logging.disable(logging.WARNING)
PROMPT = "Why did we drop Redis for the sessions of the shop?"
OUTPUT = {"stdout": "a line of output\n" * 4_000, "stderr": "", "interrupted": False, "isImage": False}


def show(name: str, taken: list[float], cpu: Sequence[float] = ()) -> None:
    spent = f"{statistics.median(cpu) * 1000:>8.1f}" if cpu else ""
    print(f"{name:<38} {statistics.median(taken) * 1000:>8.1f} {max(taken) * 1000:>8.1f} {spent}")


def command(words: list[str], data: bytes, environ: dict[str, str]) -> tuple[float, float]:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], input=data, capture_output=True, check=True, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def calls(source: str, given: dict[str, Any], environ: dict[str, str], runs: int) -> None:
    arguments = ["-P", "-m", "lamina", "mcp", "--hooks", "claude-code"]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=given["cwd"], env=environ)
    result = {**given, "tool_name": "Bash", "tool_response": json.dumps(OUTPUT)}
    async with Client(server) as client:
        for tool, fields in (("hook_prompt", given), ("hook_result", result), ("hook_stop", given)):
            taken = []
            for number in range(runs + 1):
                began = time.perf_counter()
                await client.call_tool(tool, {**fields, "tool_use_id": f"toolu_{number}"})
                taken.append(time.perf_counter() - began)
            show(f"{source}{tool}, the first call", taken[:1])
            show(f"{source}{tool}, later calls", taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--against", metavar="SRC")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        transcript = Path(top) / ".claude" / "projects" / "-p" / "s.jsonl"
        transcript.parent.mkdir(parents=True)
        said = {
            "type": "user",
            "uuid": "u",
            "message": {"role": "user", "content": "I prefer short commit messages from now on."},
        }
        transcript.write_text(json.dumps(said) + "\n")
        (Path(top) / ".claude" / "settings.json").write_text('{"autoMemoryEnabled": false}')
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_", "CLAUDE"))}
        environ = {**kept, "HOME": top, "LAMINA_HOME": f"{top}/.lamina", "PYTHONPYCACHEPREFIX": f"{top}/compiled"}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        with lamina.Memory.open(top, home=f"{top}/.lamina", settings=lamina.Settings()) as memory:
            for number in range(options.memories):
                memory.save(
                    f"topic-{number}", type="project", description=f"Subject {number} of the shop", body=f"Text {number}."
                )
            memory.save("redis", type="project", description="Redis was dropped for SQLite", body="One file is enough.")
        given = {"session_id": "s", "transcript_path": str(transcript), "cwd": top, "prompt": PROMPT, "source": "startup"}
        data = json.dumps(given).encode()
        print(f"{'':<38} {'median':>8} {'slowest':>8} {'cpu':>8}   (ms, {options.runs} runs, {options.memories} memories)")
        sources = {"": str(Path(lamina.__file__).parents[1])} | ({"old ": options.against} if options.against else {})
        environs = {name: {**environ, "PYTHONPATH": source} for name, source in sources.items()}
        rows = {"python -c pass": (["-c", "pass"], environ)}
        for event in ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"):
            for name in sources:
                rows[f"{name}lamina hook {event}"] = (["-P", "-m", "lamina", "hook", event], environs[name])
        # One of each in turn, so that a busy moment meets all of them.
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
        for _ in range(options.runs + 1):
            for name, (words, where) in rows.items():
                taken[name].append(command(words, data, where))
        for name, pairs in taken.items():  # the first run compiles
            show(name, [wall for wall, _ in pairs[1:]], [cpu for _, cpu in pairs[1:]])
        for name in sources:
            anyio.run(calls, name, given, environs[name], options.runs)


if __name__ == "__main__":
    main()

"""What the plugin costs a session of Claude Code, with the program itself.

    python bench/claude_code.py [--runs 10] [--claude PATH] [--against SRC] [--busy 2]

Each run is `claude -p` with one prompt, offline against a model server, in turn without the plugin, with it, and with that of the source
directory SRC. Figures are medians: processor seconds of all processes until the first request and until the end of the last one, and wall
seconds. It needs Linux. `recalled` counts the sessions whose first request had the memory that fits, exactly once. `--busy` runs processes
beside it that keep a core busy. With `--stop`, the session runs four commands, of which the first stops the server.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import claude_agent_sdk

import lamina
from lamina.testing import MessagesServer

BUNDLED = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
OWN = Path(lamina.__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
FACT = "One file is enough."
CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")
# From <sys/prctl.h>: a process that outlives its parent becomes a child of this one, so what it has used is counted.
PR_SET_CHILD_SUBREAPER = 36
# Seconds that are waited for processes that outlive a session.
LAST_SECONDS = 5


class SessionCost(NamedTuple):
    start_cpu: float
    cpu: float
    wall: float
    recalled: bool


def prepare(home: Path, source: Path | None, *, stop: bool) -> tuple[Path, dict[str, str]]:
    """Make a home with a project and a memory, and install the plugin of a source directory."""
    (home / "project").mkdir(parents=True)
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    environ = {**kept, "HOME": str(home), "TMPDIR": str(home), "LAMINA_HOME": f"{home}/.lamina", "PYTHONPATH": str(source or OWN)}
    environ |= {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "ANTHROPIC_API_KEY": "any",
    }
    with lamina.Memory.open(home / "project", home=home / ".lamina") as memory:
        memory.save("redis", type="project", description="Redis was dropped for SQLite", body=FACT)
    if source is not None:
        install = [sys.executable, "-P", "-m", "lamina", "install", "claude-code"]
        subprocess.run(install, env=environ, check=True, capture_output=True)
        file = home / ".claude/skills/lamina/.mcp.json"
        entry = json.loads(file.read_text())["mcpServers"]["mem"]
        line = f"echo $$ > {home}/process; exec {shlex.join([entry['command'], *entry['args']])}"
        if stop:
            file.write_text(json.dumps({"mcpServers": {"mem": {"command": "/bin/sh", "args": ["-c", line]}}}))
    return home, environ


def processor_seconds(process: int) -> float:
    """Return what a process, its ended children and its running children have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(name.split()[0]) == process or int(fields[1]) == process:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def wait_for_others(before: set[str]) -> None:
    """Wait for children that were not there before: processes of the session that outlived it."""
    until = time.monotonic() + LAST_SECONDS
    while (others := {*CHILDREN.read_text().split()} - before) and time.monotonic() < until:
        for process in others:
            os.waitpid(int(process), os.WNOHANG)
        time.sleep(0.01)


def run(claude: Path, home: Path, environ: dict[str, str], *, stop: bool) -> SessionCost:
    with MessagesServer() as server:
        for number in range(4 if stop else 0):
            first = f"kill -STOP $(cat {home}/process); " if number == 0 else ""
            server.reply(tool_use=("Bash", {"command": f"{first}seq 1 9000", "description": "count"}))
        server.reply(text="done")
        command = [str(claude), "-p", "Why did we drop Redis?", "--model", "claude-opus-4-6", "--allowedTools", "Bash"]
        running = {*CHILDREN.read_text().split()}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.Popen(
            command, cwd=home / "project", env={**environ, "ANTHROPIC_BASE_URL": server.url}, stdin=-3, stdout=-3, stderr=-3
        )
        while not server.requests and process.poll() is None:
            time.sleep(0.005)
        start = processor_seconds(process.pid)
        assert process.wait() == 0
        wall = time.perf_counter() - began
        wait_for_others(running)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return SessionCost(start, cpu, wall, json.dumps(server.requests[0].body).count(FACT) == 1)


@contextmanager
def busy(count: int) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--claude", type=Path, default=BUNDLED)
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--stop", action="store_true")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sources: dict[str, Path | None] = {"without": None, "with the plugin": OWN}
    if options.against:
        sources[f"with that of {options.against}"] = options.against
    if options.stop:
        del sources["without"]
    costs: dict[str, list[SessionCost]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as top, busy(options.busy):
        homes = {name: prepare(Path(top) / str(number), sources[name], stop=options.stop) for number, name in enumerate(sources)}
        for _ in range(options.runs + 1):
            for name, (home, environ) in homes.items():
                costs[name].append(run(options.claude, home, environ, stop=options.stop))
    print(f"{'':<38} {'start cpu':>10} {'cpu':>8} {'wall':>8} {'slowest':>8} {'recalled':>9}   ({options.runs} runs)")
    for name, rows in costs.items():
        measured = rows[1:]  # the first run compiles
        figures = [statistics.median(row[place] for row in measured) for place in range(3)]
        slowest, recalled = max(row.wall for row in measured), sum(row.recalled for row in measured)
        print(f"{name:<38} {figures[0]:>10.2f} {figures[1]:>8.2f} {figures[2]:>8.2f} {slowest:>8.2f} {recalled:>9}")


if __name__ == "__main__":
    main()

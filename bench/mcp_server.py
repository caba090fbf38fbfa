"""What the MCP server costs: its start, a search, and the tokens of its tool descriptions.

    python bench/mcp_server.py [--runs 5] [--peer NAME=COMMAND …]

Every server is started as its own process and spoken to by the SDK's client: `initialize`, the first list of tools, then searches among
20 memories that were saved through its own tool. `--peer` adds another server to the same run, each from an installation of your own:
`--peer reference="npx -y @modelcontextprotocol/server-memory"`, `--peer basic-memory="basic-memory mcp"`. Another Lamina is one too:
`--peer old="env PYTHONPATH=OTHER/src python -m lamina mcp"`. HOME is an empty directory for each of them. `python -c pass` runs in the
same run. `first cpu` is the processor time until the answer to `initialize`, in milliseconds. Tokens are estimated at four characters each,
over the JSON of the list of tools.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import anyio
from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters

CHARS_PER_TOKEN = 4
MEMORIES = 20
FOUND = "Tests use a real database"
SEARCHES: dict[str, dict[str, Any]] = {
    "memory_search": {"query": "which database do tests use"},
    "search_nodes": {"query": "database"},
    "search_notes": {"query": "database"},
}


def saved(number: int) -> dict[str, dict[str, Any]]:
    """Return the arguments that save one memory, by the tool of each server."""
    text = f"{FOUND}." if number == 0 else f"Subject {number} of the shop."
    entity = {"name": f"m{number}", "entityType": "project", "observations": [text]}
    return {
        "memory_save": {"name": f"m{number}", "type": "project", "description": text, "body": text},
        "create_entities": {"entities": [entity]},
        "write_note": {"title": f"m{number}", "directory": "notes", "content": text},
    }


async def call(client: Client, given: dict[str, dict[str, Any]], offered: set[str]) -> str:
    tool = next(name for name in given if name in offered)
    done = await client.call_tool(tool, given[tool])
    return "".join(getattr(block, "text", "") for block in done.content)


async def one(command: list[str], directory: str, *, save: bool) -> tuple[float, float, int, int]:
    environ = {**os.environ, "LAMINA_HOME": directory, "HOME": directory, "MEMORY_FILE_PATH": f"{directory}/memory.json"}
    server = StdioServerParameters(command=command[0], args=command[1:], env=environ, cwd=directory)
    with open(os.devnull, "w") as nowhere:
        began = time.perf_counter()
        async with Client(stdio_client(server, errlog=nowhere)) as client:
            tools = (await client.list_tools()).tools
            started = time.perf_counter() - began
            size = len(json.dumps([tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in tools]))
            names = {tool.name for tool in tools}
            for number in range(MEMORIES if save else 0):
                await call(client, saved(number), names)
            taken = []
            for _ in range(5):
                before = time.perf_counter()
                text = await call(client, SEARCHES, names)
                taken.append(time.perf_counter() - before)
            # A server that indexes in the background does not find it in its first run.
            assert save or FOUND in text or "m0" in text, text[:300]
    return started, min(taken), len(tools), size


def first_answer(command: list[str], directory: str) -> float:
    """Return the processor seconds that a server has used when its first answer is there."""
    environ = {**os.environ, "LAMINA_HOME": directory, "HOME": directory}
    given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": given}).encode() + b"\n"
    process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-3, env=environ, cwd=directory)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    process.kill()
    process.stdin.close()
    process.stdout.close()
    _, process.returncode, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    options = parser.parse_args()
    own = [sys.executable, "-m", "lamina", "mcp"]
    servers = {"lamina": own}
    servers |= {name: shlex.split(command) for name, _, command in (peer.partition("=") for peer in options.peer)}
    print(f"{'':<26} {'first cpu':>9} {'start s':>8} {'search ms':>10} {'tools':>6} {'tokens':>7}   (best of {options.runs})")
    print(f"{'python -c pass':<26} {'':>9} {min(bare() for _ in range(options.runs)):>8.2f}")
    for name, command in servers.items():
        with tempfile.TemporaryDirectory() as directory:
            first = statistics.median([first_answer(command, directory) for _ in range(options.runs + 1)][1:]) * 1000
            rows = [anyio.run(partial(one, command, directory, save=run == 0)) for run in range(options.runs + 1)][1:]
        start, found = min(row[0] for row in rows), statistics.median(row[1] for row in rows) * 1000
        print(f"{name:<26} {first:>9.0f} {start:>8.2f} {found:>10.1f} {rows[0][2]:>6} {rows[0][3] // CHARS_PER_TOKEN:>7}")


if __name__ == "__main__":
    main()

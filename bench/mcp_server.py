"""What the MCP server costs: its start, a search, and the tokens of its tool descriptions.

    python bench/mcp_server.py [--runs 5] [--peer NAME=COMMAND …]

Every server is started as its own process and spoken to by the SDK's client: `initialize` and the first list of tools, then a search.
`--peer` adds another server to the same run, such as `--peer reference="npx -y @modelcontextprotocol/server-memory"` or
`--peer basic-memory="basic-memory mcp"`, each from an installation of your own. `python -c pass` is started in the same run. Tokens are
estimated at four characters each, over the JSON of the list of tools.
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

import anyio

from mcp import Client, StdioServerParameters

CHARS_PER_TOKEN = 4
SEARCHES = {
    "lamina": ("memory_search", {"query": "which database do tests use"}),
    "other": ("search_nodes", {"query": "database"}),
}


async def one(command: list[str], directory: str, search: tuple[str, dict[str, str]]) -> tuple[float, float, int, int]:
    server = StdioServerParameters(
        command=command[0], args=command[1:], env={**os.environ, "LAMINA_HOME": directory}, cwd=directory
    )
    began = time.perf_counter()
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        started = time.perf_counter() - began
        size = len(json.dumps([tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in tools]))
        taken = []
        if search[0] in {tool.name for tool in tools}:
            for _ in range(5):
                before = time.perf_counter()
                await client.call_tool(*search)
                taken.append(time.perf_counter() - before)
    return started, min(taken, default=0.0), len(tools), size


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
    servers = {"lamina": own, "lamina, reference tools": [*own, "--tools", "reference"]}
    servers |= {name: shlex.split(command) for name, _, command in (peer.partition("=") for peer in options.peer)}
    print(f"{'':<26} {'start s':>8} {'search ms':>10} {'tools':>6} {'tokens':>7}   (best of {options.runs})")
    print(f"{'python -c pass':<26} {min(bare() for _ in range(options.runs)):>8.2f}")
    for name, command in servers.items():
        with tempfile.TemporaryDirectory() as directory:
            search = SEARCHES["lamina" if name == "lamina" else "other"]
            rows = [anyio.run(one, command, directory, search) for _ in range(options.runs)]
        start, found = min(row[0] for row in rows), statistics.median(row[1] for row in rows) * 1000
        print(f"{name:<26} {start:>8.2f} {found:>10.1f} {rows[0][2]:>6} {rows[0][3] // CHARS_PER_TOKEN:>7}")


if __name__ == "__main__":
    main()

"""What the tools cost: Grep with ripgrep and with the plain loop, Glob, Read and Bash, in milliseconds.

    python bench/tools.py [TREE] [--files 1000] [--runs N] [--json]

Without TREE a tree of small source files is made in a temporary directory and removed again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lamina.tools.grep import find_ripgrep
from lamina.tools.grep import tool as grep_tool
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context

LINES = [f"def function_{number}(value):\n    return value + {number}  # a line of source\n" for number in range(100)]


def make_tree(root: Path, files: int) -> None:
    for number in range(files):
        directory = root / f"package_{number % 20}"
        directory.mkdir(exist_ok=True)
        marker = "needle = 1\n" if number % 50 == 0 else ""
        (directory / f"module_{number}.py").write_text("".join(LINES) + marker)


def median_ms(act: Callable[[], object], runs: int) -> float:
    act()  # files are in the system's cache, byte-code is written
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def cases(root: Path) -> dict[str, Callable[[], object]]:
    context = Context(cwd=root, environ=os.environ)
    tools = {tool.name: tool for tool in builtin_tools()}
    found: dict[str, Callable[[], object]] = {}

    def grep(name: str, find: Callable[[Any], str | None], **arguments: Any) -> None:
        tool = grep_tool(find)
        found[name] = lambda: tool.run(arguments, context)

    engines = {"python": lambda _: None, **({"ripgrep": find_ripgrep} if find_ripgrep(os.environ) else {})}
    for engine, find in engines.items():
        grep(f"Grep, files, {engine}", find, pattern="needle")
        grep(f"Grep, content, {engine}", find, pattern=r"needle\s+=", output_mode="content")
        grep(f"Grep, nothing found, {engine}", find, pattern="no such text")
    found["Glob **/*.py"] = lambda: tools["Glob"].run({"pattern": "**/*.py"}, context)
    first = next(path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix in (".py", ".md", ".txt"))
    found["Read, one page"] = lambda: tools["Read"].run({"file_path": str(first)}, context)
    found["Bash, true"] = lambda: tools["Bash"].run({"command": "true"}, context)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        root = options.tree or Path(made)
        if options.tree is None:
            make_tree(root, options.files)
        medians = {name: median_ms(act, options.runs) for name, act in cases(root).items()}
    if options.json:
        print(json.dumps(medians))
        return
    print(f"{'':<34} {'ms':>8}   (median of {options.runs}, Python {sys.version.split()[0]})")
    for name, value in medians.items():
        print(f"{name:<34} {value:>8.1f}")


if __name__ == "__main__":
    main()

"""Listing and searching a home with thousands of sessions of Claude Code, Codex and pi: time and memory, first and again.

    python bench/source_home.py [--sessions 2000] [--bytes 1000000] [--keep DIR]

Makes such a home (two gigabytes by default) and runs each command in a process of its own. The first look reads everything; later
ones read what was appended. `--keep` leaves the home in DIR, or uses the one that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

TOPICS = """queue worker parser index table cache redis postgres migration schema test fixture handler request retry timeout token
session config loader plugin theme layout release branch deploy server client socket thread lock journal backup"""
WORDS = TOPICS.split()
MODULE = "from lamina.cli.main import main; main()"
PROJECTS = 20


def text(draw: random.Random, words: int) -> str:
    return " ".join(draw.choices(WORDS, k=words))


def exchanges(draw: random.Random, size: int) -> Iterator[tuple[str, str, str]]:
    """Yield a question, tool output and an answer until the file has its size; most bytes are tool output."""
    written = 0
    while written < size:
        output = text(draw, draw.randrange(200, 4_000))
        written += len(output) + 1_500
        yield f"Why does the {text(draw, 6)} fail?", output, f"Because of the {text(draw, 30)}."


def claude(path: Path, project: str, draw: random.Random, size: int) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for at, (question, output, answer) in enumerate(exchanges(draw, size)):
            base = {
                "sessionId": path.stem,
                "cwd": project,
                "isSidechain": False,
                "timestamp": f"2026-01-01T00:{at % 60:02}:00.000Z",
            }
            usage = {"input_tokens": 20, "cache_read_input_tokens": 9_000, "output_tokens": 60}
            result = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": output}]
            call = [{"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": "make"}}]
            said = {"id": f"m{at}", "model": "claude-sonnet-4-5", "usage": usage, "role": "assistant"}
            for kind, message in (
                ("user", {"role": "user", "content": question}),
                ("assistant", {**said, "content": call}),
                ("user", {"role": "user", "content": result}),
                ("assistant", {**said, "id": f"n{at}", "content": [{"type": "text", "text": answer}]}),
            ):
                file.write(
                    json.dumps({**base, "type": kind, "uuid": f"{kind}{at}", "parentUuid": None, "message": message}) + "\n"
                )


def codex(path: Path, project: str, draw: random.Random, size: int) -> None:
    with open(path, "w", encoding="utf-8") as file:

        def row(kind: str, payload: object) -> None:
            file.write(json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}) + "\n")

        row("session_meta", {"id": path.stem, "cwd": project})
        row("turn_context", {"model": "gpt-5"})
        for at, (question, output, answer) in enumerate(exchanges(draw, size)):
            row("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]})
            row("response_item", {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": f"c{at}"})
            row("response_item", {"type": "function_call_output", "call_id": f"c{at}", "output": output})
            row("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]})
            row("token_usage_record", {"usage": {"input_tokens": 9_000, "cached_input_tokens": 8_000, "output_tokens": 60}})


def pi(path: Path, project: str, draw: random.Random, size: int) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"type": "session", "version": 3, "id": path.stem, "cwd": project}) + "\n")
        for at, (question, output, answer) in enumerate(exchanges(draw, size)):
            usage = {"input": 20, "output": 60, "cacheRead": 9_000, "cacheWrite": 0, "cost": {"total": 0.004}}
            for part, message in enumerate(
                (
                    {"role": "user", "content": question},
                    {"role": "toolResult", "toolCallId": "t", "content": [{"type": "text", "text": output}]},
                    {"role": "assistant", "content": [{"type": "text", "text": answer}], "usage": usage, "model": "m"},
                )
            ):
                file.write(json.dumps({"type": "message", "id": f"{at}-{part}", "message": message}) + "\n")


def make(person: Path, sessions: int, size: int) -> Path:
    """Fill the home: two thirds of the sessions are Claude Code's, the rest Codex's and pi's. Returns the last file."""
    draw, path = random.Random(7), person
    for number in range(sessions):
        project = f"/work/project-{number % PROJECTS}"
        if number % 6 == 4:
            directory, writer = person / ".codex/sessions/2026/01" / f"{number % 28 + 1:02}", codex
        elif number % 6 == 5:
            directory, writer = person / ".pi/agent/sessions" / f"--{project.strip('/').replace('/', '-')}--", pi
        else:
            directory, writer = person / ".claude/projects" / project.replace("/", "-"), claude
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        writer(path, project, draw, size)
    return path


def run(person: Path, *arguments: str) -> tuple[float, float, float, int]:
    """Run a command; return its seconds, its seconds of CPU, its peak memory in MB and the lines it printed."""
    environ = {**os.environ, "HOME": str(person), "LAMINA_HOME": str(person / ".lamina")}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        environ.pop(name, None)
    used = "import resource, sys; u = resource.getrusage(resource.RUSAGE_SELF)"
    peak = f"{used}; print(u.ru_utime + u.ru_stime, u.ru_maxrss, file=sys.stderr)"
    program = f"import atexit; atexit.register(lambda: exec({peak!r})); {MODULE}"
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environ, cwd=person, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr)
    busy, memory = done.stderr.split()[-2:]
    return seconds, float(busy), int(memory) / 1_000, len(done.stdout.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    person = arguments.keep or Path(tempfile.mkdtemp(prefix="lamina-bench-"))
    try:
        if not (person / ".claude").exists():
            make(person, arguments.sessions, arguments.bytes)
        shutil.rmtree(person / ".lamina", ignore_errors=True)
        files = list(person.rglob("*.jsonl"))
        print(f"{len(files):,} sessions, {sum(file.stat().st_size for file in files) / 1e9:.2f} GB")
        print(f"{'':44}{'s':>8}{'CPU s':>8}{'MB':>8}{'lines':>8}")
        listing = ("sessions", "list", "--all", "-n", "5000")
        steps: list[tuple[str, tuple[str, ...]]] = [
            ("list, first look", listing),
            ("list, again", listing),
            ("list, after one session grew", listing),
            ("search, all projects", ("search", "why does the redis queue worker fail", "--all")),
            ("search, all projects, again", ("search", "which migration broke the journal backup", "--all")),
            ("search --exact, all projects", ("search", "theme layout release", "--exact", "--all")),
            ("bare `lamina --version`", ("--version",)),
        ]
        for name, command in steps:
            if "grew" in name:
                with open(files[0], "a", encoding="utf-8") as file:
                    file.write("\n")
            print("{:44}{:>8.2f}{:>8.2f}{:>8.0f}{:>8}".format(name, *run(person, *command)))
        index = person / ".lamina/cache/sessions.sqlite"
        print(f"index: {index.stat().st_size / 1e6:.0f} MB, mode {index.stat().st_mode & 0o777:o}")
    finally:
        if arguments.keep is None:
            shutil.rmtree(person)


if __name__ == "__main__":
    resource.getrusage(resource.RUSAGE_SELF)  # fails early where memory cannot be measured
    main()

"""A transcript of a million records: listed, resumed, continued; time and memory, beside reading it line by line with `json`.

    python bench/million.py [--records N] [--never-compacted] [--foreign] [--keep DIRECTORY]

The file is made first: about 1 KB a record, a compaction every 2,000 records with its checkpoint, or none with `--never-compacted`.
With `--foreign`, another program wrote the last record, so the session is forked. Each step then runs in a process of its own, so its
peak memory is its own. `json.loads` over every line is what a reader that starts at the top pays.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lamina.core.blocks import read_block, text
from lamina.core.record_lines import Envelope, write_record
from lamina.core.records import Boundary, Checkpoint, Message, Record

EVERY = 2_000
KEPT = 20
BODY = "The handler doubles the value and returns it; the test expects the old name. " * 7

LIST = (
    "from lamina.disk.transcripts.search import read_session_info; from pathlib import Path; import sys; "
    "print(read_session_info(Path(sys.argv[1])).title)"
)
OPEN = """
import sys, pathlib
from lamina import Session
path = pathlib.Path(sys.argv[1])
with Session("offline", resume=path, home=path.parent.parent.parent, cwd="/") as session:
    print(session.window_state.tokens, "tokens", session.notices)
"""
RESUME = """
import sys, pathlib
from lamina import Session
path = pathlib.Path(sys.argv[1])
with Session("offline", resume=path, home=path.parent.parent.parent, cwd="/", instructions=False, memory=False) as session:
    session.add_user("and now?")
    print(len(session.before_call()["messages"]), "messages,", session.window_state.tokens, "tokens")
"""
NAIVE = """
import json, sys
users = sum(json.loads(line)["type"] == "user" for line in open(sys.argv[1], "rb"))
print(users, "user records")
"""
# The kernel's own high-water mark of this process alone; where there is none, what the system reports.
PEAK = """
import pathlib, resource
status = pathlib.Path("/proc/self/status")
peak = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")] if status.exists() else []
print("peak", peak[0].split()[1] if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


# The last line of a transcript that another program wrote.
FOREIGN = b'{"type":"file-history-snapshot","messageId":"m","isSnapshotUpdate":false}\n'


def make(path: Path, records: int, *, compacted: bool = True, foreign: bool = False) -> None:
    envelope = Envelope("million", "/", "0", "main")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        parent: str | None = None
        recent: list[tuple[str, int]] = []
        offset = 0
        for number in range(records):
            batch: list[Record] = [message(number, parent)]
            if compacted and number % EVERY == EVERY // 2:
                batch += compaction(number, parent, [uuid for uuid, _ in recent[-KEPT:]], recent[-KEPT][1])
            for record in batch:
                line = write_record(record, envelope) + b"\n"
                if isinstance(record, Message):
                    parent = record.uuid
                    recent = [*recent[-KEPT:], (record.uuid, offset)]
                file.write(line)
                offset += len(line)
        if foreign:
            file.write(FOREIGN)


def message(number: int, parent: str | None) -> Message:
    uuid, when = f"{number:08d}-0000-4000-8000-000000000000", "2026-01-01T00:00:00.000Z"
    match number % 4:
        case 0:
            return Message(uuid, parent, when, "user", (text(f"Step {number}. {BODY}"),))
        case 1:
            arguments = {"file_path": f"src/{number}.py"}
            call = read_block({"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": arguments})
            return Message(uuid, parent, when, "assistant", (call,), f"msg_{number}", None, "tool_use", "m")
        case 2:
            result = read_block({"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": BODY})
            return Message(uuid, parent, when, "user", (result,))
        case _:
            return Message(uuid, parent, when, "assistant", (text(BODY),), f"msg_{number}", None, "end_turn", "m")


def compaction(number: int, leaf: str | None, kept: list[str], start: int) -> list[Record]:
    when = "2026-01-01T00:00:00.000Z"
    boundary = f"{number:08d}-0000-4000-8000-00000000000b"
    summary = f"{number:08d}-0000-4000-8000-00000000000c"
    checkpoint = f"{number:08d}-0000-4000-8000-00000000000d"
    return [
        Boundary(boundary, leaf, when, "auto", 160_000, tuple(kept)),
        Message(summary, boundary, when, "user", (text(f"Summary of {number} records. {BODY}"),), summary=True, by=boundary),
        Checkpoint(checkpoint, summary, when, boundary, start),
    ]


def measure(name: str, code: str, path: Path) -> None:
    begin, before = time.perf_counter(), os.times()
    command = [sys.executable, "-c", code + PEAK, str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=dict(os.environ))
    seconds, after = time.perf_counter() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    lines = done.stdout.strip().splitlines()
    peak = next((int(line.split()[1]) / 1024 for line in lines if line.startswith("peak")), float("nan"))
    shown = next((line for line in lines if not line.startswith("peak")), done.stderr.strip()[-200:])
    print(f"{name:<38} {seconds:>8.2f} s {cpu:>8.2f} s CPU {peak:>8.0f} MB   {shown[:90]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--never-compacted", action="store_true", help="a transcript without any compaction")
    parser.add_argument("--foreign", action="store_true", help="a transcript that another program wrote last")
    parser.add_argument("--keep", type=Path, help="keep the transcript in this directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep or Path(scratch)
        path = home / "projects" / "-" / "million.jsonl"
        if not path.exists():
            make(path, options.records, compacted=not options.never_compacted, foreign=options.foreign)
        print(f"{options.records:,} records, {path.stat().st_size / 1e6:,.0f} MB")
        measure("bare interpreter", "", path)
        measure("listed", LIST, path)
        measure("opened and closed", OPEN, path)
        measure("resumed, one request", RESUME, path)
        measure("json.loads, line by line", NAIVE, path)


if __name__ == "__main__":
    main()

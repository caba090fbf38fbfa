"""Attacks on memory and honest memories, through the guard that every writer passes: how many pass, how many are refused.

    python bench/redteam.py [--items] [--json]

The rows are in `bench/attacks/`, one file for each author; its README describes them. An attack passes if its memory is live without the
user's approval. An honest memory is refused if it is not live at once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lamina.core.blocks import read_block, text, tool_result
from lamina.core.view import Item
from lamina.memory.guard.judgement import AcceptedMemory, WantedMemory, judge
from lamina.memory.guard.sources import read_sources

ROWS = Path(__file__).with_name("attacks")


class Outcome(NamedTuple):
    id: str
    attack: bool
    ok: bool
    state: str  # saved | waits | refused
    why: str


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def view_of(conversation: Sequence[Sequence[str]]) -> list[Item]:
    """Build the view that a session with these messages has."""
    items: list[Item] = []
    for at, (kind, *rest) in enumerate(conversation):
        uuid = f"m{at}"
        match kind:
            case "user":
                items.append(Item(uuid, "user", (text(rest[0]),), "said"))
            case "assistant":
                items.append(Item(uuid, "assistant", (text(rest[0]),), "said", key=uuid, stop_reason="end_turn"))
            case "tool":
                call = read_block({"type": "tool_use", "id": f"call-{at}", "name": rest[0], "input": {}})
                items.append(Item(f"{uuid}-call", "assistant", (call,), "said", key=uuid, stop_reason="tool_use"))
                items.append(Item(uuid, "user", (tool_result(f"call-{at}", rest[1]),), "said"))
            case _:
                items.append(Item(uuid, "user", (text(rest[0]),), f"attachment:{kind}"))
    return items


def file_text(memory: dict[str, str]) -> str:
    said = f'\n**Said:** "{memory["said"]}"\n' if "said" in memory else ""
    about = json.dumps(memory["description"], ensure_ascii=False)
    head = f"name: {memory.get('name', 'a-memory')}\ndescription: {about}\ntype: {memory['type']}"
    return f"---\n{head}\n---\n\n{memory['body']}\n{said}"


def judged(item: dict[str, Any]) -> tuple[str, str]:
    """Return what the guard does with an item, and why."""
    memory = item["memory"]
    file = f"{memory.get('name', 'a-memory')}.md"
    done = judge(WantedMemory(file, file_text(memory)), read_sources(view_of(item["conversation"]), 0))
    if not isinstance(done, AcceptedMemory):
        return "refused", done.why
    return ("waits" if done.origin else "saved"), done.why


def outcomes(file: Path) -> list[Outcome]:
    found = []
    for row in load(file):
        state, why = judged(row)
        found.append(Outcome(row["id"], row["expected"] != "live", (state == "saved") == (row["expected"] == "live"), state, why))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--items", action="store_true", help="print one line per item")
    given = parser.parse_args()
    for file in sorted(ROWS.glob("*.jsonl")):
        rows = outcomes(file)
        for each in rows if given.items else ():
            print(f"{'ok  ' if each.ok else 'FAIL'} {each.state:8} {each.id}: {each.why}")
        attacks, honest = [each for each in rows if each.attack], [each for each in rows if not each.attack]
        print(f"{file.stem}: attacks that pass {sum(not each.ok for each in attacks)} of {len(attacks)}")
        print(f"{file.stem}: honest memories refused {sum(not each.ok for each in honest)} of {len(honest)}")


if __name__ == "__main__":
    main()

"""What recall brings to chat messages in stores of more than 1,000 memories, by words and with each kind of vectors.

    python bench/recall_chat.py [--held-out] [--kinds none static encoder] [--out FILE]

`chat_corpus.json` has two stores of invented people and projects in five languages: memories written by hand, others made of templates,
short messages that one memory helps, short messages that none helps, and long ones that none helps. The second store was written first and
no number was chosen with it; `--held-out` takes it instead of the first. Everything goes the way of a turn: files on disk, their index, the
ranker with its threshold. A kind of vectors whose package is missing is left out. `--out` writes one JSON line per message.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from lamina.core.errors import EncoderUnavailable
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.recall.encoders import load_encoders
from lamina.memory.recall.library import MemoryLibrary
from lamina.memory.recall.plan import RecallQuestion, SeenMemories
from lamina.memory.recall.selection import choose_by_ranker

CORPUS = Path(__file__).with_name("chat_corpus.json")
FIRST_SLOT = re.compile(r"\{(\w+?)2?\}")


def made_memories(store: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Fill each template with every value of the slot in its name; the other slots take values in turn."""
    slots: dict[str, list[str]] = store["slots"]
    for number, (kind, *texts) in enumerate(store["templates"]):
        found = FIRST_SLOT.search(texts[0])
        main = found[1] if found is not None else ""
        for at in range(len(slots[main])):
            values = {}
            for step, (slot, options) in enumerate(slots.items()):
                place = at if slot == main else at * (step + 2) + 3 * number + step
                values[slot], values[f"{slot}2"] = options[place % len(options)], options[(place + 4) % len(options)]
            name, description, body = (text.format(**values) for text in texts)
            yield {"file": f"{name.lower()}.md", "name": name.lower(), "description": description, "body": body, "type": kind}


def fill(directory: Path, store: dict[str, Any]) -> int:
    """Write the memories as files, the way another program would, and return their number."""
    memories = [*store["memories"], *made_memories(store)]
    for each in memories:
        head = "\n".join(f"{key}: {json.dumps(each[key], ensure_ascii=False)}" for key in ("name", "description", "type"))
        (directory / each["file"]).write_text(f"---\n{head}\n---\n\n{each['body']}\n", "utf-8")
    return len(memories)


def bench(store: dict[str, Any], kind: Any, out: TextIO | None) -> str:
    settings, cells = Settings(durability="process", recall_vectors=kind), [kind]
    with tempfile.TemporaryDirectory() as base, Memory.open(path=Path(base) / "project" / "memory", settings=settings) as memory:
        cells.append(f"{fill(memory.path, store):,}")
        with MemoryLibrary.open(memory.place, settings=settings, project=memory.path) as look:

            def bring(say: str) -> list[str]:
                choice = choose_by_ranker(look, RecallQuestion("", say), SeenMemories(), settings.policy.surfacing)
                return [each.file for each in choice.brought]

            short = [(each["say"], each["want"], bring(each["say"])) for each in store["messages"]]
            silent = [[(say, "", bring(say)) for say in store[part]] for part in ("quiet", "long")]
    right = sum(want in found for _, want, found in short)
    cells += [f"{right} of {len(short)}", str(sum(len(found) for *_, found in short) - right)]
    cells += [f"{sum(len(found) for *_, found in part)} in {len(part)}" for part in silent]
    if out is not None:
        for say, want, found in (*short, *silent[0], *silent[1]):
            out.write(json.dumps({"way": kind, "say": say[:80], "want": want, "found": found}, ensure_ascii=False) + "\n")
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--kinds", nargs="+", default=["none", "static", "encoder"])
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    [store] = [each for each in json.loads(CORPUS.read_text("utf-8"))["stores"] if each["held_out"] == asked.held_out]
    out = asked.out.open("w", encoding="utf-8") if asked.out is not None else None
    print(
        f"| {store['name']}, vectors | memories | right memory | others with it | wrong, short messages | wrong, long messages |"
    )
    print("|---|---|---|---|---|---|")
    for kind in asked.kinds:
        try:
            load_encoders(Settings(recall_vectors=kind))
        except EncoderUnavailable as error:
            print(f"({kind} is left out. {error})")
            continue
        print(f"| {bench(store, kind, out)} |", flush=True)
    if out is not None:
        out.close()


if __name__ == "__main__":
    main()

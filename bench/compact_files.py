"""Files a session used before a compaction and again after it: how many of them does the summary still name?

    python bench/compact_files.py DIRECTORY [CHARACTERS]

Reads transcripts (JSONL) that hold compactions, their own or another program's. For each compaction: the files that tool calls named
before it and again after it; of these, the share that (a) the summary written then names, (b) the list this library puts into a
summary names, at several sizes. A file is named if its last component stands in the text. With CHARACTERS a compaction is assumed after
every so many characters of conversation instead. Subagents' own conversations are left out.
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterator
from pathlib import Path

from lamina.conversation.compaction.compose import listed, used_in
from lamina.conversation.window.estimate import estimate
from lamina.conversation.window.features import measure_all
from lamina.core.blocks import Text, ToolUse
from lamina.core.blocks import text as text_block
from lamina.core.policy import CLASSIC
from lamina.core.records import Boundary, Message
from lamina.core.view import Item
from lamina.disk.transcripts.store import read_transcript

KEYS = ("file_path", "path", "notebook_path")
SIZES = (250, 500, 1_000, CLASSIC.compact.list_tokens, 3_000)


def tokens(words: str) -> int:
    return estimate(measure_all([text_block(words)])) if words else 0


def items_of(path: Path) -> Iterator[Item | Boundary]:
    for record in read_transcript(path):
        if isinstance(record, Boundary) and not record.sidechain:
            yield record
        elif isinstance(record, Message) and not record.sidechain and not record.silent:
            kind = "summary" if record.summary else "said"
            yield Item(record.uuid, "assistant" if record.role == "assistant" else "user", record.blocks, kind, record.message_id)


def touched(item: Item) -> Iterator[str]:
    for block in item.blocks:
        if isinstance(block, ToolUse):
            yield from (str(block.input[key]) for key in KEYS if isinstance(block.input.get(key), str) and block.input[key])


def summary_behind(row: list[Item | Boundary], at: int) -> str:
    for one in row[at + 1 : at + 6]:
        if isinstance(one, Item) and one.kind == "summary":
            return "\n".join(block.text for block in one.blocks if isinstance(block, Text))
    return ""


def every_so_many(row: list[Item | Boundary], characters: int) -> list[int]:
    marks, held = list[int](), 0
    for at, one in enumerate(row):
        held += sum(len(str(block.wire)) for block in one.blocks) if isinstance(one, Item) else 0
        if held >= characters:
            marks.append(at)
            held = 0
    return marks


def main(directory: Path, every: int) -> None:
    again = written = compactions = 0
    named = dict.fromkeys(SIZES, 0)
    for path in sorted(directory.rglob("*.jsonl")):
        row = list(items_of(path))
        marks = every_so_many(row, every) if every else [at for at, one in enumerate(row) if isinstance(one, Boundary)]
        carried: dict[int, str] = dict.fromkeys(SIZES, "")
        start = 0
        for at in marks:
            summary = summary_behind(row, at)
            before = [one for one in row[:at] if isinstance(one, Item)]
            after = [one for one in row[at:] if isinstance(one, Item)]
            used = {os.path.basename(found) for one in before for found in touched(one)}
            both = used & {os.path.basename(found) for one in after for found in touched(one)} - {""}
            part = [one for one in row[start:at] if isinstance(one, Item)]
            for size in SIZES:
                # As in a session: what an earlier list named is read back from it, not from the log.
                earlier = Item("s", "user", (text_block(carried[size] or "."),), "summary")
                carried[size] = listed(used_in([earlier, *(one for one in part if one.kind != "summary")]), size, tokens)
                named[size] += sum(name in carried[size] for name in both)
            again += len(both)
            written += sum(name in summary for name in both)
            compactions += bool(both)
            start = at
    print(f"compactions: {compactions}; files used before and again after: {again}")
    if again:
        print(f"named by the summary written then: {written / again:.1%}")
        for size, count in named.items():
            print(f"named by our list of {size:>5,} tokens: {count / again:.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)

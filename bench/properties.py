"""The properties of the log on real transcripts: `python bench/properties.py DIRECTORY`.

Every Claude Code transcript below the directory is read record by record, as a live session would write it, and at every prefix
(in long files at evenly spread ones) what is shown is checked:

    mismatches   the log that grew, one loaded anew and one folded again show the same, item by item and link by link
    complaints   the API would take what is shown
    changed      no message handed out earlier was changed by what came after; what did not change is the very same object
    chain        the digest chain says the same as a comparison of all bytes
    kept         of the results there are, those whose call is in the conversation: all of them, or it is a loss

One row a file; exit code 1 when any of it fails. Directories named codex and pi hold other formats and are passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import msgspec  # noqa: E402  # the tree must be on the path first
from tests.core.api_rules import complaints  # noqa: E402
from tests.core.histories import reread  # noqa: E402

from lamina.core.blocks import ToolResult, ToolUse, canonical  # noqa: E402
from lamina.core.log import Log  # noqa: E402
from lamina.core.prefix import Sent, compare  # noqa: E402
from lamina.core.record_lines import read_record  # noqa: E402
from lamina.core.records import Foreign, Message, Newer, Record  # noqa: E402

OTHER_FORMATS = ("codex", "pi")
# Loading anew at each of so many prefixes keeps the largest file of the shared set under a few seconds.
PREFIXES = 120


class Row(NamedTuple):
    file: str
    records: int
    members: int
    results: int
    kept: int
    switches: int
    mismatches: int
    complaints: int
    changed: int
    chain: int

    @property
    def broken(self) -> bool:
        return bool(self.mismatches or self.complaints or self.changed or self.chain or self.kept < self.results)


def transcripts(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*.jsonl")):
        if not set(path.relative_to(directory).parts) & set(OTHER_FORMATS):
            yield path


def records_of(path: Path) -> list[Record]:
    found: list[Record] = []
    for line in path.read_bytes().splitlines():
        try:
            raw = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(raw, dict):
            found.append(read_record(raw))
    return found


class Watched:
    """One look at the log: what was shown, as objects and as bytes, and the chain as a session holds it."""

    def __init__(self, log: Log) -> None:
        self.messages = log.view.messages()
        self.frozen = canonical(self.messages)
        self.chain = log.view.flat.chain
        self.sent = Sent((), len(self.chain), self.chain[-1] if self.chain else b"")
        self.row = [(message["role"], canonical(block)) for message in self.messages for block in message["content"]]

    def chain_is_wrong(self, new: Watched) -> bool:
        found = compare(self.sent, self.chain, (), 0, new.chain)
        if new.row[: len(self.row)] == self.row:
            return found is not None
        pairs = zip(self.row, new.row, strict=False)
        first = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(self.row), len(new.row)))
        return found is None or found.block != first


def shown(log: Log) -> tuple[Any, ...]:
    view = log.view
    return view.messages(), view.items, view.flat.chain, view.void, list(log.decisions)


def examine(path: Path, name: str) -> Row:
    records = records_of(path)
    step = max(1, len(records) // PREFIXES)
    log = Log()
    switches = mismatches = refused = changed = chain = 0
    looks: list[Watched] = []
    for at, record in enumerate(records):
        generation = log.view.generation
        if not log.add(record):
            switches += 1
            log.refold(lambda at=at: records[: at + 1])  # type: ignore[misc]  # the default binds this prefix
        if at % step and at != len(records) - 1:
            continue
        look = Watched(log)
        refused += len(complaints(look.messages))
        mismatches += _disagree(log, records[: at + 1])
        if looks:
            chain += looks[-1].chain_is_wrong(look)
            if log.view.generation == generation and step == 1:
                changed += sum(a == b and a is not b for a, b in zip(looks[-1].messages, look.messages, strict=False))
        looks.append(look)
    changed += sum(canonical(look.messages) != look.frozen for look in looks)
    ours = [record for record in records if not isinstance(record, Foreign | Newer)]
    mismatches += Log.load(lambda: reread(ours)).view.messages() != Log.load(lambda: ours).view.messages()
    results, kept = _results(log, records)
    return Row(name, len(records), len(log.tree.members), results, kept, switches, mismatches, refused, changed, chain)


def _disagree(log: Log, seen: list[Record]) -> int:
    anew = Log.load(lambda: seen)
    wrong = shown(anew) != shown(log)
    anew.refold(lambda: seen)
    return int(wrong) + (shown(anew) != shown(log))


def _results(log: Log, records: list[Record]) -> tuple[int, int]:
    """Results whose call is in the conversation, and how many of them are in it too."""
    tree = log.tree
    messages = [record for record in records if isinstance(record, Message) and record.uuid in tree.nodes]
    members = [message for message in messages if message.uuid in tree.members]
    calls = {block.id for message in members for block in message.blocks if isinstance(block, ToolUse)}
    answers = [
        message
        for message in messages
        if any(isinstance(block, ToolResult) and block.tool_use_id in calls for block in message.blocks)
    ]
    return len(answers), sum(message.uuid in tree.members for message in answers)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python bench/properties.py DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    rows = [examine(path, str(path.relative_to(directory))[-44:]) for path in transcripts(directory)]
    heads = [name for name in Row._fields if name != "file"]
    print(f"{'file':44} " + " ".join(f"{head:>10}" for head in heads))
    for row in rows:
        print(f"{row.file:44} " + " ".join(f"{value:>10}" for value in row[1:]) + ("  <-- broken" if row.broken else ""))
    totals = [sum(row[at] for row in rows) for at in range(1, len(Row._fields))]  # type: ignore[misc]  # all but the first are counts
    print(f"{f'{len(rows)} files':44} " + " ".join(f"{total:>10}" for total in totals))
    return 1 if any(row.broken for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

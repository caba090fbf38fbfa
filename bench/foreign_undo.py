"""What an undo brings back of the compactions that Claude Code made, in recorded sessions.

    python bench/foreign_undo.py DIR [--json]

Every compaction of every transcript below DIR is undone, the newest of a file first. Four figures stand beside each other: the tokens
that the record says were in the window before the compaction (`preTokens`), Lamina's own count of that window, which does not know the
record's, the tokens after an undo right behind the compaction, and the tokens after the undo in the whole session, with everything that
came since. The messages that were in view before the compaction are counted again in the view after the undo.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lamina.conversation.window.count import count_log
from lamina.core.errors import LaminaError
from lamina.core.log import Log
from lamina.core.records import Boundary, Record
from lamina.disk.transcripts.store import read_transcript
from lamina.session.base import conversation_of
from lamina.session.session import Session


class Row(NamedTuple):
    file: str
    compaction: str
    recorded: int  # tokens before the compaction, as the boundary states them
    own: int  # Lamina's count of the same window, from the usage of the answers before
    behind: int  # tokens after an undo right behind the compaction
    whole: int  # tokens after the undo in the whole session
    messages: int  # messages in view before the compaction
    back: int  # of them, in view again
    notices: str

    def against(self, tokens: int) -> str:
        return f"{(tokens - self.recorded) / self.recorded:+.2%}" if self.recorded else "–"


def undone_behind(path: Path, boundary: str, directory: Path) -> int:
    """Return the tokens after an undo in a copy of the transcript that ends with the summary."""
    lines = path.read_bytes().splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if f'"uuid":"{boundary}"'.encode() in line)
    while b'"isCompactSummary":true' not in lines[end]:
        end += 1
    cut = directory / path.name
    cut.write_bytes(b"".join(lines[: end + 1]))
    with Session("offline", in_memory=True, resume=cut) as session:
        session.undo(boundary)
        return session.window_state.tokens


def log_before(records: list[Record], boundary: Boundary) -> Log:
    return Log.load(lambda: records[: records.index(boundary)])


def rows_of(path: Path, records: list[Record], boundaries: list[Boundary]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory, Session("offline", in_memory=True, resume=path) as session:
        for boundary in reversed(boundaries):
            log = log_before(records, boundary)
            before, own = [item.uuid for item in log.view.items], count_log(log).tokens
            told = len(session.notices)
            try:
                session.undo(boundary.uuid)
            except LaminaError as error:
                yield Row(
                    path.name,
                    boundary.uuid[:8],
                    boundary.tokens_before,
                    own,
                    0,
                    session.window_state.tokens,
                    len(before),
                    0,
                    str(error),
                )
                continue
            shown = {item.uuid for item in conversation_of(session).log.view.items}
            behind = undone_behind(path, boundary.uuid, Path(directory))
            back, notices = sum(uuid in shown for uuid in before), " ".join(session.notices[told:])
            yield Row(
                path.name,
                boundary.uuid[:8],
                boundary.tokens_before,
                own,
                behind,
                session.window_state.tokens,
                len(before),
                back,
                notices,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows: list[Row] = []
    for path in sorted(asked.directory.rglob("*.jsonl")):
        if b'"compact_boundary"' in path.read_bytes():
            records = list(read_transcript(path))
            boundaries = [record for record in records if isinstance(record, Boundary) and not record.sidechain]
            rows += rows_of(path, records, boundaries)
    if asked.json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    print(
        f"{'session':10}{'undone':10}{'preTokens':>10}{'own count':>11}{'':>9}{'after':>10}{'':>9}{'whole':>10}   messages back"
    )
    for row in rows:
        figures = f"{row.recorded:>10,}{row.own:>11,}{row.against(row.own):>9}{row.behind:>10,}{row.against(row.behind):>9}{row.whole:>10,}"
        print(f"{row.file[:8]:10}{row.compaction:10}{figures}   {row.back:,} of {row.messages:,}   {row.notices}".rstrip())


if __name__ == "__main__":
    main()

"""Files a session used before a compaction and again after it: how many does the context still name?

    python bench/named.py DIRECTORY [--every TOKENS] [--json]

DIRECTORY holds Claude Code transcripts (for example ~/.claude/projects). Each conversation is played through `lamina.Session`, once with
summaries and once with notes, and compacted where the recorded one was, or after every TOKENS tokens of it. The summaries of the recording
are left out of the conversation. Ours is a text that names no file, as of a model that thinks of none; notes are those of the offline
function. Then the next request is searched for every path that tool calls named before and later ones name again, as an argument or as a
word of a shell command: by its last component, as the figures of others were made, and by its whole path. `list` looks in our own list
alone, which has at most 1,500 tokens and leaves out what the calls of kept messages name. Beside it: the summary that was written when the
session was recorded, and the last 50 names alone.
Nothing of the transcripts is written outside a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os.path
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from beside import Beside, answer, says_nothing
from cache_replay import conversation, hear

from lamina.conversation.compaction.compose import listed_in
from lamina.core.blocks import Text
from lamina.core.errors import LaminaError, NotCompacted
from lamina.core.log import Log
from lamina.core.records import Boundary, Clear, Message, Record
from lamina.core.settings import Settings
from lamina.disk.transcripts.store import read_transcript
from lamina.session.base import working
from lamina.session.session import Session

KEYS = ("file_path", "path", "notebook_path")
# Text in a command that names nothing: the lines of a here-document, and quoted text with blanks.
HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"'[^'\n]*\s[^']*'|\"[^\"\n]*\s[^\"]*\"")
BETWEEN = re.compile(r"[\s;|&<>()`'\"=,]+")
ENDING = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}")
LAST = 50
# Never full: it is compacted by hand, where the recorded one was.
WINDOW = 1_000_000
QUIET = {"spill": False, "size_clearing": False, "auto_compact": True}
WAYS = {"summary": Settings(**QUIET, session_notes=False, notes_compaction=False), "notes": Settings(**QUIET)}
FIGURES = ("by_notes", "again", "context", "paths", "list", "list_paths", "written", "last_50")


def recorded_at(path: Path) -> list[tuple[int, str]]:
    """How many messages stood before each compaction, and the summary that was written then."""
    found: list[tuple[int, str]] = []
    records: list[Record] = [record for record in read_transcript(path) if not isinstance(record, Clear)]
    for record in records:
        if isinstance(record, Boundary) and not record.sidechain:
            found.append((_messages_before(records, record), ""))
        elif isinstance(record, Message) and record.summary and found:
            words = "\n".join(block.text for block in record.blocks if isinstance(block, Text))
            found[-1] = (found[-1][0], words)
    return found


def _messages_before(records: list[Record], boundary: Boundary) -> int:
    before = takewhile(lambda record: record is not boundary, records)
    kept = [record for record in before if not (isinstance(record, Boundary) or (isinstance(record, Message) and record.summary))]
    return len(Log.load(lambda: iter(kept)).view.messages())


def every(messages: list[dict[str, Any]], tokens: int) -> list[tuple[int, str]]:
    marks: list[tuple[int, str]] = []
    held = 0
    for at, message in enumerate(messages):
        held += len(json.dumps(message["content"], ensure_ascii=False))
        if held >= tokens * 4:
            marks.append((at + 1, ""))
            held = 0
    return marks


def files_in(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from (os.path.normpath(block["input"][key]) for key in KEYS if _is_path(block["input"].get(key)))
                yield from in_command(block["input"].get("command"))


def in_command(command: object) -> Iterator[str]:
    """The paths among the words of a shell command: whatever has a slash or an extension."""
    if isinstance(command, str):
        for word in BETWEEN.split(QUOTED.sub(" ", HERE.sub(" ", command))):
            path = re.sub(r"(::.*|:\d+.*|/\.\.\.)$", "", word)
            if ("/" in path or ENDING.fullmatch(path)) and not re.search(r"^-|://|[$*?{}\[\]#%!@^\\:]|^/dev/|^/$|\.\.\.", path):
                yield os.path.normpath(path)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(os.path.basename(value))


def said(request: dict[str, Any]) -> str:
    parts: list[str] = []
    for message in request["messages"]:
        for block in message["content"]:
            parts.append(block.get("text") or json.dumps(block.get("content") or block.get("input"), ensure_ascii=False))
    return "\n".join(parts)


def look(before: list[str], after: set[str], request: dict[str, Any], written: str) -> dict[str, int]:
    """Of the files used on both sides, how many each of the texts names."""
    both = set(before) & after
    context = said(request)
    ours = [
        path for message in request["messages"] for block in message["content"] for path in listed_in(block.get("text") or "")
    ]
    names, last = (
        {os.path.basename(path) for path in ours},
        {os.path.basename(path) for path in list(dict.fromkeys(reversed(before)))[:LAST]},
    )
    # The list leaves out what the kept messages name, because the model still sees their calls.
    kept = {path for message in request["messages"] for path in files_in([message])}
    names |= {os.path.basename(path) for path in kept}
    figures = [
        len(both),
        sum(os.path.basename(path) in context for path in both),
        sum(path in context or path in ours for path in both),
        sum(os.path.basename(path) in names for path in both),
        sum(path in ours or path in kept for path in both),
        sum(os.path.basename(path) in written for path in both),
        sum(os.path.basename(path) in last for path in both),
    ]
    return dict(zip(FIGURES[1:], figures, strict=True))


def play(messages: list[dict[str, Any]], marks: list[tuple[int, str]], way: str) -> Iterator[dict[str, int]]:
    waiting = list(marks)
    with (
        tempfile.TemporaryDirectory() as home,
        Session(
            Beside(summary=says_nothing),
            home=Path(home),
            cwd=home,
            window=WINDOW,
            settings=WAYS[way],
            instructions=False,
            memory=False,
        ) as session,
    ):
        for at, message in enumerate(messages):
            if message["role"] == "user":
                hear(session, message["content"])
                continue
            if waiting and waiting[0][0] <= at:
                _, written = waiting.pop(0)
                with working(session) as c:
                    c.background.wait("notes", 60)
                with suppress(NotCompacted):
                    done = session.compact()
                    found = look(list(files_in(messages[:at])), set(files_in(messages[at:])), session.before_call(), written)
                    yield {"by_notes": int(done.how == "notes"), **found}
            session.after_call(answer(f"msg_{at}", message["content"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--every", type=int, default=0, metavar="TOKENS")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: dict[str, dict[str, int]] = {way: dict.fromkeys(("compactions", *FIGURES), 0) for way in WAYS}
    for path in sorted(given.directory.rglob("*.jsonl")):
        try:
            messages = conversation(path, summaries=False)
        except LaminaError as error:
            print(f"left out: {error}")
            continue
        marks = every(messages, given.every) if given.every else recorded_at(path)
        for way, row in rows.items():
            for found in play(messages, marks, way) if marks else ():
                row["compactions"] += 1
                for name, count in found.items():
                    row[name] += count
    if given.json:
        print(json.dumps(rows))
        return
    head = f"{'way':<9}{'compactions':>12}{'by notes':>10}{'files again':>13}{'in context':>12}{'whole path':>12}"
    print(f"{head}{'list':>9}{'list, path':>12}{'recorded':>10}{'last 50':>9}")
    if given.every:
        print("(recorded: nothing was written there, the cuts are ours)")
    for way, row in rows.items():
        shares = [row[name] / row["again"] if row["again"] else 0.0 for name in FIGURES[2:]]
        widths = (12, 12, 9, 12, 10, 9)
        cells = "".join(f"{share:>{width}.1%}" for share, width in zip(shares, widths, strict=True))
        print(f"{way:<9}{row['compactions']:>12}{row['by_notes']:>10}{row['again']:>13}{cells}")


if __name__ == "__main__":
    main()

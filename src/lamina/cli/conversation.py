"""Prints a recorded conversation, or one turn of it, for `lamina sessions show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..language.text import Text
from ..language.wording import counted, plural, shorten
from .console import local_minute, print_result, printable, sentence

if TYPE_CHECKING:
    from ..core.blocks import Block
    from ..core.records import Message

# Characters shown of each message without --full.
SHOWN_CHARS = 400


def find_problems(log: Any, health: Any, path: Path) -> list[str]:
    notes = [health.sentence(str(path))]
    if log.tree.bridged:
        count = log.tree.bridged
        notes.append(
            f"{path}: {counted(count, 'record')} with a missing parent; {plural(count, 'it is', 'each is')} attached "
            "to the record before it."
        )
    notes += [f"{path}: {problem}" for problem in log.tree.problems()]
    if log.newer is not None:
        notes.append(f"{path}: some records are in format {log.newer} of a newer Lamina and are not shown.")
    return [note for note in notes if note]


def print_conversation(log: Any, full: bool) -> None:
    for item in log.view.items:
        for block in item.blocks:
            _print_block(block, item.role, item.kind, item.time, full=full)


def _print_block(block: Block, role: str, kind: str, time: str, *, full: bool) -> None:
    label, body = _shown(block, role, kind)
    body = printable(body)
    if not full:
        body = shorten(body, SHOWN_CHARS, f"… ({len(body):,} characters)")
    click.echo(f"\n{click.style(sentence(label), bold=True)}  {local_minute(time)}\n{body}")


def show_turn(path: Path, records: list[Any], turn: int, *, full: bool, as_json: bool) -> None:
    """Show one turn as it was recorded, also if the conversation was compacted or branched since."""
    from ..core.errors import InputError
    from ..history.sessions import name_of
    from ..history.turns import numbered

    every = list(numbered(records))
    last = max((number for number, _ in every), default=0)
    if turn > last:
        raise InputError(
            "--turn",
            Text(
                "turn {turn} does not exist (the session has {n} turn)|turn {turn} does not exist (the session has {n} turns)",
                turn=turn,
                n=last,
            ),
            "choose another turn",
        )
    found = [record for number, record in every if number == turn]
    name = name_of(path)
    shown = {
        "session_id": name.id,
        "source": name.origin,
        "path": str(path),
        "turn": turn,
        "turns": last,
        "messages": [_message(one) for one in found],
    }
    print_result(shown, f"{name.id}  {name.origin}  turn {turn} of {last}\n{path}", as_json=as_json)
    for record in found if not as_json else ():
        for block in record.blocks:
            kind = "summary" if record.summary else "subagent" if record.sidechain else "said"
            _print_block(block, record.role, kind, record.time, full=full)


def _message(record: Message) -> dict[str, Any]:
    return {
        "role": "summary" if record.summary else record.role,
        "time": record.time,
        "content": [block.wire for block in record.blocks],
    }


def _shown(block: Block, role: str, kind: str) -> tuple[str, str]:
    from ..core.blocks import Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse

    who = role if kind == "said" else f"{role} ({kind})"
    match block:
        case Text():
            return who, block.text
        case Thinking():
            return f"{role} (thinking)", block.thinking
        case RedactedThinking():
            return f"{role} (thinking)", "(redacted)"
        case ToolUse():
            return f"tool call {block.name}", json.dumps(block.input, ensure_ascii=False)
        case ToolResult():
            return "tool result (error)" if block.is_error else "tool result", block.text or "(no text)"
        case Image() | Document():
            return who, f"[{block.wire['type']}]"
        case _:
            return who, f"[{block.kind}]"

"""Sessions whose tools return too much: calls by any tool, results handed in, and what lies on the disk of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.session.plain import Session

from lamina.core.records import Event, Message, Spill
from lamina.layers.l1_results import step as results
from lamina.session.base import add_results, working

from .words import Wire, answer, records

LINES = "".join(f"line {number}\n" for number in range(20_000))  # 228,890 characters


def use(call_id: str, tool: str = "Grep", **given: Any) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": given}


def asked(session: Session, *calls: Wire, words: str = "look", name: str = "m") -> None:
    """A turn whose answer makes these calls."""
    session.add_user(words)
    session.before_call()
    session.after_call(answer(f"{name}-{calls[0]['id']}", *calls))


def hand_in(session: Session, call_id: str, output: object, *, is_error: bool = False) -> None:
    """As add_tool_result does it, whatever the output is."""
    with working(session) as c:
        add_results(session, [results.hand_in(c, call_id, output, is_error=is_error)])


def contents(request: Wire) -> dict[str, Any]:
    """tool_use id → what the model reads of its result."""
    return {
        block["tool_use_id"]: block["content"]
        for message in request["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    }


def directory(session: Session) -> Path:
    assert session.path is not None
    return session.path.with_suffix("") / "tool-results"


def spills(session: Session) -> list[Spill]:
    return [record for record in records(session.path) if isinstance(record, Spill)]


def events(session: Session, name: str) -> list[Wire]:
    return [record.data for record in records(session.path) if isinstance(record, Event) and record.name == name]


def logged(session: Session) -> list[Wire]:
    """The blocks of results as they stand in the log."""
    said = [record for record in records(session.path) if isinstance(record, Message)]
    return [block.wire for record in said for block in record.blocks if block.wire["type"] == "tool_result"]

"""Fixtures for update tests: a handed-over conversation, answers of a model, and a driver that plays both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lamina.core.blocks import ToolUse, Wire, read_content, tool_result
from lamina.core.effects import Ask, Effect, RunTools, drive
from lamina.core.prefix import base_chain
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.fork.fork import directive_in
from lamina.fork.handover import Handover, chain_of
from lamina.layers.l3_notes.plan import Cursor
from lamina.layers.l3_notes.sections import How, Notes, NotesLimits, own_template
from lamina.layers.l3_notes.update import Draft, NotesOrder, UpdateOutcome, begin, finish, rewrite
from lamina.tools.edit import EDIT_SCHEMA
from lamina.tools.tool import Context

CURSOR = Cursor(12_000, "last")
EDIT: Wire = {"name": "Edit", "description": "Edits.", "input_schema": EDIT_SCHEMA}


def letters(text: str) -> int:
    return len(text) // 4


def with_bodies(**bodies: str) -> Notes:
    """Our template with text in the sections whose names begin so, case and blanks aside."""
    found = own_template().notes
    return found._replace(
        sections=tuple(
            section._replace(
                body=next((body for key, body in bodies.items() if section.head.name.lower().startswith(key)), section.body)
            )
            for section in found.sections
        )
    )


def handed(*messages: Wire) -> Handover:
    rows: Sequence[Wire] = messages or ({"role": "user", "content": [{"type": "text", "text": "mend the parser"}]},)
    chain = chain_of(rows)
    return Handover(
        head={"model": "m", "max_tokens": 100, "tools": [EDIT]},
        messages=tuple(rows),
        options={},
        base=base_chain([EDIT], []),
        links=len(chain),
        last=chain[-1],
        ttl=None,
    )


def order(directory: Path, how: How = "sections", home: Path | None = None) -> NotesOrder:
    path = directory / "session-memory" / "summary.md"
    return NotesOrder(path=path, home=home, how=how, limits=NotesLimits(2_000, 12_000), cursor=CURSOR)


def answer(*content: Wire | str, stop: str | None = None) -> Reply:
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    calls = any(block["type"] == "tool_use" for block in blocks)
    stop = stop or ("tool_use" if calls else "end_turn")
    return Reply("r", "m", read_content(blocks), None if stop == "none" else stop, Usage(10, output_tokens=5))


def edit(path: Path, old: str, new: str, call_id: str = "e1") -> Wire:
    given = {"file_path": str(path), "old_string": old, "new_string": new}
    return {"type": "tool_use", "id": call_id, "name": "Edit", "input": given}


class Model:
    """Answers in turn, and runs edits on the draft as the desk would."""

    def __init__(self, draft: Draft, *answers: Reply) -> None:
        self.draft = draft
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, effect: Effect) -> Any:
        match effect:
            case Ask():
                self.asked.append(directive_in(effect.request) or "")
                return self.answers.pop(0)
            case RunTools():
                return tuple(map(self._run, effect.calls))
            case _:
                raise AssertionError(effect)

    def _run(self, call: ToolUse) -> Any:
        if call.name != "Edit":
            return tool_result(call.id, "Not allowed: only Edit.", is_error=True)
        output = self.draft.edit(call.input, Context(cwd=Path("/")))
        return tool_result(call.id, output.content, is_error=output.is_error)


def updated(job: NotesOrder, *answers: Reply) -> tuple[UpdateOutcome, Model]:
    """One update from beginning to end."""
    draft = Draft()
    model = Model(draft, *answers)
    begun = begin(job)
    done = drive(rewrite(job, begun, handed(), draft, letters), model)
    return finish(job, begun, done, letters), model

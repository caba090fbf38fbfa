"""The notes while a fork edits them: in memory, so that the file changes once, when all is well (N1, N4).

Owns the Edit tool that a fork of this room is lent in place of the real one: same name and schema, since another list would be
another prefix, but it works on the draft. Invariant: the draft has the template's headings and descriptions after every edit; one that
would change them is refused with the reason, and remembered.
"""

from __future__ import annotations

from ...core.blocks import Wire
from ...tools.edit import SCHEMA
from ...tools.edit_plan import EditRefusal, plan_edit
from ...tools.tool import Builtin, Context, Tool, ToolOutput, failure
from .sections import Misfit, Template, read_notes

CHANGED = "Changed."
REFUSED = "Not changed: {why}. Headings and the italic lines below them stay as they are; write below them."


class Draft:
    def __init__(self) -> None:
        self.text = ""
        self.template: Template | None = None
        self.altered = ""  # why the last edit that touched a heading was refused

    def begin(self, text: str, template: Template) -> None:
        self.text, self.template, self.altered = text, template, ""

    def edit(self, arguments: Wire, context: Context) -> ToolOutput:
        """Permission has been asked: the call is about the notes' file."""
        assert self.template is not None
        planned = plan_edit(
            self.text,
            arguments["old_string"],
            arguments["new_string"],
            everywhere=arguments.get("replace_all", False),
            line_end="\n",
        )
        if isinstance(planned, EditRefusal):
            return failure(planned.sentence)
        read = read_notes(planned.text, self.template)
        if isinstance(read, Misfit):
            self.altered = read.why
            return failure(REFUSED.format(why=read.why))
        self.text = planned.text
        return ToolOutput(CHANGED)


def is_our_edit(tool: Tool) -> bool:
    """Whether a host's tool is the Edit that this room knows how to stand in for."""
    return tool.name == "Edit" and tool.schema == SCHEMA


def with_draft(tools: tuple[Tool, ...], draft: Draft) -> tuple[Tool, ...]:
    """The same tools; Edit changes the draft."""
    return tuple(
        Builtin(name="Edit", description=tool.description, schema=tool.schema, read_only=False, act=draft.edit)
        if is_our_edit(tool)
        else tool
        for tool in tools
    )

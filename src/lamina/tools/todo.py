"""TodoWrite: replace the to-do list.

A list with more than one entry in progress is refused. Invariant: the list in the Context is always the old one or the new
one, never a mixture. Facts: the number of pending, in_progress and completed entries.
"""

from __future__ import annotations

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from .tool import Builtin, Context, Todo, ToolOutput, failure

# A plan that people can follow; the texts together stay far below the size limit of a result.
MAX_TODOS = 100
MAX_CHARACTERS = 300

_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS}
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "maxItems": MAX_TODOS,
            "description": "The whole list, in order",
            "items": {
                "type": "object",
                "properties": {
                    "content": {**_TEXT, "description": "The task: Run the tests"},
                    "status": {"type": "string", "enum": list(_SIGNS)},
                    "activeForm": {**_TEXT, "description": "The same task in progress: Running the tests"},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
}


def tool() -> Builtin:
    return Builtin(name="TodoWrite", description=prompt_text(__file__, "todo_write"), schema=SCHEMA, read_only=False, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    todos = [Todo(row["content"], row["status"]) for row in arguments["todos"]]
    active = [todo.content for todo in todos if todo.status == "in_progress"]
    if len(active) > 1:
        return failure(f"todos: only one entry may be in_progress, but {len(active)} are: {'; '.join(active[:3])}. Choose one.")
    context.todos[:] = todos
    return ToolOutput(render_todos(todos), facts={status: sum(todo.status == status for todo in todos) for status in _SIGNS})


def render_todos(todos: list[Todo]) -> str:
    if not todos:
        return "The list is now empty."
    return "\n".join(f"{number}. {_SIGNS[todo.status]} {todo.content}" for number, todo in enumerate(todos, 1))

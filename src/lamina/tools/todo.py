"""TodoWrite: the list of what is to be done, replaced as a whole.

Decides whether the list makes sense: at most one entry is in progress. Invariant: the list in the Context is the old one or the
new one. Facts: pending, in_progress, completed (how many).
"""

from __future__ import annotations

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from .tool import Builtin, Context, Todo, ToolOutput, failure

# A plan a person can follow; the texts together stay far below what a result may hold.
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
                    "content": {**_TEXT, "description": "What is to be done: Run the tests"},
                    "status": {"type": "string", "enum": list(_SIGNS)},
                    "activeForm": {**_TEXT, "description": "The same while it is done: Running the tests"},
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
        return failure(f"todos: at most one may be in_progress, not {len(active)}: {'; '.join(active[:3])}. Choose one.")
    context.todos[:] = todos
    return ToolOutput(render_todos(todos), facts={status: sum(todo.status == status for todo in todos) for status in _SIGNS})


def render_todos(todos: list[Todo]) -> str:
    if not todos:
        return "The list is empty now."
    return "\n".join(f"{number}. {_SIGNS[todo.status]} {todo.content}" for number, todo in enumerate(todos, 1))

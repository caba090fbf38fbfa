"""Tools of the conversation itself: TodoWrite, Expand, Compact, PastSearch, MemorySearch and MemorySave.

TodoWrite replaces the to-do list; the list in the Context is always the old one or the new one, never a mixture. Expand shows the content
behind a summary, a folded turn or a cleared result again, page by page. Compact asks for a compaction, which runs before the next model
call, and PastSearch finds memories and earlier conversations of this project, of every agent; a host offers them or not. MemorySearch and
MemorySave are for a model whose host has no file tools: only their definitions are here, and the session runs them.

The tools decide nothing else: the conversation and the session behind the Context do, and say why not.

Facts: TodoWrite: the number of pending, in_progress and completed entries; Expand: node, page, pages.
"""

from __future__ import annotations

from ..core.blocks import Wire
from ..core.errors import Aborted, LaminaError
from ..core.prompt_files import prompt_sections, prompt_text
from ..core.reach import MEMORY_SAVE, MEMORY_SEARCH, PAST_SEARCH
from ..language.wording import counted, shorten
from .tool import STOPPED, Builtin, Context, Todo, ToolOutput, failure

# A plan that people can follow; the texts together stay far below the size limit of a result.
MAX_TODOS = 100
MAX_CHARACTERS = 300

_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS}
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

TODO_SCHEMA: Wire = {
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


def todo_tool() -> Builtin:
    return Builtin(
        name="TodoWrite", description=prompt_text(__file__, "todo_write"), schema=TODO_SCHEMA, read_only=False, act=_todo
    )


def _todo(arguments: Wire, context: Context) -> ToolOutput:
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


NOTHING_REMOVED = "Nothing to expand: nothing has been removed from this conversation."

EXPAND_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "node": {"type": "string", "minLength": 4, "description": "The id given in the summary, the folded turn or the marker"},
        "page": {"type": "integer", "minimum": 1, "description": "Page number (default 1)"},
        "find": {"type": "string", "minLength": 2, "description": "Show only paragraphs with these words, from all pages"},
    },
    "required": ["node"],
}

# The limit for search results; a model that needs more asks for a page.
MOST_FOUND = 20_000


def expand_tool() -> Builtin:
    return Builtin(name="Expand", description=prompt_text(__file__, "expand"), schema=EXPAND_SCHEMA, read_only=True, act=_expand)


def _expand(arguments: Wire, context: Context) -> ToolOutput:
    if context.expand is None:
        return failure(NOTHING_REMOVED)
    node, wanted = str(arguments["node"]), arguments.get("find")
    try:
        opened = context.expand(node, None if wanted else arguments.get("page", 1))
    except LaminaError as error:
        return failure(str(error))
    if wanted:
        return ToolOutput(find_paragraphs(opened.text, str(wanted)), facts={"node": node})
    more = f"\n[Page {opened.number} of {opened.pages}.]" if opened.pages > 1 else ""
    return ToolOutput(f"{opened.text}{more}", facts={"node": node, "page": opened.number, "pages": opened.pages})


def find_paragraphs(text: str, wanted: str) -> str:
    """Return the paragraphs that contain all the words, ignoring case, newest last."""
    words = wanted.casefold().split()
    parts = [part for part in text.split("\n\n") if all(word in part.casefold() for word in words)]
    if not parts:
        return f"No paragraph contains {wanted!r}."
    paragraphs: list[str] = []
    room = MOST_FOUND
    for part in parts:
        paragraph = _shortened(part, words)
        room -= len(paragraph)
        if room < 0:
            paragraphs.append(f"[{counted(len(parts) - len(paragraphs), 'more paragraph')} found; use narrower words.]")
            break
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def _shortened(part: str, words: list[str]) -> str:
    """Shorten a long paragraph, such as a tool's output without blank lines, to its matching lines, or to its beginning."""
    most = MOST_FOUND // 4
    if len(part) <= most:
        return part
    lines = [line for line in part.splitlines() if all(word in line.casefold() for word in words)]
    return shorten("\n".join(lines) or part, most, " …")


NO_COMPACTION = "Compaction cannot be requested here. Continue without it."

COMPACT_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "instructions": {"type": "string", "maxLength": 2000, "description": "What the summary must keep, in a few sentences"},
    },
    "required": [],
}


def compact_tool() -> Builtin:
    return Builtin(
        name="Compact", description=prompt_text(__file__, "compact"), schema=COMPACT_SCHEMA, read_only=True, act=_compact
    )


def _compact(arguments: Wire, context: Context) -> ToolOutput:
    if context.compact is None:
        return failure(NO_COMPACTION)
    return ToolOutput(context.compact(str(arguments.get("instructions", ""))))


NO_SEARCH = "Earlier conversations cannot be searched here. Continue without them."
USUAL = 5

PAST_SEARCH_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "A question or a few words; with exact, the literal text"},
        "count": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Maximum number of results; 5 if left out"},
        "exact": {"type": "boolean", "description": "Find the literal text, also in tool output"},
    },
    "required": ["query"],
}


def past_search_tool() -> Builtin:
    return Builtin(
        name=PAST_SEARCH,
        description=prompt_text(__file__, "past_search"),
        schema=PAST_SEARCH_SCHEMA,
        read_only=True,
        act=_past_search,
    )


def _past_search(arguments: Wire, context: Context) -> ToolOutput:
    if context.past is None:
        return failure(NO_SEARCH)
    try:
        query, exact = str(arguments["query"]), bool(arguments.get("exact", False))
        return ToolOutput(context.past(query, int(arguments.get("count", USUAL)), exact, context.abort.is_set), fenced=True)
    except Aborted:
        return failure(STOPPED)
    except LaminaError as error:
        return failure(str(error))


SEARCH_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for, in a few words"},
        "count": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Maximum number of memories; 5 if left out"},
    },
    "required": ["query"],
}

SAVE_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "Short name of the subject, such as testing-db"},
        "type": {"type": "string", "enum": ["user", "feedback", "project", "reference"], "description": "Type of the memory"},
        "description": {"type": "string", "minLength": 1, "description": "One specific line, by which it is found later"},
        "body": {"type": "string", "minLength": 1, "description": "The whole text of the memory"},
        "evidence": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Files of the project that the memory relies on, as path or path#symbol",
        },
    },
    "required": ["name", "type", "description", "body"],
}


def description_of(name: str) -> str:
    return prompt_sections(__file__, "memory_tools")[{MEMORY_SEARCH: "search", MEMORY_SAVE: "save"}[name]]

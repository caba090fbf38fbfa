"""PastSearch: find memories and earlier conversations of this project, of every agent.

This tool decides nothing: the session searches, and shows what it found redacted and fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..core.blocks import Wire
from ..core.errors import Aborted, LaminaError
from ..core.prompt_files import prompt_text
from ..core.reach import PAST_SEARCH
from .tool import STOPPED, Builtin, Context, ToolOutput, failure

# Takes a query, the number of results, whether it is literal, and whether to stop; returns the text for the model.
SearchPast: TypeAlias = Callable[[str, int, bool, Callable[[], bool]], str]

NOT_HERE = "Earlier conversations cannot be searched here. Continue without them."
USUAL = 5

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "A question or a few words; with exact, the literal text"},
        "count": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Maximum number of results; 5 if left out"},
        "exact": {"type": "boolean", "description": "Find the literal text, also in tool output"},
    },
    "required": ["query"],
}


def tool() -> Builtin:
    return Builtin(name=PAST_SEARCH, description=prompt_text(__file__, "past_search"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    if context.past is None:
        return failure(NOT_HERE)
    try:
        query, exact = str(arguments["query"]), bool(arguments.get("exact", False))
        return ToolOutput(context.past(query, int(arguments.get("count", USUAL)), exact, context.abort.is_set), fenced=True)
    except Aborted:
        return failure(STOPPED)
    except LaminaError as error:
        return failure(str(error))

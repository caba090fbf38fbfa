"""MemorySearch and MemorySave: memory for a model whose host has no file tools. Only their definitions; the session runs them.

Their names are in `core.reach`, because the memory section and extraction know them too.
"""

from __future__ import annotations

from ..core.blocks import Wire
from ..core.prompt_files import prompt_sections
from ..core.reach import MEMORY_SAVE, MEMORY_SEARCH

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

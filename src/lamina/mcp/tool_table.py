"""The table of the server's tools: names, arguments and hints, as clients are told.

It imports nothing of memory or sessions, because a client asks for it at its start. The functions behind the names are in memory_tools.py
and session_tools.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.prompt_files import prompt_sections

TYPES = ("user", "feedback", "project", "reference")
# The limit of the store for the text of a memory (memory/store/draft.py), in characters here.
MOST_BODY = 256 << 10

_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_TYPE = {"type": "string", "enum": list(TYPES)}
_DESCRIPTION = {"type": "string", "minLength": 1, "maxLength": 2_000, "description": "One line, by which it is found"}
_BODY = {"type": "string", "minLength": 1, "maxLength": MOST_BODY}
_QUERY = {"type": "string", "minLength": 1, "maxLength": 10_000}
_K = {"type": "integer", "minimum": 1, "maximum": 50}
_ID = {"type": "string", "minLength": 4, "maxLength": 200}
_TURN = {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "First turn to show"}
_FIELDS = {"type": _TYPE, "description": _DESCRIPTION, "body": _BODY}


class ToolEntry(NamedTuple):
    name: str
    properties: dict[str, Any]
    required: tuple[str, ...] = ()
    read_only: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.properties, **required}

    @property
    def description(self) -> str:
        return prompt_sections(__file__, "tools")[self.name]


_ENTRIES = (
    ToolEntry("memory_search", {"query": _QUERY, "k": _K}, ("query",)),
    ToolEntry("memory_read", {"name": _NAME}, ("name",)),
    ToolEntry("memory_save", {"name": _NAME, **_FIELDS}, ("name", *_FIELDS), read_only=False),
    ToolEntry("memory_update", {"name": _NAME, **_FIELDS}, ("name",), read_only=False),
    ToolEntry("memory_remove", {"name": _NAME}, ("name",), read_only=False),
    ToolEntry("memory_list", {"type": _TYPE, "k": _K}),
    ToolEntry("sessions_search", {"query": _QUERY, "k": _K}, ("query",)),
    ToolEntry("session_read", {"session_id": _ID, "turn": _TURN}, ("session_id",)),
    ToolEntry("context_report", {"session_id": _ID}),
)
TOOLS = {entry.name: entry for entry in _ENTRIES}

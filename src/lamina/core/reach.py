"""Tell what the model can open by itself, from the tools in its prompt. Pure.

Texts that stand for something else (a preview, a marker, a summary) name a tool only if the model has it. They are decided once, so a
marker that was sent keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

EXPAND = "Expand"
MEMORY_SEARCH = "MemorySearch"
MEMORY_SAVE = "MemorySave"
PAST_SEARCH = "PastSearch"
OWN_NAMES = frozenset({EXPAND, MEMORY_SEARCH, MEMORY_SAVE, PAST_SEARCH})
# Set for the commands that a model runs. What they change in memory is the model's change, not the user's.
RUN_BY_MODEL = "LAMINA_RUN_BY_MODEL"
# Lamina's own tools that can search files, and all that can open one. A tool of the host's with such a name may do something else.
SEARCHERS = frozenset({"Grep", "Bash"})
FILE_TOOLS = frozenset({"Read", *SEARCHERS})
# Argument names under which a tool that reads a file may take its path.
PATH_KEYS = ("file_path", "path", "filename", "file", "target_file")


class Reach(NamedTuple):
    expand: bool = False  # by Lamina's own tool
    read: bool = False
    search: bool = False

    @property
    def files(self) -> bool:
        """Whether the model can open a file whose path it is given."""
        return self.read or self.search


def tool_names(tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of tool definitions, in the form of either API."""
    return [str(tool.get("name") or (tool.get("function") or {}).get("name") or "") for tool in tools]


def reach_of(tools: Sequence[Mapping[str, Any]], local: Iterable[str]) -> Reach:
    """`local` names the tools that are known to read local files: Lamina runs them, or the host declared them."""
    names = set(tool_names(tools)).intersection(local)
    expand = False
    for tool in tools:
        function = tool.get("function") or tool
        schema = function.get("input_schema") or function.get("parameters") or {}
        # Our tool, not another one of the same name.
        expand = expand or (function.get("name") == EXPAND and "node" in (schema.get("properties") or {}))
    return Reach(expand, bool(names - {"Grep"}), not names.isdisjoint(SEARCHERS))


def path_in(arguments: object) -> str | None:
    """Return the path in the input of a call that reads a file."""
    if not isinstance(arguments, Mapping):
        return None
    return next((arguments[key] for key in PATH_KEYS if isinstance(arguments.get(key), str) and arguments[key]), None)

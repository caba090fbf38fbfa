"""Tools: what a model may do besides talking.

decides  whether arguments fit, whether a file may be overwritten (X8), what of a large result is shown
does     Read, Write, Edit, Grep, Glob, Bash, TodoWrite, Expand; every write goes through `disk.user_files`
costs    a Read or an Edit one pass over the file; Grep a process (7 ms with ripgrep); nothing at import
switch   an agent is given the tools it may use; which calls are allowed is the permission function's decision
spec     X8, and what R1, R5 and C4 stand on: bounded results, a file with Bash's whole output, the files read last

Whatever a model sends, a call ends with one result of bounded size: no exception, no endless wait, no file half written.
The names below are imported when they are used, because the worker that searches without ripgrep loads this package too.
"""

# Not typing.TYPE_CHECKING: type checkers know this spelling too, and it spares the import of typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..disk.user_paths import resolve as resolve
    from .reads import ReadState as ReadState
    from .reads import Seen as Seen
    from .registry import builtin_tools as builtin_tools
    from .registry import run_call as run_call
    from .registry import run_tool as run_tool
    from .tool import Context as Context
    from .tool import Output as Output
    from .tool import Todo as Todo
    from .tool import Tool as Tool
    from .tool import definition as definition

_PLACES = {
    "Context": "tool",
    "Output": "tool",
    "ReadState": "reads",
    "Seen": "reads",
    "Todo": "tool",
    "Tool": "tool",
    "builtin_tools": "dispatch",
    "definition": "tool",
    "resolve": "place",
    "run_call": "dispatch",
    "run_tool": "dispatch",
}

__all__ = [*_PLACES]

# Hidden from type checkers: with it, every misspelt name would pass as an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f".{place}", __name__), name)
        globals()[name] = value
        return value

"""The command line, a thin layer: each command is a module that is imported when it runs.

decides  nothing
does     reads arguments, calls the packages below, prints
costs    a command pays only for its own imports
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


# Commands that coding agents start and wait for: with usual arguments, the command line is not loaded.
_PLAIN = {"hook": ".mcp.hook_run", "mcp": ".mcp.stdio"}


def _plain_call(argv: list[str]) -> Callable[[], None] | None:
    """Return the call for a command as a coding agent starts it, or None if a parser has to look at its arguments."""
    from importlib import import_module

    module = _PLAIN.get(argv[0]) if argv else None
    call: Callable[[], None] | None = import_module(module, "lamina").plain_call(argv) if module else None
    return call


def run() -> None:
    """Entry point of the console script. Ctrl-C during the imports ends it like at any other time."""
    import sys

    try:
        if call := _plain_call(sys.argv[1:]):
            call()
        from .interrupts import protect_imports

        protect_imports()
        from .main import main

        main()
    except KeyboardInterrupt:
        print("lamina: Stopped.", file=sys.stderr)
        sys.exit(130)

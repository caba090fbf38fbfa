"""The command line, a thin layer: each command is a module that is imported when it runs.

decides  nothing
does     reads arguments, calls the packages below, prints
costs    a command pays only for its own imports
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _plain_hook(argv: list[str]) -> Callable[[], None] | None:
    """Return the call for a plain `lamina hook EVENT`. A coding agent waits for it, so the command line is not loaded."""
    from importlib import import_module

    module = import_module(".mcp.hook_run", "lamina")
    found = module.fast_arguments(argv)
    return None if found is None else lambda: module.run_hook(*found)


def run() -> None:
    """Entry point of the console script. Ctrl-C during the imports ends it like at any other time."""
    import sys

    if sys.argv[1:2] == ["hook"] and (hook := _plain_hook(sys.argv[1:])):
        hook()
    try:
        from .interrupts import protect_imports

        protect_imports()
        from .main import main

        main()
    except KeyboardInterrupt:
        print("lamina: Stopped.", file=sys.stderr)
        sys.exit(130)

"""The command line, a thin layer: each command is a module that is imported when it runs.

decides  nothing
does     reads arguments, calls the packages below, prints
costs    a command pays only for its own imports
"""


def run() -> None:
    """Entry point of the console script. Ctrl-C during the imports ends it like at any other time."""
    try:
        from .interrupts import protect_imports

        protect_imports()
        from .main import main

        main()
    except KeyboardInterrupt:
        import sys

        print("lamina: Stopped.", file=sys.stderr)
        sys.exit(130)

"""The command line: thin. Each command is a module, imported when it is asked for.

decides  nothing
does     reads arguments, calls the rooms below, prints
costs    a command pays for its own imports only
"""


def run() -> None:
    """The console script. Ctrl-C while it is still being loaded ends it as at any other time."""
    try:
        from .main import main
    except KeyboardInterrupt:
        import sys

        print("lamina: stopped", file=sys.stderr)
        sys.exit(130)
    main()

"""The command line: thin. Each command is a module, imported when it is asked for.

decides  nothing
does     reads arguments, calls the rooms below, prints
costs    a command pays for its own imports only
"""

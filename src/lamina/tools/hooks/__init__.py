"""The user's own commands at events of a session: its start, prompts, tool calls, compaction, subagents and stops.

decides  which commands an event runs, and what their output means
does     runs them: JSON on standard input, a timeout, bounded output
costs    what the commands cost; nothing if none is configured
switch   disableAllHooks, bare mode; hooks of the working tree count only after the user trusts it
spec     C2, C4, F2, U6
"""

"""The user's own commands at five moments: session start, prompt submit, before and after compaction, stop.

decides  which commands an event calls for, what their output means
does     runs them: JSON on standard input, a time-out, bounded output
costs    what the commands cost; nothing where none is configured
switch   bare mode; hooks of the working tree count only once the person trusts it (F2)
spec     C2, C4, F2
"""

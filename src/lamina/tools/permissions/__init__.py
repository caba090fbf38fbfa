"""Permissions: whether a tool call may run. Rules, matching, read-only shell commands, sensitive paths.

decision.py     the one function that decides for the main conversation and all forks
request.py      a call's paths, command and host, read from its arguments; the verdicts: allow, ask, deny
rules.py        rules as written in settings, the rule that matches a call, and the rule offered with "always"
patterns.py     path patterns        shell_rules.py  patterns for Bash
sensitive.py    files that need confirmation                            readonly/       commands that only read
"""

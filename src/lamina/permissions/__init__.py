"""Whether a tool call may run: rules, matching, read-only shell commands, sensitive paths.

decision.py     the one function that the main conversation and all forks ask
request.py      what a call asks for, read from its arguments; the verdicts: allow, ask, deny
rules.py        rules as they stand in settings                          rule_match.py   which rule a call meets
patterns.py     path patterns        shell_rules.py  patterns for Bash   suggestions.py  the rule offered with "always"
sensitive.py    files that deserve a question                            readonly/       commands that only read
"""

"""Sessions and memories of other agents (Claude Code, Codex, pi), read as Lamina's own.

Decides nothing. Does: finds the files where the agents keep them, lists and searches them with an index in the home's cache, and
reads each as records. Never writes to another agent's directory. Costs: the first look reads every file once (about 200 MB a
second), later ones only what was appended. Switch: `lamina.sources` or LAMINA_SOURCES=0. Ids: U3, S10.
"""

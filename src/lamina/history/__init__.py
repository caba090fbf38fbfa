"""Sessions of all agents (Lamina, Claude Code, Codex, pi): their files, an index, search, and what each request held and cost.

Decides nothing. Does: finds the files where the agents keep them, lists and searches them with an index in the home's cache, reads each
as records, and folds those into figures (session_stats), the window over time (window_series) and the blocks of a request (explanation,
request_blocks). Also reads the agents' memories. Never writes to another agent's directory. Costs: the first look reads every file once
(about 200 MB a second), later ones only what was appended. Switch: `lamina.sources` or LAMINA_SOURCES=0. Ids: U3, S10.
"""

"""Import memories from other programs and export them (B13).

decides  the format of a source (`formats`), what an import changes (`plan`), what an export writes (`import_export`)
does     reads Claude Code's and Codex's memory directories, AGENTS.md, the MCP memory server's file, mem0's JSON, basic-memory's notes
         and claude-mem's database; saves through the memory store, writes files through `disk`
costs    one pass over the source, at most 64 MB of it; a save for each new memory
crash    at any point: each memory is saved completely or not at all, each file is old or new; running it again continues
spec     B13; S5 and S8 define a memory, B7 is handled by the store, G1 applies to every file name

Readers and writers are pure functions. Data without a place in a format goes into a field or comment of ours that its own program
ignores; what does not fit there either is reported by name.
"""

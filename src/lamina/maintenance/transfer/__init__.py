"""Transfer: memories come in from other programs and go out to them (B13).

decides  which format a source has (`formats`), what an import changes (`plan`), what an export writes (`import_export`)
does     reads Claude Code's and Codex's memory directories, AGENTS.md, the MCP memory server's file and mem0's JSON; saves through
         the memory store, writes files through `disk`
costs    one pass over the source, at most 64 MB of it; a save for each memory that is new
crash    at any line: each memory is saved whole or not at all, each file is the old one or the new one; doing it again goes on
spec     B13; S5 and S8 say what a memory is, B7 is the store's business, G1 holds for every file name

Readers and writers are pure: text in, values out. What a format has no place for goes into a field or a comment of ours that its own
program ignores; what does not fit there either is reported by name.
"""

"""Layer 3: session notes, and compaction with them.

Decides: when to update the notes, whether an update may replace them, and what a compaction with notes keeps.
Does: runs an occasional background fork that rewrites one file, `<session>/session-memory/summary.md`.
Costs: one model call per update, mostly read from the prompt cache; a compaction with notes needs no call.
Kill switch: `lamina.sessionNotes` for the notes, `lamina.notesCompaction` for compaction with them.
Spec: N1-N7.
"""

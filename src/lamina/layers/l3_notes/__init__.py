"""Layer 3: session notes, and compaction with them.

Decides: when the notes are due, whether an update may take the place of the old notes, what a compaction with notes keeps.
Does: one fork in the background now and then, which rewrites one file, `<session>/session-memory/summary.md`.
Costs: that fork's call, mostly read from the prompt cache; a compaction with notes costs no call.
Kill switch: `lamina.sessionNotes` for the notes, `lamina.notesCompaction` for compaction with them.
Spec: N1-N7.
"""

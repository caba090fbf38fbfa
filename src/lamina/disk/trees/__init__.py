"""Directory trees: one that is never left (`rootdir`), what changed in it, what lies there, and rewriting or removing it."""

"""Which path is meant and whether it may be used: names, memory directories (G1), a user's files, and a project's slug (S1)."""

"""Resolves and checks paths: file names, memory directories (G1), the user's files, and a project's slug (S1)."""

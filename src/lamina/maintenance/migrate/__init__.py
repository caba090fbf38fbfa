"""`lamina migrate`: a project that moved keeps its memory and its sessions."""

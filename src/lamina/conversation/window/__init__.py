"""Layer 0: tokens, windows, thresholds.

Decides: the size of the window, how full it is, and the thresholds for warning, compaction and blocking.
Does: nothing; every function is pure, no clock, no files.
Costs: a few microseconds per new block; a turn pays only for its new blocks.
Kill switch: none; the other layers rely on it. `LAMINA_CONTEXT_WINDOW` and `LAMINA_AUTOCOMPACT_PCT` change its numbers.
Spec: T1-T10, B15.
"""

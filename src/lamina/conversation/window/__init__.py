"""Layer 0: tokens, windows, thresholds.

Decides: how full the window is, which window it is, and where warning, compaction and blocking stand.
Does: nothing; every function is pure, no clock, no files.
Costs: a few microseconds per new block; a turn pays for what is new in it.
Kill switch: none; the other layers judge by this one. `LAMINA_CONTEXT_WINDOW` and `LAMINA_AUTOCOMPACT_PCT` move its marks.
Spec: T1-T10, B15.
"""

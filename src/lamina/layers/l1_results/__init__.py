"""Layer 1: tool results.

Decides: which results are too large to stay in the context: by tool, and all results of one message together.
Does: writes such a result to a file of the session and puts a preview in its place, before it enters the log.
Costs: a few microseconds per result; a result that is spilled costs one write of it and one hash.
Kill switch: `spill`. Numbers: `results.per_tool`, `results.default`, `results.per_message`, `results.preview`.
Spec: R1-R6, B1 (spills).

Without a disk the layer steps aside: a result stays whole while it fits, and what cannot fit is cut and says so.
"""

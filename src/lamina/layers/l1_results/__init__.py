"""Layer 1: tool results.

Decides: which results are too large for the context, by tool and by the total size of a message's results.
Does: writes a large result to a file in the session's directory and logs a preview in its place ("spilling").
Costs: a few microseconds per result; a spilled result costs one file write and one hash.
Kill switch: `spill`. Numbers: `results.per_tool`, `results.default`, `results.per_message`, `results.preview`.
Spec: R1-R6, B1 (spills).

If the disk cannot be written, the layer steps aside: results that fit stay whole, and the others are cut with a visible note.
"""

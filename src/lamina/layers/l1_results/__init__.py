"""Layer 1: tool results.

Decides: which results are too large for the context, by tool and by the total size of a message's results.
Does: writes a large result to a file in the session's directory and logs a preview in its place ("spilling"). Writes a long result
to a file and logs the preview that replaces it after the next complete answer ("show once").
Costs: a few microseconds per result; a spilled result, or one that is shown once, costs one file write and one hash.
Kill switch: `spill`; `once.from_chars` 0 for results shown once. Numbers: `results.per_tool`, `results.default`,
`results.per_message`, `results.preview`, `once.from_chars`, `once.preview`, `once.kept_tools`.
Spec: R1-R6, B1 (spills), P3.

If the disk cannot be written, the layer steps aside: results that fit stay whole, and the others are cut with a visible note.
"""

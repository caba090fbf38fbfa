"""Layer 2, microcompaction: old tool results are cleared, so that a summary is needed later or not at all.

Decides    which results are cleared before a call: after a pause, in the provider's cache, or by size, in this order
Does       saves the originals and appends the decision as one record with its receipt (step.py, clearing.py)
Costs      no model call; a clearing breaks the prompt cache from the first result on, which is announced (cache edits do not)
Switches   sizeClearing, idleClearing, cacheEdits, apiClearing; off takes no new decisions, those taken stay
Spec       M1-M7, K3, B1
"""

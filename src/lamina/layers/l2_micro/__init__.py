"""Layer 2, microcompaction: clears old tool results, so that a summary is needed later or not at all.

Decides    which results to clear before a call: with a cold cache, after a pause, in the provider's cache, or by size, in this order
           (plan.py, over the registry of what is in view, registry.py); and which old answers to shorten if the results are
           not enough (old_answers.py)
Does       saves the originals and appends the decision as one record with its receipt (step.py)
Costs      no model call; a clearing causes an announced cache break at the first cleared result (cache edits cause none)
Switches   cold.clear, cold.repeated, sizeClearing, idleClearing, cacheEdits, apiClearing; switching off stops new
           clearings and keeps earlier ones
Spec       M1-M7, K3, B1, P2, P5
"""

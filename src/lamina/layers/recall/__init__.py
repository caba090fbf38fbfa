"""Recall in a turn: memories that fit the user's message are placed beside it.

Decides  whether a message asks for memories, which fit, and whether a model or the local ranker chooses
Does     appends them as context behind the message, once each
Costs    milliseconds with the ranker; one side call in the background with a model
Switch   `recall`
Spec     Q1-Q8

    step.py  recall before a call     model_selector.py  a model's choice in the background     state.py  state and cheap gates
"""

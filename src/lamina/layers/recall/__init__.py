"""Recall in a turn: adds memories that are relevant to the user's message.

Decides  whether a message needs memories, which ones are relevant, and whether a model or the local ranker chooses
Does     appends each memory once, as context after the message
Costs    milliseconds with the ranker; one background side call with a model
Switch   `recall`
Spec     Q1-Q8

    step.py  recall before a call     model_selector.py  a model's choice in the background     state.py  state and cheap gates
"""

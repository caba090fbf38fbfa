"""The steps of a turn that belong to a layer: each module binds one room under `layers/` to a conversation.

A room decides on values; a step hands it those values, writes what was decided, and enters it as records. `turn.py` calls the steps in
order. What fails in a step is told and passed over (`turn.stepping_aside`): the next layer catches.
"""

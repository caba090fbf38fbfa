"""The guard of memory: every writer that is not the user passes it.

Decides: whether the user's own words support a memory, and where else its content comes from.
Does: nothing; it is pure. Callers save what is accepted, propose what has an origin, and report what is refused.
Costs: no model; words are compared, in time linear in the length of the conversation.
Switch: none. `lamina.memoryMode` sets what happens to accepted changes.
Ids: B6, G3.
"""

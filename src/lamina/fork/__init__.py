"""Side runs that share the prompt cache, and the tool loop.

does     the tool loop (`loop`): call the model (`model_call`, which can be aborted at any moment), run the tools the answer calls
         (`tool_runner`), repeat; forks (`fork`): one directive appended to what the parent hands over (`handover`);
         background work within its budget (`background`)
lends    what the loop on top of a session provides to the layers (`host`)
costs    a fork: one request that begins with the parent's bytes
spec     A1–A3, X6, D4
"""

"""Side runs that share the prompt cache, and the one tool loop.

does     the tool loop (`loop`): ask (`model_call`: a call can be left at any moment), run the tools an answer calls for (`tool_runner`),
         ask again; forks (`fork`): one directive behind what the parent handed over (`handover`);
         work in the background within its budget (`background`)
lends    what a loop on top of a session gives to the layers (`host`)
costs    a fork: one request that begins with the parent's bytes
spec     A1–A3, X6, D4
"""

"""What outlives a session: topics, their index, and the history of both.

decides  where memory lies, what a topic file and the index say, which texts are secrets, what may be written and by whom (`store`);
         which memories are open to a message, fit it and clearly do, and how they are shown (`recall`); what the model is told
         (`instructions`)
does     saves in two steps, the file and then its index line, under one guard per directory, and finishes what a crash left; keeps every
         version and what was removed; lets proposals wait for a yes (`store`); joins the scopes of a project (`memory`); takes over what
         a model writes with its file tools (`tool_writes`); brings memories to a message (`recall`)
costs    a save about six waits for the disk; a scan of 10,000 unchanged topics about 30 ms
off      LAMINA_DISABLE_MEMORY, autoMemoryEnabled; memoryMode for each scope; lamina.recall
spec     S1–S11, Q1–Q8, F4, A5, B4, B5, B7, B8, B12, B15, W1 (the directory), W2, G1, G3
"""

"""Memory: topics that outlive a session, their index, and the history of both.

decides  where memory is stored, the content of a topic file and the index, which texts are secrets, who may write (`store`);
         which memories may go with a message, which clearly fit, and how they are shown (`recall`); the model's instructions
         (`instructions`); which switch turned memory off (`switches`)
does     saves in two steps, the file and then its index line, under one guard per directory; recovers from crashes; keeps every
         version and every removed memory; queues proposals for approval (`store`); joins the scopes of a project (`memory`);
         takes over writes from a model's file tools (`tool_writes`); brings memories to a message (`recall`)
costs    about six disk waits for a save; about 30 ms for a scan of 10,000 unchanged topics
off      LAMINA_DISABLE_MEMORY, autoMemoryEnabled; memoryMode for each scope; lamina.recall
spec     S1–S11, Q1–Q8, F4, A5, B4, B5, B7, B8, B12, B15, W1 (the directory), W2, G1, G3
"""

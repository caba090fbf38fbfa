"""What outlives a session: topics, their index, and the history of both.

decides  where memory lies (`place`), what a topic file and the index say (`topic`, `index`), which texts are secrets (`secrets`),
         what of a wish may be written (`draft`),
         who may write in a scope (`modes`), which memories fit a question (`rank`) and which of them clearly do (`fit`), which are
         open to a message (`surfacing`), what a model is asked that chooses (`select`), what the model is told (`instructions`, `shown`)
does     saves in two steps, the file and then its index line, under one guard per directory (`directory`) and finishes what a crash left
         (`mending`); finds a memory by its name (`shelf`); keeps every version and
         what was removed (`history`); lets proposals wait for a yes (`inbox`); reads the heads of all topics (`scan`);
         takes over what a model writes with its file tools (`writing`); brings memories to a message (`recalling`)
costs    a save about six waits for the disk; a scan of 10,000 unchanged topics about 30 ms
off      LAMINA_DISABLE_MEMORY, autoMemoryEnabled; memoryMode for each scope; lamina.recall
spec     S1–S11, Q1–Q8, F4, B4, B5, B7, W1 (the directory), G1, G3
"""

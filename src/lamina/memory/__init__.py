"""What outlives a session: topics, their index, and the history of both.

decides  where memory lies (`place`), what a topic file and the index say (`topic`, `index`), which texts are secrets (`secrets`),
         who may write in a scope (`modes`), which memories fit a question (`rank`), what the model is told (`instructions`)
does     saves in two steps, the file and then its index line, under one guard per directory (`directory`); keeps every version and
         what was removed (`history`); lets proposals wait for a yes (`inbox`); reads the heads of all topics (`scan`);
         takes over what a model writes with its file tools (`writing`)
costs    a save about six waits for the disk; a scan of 10,000 unchanged topics about 30 ms
off      LAMINA_DISABLE_MEMORY, autoMemoryEnabled; memoryMode for each scope
spec     S1–S11, F4, B4, B5, B7, W1 (the directory), G1, G3
"""

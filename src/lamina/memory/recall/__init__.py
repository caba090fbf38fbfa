"""From a message to the memories that help with it.

plan.py       what a message asks of memory, and which memories are open to it
rank.py       BM25 over three fields, any language; which of those found clearly fit
library.py    all memories of a project, searched and read
selection.py  the ranker's or a model's choice            render.py     a recalled memory as the model reads it
"""

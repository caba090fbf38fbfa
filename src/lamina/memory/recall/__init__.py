"""Recall: from a message to the memories that help with it.

plan.py       the question in a message, and which memories may be shown for it
rank.py       BM25 over three fields, any language
threshold.py  which of the ranked memories clearly fit
encoders.py   texts as vectors          vectors.py  the stored vectors          fusion.py  words and meaning together
library.py    search and read all memories of a project
selection.py  the ranker's or a model's choice            render.py     a recalled memory as the model reads it
"""

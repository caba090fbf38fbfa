"""Learned judges for sentences, for the work without a model.

Decides  whether a sentence of the user is worth keeping, and as which type of memory (keep.py); whether a clause or a sentence gives the
         reason for the one beside it (reason.py)
Does     a regression over hashed words, letters, cues and groups of words in seven languages; `scripts/train_extract.py` makes the weights
Costs    170 kB of weights, read when the first sentence is judged, and about a millisecond a sentence
"""

"""Layer 5: memories are written at the end of a turn.

Decides  whether a review is due, which messages it is about, and whether a memory may be written: by who said it
Does     asks a fork of the conversation to review what is new, and lets it write memory files and nothing else
Costs    one fork a turn, in the background; the conversation before it is read from the prompt cache
Switch   `lamina.extraction`, `lamina.extractionEvery`, `lamina.extractionNonInteractive`; `memoryMode` decides what becomes of it
Spec     X1-X7, B6, and the extraction's part of W1, K5, O1 and B15
"""

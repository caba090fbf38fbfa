"""Layer 5: writes memories at the end of a turn.

Decides  whether a review is due, which messages it covers, and whether a memory may be written, judged by where its content came from
Does     asks a fork of the conversation to review the new messages, and lets it write memory files and nothing else; a model without
         file tools answers with a list of memories instead (answer.py)
Costs    one fork per turn, in the background; it reads the earlier conversation from the prompt cache
Switch   `lamina.extraction`, `lamina.extractionEvery`, `lamina.extractionNonInteractive`; `memoryMode` decides about approval
Spec     X1-X7, B6, and the extraction's part of W1, K5, O1 and B15
"""

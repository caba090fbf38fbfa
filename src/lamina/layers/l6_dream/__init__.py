"""Layer 6: tidies up memory from time to time, in the background.

Decides  whether a dream is due, what it may read and write, and which of its changes are applied
Does     lets a fork work on a copy of the private memories, then applies the difference under a lock; a dream is undone as a whole
Costs    one stat at the end of a turn while no dream is due; a dream takes up to 30 answers in the background, about once a day
Switch   `autoDreamEnabled`; `lamina.dreamHours`, `lamina.dreamSessions`, `lamina.dreamScanMinutes`; `memoryMode` decides about approval
Spec     D1-D5, Z5, and the dream's part of B4, B6, K5, O1 and W2

The files in the order of a dream: trigger, gates · step, run · record, stage · directive · bounds · plan, apply ·
undo, changes · without a model: offline, tidy.
"""

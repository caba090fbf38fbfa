"""The state of one conversation, and the only functions that change it.

Decides  how full the window is, where its thresholds stand, whether the next request breaks the prompt cache
Does     appends records to the log, keeps the count, hands over to forks, commits a compaction and restores what belongs behind it
Costs    what is new in the conversation; the log is folded again only after an undo
Switch   none: every layer rests on it
Spec     T1-T10, K2-K5, B1, B2, C4, C5

    state.py         Conversation: its fields, and the functions that assign them
    revision.py      rewind and undo
    window/          layer 0: tokens, windows, thresholds
    triggers.py      cheap looks that keep the dear layers unloaded
    request.py       what stands before the messages, what was sent last, cache edits, refused blocks
    exchange.py      a request as it leaves and its answer as it enters the log; cache breaks announced and detected
    repair.py        what a server refused is left out
    forks.py         starting a fork, and accounting for it; side_usage.py: what forks have used
    isolate.py       failures are recorded and passed over; results of background jobs
    pins.py          what must survive every compaction
    compaction/      what notes and summaries share: cutting, composing, restoring, committing
"""

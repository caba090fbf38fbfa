"""The state of one conversation, and the only functions that change it.

Decides  how full the window is, where its thresholds are, whether the next request breaks the prompt cache
Does     appends records to the log, keeps the count, hands over to forks, commits a compaction and restores context after it
Costs    time for new messages only; the log is folded again only after an undo
Switch   none: every layer depends on it
Spec     T1-T10, K2-K5, B1, B2, C4, C5, P4

    state.py         Conversation: its fields, and the functions that assign them
    revision.py      rewind and undo
    window/          layer 0: tokens, windows, thresholds
    triggers.py      cheap checks that keep the expensive layers unloaded
    price.py         what a compaction costs, and what the calls without it cost
    request.py       the fixed part of a request, the last request, cache edits, refused blocks
    exchange.py      records the prompt and the answer; announces and detects cache breaks
    repair.py        leaves out blocks that a server refused
    forks.py         starting a fork, and accounting for it
    isolate.py       records failures and continues; takes the results of background jobs
    pins.py          limits for pinned texts
    compaction/      what notes and summaries share: cutting, composing, restoring, committing
"""
